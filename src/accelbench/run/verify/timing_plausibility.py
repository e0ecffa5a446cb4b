"""Whether the time was the work's: checks on a runtime that returns early, or remembers.

They run after everything of a case is measured:

    implausible      more operations a second than any such device can do (peak_rates.py)
    cached           every first step with inputs it has not seen takes several times as long
                     as steps with inputs it has
    unsynchronised   a step returns before its work is done: whoever asks for the outputs
                     then waits for all the steps before
    work_skipped     with the batch, the time of outputs has grown, that of a step has not; or a
                     step takes less in long blocks than in short ones (block_lengths.py)

The first of every case. The others once a worker, and again where the batch has become
several times as large. Each convicts only on what noise hardly does: it strikes some tries,
and on a machine that others load most of them, but a lie is in nearly every one. So one try
that shows none acquits (of short waits two), and what a try is compared with is a median,
which one strike does not move. docs/measuring.md says what was caught and what was not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median, median_low
from typing import Any

import numpy as np

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Device, Session
from accelbench.core.vocabulary import Mode, Timing
from accelbench.measure.block_validation import samples_of
from accelbench.measure.loop import Question
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.verify.block_lengths import (
    SingleStep,
    refuse_fewer,
    refuse_thinned,
    single_steps,
    steps_ns,
)
from accelbench.run.verify.peak_rates import refuse_implausible
from accelbench.run.verify.self_check import other_seed
from accelbench.run.verify.timed_steps import CHANCE, RandomSource

#: Longer steps are not repeated for a check; one that returns early, or remembers, looks short:
#: as short as starting its work, which on a CPU takes no longer than looking something up.
LONGEST_STEP_NS, _LONGEST_ON_A_CPU_NS = 250e6, 50e6
#: Nor are those, where the runtime has been looked at before at a smaller batch.
_LONGEST_AGAIN_NS = 30e6
_TIMES_LARGER = 8
#: Outputs larger than this are not fetched over and over.
_MOST_BYTES = 256e6

#: With four processes a core beside it, PyTorch's steps of 1 ms took 20 ms at the median and
#: up to a second; in 22 of 40 tries a first step took four times its successor, and then the
#: shortest was a fraction of the usual all the same.
_TRIES = 16
#: A first look at new inputs takes 1.0 to 1.1 times as long as the next ones with ONNX Runtime,
#: after an idle moment up to six times.
_TIMES_FASTER, _SAVED_NS = 4.0, 0.1e6
#: What a question about new inputs may take beside, in this process: as in `timed_steps.py`.
_BESIDE_FIRST_NS = 1e6

#: So much work is queued, if the steps are as long as was said, and at most so much, if as
#: long as their outputs are waited for. A machine's other processes take a turn of some 10 ms
#: each: what is pending has to outlast a few.
_QUEUED_NS, _QUEUED_MOST_NS, _STEPS = 60e6, 250e6, (2, 1000)
#: What waits behind a block: this part of the block itself, and so many nanoseconds, at least.
_PENDING_SHARE, _PENDING_NS = 0.5, 5e6
#: Waits shorter than this are taken three at a time, and so many tries have to show nothing:
#: a device that is not waited for gets its short work done while the process is kept waiting
#: itself.
_SHORT_NS, _CLEAR = 25e6, 2

#: What outputs may grow by, with the batch: so many times the step, what it takes to fetch so
#: many more bytes a second (a copy by one core of a loaded machine does five times that), and
#: so much beside.
_TIMES_SLOWER, _FETCHED_PER_S, _BESIDE_NS = 4.0, 0.2e9, 5e6


@dataclass(frozen=True)
class TimingLook:
    """What was seen of a runtime at one batch size."""

    batch: int
    step_ns: float  # as said
    waits_ns: tuple[float, ...]  # until one run's outputs were there, on an idle device
    nbytes: int  # of those outputs


@dataclass
class TimingWatch:
    """Looks at one worker's runtime: at its first case, and where cases have become larger."""

    device: Device
    seed: int
    clock: Clock
    wall: Clock | None = None  # one that the runtime does not own; None where time is a script's
    chance: RandomSource = CHANCE
    _last: TimingLook | None = field(default=None, init=False)

    def wants(self, case: Case, said_ns: float) -> bool:
        """Whether a case, of which steps were said to take so long, is worth a look."""
        if case.mode is Mode.TRAINING:  # a step leaves other weights, and starting anew is dear
            return False
        if self._last is None:
            on_a_cpu = self.device.hardware in ("cpu", "wasm") or self.device.unit == "cpu"
            return said_ns <= (_LONGEST_ON_A_CPU_NS if on_a_cpu else LONGEST_STEP_NS)
        larger = case.shapes.batch / self._last.batch
        return (
            larger >= _TIMES_LARGER
            and said_ns <= _LONGEST_AGAIN_NS
            and self._last.nbytes * larger <= _MOST_BYTES
        )

    def look(
        self,
        session: Session,
        case: Case,
        said_ns: float,
        alone: bool = False,
        question: Question | None = None,
    ) -> None:
        """Raise CaseError where the time of a step that was measured cannot be the work's.

        Args:
            session: the open model.
            case: what was measured.
            said_ns: what a step is said to take.
            alone: whether no other batch will be measured that this one could be compared with.
            question: how the most steps were asked for at once when they were measured.
        """
        refuse_implausible(case, self.device, said_ns)
        if not self.wants(case, said_ns):
            return
        checked = CheckedSession(session, self.clock, self.wall)
        session = checked.session
        timing = question.timing if question is not None else Timing.EACH
        single = single_steps(checked, self.device, self.clock, timing)
        inputs = refuse_cached(checked, case, self.seed, self.chance, single)
        if question is not None:
            refuse_thinned(single, inputs, question, said_ns)
            if question.blocks > 1:
                refuse_thinned(
                    SingleStep(session, 0.0, steps=question.steps), inputs, question, said_ns
                )
        refuse_fewer(session, case, self.clock, said_ns)
        seen = refuse_unsynchronised(session, case, self.clock, said_ns)
        before = self._last or (_smaller(session, case, self.clock) if alone else None)
        if before is not None:
            refuse_skipped(session, case, self.clock, before, seen)
        self._last = seen


def refuse_cached(
    checked: CheckedSession,
    case: Case,
    seed: int,
    chance: RandomSource,
    single: SingleStep,
) -> Any:
    """The quickest first step with new inputs against quick ones with inputs seen before.

    Those are taken between the first ones, and as few at once: what steps took when they were
    measured, another process may have changed meanwhile, and what is pipelined takes less among
    many (block_lengths.py compares those with single ones).

    What a question about new inputs leaves unexplained counts as of its first step, but for what
    questions about others leave and for what it takes to bring the inputs there; and so does what
    it is said to have compiled, each time anew.

    Gives inputs that have been seen.
    """
    looks = _Looks(checked, case, seed, chance, single)
    # Sixteen looks are over within one bad moment of a machine: sixteen more, in turns with others
    # that begin as they do.
    alike: list[float] = []
    for number in range(2 * _TRIES):
        repeats = looks.anew()
        # A quick one: where every other step is left out, the median may be of neither kind. A
        # repeat that was struck is no excuse for a first that was not.
        if not looks.saves(_quick(repeats)):
            return looks.inputs
        if number >= _TRIES:
            alike.append(looks.seen_as_new())
    if not looks.saves(usual := sorted(alike)[1]):
        return looks.inputs
    raise CaseError(
        "cached",
        f"each of {2 * _TRIES} first steps with new inputs took {min(looks.firsts) / 1e6:.3g} ms or"
        f" more, and {usual / 1e6:.3g} ms is usual with inputs seen before: outputs are"
        " remembered, not computed",
        "Look for a cache of outputs in the runtime.",
    )


def _quick(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 4]


class _Looks:
    """First steps with inputs that nobody has seen, and steps with such as were seen."""

    def __init__(
        self,
        checked: CheckedSession,
        case: Case,
        seed: int,
        chance: RandomSource,
        single: SingleStep,
    ) -> None:
        """Nothing is asked yet."""
        self.firsts: list[float] = []
        self.inputs: Any = None
        self._checked, self._case, self._chance, self._single = checked, case, chance, single
        # The self-check has had the first of the other seeds, short steps the next two.
        self._seeds = itertools.count(other_seed(seed) + 3)
        self._brought = _BESIDE_FIRST_NS + _input_bytes(case) / _FETCHED_PER_S * 1e9
        self._repeats: list[float] = []

    def anew(self) -> Sequence[float]:
        """Take a first step with new inputs; what all with inputs seen before have taken."""
        checked, single = self._checked, self._single
        self.inputs = self._made()
        # Two after the first: where every other step is left out, one of them is.
        block = self._chance.randint(1, 3)
        times = samples_of(checked.session.sample(self.inputs, block, Timing.EACH))
        first, hidden = max(times), checked.hidden_ns  # whichever of them computed
        self._repeats += sorted(times)[:-1]
        usually_hidden = []
        for _ in range(max(1, 3 - block)):
            self._repeats.append(single.step(self.inputs))
            usually_hidden.append(checked.hidden_ns)
        self.firsts.append(first + max(0.0, hidden - self._brought - max(usually_hidden)))
        return self._repeats

    def seen_as_new(self) -> float:
        """What a step of inputs seen before takes straight after others were made.

        To make inputs is work: on a machine with nine processes a core, ONNX Runtime's process had
        by then used its turn, and each of 16 first steps took 5.4 ms where repeats took 1.1.
        """
        if self._chance.randint(0, 1):  # where every other step is left out, perhaps the next
            self._single.step(self.inputs)
        self._made()
        step = self._single.step(self.inputs)
        return step + max(0.0, self._checked.hidden_ns - self._brought)

    def saves(self, usual: float) -> bool:
        """Whether first steps take so much longer that others cannot be doing their work."""
        return min(self.firsts) >= max(usual * _TIMES_FASTER, usual + _SAVED_NS)

    def _made(self) -> Any:
        return self._checked.session.prepare(self._case, seed=next(self._seeds))


def refuse_unsynchronised(session: Session, case: Case, clock: Clock, said_ns: float) -> TimingLook:
    """Somebody who wants outputs waits for steps that were said to be over."""
    inputs = session.prepare(case)
    # This one also waits for what the checks before have left queued.
    nbytes = _seen_bytes(session, inputs)

    def waited() -> float:
        return _timed(clock, lambda: _seen_bytes(session, inputs))

    before = _waits(waited)
    idle = [*before]
    behind, clear = [], 0
    for _ in range(_TRIES):
        steps = _enough(said_ns, min(idle))
        step = median(steps_ns(session, inputs, steps))
        wait = waited()
        usual = median_low(before)
        if _is_behind(wait - usual, steps * step, min(idle)):
            # An idle device on both sides: what slows the machine down meanwhile slows these too.
            after = _waits(waited)
            idle += after
            usual, before = max(usual, median_low(after)), after
        if _is_behind(wait - usual, steps * step, min(idle)):
            behind.append((wait - usual) / 1e6)
        else:
            clear += 1
        if clear == (_CLEAR if min(idle) < _SHORT_NS else 1):
            return TimingLook(case.shapes.batch, step, tuple(idle), nbytes)
    raise CaseError(
        "unsynchronised",
        f"after {steps} steps that were said to be over, their outputs were still waited for:"
        f" {min(behind):.1f} ms more than on an idle device",
        "The runtime has to wait for its device before a step ends.",
    )


def _is_behind(longer_ns: float, said_ns: float, idle_ns: float) -> bool:
    """Whether a wait shows that work was pending.

    Outputs that take long, and so vary by much, may take twice as long.
    """
    return longer_ns >= max(_PENDING_SHARE * said_ns, idle_ns, _PENDING_NS)


def _enough(said_ns: float, wait_ns: float) -> int:
    """How many steps to queue: honest ones take little time, dishonest ones not too much."""
    least, most = _STEPS
    wanted = min(_QUEUED_NS / max(said_ns, 1.0), _QUEUED_MOST_NS / max(wait_ns, 1.0))
    return round(min(max(wanted, least), most))


def refuse_skipped(
    session: Session, case: Case, clock: Clock, small: TimingLook, large: TimingLook
) -> None:
    """Outputs that are verified have to be computed; what a step leaves out, they do not.

    That a step's time does not grow proves nothing: a device that is not full does eight
    items in the time of one. But then it does so for the outputs too. What these cost beside,
    whatever the batch, is in both looks.
    """
    inputs = session.prepare(case)
    fetched = max(large.nbytes - small.nbytes, 0) / _FETCHED_PER_S * 1e9
    allowed = min(small.waits_ns) + _TIMES_SLOWER * large.step_ns + fetched + _BESIDE_NS
    waits = list(large.waits_ns)
    for _ in range(_TRIES):
        if min(waits) <= allowed:
            return
        waits.append(_timed(clock, lambda: _seen_bytes(session, inputs)))
    raise CaseError(
        "work_skipped",
        f"from a batch of {small.batch} to one of {large.batch} the time until outputs are there"
        f" has grown from {min(small.waits_ns) / 1e6:.3g} to {min(waits) / 1e6:.3g} ms, and a step"
        f" is said to take {large.step_ns / 1e6:.3g} ms: it does not do all the work",
        "Look at what the runtime executes in a step; its time is not this model's.",
    )


def _smaller(session: Session, case: Case, clock: Clock) -> TimingLook | None:
    """A look at an eighth of the batch, where no other was measured; None where there is none.

    What is made for one batch alone cannot be asked, nor what would be compiled for another.
    """
    batch = case.shapes.batch // _TIMES_LARGER
    if not batch or case.compiled:
        return None
    try:
        inputs = session.prepare(replace(case, shapes=replace(case.shapes, batch=batch)))
        nbytes = _seen_bytes(session, inputs)
    except CaseError:
        return None
    step = median(steps_ns(session, inputs, 3))
    waits = _waits(lambda: _timed(clock, lambda: _seen_bytes(session, inputs)))
    return TimingLook(batch, step, tuple(waits), nbytes)


def _input_bytes(case: Case) -> int:
    from accelbench.catalog.inputs import input_bytes

    return input_bytes(case.model, case.shapes, mode=case.mode)


def _seen_bytes(session: Session, inputs: Any) -> int:
    """How many bytes a run's outputs are, which are looked at where they lie if that is far."""
    glance = getattr(session, "glance", None)
    if glance is not None:
        return int(glance(inputs, 1).nbytes)
    return sum(np.asarray(output).nbytes for output in session.outputs(inputs).values())


def _waits(waited: Callable[[], float]) -> list[float]:
    """One wait; of short ones three, whose median stands one strike."""
    waits = [waited()]
    return waits if waits[0] > _SHORT_NS else [*waits, waited(), waited()]


def _timed(clock: Clock, do: Callable[[], Any]) -> float:
    start = clock.now_ns()
    do()
    return float(clock.now_ns() - start)
