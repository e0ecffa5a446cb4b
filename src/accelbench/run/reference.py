"""Convergence: how far the loss falls, relative to the same training in fp32 on the CPU.

What is compared are two curves of losses that nobody times, of training without
dropout: kinds of devices draw other numbers, and which ones a model was dealt says
nothing of how well it computes. One curve is of the worker that has just measured
the case, from a fresh start. The other is of a worker of its own, which trains the
same steps — same weights, inputs, seed and optimizer — in fp32 on the CPU with
pytorch, before the worker that measures is opened, so that neither its memory nor
its caches are touched; once a run. A case that is itself fp32 on the CPU with
pytorch is its own reference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accelbench.core.case import Case, Target
from accelbench.core.errors import SurroundingsError
from accelbench.core.protocols import Device
from accelbench.core.serial import case_to_json
from accelbench.core.words import Mode
from accelbench.run.asking import open_request
from accelbench.run.observer import Progress
from accelbench.run.plan import Planned
from accelbench.run.wire import Channel, ClosedError

if TYPE_CHECKING:
    from accelbench.run.context import Context

#: Losses that are compared: of the first step to that of the tenth.
STEPS = 10

#: Of its first loss: a reference that falls less than this is no measure for others.
LEAST_FALL = 0.01

#: A curve that would take longer is not worth its time, nor more than this part of a budget.
LONGEST_SECONDS = 60.0
LARGEST_SHARE = 0.25

#: Operations a second of one core: half of what BERT-base reaches (22e9 in 0.55 s).
_PER_CORE = 2e10

#: The estimate is rough; what takes this many times as long is not what was estimated.
_PATIENCE = 4.0

_RUNTIME = "pytorch"
_CPU = Device("cpu", "the reference's processor")

#: What decides a curve, of all that can be set on purpose.
_OPTIONS = frozenset({"optimizer"})

#: Set on purpose without changing a bit of what is computed.
_HARMLESS = frozenset({"threads"})


@dataclass(frozen=True)
class Curve:
    """The losses of a reference's first steps, or why there are none."""

    losses: Sequence[float] = ()
    why: str = ""


#: The columns of a case's convergence; where there are none, a reason a column.
Verdict = tuple[dict[str, Any], dict[str, str]]

_ZERO = "the loss is 0 from the start, as a contrastive loss of a batch of one always is"


class References:
    """The curves of a run, each trained once."""

    def __init__(self) -> None:
        self._curves: dict[str, Curve] = {}

    def gather(self, context: Context, group: Sequence[Planned]) -> None:
        """Have a curve, or a reason, for every case of a group that trains."""
        for planned in group:
            case = planned.case
            if case.mode is not Mode.TRAINING or planned.refusal is not None or is_own(case):
                continue
            asked = reference_of(case)
            if asked.case_id in self._curves:
                continue
            why = _not_tried(context, asked)
            if not why:
                context.observer.progress(Progress("reference"))
            self._curves[asked.case_id] = Curve(why=why) if why else _trained(context, asked)

    def known(self, context: Context, case: Case, measured: Mapping[str, Any]) -> Verdict | None:
        """What can be said without another pass; None: the worker has to train the curve.

        Args:
            context: the run.
            case: one that was measured, in training.
            measured: its columns.
        """
        losses = measured.get("loss_per_step")
        if not losses:
            return _no("the runtime tells no losses")
        if is_own(case):
            return _no(_ZERO) if losses[0] == 0 else _yes(1.0)
        why = _worthless(self._of(case))
        if why:
            return _no(why)
        # Without dropout it is other code, and is compiled once more.
        needed = (STEPS * measured["latency_mean_ms"] + (measured.get("compile_ms") or 0)) / 1e3
        most = _most_seconds(context)
        if needed > most:
            return _no(
                f"{STEPS} more training steps would take {needed:.0f} s,"
                f" and {max(most, 0):.0f} s is the most"
            )
        return None

    def judge(self, case: Case, curve: Curve) -> Verdict:
        """Hold a case's curve against its reference."""
        found, why = convergence(curve, self._of(case))
        return _no(why) if found is None else _yes(found)

    def _of(self, case: Case) -> Curve:
        asked = reference_of(case).case_id
        return self._curves.get(asked) or Curve(why="its reference was not asked for")


def _yes(found: float) -> Verdict:
    return {"convergence": found, "convergence_steps": STEPS}, {}


def _no(why: str) -> Verdict:
    return {}, {"convergence": why, "convergence_steps": why}


def convergence(curve: Curve, reference: Curve) -> tuple[float | None, str]:
    """How far a loss fell relative to its reference; without a figure, why."""
    if curve.why:
        return None, curve.why
    if len(curve.losses) < STEPS:
        return None, f"the runtime told {len(curve.losses)} losses of {STEPS} training steps"
    why = _worthless(reference)
    if why:
        return None, why
    return _fall(curve) / _fall(reference), ""


def _fall(curve: Curve) -> float:
    return curve.losses[0] - curve.losses[STEPS - 1]


def _worthless(reference: Curve) -> str:
    """Why nothing can be held against a reference, "" where it can."""
    if reference.why:
        return f"there is no reference: {reference.why}"
    first = reference.losses[0]
    if first == 0:
        return _ZERO
    if _fall(reference) < LEAST_FALL * abs(first):
        return (
            f"the reference's own loss does not fall by {LEAST_FALL:.0%} in {STEPS} steps"
            f" ({first:.4g} to {reference.losses[STEPS - 1]:.4g})"
        )
    return ""


def reference_of(case: Case) -> Case:
    """The same training in fp32 on the CPU with pytorch."""
    return replace(
        case,
        target=Target(_RUNTIME, "cpu"),
        precision="fp32",
        options={name: value for name, value in case.options.items() if name in _OPTIONS},
    )


def is_own(case: Case) -> bool:
    """Whether a case is already what it would be held against."""
    kept = {name: value for name, value in case.options.items() if name not in _HARMLESS}
    unit = Target(case.target.runtime, case.target.hardware)
    return replace(case, options=kept, target=unit).case_id == reference_of(case).case_id


def seconds(context: Context, case: Case) -> float:
    """What a reference would take, roughly."""
    counted = context.cost(Planned(case, _CPU))
    shapes = case.shapes
    # Not counted: two operations a weight and token forward, twice that backward.
    tokens = shapes.batch * (shapes.sequence or 1)
    flops = counted.flops if counted else 6.0 * case.model.parameters * tokens
    cores = context.settings.threads or os.cpu_count() or 1
    return STEPS * flops / (_PER_CORE * cores)


def _not_tried(context: Context, case: Case) -> str:
    """Why a reference is not worth trying, "" where it is."""
    runtime = context.runtimes.get(_RUNTIME)
    if runtime is None:
        return f"the runtime {_RUNTIME} is not installed here"
    support = runtime.supports(case, _CPU)
    if not support.ok:
        return support.message
    # Weights, gradients and the optimizer's two moments, in fp32: more is needed in any case.
    need = context.estimate(case) or 16 * case.model.parameters
    room = context.free(_CPU)
    if room is not None and need > room:
        return (
            f"in fp32 on the CPU it needs an estimated {need / 2**30:.1f} GiB,"
            f" and {room / 2**30:.1f} GiB is free"
        )
    needed, most = seconds(context, case), _most_seconds(context)
    if needed > most:
        return (
            f"in fp32 on the CPU it would take an estimated {needed:.0f} s,"
            f" and {max(most, 0):.0f} s is the most"
        )
    return ""


def _most_seconds(context: Context) -> float:
    """What a curve may take."""
    left = context.budget.left()
    return LONGEST_SECONDS if left is None else min(LONGEST_SECONDS, LARGEST_SHARE * left)


def losses_request(case: Case) -> dict[str, Any]:
    """What a worker that has the model open is asked for."""
    return {"do": "losses", "case": case_to_json(case), "steps": STEPS}


def _trained(context: Context, case: Case) -> Curve:
    """Train a reference in a worker of its own; whatever happens to it becomes a reason."""
    settings = context.settings
    try:
        worker = context.workshop.worker(context.runtimes[_RUNTIME], settings.threads)
    except (SurroundingsError, ClosedError, TimeoutError) as error:
        return Curve(why=f"its worker did not start ({error or 'it did not answer in time'})")
    patience = min(settings.timeout, _PATIENCE * LONGEST_SECONDS)
    try:
        _answer(worker.channel, open_request(settings, case, _CPU), patience)
        return Curve(tuple(_answer(worker.channel, losses_request(case), patience)["losses"]))
    except _RefusedError as error:
        return Curve(why=f"in fp32 on the CPU, {error}")
    except TimeoutError:
        return Curve(why=f"in fp32 on the CPU it was not finished after {patience:.0f} s")
    except ClosedError:
        return Curve(why="its worker ended in the middle of it")
    finally:
        worker.end()


class _RefusedError(Exception):
    """What a worker said instead of an answer."""


def _answer(channel: Channel, request: Mapping[str, Any], patience: float) -> dict[str, Any]:
    channel.send(request)
    message = channel.receive(patience)
    if message["event"] == "error":
        raise _RefusedError(message["message"])
    return message
