"""Runtimes that lie about their time or their work, and how each is caught."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scripted_runs import CPU, models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, Device
from accelbench.core.words import Mode, Timing
from accelbench.run.agreement import agree, pick
from accelbench.run.honesty import (
    LONGEST_STEP_NS,
    fastest,
    refuse_cached,
    refuse_dishonest,
    refuse_implausible,
    refuse_unsynchronised,
)
from accelbench.run.selfcheck import self_check
from accelbench.runtimes.scripted import VirtualClock

WORK_NS = 5e6
WEIGHTS = np.random.default_rng(0).standard_normal((16, 16))


def case_of(batch: int = 2, mode: Mode = Mode.INFERENCE) -> Case:
    return Case(models("bert-tiny")[0], Target("liar", "cpu"), "fp32", Shapes(batch, 16), mode)


@dataclass
class Honest:
    """A runtime on a virtual device: a step is queued, and done when it is waited for."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    pending_ns: float = 0.0

    def prepare(self, case: Case, seed: int | None = None) -> Any:
        self.case = case
        return np.random.default_rng(seed or 0).standard_normal((case.shapes.batch, 16))

    def start(self, inputs: Any) -> None:
        self.pending_ns += WORK_NS

    def wait(self) -> None:
        self.clock.advance(self.pending_ns)
        self.pending_ns = 0.0

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        times = []
        for _ in range(n):
            start = self.clock.now_ns()
            self.start(inputs)
            self.wait()
            times.append(self.clock.now_ns() - start)
        return Block(n, timing, {"step": times})

    def outputs(self, inputs: Any) -> Mapping[str, Any]:
        self.start(inputs)
        self.wait()
        return {"y": inputs @ WEIGHTS}


class Unsynchronised(Honest):
    """Says a step is over when it was queued."""

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        for _ in range(n):
            self.start(inputs)
        self.clock.advance(1000 * n)
        return Block(n, timing, {"step": [1000] * n})


@dataclass
class Caching(Honest):
    """Computes what it has not seen; of the rest it remembers the outputs."""

    seen: set[bytes] = field(default_factory=set)

    def start(self, inputs: Any) -> None:
        self.pending_ns += 1000 if inputs.tobytes() in self.seen else WORK_NS
        self.seen.add(inputs.tobytes())


class Constant(Honest):
    """Has one answer to everything."""

    def outputs(self, inputs: Any) -> Mapping[str, Any]:
        return {"y": np.ones((len(inputs), 16))}


class Downgraded(Honest):
    """Was asked for fp32 and computes in half of it."""

    def outputs(self, inputs: Any) -> Mapping[str, Any]:
        narrow = inputs.astype(np.float16) @ WEIGHTS.astype(np.float16)
        return {"y": narrow.astype(np.float32)}


class Early(Honest):
    """Gives what its buffer held before: the outputs of the inputs before these."""

    before: Any = None

    def outputs(self, inputs: Any) -> Mapping[str, Any]:
        found = np.zeros((len(inputs), 16)) if self.before is None else self.before
        self.before = inputs @ WEIGHTS
        return {"y": found}


def looked_at(liar: Any, **how: Any) -> None:
    refuse_dishonest(liar, case_of(), CPU, 0, liar.clock, how.get("median_ns", WORK_NS))


def test_an_honest_runtime_passes() -> None:
    looked_at(Honest())


def test_a_step_that_is_only_queued_is_caught() -> None:
    with pytest.raises(CaseError, match=r"still waited for: 20\.0 ms") as caught:
        looked_at(Unsynchronised())
    assert caught.value.reason == "unsynchronised"


def test_remembered_outputs_are_caught() -> None:
    with pytest.raises(CaseError, match="remembered, not computed") as caught:
        looked_at(Caching())
    assert caught.value.reason == "cached"


def test_a_slow_first_look_is_no_cache() -> None:
    """Cold memory, late allocations: a first step may take several times as long."""
    slow = Honest()
    slow.start = lambda inputs: setattr(slow, "pending_ns", 7 * WORK_NS)  # type: ignore[method-assign]
    refuse_cached(slow, case_of(), 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "strikes",
    [
        pytest.param([0] + [0, 50e6, 0] * 3 + [0, 0, 0], id="three tries in a row"),
        pytest.param([0, 0, 50e6, 50e6], id="a machine that has become slower"),
        pytest.param([0, 50e6, 50e6, 0], id="a machine that was slower"),
    ],
)
def test_what_disturbs_some_looks_accuses_nobody(strikes: list[float]) -> None:
    """What noise does to some waits it does not do to each, and to none beside them."""
    disturbed = Honest()
    outputs = disturbed.outputs
    left = iter(strikes)

    def struck(inputs: Any) -> Mapping[str, Any]:
        disturbed.clock.advance(next(left))
        return outputs(inputs)

    disturbed.outputs = struck  # type: ignore[method-assign]
    refuse_unsynchronised(disturbed, case_of(), disturbed.clock)  # type: ignore[arg-type]
    assert next(left, None) is None


def test_more_operations_than_a_device_can_do_are_caught() -> None:
    large = case_of(batch=128)
    refuse_implausible(large, CPU, 1e9)
    with pytest.raises(CaseError, match="operations a second") as caught:
        refuse_implausible(large, CPU, 100.0)
    assert caught.value.reason == "implausible"


@pytest.mark.parametrize("hardware", ["cpu", "cuda", "qnn", "webgpu"])
def test_no_device_of_today_is_called_a_liar(hardware: str) -> None:
    """A B200 does 4.5e15 in dense bf16, a core of Zen 5 0.3e12 in fp32."""
    device = Device(hardware, "the fastest", count=1)
    assert fastest(device, "bf16") > (4.5e15 if hardware != "cpu" else 4e12)
    assert fastest(device, "fp32") > 0.3e12


def test_what_takes_long_is_not_run_again() -> None:
    class Untouchable(Honest):
        def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
            raise AssertionError("a long step was repeated")

    looked_at(Untouchable(), median_ns=LONGEST_STEP_NS + 1)


@pytest.mark.parametrize("liar", [Constant, Early])
def test_outputs_that_are_not_of_these_inputs_are_caught(liar: Callable[[], Any]) -> None:
    checked = self_check(liar(), case_of())
    assert not checked.ok or not checked.repeatable


def test_a_silent_downgrade_is_caught() -> None:
    honest, liar = Honest(), Downgraded()
    inputs, others = honest.prepare(case_of(), 1), honest.prepare(case_of(), 2)
    right, other = (pick(honest.outputs(one), 0) for one in (inputs, others))
    assert agree(pick(honest.outputs(inputs), 0), right, other, "fp32").ok
    assert not agree(pick(liar.outputs(inputs), 0), right, other, "fp32").ok
    assert agree(pick(liar.outputs(inputs), 0), right, other, "fp16").ok
