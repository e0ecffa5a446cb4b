"""Reference curves without an engine: workers that answer as they are told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fixed_machine import CPU, models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import SUPPORTED, Device, Support
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.run.conduct.launch_context import LaunchContext
from accelbench.run.plan.request import Planned
from accelbench.run.plan.run_forecast import Budget
from accelbench.run.process.worker_client import SilentObserver
from accelbench.run.verify.convergence import STEPS, Curves
from accelbench.run.verify.verdicts import NOT_DONE

FALLING = [2.0 - 0.1 * i for i in range(STEPS)]  # by 0.9


def case_of(
    precision: str = "bf16",
    runtime: str = "pytorch",
    hardware: str = "cpu",
    batch: int = 2,
    mode: Mode = Mode.TRAINING,
    **options: Any,
) -> Case:
    shapes = Shapes(batch, 16)
    model = models("bert-tiny")[0]
    return Case(model, Target(runtime, hardware), precision, shapes, mode, options=options)


class Channel:
    """A worker's end that answers as it is told to."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop

    def send(self, message: Mapping[str, Any]) -> None:
        self._shop.asked.append(dict(message))

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        answer = self._shop.answer(self._shop.asked[-1])
        if isinstance(answer, Exception):
            raise answer
        return {"event": "done", **answer}


class Worker:
    def __init__(self, shop: Workshop) -> None:
        self.channel = Channel(shop)
        self._shop = shop

    def end(self) -> None:
        self._shop.open_workers -= 1

    def fate(self) -> int:
        return 1

    def last_words(self) -> str:
        return "goodbye"


@dataclass
class Workshop:
    """Makes such workers, and counts them."""

    answer: Callable[[Mapping[str, Any]], Any]
    asked: list[dict[str, Any]] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    open_workers: int = 0
    fails: Exception | None = None

    def worker(self, runtime: Any, threads: int | None) -> Worker:
        if self.fails is not None:
            raise self.fails
        self.made.append(runtime.info.name)
        self.open_workers += 1
        return Worker(self)


class Card:
    """A runtime that is only asked what it supports."""

    info = PytorchRuntime.info

    def __init__(self, support: Support = SUPPORTED) -> None:
        self._support = support

    def supports(self, case: Case, device: Device) -> Support:
        return self._support


def falls(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"losses": FALLING} if request["do"] == "losses" else {}


def context_of(shop: Workshop, **changed: Any) -> LaunchContext:
    fields: dict[str, Any] = {
        "settings": RunSettings(run_id="run", seed=5, threads=1, data="pictures"),
        "worker_pool": shop,
        "runtimes": {"pytorch": Card()},
        "append": lambda _: None,
        "observer": SilentObserver(),
        "budget": Budget(None, 1),
        "surroundings": None,
        "estimate": lambda _: 2**20,
        "free": lambda _: 2**30,
        "cost": lambda _: None,
        "conditions": {},
    }
    return LaunchContext(**{**fields, **changed})


def gathered(
    cases: Sequence[Case], shop: Workshop | None = None, **changed: Any
) -> tuple[Curves, Workshop]:
    shop = shop or Workshop(falls)
    context = context_of(shop, **changed)
    context.curves.gather(context, [Planned(case, CPU) for case in cases])
    assert shop.open_workers == 0
    return context.curves, shop


def measured(losses: Sequence[float] = FALLING, seconds: float = 0.1) -> dict[str, Any]:
    """Columns of a case that was trained."""
    return {"loss_per_step": losses, "latency_mean_ms": 1e3 * seconds}


def why_not(cases: Sequence[Case], shop: Workshop | None = None, **changed: Any) -> str:
    """The reason that the first of some cases has no convergence."""
    curves, shop = gathered(cases, shop, **changed)
    known = curves.known(context_of(shop, **changed), cases[0], measured())
    assert known.convergence is None
    assert not known.columns
    assert set(known.reasons) == {"convergence", "convergence_steps"}
    assert known.verdict.word == NOT_DONE
    assert known.verdict.why == known.why
    return known.why
