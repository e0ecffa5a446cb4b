"""Steps of blocks compared with single steps, in virtual time."""

from types import SimpleNamespace

import numpy as np
import pytest
from fixed_machine import CPU, models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Block, most_steps, stopping_after
from accelbench.core.vocabulary import Timing
from accelbench.engines.scripted import VirtualClock
from accelbench.engines.shared.local import LocalSampler
from accelbench.engines.shared.sketches import sketch
from accelbench.measure.block_validation import is_last_longer
from accelbench.measure.loop import BlockRequest
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.verify.block_lengths import (
    TRIES,
    SingleStep,
    refuse_cheaper,
    refuse_late_waits,
    refuse_thinned,
    single_steps,
)
from accelbench.run.verify.timing_plausibility import FreshSteps, refuse_unfinished
from refusals import refusal

MS = 1_000_000
CASE = Case(models("bert-tiny")[0], Target("scripted", "cpu"), "fp32", Shapes(2, 16))


class Timed:
    """A session whose steps take the times that a list gives, and keep their outputs."""

    phases, device_timed = ("step",), False

    def __init__(self, times, late_ns=0, fetch_ns=0):
        self.clock = VirtualClock()
        self.late_ns, self.fetch_ns = late_ns, fetch_ns
        self.pending_ns = 0
        self.blocks = []
        self._times, self._steps = times, 0
        self._sampler = LocalSampler(self.clock, self._step)

    def _step(self, inputs):
        self.clock.advance(self._times[min(self._steps, len(self._times) - 1)])
        self.pending_ns = self.late_ns
        self._steps += 1
        return self._steps

    def sample(self, inputs, n, timing):
        self._steps = 0
        self.blocks.append(n)
        return self._sampler.sample(inputs, n, timing)

    def stepped(self, most):
        self.clock.advance(self.pending_ns + self.fetch_ns)
        self.pending_ns = 0
        return {}

    @property
    def left(self):
        return self._sampler.left


class Fixed:
    """Draws the same number each time, as far as it may."""

    def __init__(self, number):
        self.number = number

    def randint(self, a, b):
        return min(max(self.number, a), b)


def checked(session):
    return CheckedSession(session, session.clock, None)


@pytest.mark.parametrize(
    ("times", "longer"),
    [
        ([10, 10, 10, 16], False),  # less than 20 µs more
        ([MS, MS, MS, int(1.4 * MS)], False),
        ([MS, MS, MS, int(1.6 * MS)], True),
        ([MS, MS, 9 * MS], False),  # too few to compare
        ([MS, 9 * MS, 9 * MS, 9 * MS], False),
        ([9 * MS, MS, MS, 2 * MS], True),  # the median of the others counts
    ],
)
def test_the_last_step_of_a_block_against_the_others(times, longer):
    assert is_last_longer(times) is longer


def test_a_block_that_is_announced_as_longer_may_end_early():
    session = Timed([MS])
    block = checked(session).sample_some(None, 2, 7)
    assert session.blocks == [7]
    assert (block.steps, block.phase_ns["step"], session.left) == (2, [MS, MS], 2)

    class Whole(Timed):
        def sample(self, inputs, n, timing):
            return Block(n, timing, {"step": [MS] * n})

    assert checked(Whole([MS])).sample_some(None, 2, 7).steps == 7

    with stopping_after(3):
        assert (most_steps(2), most_steps(9)) == (2, 3)
        with stopping_after(1):
            assert most_steps(9) == 1
        assert most_steps(9) == 3
    assert most_steps(9) == 9


@pytest.mark.parametrize("number", [4, 9])
def test_who_waits_only_at_the_end_of_blocks_is_refused(number):
    class AtTheEnd(Timed):
        def sample(self, inputs, n, timing):
            self._times = [MS // 3] * (n - 1) + [MS]
            return super().sample(inputs, n, timing)

    session = AtTheEnd([MS])
    with refusal("unsynchronised"):
        refuse_late_waits(checked(session), None, Fixed(number))
    assert session.blocks == [number] * TRIES


def test_one_even_block_acquits():
    class Struck(Timed):
        def sample(self, inputs, n, timing):
            struck = len(self.blocks) < TRIES - 1
            self._times = [MS] * (n - 1) + [9 * MS if struck else MS]
            return super().sample(inputs, n, timing)

    session = Struck([MS])
    refuse_late_waits(checked(session), None, Fixed(5))
    assert len(session.blocks) == TRIES


def test_a_single_step_lasts_until_its_outputs_are_there():
    session = Timed([MS], late_ns=3 * MS, fetch_ns=MS // 2)
    single = single_steps(checked(session), CPU, session.clock, Timing.EACH)
    assert single.step(None) == 4 * MS  # what fetching takes is no part of it


@pytest.mark.parametrize(("said", "explained"), [(0.79, False), (0.81, True)])
def test_a_step_of_a_block_may_leave_out_a_fifth(said, explained):
    single = SingleStep(checked(Timed([MS])).session, 0.0, [2.0 * MS, 1.0 * MS])
    assert single.explains(said * MS) is explained


def test_the_median_of_a_block_counts_and_not_only_its_mean():
    """All steps but one return early; the mean of the block is right."""

    class Bursts(Timed):
        def sample(self, inputs, n, timing):
            self._times = [MS // 4] * (n - 1) + [MS + (n - 1) * 3 * MS // 4]
            return super().sample(inputs, n, timing)

    session = Bursts([MS])
    one = single_steps(checked(session), CPU, session.clock, Timing.EACH)
    with refusal("work_skipped"):
        refuse_thinned(one, None, BlockRequest(Timing.EACH, 30), MS / 4)


def test_a_machine_that_became_slower_is_no_lie():
    """Single steps take twice the reported time now, and so do blocks."""
    session = Timed([2 * MS])
    one = single_steps(checked(session), CPU, session.clock, Timing.EACH)
    refuse_thinned(one, None, BlockRequest(Timing.EACH, 30), MS)
    assert session.blocks.count(30) <= TRIES


@pytest.mark.parametrize(("quickest", "warnings"), [(1.2, 0), (1.6, 1)])
def test_the_quickest_of_later_blocks_tells_whether_the_machine_became_slower(quickest, warnings):
    class Slower(Timed):
        def sample(self, inputs, n, timing):
            self._times = [int(quickest * MS) if n == 30 and 30 not in self.blocks else 2 * MS]
            return super().sample(inputs, n, timing)

    session = Slower([MS])
    one = single_steps(checked(session), CPU, session.clock, Timing.EACH)
    assert len(refuse_thinned(one, None, BlockRequest(Timing.EACH, 30), MS)) == warnings


@pytest.mark.parametrize(("own", "refused"), [(0.8, False), (0.79, True)])
def test_measured_inputs_may_save_a_fifth(own, refused):
    class Cheaper(Timed):
        def sample(self, inputs, n, timing):
            self._times = [int(inputs * MS)]
            return super().sample(inputs, n, timing)

    session = Cheaper([MS])
    single = SingleStep(checked(session).session, 0.0)
    with refusal("work_skipped", refused):
        refuse_cheaper(single, 1.0, own, BlockRequest(Timing.EACH, 5))


class StartsLate(Timed):
    """Single steps that wait for a core in six of seven times; blocks hardly do."""

    def __init__(self, late_ns, block_ns=MS):
        super().__init__([MS])
        self.singles, self.first_ns, self.block_ns = 0, late_ns, block_ns

    def sample(self, inputs, n, timing):
        self.singles += n == 1
        late = n == 1 and self.singles % 7
        self._times = [MS + self.first_ns] if late else [MS] if n == 1 else [self.block_ns]
        return super().sample(inputs, n, timing)


def test_whole_blocks_are_held_against_single_steps_that_start_late():
    session = StartsLate(late_ns=3 * MS // 10)
    one = single_steps(checked(session), CPU, session.clock, Timing.EACH)
    refuse_thinned(one, None, BlockRequest(Timing.EACH, 30), 0.7 * MS)

    session = StartsLate(late_ns=3 * MS // 10, block_ns=7 * MS // 10)
    one = single_steps(checked(session), CPU, session.clock, Timing.EACH)
    with refusal("work_skipped"):
        refuse_thinned(one, None, BlockRequest(Timing.EACH, 30), 0.7 * MS)


# -- steps with new inputs, and long steps


ANSWERED = Case(
    models("gpt2-tiny")[0],
    Target("scripted", "cpu"),
    "fp32",
    Shapes(2, prompt_tokens=8, new_tokens=16),
)


def test_of_a_block_with_new_inputs_the_slowest_step_counts_and_the_wait_for_outputs():
    """Any of its steps may be the one that computed."""
    outputs = {"y": np.random.default_rng(0).standard_normal((2, 8))}
    session = SimpleNamespace(
        prepare=lambda case, seed=0: seed,
        sample=lambda *_: None,
        outputs=lambda _: outputs,
        stepped=lambda _: sketch(outputs),
    )
    block = Block(3, Timing.EACH, {"step": [MS, 5 * MS, 2 * MS]})
    asked = SimpleNamespace(session=session, wrapped=session, sample_some=lambda *_: block)
    single = SimpleNamespace(wait_ns=lambda: MS // 2)
    assert FreshSteps(asked, CASE, single, {}).take() == 5.5 * MS


class ATokenAMillisecond(FreshSteps):
    """Short steps that take a millisecond for each of their tokens."""

    def take(self):
        return float((self.case.shapes.new_tokens or 0) * MS)


@pytest.mark.parametrize(
    ("long_ms", "refused"),
    [
        ([12.8], False),  # four fifths of sixteen
        ([12.7], True),
        ([4.0, 20.0], True),  # one step that was struck excuses no quicker one
    ],
)
def test_a_long_step_takes_four_fifths_of_what_its_tokens_require(long_ms, refused):
    taken = []

    def sample(inputs, n, timing):
        taken.append(int(long_ms[min(len(taken) // 2, len(long_ms) - 1)] * MS))
        return Block(n, timing, {"step": taken[-1:]})

    session = SimpleNamespace(prepare=lambda case: None, sample=sample)
    checked_session = SimpleNamespace(session=session)
    single = SimpleNamespace(slack_ns=0.0)
    fresh = ATokenAMillisecond(checked_session, ANSWERED, single, {})
    with refusal("work_skipped", refused):
        refuse_unfinished(fresh, 4.0 * MS)
