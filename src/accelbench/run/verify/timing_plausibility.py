"""Check that the reported time is the time of the work, after everything of a case is measured.

    implausible      more operations a second than any such device can do (plausibility.py)
    cached           every first step with new inputs takes clearly longer than steps with inputs
                     that were used before (cached_outputs.py)
    unsynchronised   a step returns before its work is done: its outputs are there only later
                     (block_lengths.py), or outputs that are asked for wait for the steps before
    work_skipped     a step takes less in blocks than alone (block_lengths.py), or the time of
                     outputs grows with the batch and the time of a step does not

The first applies to every case; the others run once a worker, and again if the batch has become
several times as large. The last look at outputs is for sessions whose steps cannot be compared with
outputs. A case is refused only if every try speaks against it: on a loaded machine noise spoils
most tries, but never all. docs/measuring.md lists what was caught and what was not.

Check that a request decodes all of its tokens, and an image all of its passes.

Outputs are compared by short steps (catalog/short_steps.py), which do not show the end of a long
one:

    tokens   what a timed request left has as many tokens as were asked for, and its first ones were
             chosen by the logits that `outputs` gives of the same inputs
    time     a long step takes as long as its tokens or passes require, judged by two short steps of
             different lengths: t(b) + (n - b) * (t(b) - t(a)) / (b - a)

A later token reads a longer cache, so it takes no less time than an early one. Reported times are
also compared with steps of new inputs: an engine may leave out steps by chance, or for inputs it
has seen often. A step with new inputs cannot be quick and leave right outputs. Most tries have to
show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median, median_low
from typing import Any, cast

import numpy as np

from accelbench.core.abilities import LastStepOutputs
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Device, Session
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.shared.sketches import DECODE_LOGITS, MOST_VALUES, TOKENS, places
from accelbench.measure.block_validation import sample_times
from accelbench.measure.loop import BlockRequest
from accelbench.measure.validated_session import CheckedSession
from accelbench.models.short_steps import SHORT_PASSES, SHORT_TOKENS
from accelbench.run.messages import (
    DOES_NOT_GROW,
    QUICKER_THAN_NEW,
    REQUESTS_DECODE_OTHERS,
    UNFINISHED,
    UNSYNCHRONISED,
)
from accelbench.run.verify.agreement import far_apart
from accelbench.run.verify.block_lengths import (
    TRIES,
    SingleStep,
    ask_again,
    refuse_fewer,
    refuse_late_waits,
    refuse_thinned,
    single_steps,
    steps_ns,
    warn_of_slower_steps,
)
from accelbench.run.verify.plausibility import refuse_implausible
from accelbench.run.verify.self_check import LAST_SEED, TIMES_FASTER, cold_ns, refuse_cached
from accelbench.run.verify.timed_steps import (
    CHANCE,
    LONG_NS,
    RandomSource,
    Sketches,
    UnseenSteps,
    refuse_other,
    seen,
)
from accelbench.run.verify.verdicts import tolerance_of

#: Longer steps are not repeated for a check; one that returns early, or remembers, looks short:
#: as short as starting its work, which on a CPU takes no longer than looking something up.
LONGEST_STEP_NS, _LONGEST_ON_A_CPU_NS = 250e6, 50e6
#: Nor are those, where the runtime has been looked at before at a smaller batch.
_LONGEST_AGAIN_NS = 30e6
_TIMES_LARGER = 8
#: Outputs larger than this are not fetched over and over.
_MOST_BYTES = 256e6
_TRIES = 16

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
    """Findings about an engine at one batch size."""

    batch: int
    step_ns: float  # as said
    waits_ns: tuple[float, ...]  # until one run's outputs were there, on an idle device
    nbytes: int  # of those outputs


@dataclass
class TimingWatch:
    """Checks of one worker's engine: at its first case, and if cases have become larger."""

    device: Device
    clock: Clock
    wall: Clock | None = None  # one that the runtime does not own; None where time is a script's
    chance: RandomSource = CHANCE
    _last: TimingLook | None = field(default=None, init=False)

    def wants(self, case: Case, said_ns: float) -> bool:
        """Return whether a case whose steps took so long is worth a check."""
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
        question: BlockRequest | None = None,
        known: tuple[Any, list[float]] | None = None,
        verified_nbytes: int | None = None,
        steady: Any = None,
        own: Callable[[], Any] | None = None,
    ) -> tuple[str, ...]:
        """Raise CaseError if the measured time of a step cannot be the time of its work; return
        warnings.

        `alone` if no other batch is measured; `known` are inputs that were used before, and times
        of single steps with them; `verified_nbytes` the size of outputs that were compared with
        timed steps; `own` gives inputs like the steady ones, unless others may take longer.
        """
        refuse_implausible(case, self.device, said_ns)
        if not self.wants(case, said_ns):
            return ()
        slower: tuple[str, ...] = ()
        checked = CheckedSession(session, self.clock, self.wall)
        session = checked.session
        timing = question.timing if question is not None else Timing.EACH
        took = known[1] if known is not None else []
        single = single_steps(checked, self.device, self.clock, timing, took)
        used = known[0] if known is not None else None
        # Steps of the steady inputs are not compared with those of others: they have a list apart.
        alike = replace(single, took_ns=[])
        inputs = refuse_cached(checked, case, self.chance, alike, used, steady)
        if question is not None:
            if question.last_is_longer:
                refuse_late_waits(checked, inputs, self.chance)
            slower = refuse_thinned(single, inputs, question, said_ns, own)
            if question.blocks > 1:
                refuse_thinned(
                    SingleStep(session, 0.0, steps=question.steps), inputs, question, said_ns
                )
        refuse_fewer(session, case, self.clock, said_ns)
        if verified_nbytes is not None:
            self._last = TimingLook(case.shapes.batch, said_ns, (), verified_nbytes)
            return slower
        seen = refuse_unsynchronised(session, case, self.clock, said_ns)
        before = self._last if self._last is not None and self._last.waits_ns else None
        if before is None and alone:
            before = _smaller(session, case, self.clock)
        if before is not None:
            refuse_skipped(session, case, self.clock, before, seen)
        self._last = seen
        return slower


def refuse_unsynchronised(session: Session, case: Case, clock: Clock, said_ns: float) -> TimingLook:
    """Raise CaseError if outputs wait for steps that were reported as done."""
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
    raise UNSYNCHRONISED.error(steps=steps, longer_ms=min(behind))


def _is_behind(longer_ns: float, said_ns: float, idle_ns: float) -> bool:
    """Return whether a wait shows that work was pending."""
    # Outputs that take long, and so vary by much, may take twice as long.
    return longer_ns >= max(_PENDING_SHARE * said_ns, idle_ns, _PENDING_NS)


def _enough(said_ns: float, wait_ns: float) -> int:
    """Return how many steps to queue: honest ones take little time, dishonest ones not too much."""
    least, most = _STEPS
    wanted = min(_QUEUED_NS / max(said_ns, 1.0), _QUEUED_MOST_NS / max(wait_ns, 1.0))
    return round(min(max(wanted, least), most))


def refuse_skipped(
    session: Session, case: Case, clock: Clock, small: TimingLook, large: TimingLook
) -> None:
    """Raise CaseError if the time of verified outputs grows with the batch and a step's does
    not."""
    # That a step's time does not grow proves nothing: a device that is not full does eight items in
    # the time of one. But then it does so for the outputs too. What these cost beside, whatever the
    # batch, is in both looks.
    inputs = session.prepare(case)
    fetched = max(large.nbytes - small.nbytes, 0) / _FETCHED_PER_S * 1e9
    allowed = min(small.waits_ns) + _TIMES_SLOWER * large.step_ns + fetched + _BESIDE_NS
    waits = list(large.waits_ns)
    for _ in range(_TRIES):
        if min(waits) <= allowed:
            return
        waits.append(_timed(clock, lambda: _seen_bytes(session, inputs)))
    raise DOES_NOT_GROW.error(
        small=small.batch,
        large=large.batch,
        small_ms=min(small.waits_ns) / 1e6,
        large_ms=min(waits) / 1e6,
        step_ms=large.step_ns / 1e6,
    )


def _smaller(session: Session, case: Case, clock: Clock) -> TimingLook | None:
    """Return a look at an eighth of the batch, or None."""
    # An engine made for one batch cannot be asked, nor one that would compile for another.
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


def _seen_bytes(session: Session, inputs: Any) -> int:
    """Return the bytes of a run's outputs, without fetching them from another process."""
    glance = getattr(session, "glance", None)
    if glance is not None:
        return int(glance(inputs, 1).nbytes)
    return sum(np.asarray(output).nbytes for output in session.outputs(inputs).values())


def _waits(waited: Callable[[], float]) -> list[float]:
    """Return one wait; of short ones three, whose median stands one disturbance."""
    waits = [waited()]
    return waits if waits[0] > _SHORT_NS else [*waits, waited(), waited()]


def _timed(clock: Clock, do: Callable[[], Any]) -> float:
    start = clock.now_ns()
    do()
    return float(clock.now_ns() - start)


#: Tries take about so long together, but are at least so many.
_TRIES_NS, _FRESH_STEPS_FEW_TRIES = 50e6, 3
_MOST_MORE = 7


@dataclass
class FreshSteps:
    """Single steps with new inputs, whose outputs are compared with verified ones."""

    checked: CheckedSession
    case: Case
    single: SingleStep  # waits for outputs
    other: Sketches  # outputs of other inputs
    used: Any = None  # inputs that were used before; prepared if there are none

    def take(self) -> float:
        """Return the time of a step with new inputs; raise CaseError if its outputs are wrong."""
        session = self.checked.session
        if self.used is None:
            self.used = session.prepare(self.case)
        inputs = session.prepare(self.case, seed=CHANCE.randint(0, LAST_SEED))
        session.sample(self.used, 1, Timing.EACH)  # threads are awake then
        block = self.checked.sample_some(inputs, 1, 1 + CHANCE.randint(0, _MOST_MORE))
        took = max(sample_times(block)) + self.single.wait_ns()
        left = cast("LastStepOutputs", self.checked.wrapped).stepped(MOST_VALUES)
        right = seen(self.checked.wrapped, self.case, inputs).sketches
        refuse_other(self.case, left, right, self.other)
        return float(took)


def refuse_quicker_than_fresh(
    fresh: FreshSteps, question: BlockRequest, said_ns: float, known_ns: float
) -> tuple[str, ...]:
    """Raise CaseError if reported steps are too quick for steps with new inputs.

    `known_ns` is the time of such a step that left right outputs. Return a warning if steps take
    much longer now than in the measurement.
    """
    slack = fresh.single.slack_ns + cold_ns(fresh.case)

    def explains(took_ns: float, step_ns: float) -> bool:
        return took_ns <= TIMES_FASTER * step_ns + slack

    if explains(known_ns, said_ns):
        return ()
    for _ in range(_tries(said_ns)):
        known_ns = min(known_ns, fresh.take())
        if explains(known_ns, said_ns):
            return ()
    again: list[float] = []
    explained, tries = 0, _tries(known_ns)
    while max(explained, len(again) - explained) * 2 <= tries:
        took_ns = min(fresh.take() for _ in range(3))
        again.append(ask_again(fresh.checked.session, fresh.used, question))
        explained += explains(took_ns, again[-1])
    if 2 * explained > tries:
        return warn_of_slower_steps(min(again), said_ns, slack)
    raise QUICKER_THAN_NEW.error(
        count=question.steps * question.blocks, many_ms=median(again) / 1e6, new_ms=known_ns / 1e6
    )


def _tries(step_ns: float) -> int:
    return min(TRIES, max(_FRESH_STEPS_FEW_TRIES, math.ceil(_TRIES_NS / step_ns)))


#: Gives what a timed step left, and outputs of the same inputs.
Look = Callable[[], tuple[Sketches, Sketches]]

#: The share of a request's items whose first tokens have to be decoded as for outputs. Two logits
#: that are nearly equal may be decided either way, and other tokens follow then.
_SAME = 0.75
#: The least time of a long step, as a share of the time that its units require.
_LEAST_SHARE = 0.8
#: Tries before a long step is asked for again, and of long steps afterwards.
_FEW_TRIES = 3


def request_fault(case: Case, left: Sketches, right: Sketches) -> str:
    """Return what shows that a timed request did not decode its tokens; empty if nothing does.

    `left` is what a timed step left, `right` the outputs of the same inputs, of the first tokens
    only.
    """
    if TOKENS in left and TOKENS in right:
        wanted = (right[TOKENS].shape[0], case.shapes.new_tokens)
        if left[TOKENS].shape != wanted:
            return f"they left tokens of the shape {left[TOKENS].shape}, not {wanted}"
    if DECODE_LOGITS not in left or DECODE_LOGITS not in right:
        return ""
    found, known = left[DECODE_LOGITS], right[DECODE_LOGITS]
    if found.shape != known.shape:
        return f"they left logits of the shape {found.shape}, not {known.shape}"
    total = math.prod(known.shape)
    rows = places(total, MOST_VALUES) // (total // known.shape[0])
    off = np.square(far_apart(found.values, known.values))
    size = np.square(np.nan_to_num(known.values.astype(np.float64)))
    counts = np.maximum(np.bincount(rows), 1)
    errors = np.bincount(rows, off) / counts
    allowed = tolerance_of(case.precision).least ** 2 * np.bincount(rows, size) / counts
    same = float(np.mean(errors <= allowed))
    return "" if same >= _SAME else f"{1 - same:.0%} of their items were decoded otherwise"


def refuse_other_tokens(tries: Sequence[Look], case: Case) -> None:
    """Raise CaseError if no try shows that timed requests decode their tokens; two logits may
    tie."""
    for look in tries:
        fault = request_fault(case, *look())
        if not fault:
            return
    raise REQUESTS_DECODE_OTHERS.error(fault)


def refuse_other_requests(
    session: Session, case: Case, asked: Case, steps: UnseenSteps, steady: tuple[Sketches, Sketches]
) -> None:
    """Raise CaseError if requests of the steady state or of new inputs do not decode their tokens.

    `asked` is the case, or a short request if it takes too long. `steady` is what the last step of
    the steady state left, and the outputs of its inputs.
    """

    def again() -> tuple[Sketches, Sketches]:
        inputs = session.prepare(asked, CHANCE.randint(0, LAST_SEED))
        return steps.left(inputs), seen(session, asked, inputs).sketches

    refuse_other_tokens([lambda: steady, *[again] * (_FEW_TRIES - 1)], case)
    refuse_other_tokens([again] * _FEW_TRIES, asked)


@dataclass
class ShortSteps:
    """Steps of two lengths, with new inputs and right outputs, that are shorter than the case's."""

    fresh: FreshSteps  # of the case
    took_ns: dict[int, list[float]] = field(default_factory=dict)  # by length

    def __post_init__(self) -> None:
        shapes = self.fresh.case.shapes
        self.units = shapes.new_tokens or shapes.steps or 1
        longer = min(SHORT_TOKENS if shapes.new_tokens else SHORT_PASSES, self.units)
        self.lengths = (max(1, longer // 2), longer)
        self._short = {length: self._of_length(length) for length in self.lengths}

    def _of_length(self, length: int) -> FreshSteps:
        case = self.fresh.case
        makes_tokens = bool(case.shapes.new_tokens)
        shapes = (
            replace(case.shapes, new_tokens=length)
            if makes_tokens
            else replace(case.shapes, steps=length)
        )
        return replace(self.fresh, case=replace(case, shapes=shapes), used=None)

    def take(self) -> float:
        """Take one of each length; return the time that a step of the case requires, judged by
        all."""
        # The quickest ones count: noise makes steps longer, never shorter.
        for length, fresh in self._short.items():
            self.took_ns.setdefault(length, []).append(fresh.take())
        shorter, longer = self.lengths
        few, more = min(self.took_ns[shorter]), min(self.took_ns[longer])
        each = max(0.0, more - few) / max(1, longer - shorter)
        return more + (self.units - longer) * each


def refuse_unfinished(fresh: FreshSteps, said_ns: float) -> tuple[str, ...]:
    """Raise CaseError if a long step takes less than its tokens or passes require.

    Return a warning if steps take much longer now than in the measurement.
    """
    short, slack_ns = ShortSteps(fresh), fresh.single.slack_ns
    for _ in range(_FEW_TRIES):
        if _explains(short.take(), said_ns, slack_ns):
            return ()
    # The machine may be slower now: ask for the long step again, in turns with short ones.
    session, case = fresh.checked.session, fresh.case
    short, again = ShortSteps(fresh), list[float]()
    for _ in range(TRIES if said_ns <= LONG_NS else _FEW_TRIES):
        inputs = session.prepare(case)
        session.sample(inputs, 1, Timing.EACH)
        again += steps_ns(session, inputs, 1)
        required_ns = short.take()
        if _explains(required_ns, min(again), slack_ns):
            return warn_of_slower_steps(min(again), said_ns, slack_ns)
    raise UNFINISHED.error(
        units=short.units, took_ms=median(again) / 1e6, required_ms=required_ns / 1e6
    )


def _explains(required_ns: float, took_ns: float, slack_ns: float) -> bool:
    return _LEAST_SHARE * required_ns <= took_ns + slack_ns
