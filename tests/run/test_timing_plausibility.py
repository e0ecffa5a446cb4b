"""Runtimes that lie about their time or their work, and how each is caught."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fixed_machine import CPU, models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, Device
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.scripted import VirtualClock
from accelbench.measure.validated_session import CheckedSession
from accelbench.models.inputs import input_bytes
from accelbench.run.verify.agreement import agree, pick
from accelbench.run.verify.block_lengths import SingleStep
from accelbench.run.verify.plausibility import fastest, refuse_implausible
from accelbench.run.verify.self_check import CacheTrials, refuse_cached, self_check
from accelbench.run.verify.timed_steps import CHANCE
from accelbench.run.verify.timing_plausibility import (
    LONGEST_STEP_NS,
    TimingWatch,
    refuse_unsynchronised,
)

WORK_NS = 5e6
WEIGHTS = np.random.default_rng(0).standard_normal((16, 16))


def case_of(batch=2, mode=Mode.INFERENCE):
    return Case(models("bert-tiny")[0], Target("liar", "cpu"), "fp32", Shapes(batch, 16), mode)


class Fewest:
    """Blocks are as short as they may be."""

    def randint(self, a, b):
        return a


LAUNCH_NS = 5e4  # what queueing a step takes, or looking something up


@dataclass
class Honest:
    """A runtime on a virtual device: a step is queued, and done when it is waited for."""

    work_ns: float = WORK_NS
    clock: VirtualClock = field(default_factory=VirtualClock)
    done_at_ns: float = 0.0
    runs: int = 0
    phases = ("step",)

    def prepare(self, case, seed=None):
        self.batch = case.shapes.batch
        return np.random.default_rng(seed or 0).standard_normal((self.batch, 16))

    def start(self, inputs):
        self.runs += 1
        self.clock.advance(LAUNCH_NS)
        self.done_at_ns = max(self.done_at_ns, self.clock.now_ns()) + self.work_ns

    def wait(self):
        self.clock.advance(max(self.done_at_ns - self.clock.now_ns(), 0.0))

    def step(self, inputs):
        self.start(inputs)
        self.wait()

    def sample(self, inputs, n, timing):
        times = []
        for _ in range(n):
            start = self.clock.now_ns()
            self.step(inputs)
            times.append(self.clock.now_ns() - start)
        if timing is Timing.WHOLE:
            times = [sum(times)]
        return Block(n, timing, {"step": times})

    def outputs(self, inputs):
        self.start(inputs)
        self.wait()
        return {"y": inputs @ WEIGHTS}


class Unsynchronised(Honest):
    """Says a step is over when it was queued."""

    def step(self, inputs):
        self.start(inputs)


@dataclass
class Preempted(Honest):
    """On a machine so busy that who has made inputs has used its turn, and waits for the next."""

    used: bool = False

    def prepare(self, case, seed=None):
        self.used = True
        return super().prepare(case, seed)

    def step(self, inputs):
        if self.used:
            self.clock.advance(5 * WORK_NS)
        self.used = False
        super().step(inputs)


@dataclass
class Caching(Honest):
    """Computes what it has not seen; of the rest it remembers the outputs."""

    seen: set[bytes] = field(default_factory=set)

    def start(self, inputs):
        if inputs.tobytes() in self.seen:
            self.clock.advance(LAUNCH_NS)
        else:
            super().start(inputs)
        self.seen.add(inputs.tobytes())


class Skipping(Honest):
    """Its steps do the first item alone, its outputs all: no verification sees it."""

    def step(self, inputs):
        self.work_ns = WORK_NS
        super().step(inputs)

    def outputs(self, inputs):
        self.work_ns = WORK_NS * self.batch
        return super().outputs(inputs)


class Constant(Honest):
    """Has one answer to everything."""

    def outputs(self, inputs):
        return {"y": np.ones((len(inputs), 16))}


class Downgraded(Honest):
    """Was asked for fp32 and computes in half of it."""

    def outputs(self, inputs):
        narrow = inputs.astype(np.float16) @ WEIGHTS.astype(np.float16)
        return {"y": narrow.astype(np.float32)}


class Early(Honest):
    """Gives what its buffer held before: the outputs of the inputs before these."""

    before: Any = None

    def outputs(self, inputs):
        found = np.zeros((len(inputs), 16)) if self.before is None else self.before
        self.before = inputs @ WEIGHTS
        return {"y": found}


def looked_at(runtime, said_ns=None):
    said_ns = LAUNCH_NS + runtime.work_ns if said_ns is None else said_ns
    TimingWatch(CPU, runtime.clock).look(runtime, case_of(), said_ns)


@pytest.mark.parametrize("work_ns", [2e4, 3e5, 5e6, 2e8])
def test_an_honest_runtime_passes(work_ns):
    looked_at(Honest(work_ns))


def test_every_case_has_to_be_plausible_within_the_time_for_looking():
    watch, honest = TimingWatch(CPU, VirtualClock()), Honest()
    watch.look(honest, case_of(64), WORK_NS)
    with pytest.raises(CaseError, match="operations a second"):
        watch.look(honest, case_of(128), 100.0)

    large = case_of(batch=128)
    refuse_implausible(large, CPU, 1e9)
    with pytest.raises(CaseError, match="operations a second") as caught:
        refuse_implausible(large, CPU, 100.0)
    assert caught.value.reason == "implausible"

    class Untouchable(Honest):
        def sample(self, inputs, n, timing):
            raise AssertionError("a long step was repeated")

    looked_at(Untouchable(), LONGEST_STEP_NS + 1)

    long, short = Honest(LONGEST_STEP_NS - LAUNCH_NS), Honest(3e5)
    looked_at(long)
    looked_at(short)
    assert long.runs <= 10
    assert short.clock.now_ns() < 0.3e9


@pytest.mark.parametrize("work_ns", [3e5, 4.5e5, 1e6, 1.9e6, 5e6, 3e8])
def test_a_step_that_is_only_queued_is_caught(work_ns):
    with pytest.raises(CaseError, match="still waited for") as caught:
        looked_at(Unsynchronised(work_ns), LAUNCH_NS)
    assert caught.value.reason == "unsynchronised"


def test_a_device_that_has_caught_up_once_is_caught_the_next_time():
    """The process was kept waiting, and meanwhile what was pending got done."""
    liar = Unsynchronised(3e5)
    sample, blocks = liar.sample, iter([False] * 4 + [True] + [False] * 100)

    def late(inputs, n, timing):
        block = sample(inputs, n, timing)
        if n > 1 and next(blocks):
            liar.clock.advance(1e9)
        return block

    liar.sample = late
    with pytest.raises(CaseError, match="still waited for"):
        looked_at(liar, LAUNCH_NS)


def test_an_idle_wait_that_was_struck_excuses_nobody():
    liar = Unsynchronised(3e5)
    outputs, count = liar.outputs, iter(range(10**6))

    def late(inputs):
        liar.clock.advance(1e9 if next(count) % 4 == 2 else 0)
        return outputs(inputs)

    liar.outputs = late
    with pytest.raises(CaseError, match="still waited for"):
        looked_at(liar, LAUNCH_NS)


@pytest.mark.parametrize("work_ns", [3e5, 4.5e5, 1e6, 1.9e6, 5e6, 3e8])
def test_remembered_outputs_are_caught(work_ns):
    liar = Caching(work_ns)
    self_check(liar, case_of())
    with pytest.raises(CaseError, match="remembered, not computed") as caught:
        looked_at(liar, LAUNCH_NS)
    assert caught.value.reason == "cached"


@pytest.mark.parametrize("which", ["first", "again"])
def test_a_cache_is_caught_on_a_machine_that_others_load(which):
    liar = Caching(3e5)
    struck(liar, every=4, at=0 if which == "first" else 1)
    with pytest.raises(CaseError, match="remembered, not computed"):
        looked_at(liar, LAUNCH_NS)


def uncached(runtime, chance=CHANCE):
    checked = CheckedSession(runtime, runtime.clock, None)
    single = SingleStep(checked.session, 0.0)
    refuse_cached(checked, case_of(), chance, single)


def struck(runtime, every, at, by_ns=2e7):
    """Have steps of single-step blocks struck by what else runs on the machine."""
    step, count = runtime.step, iter(range(10**6))

    def slow(inputs):
        step(inputs)
        runtime.clock.advance(by_ns if next(count) % every == at else 0)

    runtime.step = slow


def test_a_first_look_that_was_slow_or_struck_is_no_cache():
    # Cold memory, late allocations: it has taken three times as long.
    slow = Honest(3 * WORK_NS)
    uncached(slow)
    uncached(Preempted())

    # Fifteen in a row, while every later look went undisturbed.
    unlucky = Honest(3e5)
    prepare, step, looks, fresh = unlucky.prepare, unlucky.step, [], []

    def anew(case, seed=None):
        looks.append(prepare(case, seed))
        fresh.append(looks[-1])
        return looks[-1]

    def slow(inputs):
        step(inputs)
        if any(one is inputs for one in fresh):
            fresh.clear()
            unlucky.clock.advance(2e7 if len(looks) <= 15 else 0)

    unlucky.prepare, unlucky.step = anew, slow
    uncached(unlucky, Fewest())
    assert len(looks) == 16


def test_bringing_inputs_takes_a_millisecond_and_five_nanoseconds_a_byte():
    """What a question leaves beyond that counts as part of its step."""
    hidden_ns, step_ns = 5e6, 2e6
    session = Honest()
    asked = SimpleNamespace(session=session, wrapped=session, unexplained_ns=hidden_ns)
    single = SimpleNamespace(step=lambda _: step_ns)
    case = case_of(64)
    brought_ns = 1e6 + 5.0 * input_bytes(case.model, case.shapes, mode=case.mode)
    trials = CacheTrials(asked, case, Fewest(), single, None, None)
    assert trials.time_control_step() == step_ns + hidden_ns - brought_ns


@pytest.mark.parametrize(
    "strikes",
    [
        pytest.param([0] * 4 + [9e8, 0, 0, 0] * 14, id="fourteen tries in a row"),
        pytest.param([0] * 4 + [9e8] * 60, id="a machine that has become slower"),
        pytest.param([9e8] * 5 + [0] * 60, id="a machine that was slower"),
    ],
)
def test_what_disturbs_some_looks_accuses_nobody(strikes):
    """What noise does to most waits it does not do to each, and to none beside them."""
    disturbed = Honest()
    outputs = disturbed.outputs
    left = iter(strikes)

    def late(inputs):
        disturbed.clock.advance(next(left, 0))
        return outputs(inputs)

    disturbed.outputs = late
    refuse_unsynchronised(disturbed, case_of(), disturbed.clock, WORK_NS)


def at_batches(runtime, said_ns):
    """At which of the batches steps were run."""
    watch, found = TimingWatch(Device("cuda", "a card"), runtime.clock), []
    for batch, said in said_ns.items():
        before = runtime.runs
        watch.look(runtime, case_of(batch), said)
        found += [batch] if runtime.runs > before else []
    return found


def test_times_that_do_not_grow_with_the_batch():
    with pytest.raises(CaseError, match=r"from a batch of 1 to one of 32 .* from 5.05 to 160") as e:
        at_batches(Skipping(), {1: WORK_NS, 32: WORK_NS})
    assert e.value.reason == "work_skipped"
    # A device that is not full does eight items in the time of one.
    assert at_batches(Honest(), {1: WORK_NS, 128: WORK_NS}) == [1, 128]

    class Fetched(Honest):
        def outputs(self, inputs):
            super().outputs(inputs)
            found = np.zeros((len(inputs), 100_000), np.float32)
            self.clock.advance(found.nbytes)  # a gigabyte a second
            return {"y": found}

    assert at_batches(Fetched(3e5), {1: 3e5, 256: 3e5}) == [1, 256]

    assert at_batches(Honest(), dict.fromkeys((1, 4, 8, 32, 64), WORK_NS)) == [1, 8, 64]
    assert at_batches(Honest(), {1: WORK_NS, 8: 4e7}) == [1]  # not where it would take long


@pytest.mark.parametrize("hardware", ["cpu", "cuda", "qnn", "webgpu"])
def test_no_device_of_today_is_called_a_liar(hardware):
    """A B200 does 4.5e15 in dense bf16, a core of Zen 5 0.3e12 in fp32."""
    device = Device(hardware, "the fastest", count=1)
    assert fastest(device, "bf16") > (4.5e15 if hardware != "cpu" else 4e12)
    assert fastest(device, "fp32") > 0.3e12


@pytest.mark.parametrize("liar", [Constant, Early])
def test_outputs_that_are_not_of_these_inputs_are_caught(liar):
    checked = self_check(liar(), case_of())
    assert not checked.ok or not checked.repeatable


def test_a_silent_downgrade_is_caught():
    honest, liar = Honest(), Downgraded()
    inputs, others = honest.prepare(case_of(), 1), honest.prepare(case_of(), 2)
    right, other = (pick(honest.outputs(one), 0) for one in (inputs, others))
    assert agree(honest.outputs(inputs), right, other, "fp32").ok
    assert not agree(liar.outputs(inputs), right, other, "fp32").ok
    assert agree(liar.outputs(inputs), right, other, "fp16").ok
