"""A worker's checks of a case after its measurement, in the order of their cost.

the model against itself   `self_check`, once a worker: it holds for the model
steps against outputs      `timed_steps`, every case with steps that are short enough
time against work          `timing_plausibility`, if there is something to compare with
training steps             `training_steps`, every case that trains

The worker's energy pass: a thread reads a meter while the session steps.

It comes after everything that is timed, because each reading takes the interpreter's lock.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.abilities import LastStepOutputs, OutOfProcess, SimilarInputs, TrainingProbe
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.energy import EnergyMeter, EnergyMethod, MeterError, MeterReading
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, Device, Session
from accelbench.core.vocabulary import Mode, Timing
from accelbench.core.worth import MOST_WAITING, NOT_USED
from accelbench.engines.shared.sketches import MOST_VALUES
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.detect import detect
from accelbench.hardware.telemetry.energy import energy_meter_of
from accelbench.hardware.thread_times import ThreadTimes, compare
from accelbench.measure.block_validation import is_parted
from accelbench.measure.energy import EnergyPass, EnergyReport, MeterFacts, no_energy
from accelbench.measure.loop import Question
from accelbench.measure.validated_session import CheckedSession
from accelbench.models.inputs import items_per_step
from accelbench.models.short_steps import shortened
from accelbench.run.messages import CHANGES_INPUTS, INPUTS_CHANGED, WRONG_STEPS
from accelbench.run.verify.block_lengths import refuse_late_waits, refuse_thinned, single_steps
from accelbench.run.verify.self_check import SelfCheck, other_seed, refuse_cached_phases, self_check
from accelbench.run.verify.timed_steps import (
    CHANCE,
    Sketches,
    UnseenSteps,
    compared_whole,
    refuse_other,
    refuse_other_sizes,
    refuse_short,
    seen,
    tells,
)
from accelbench.run.verify.timing_plausibility import (
    LONGEST_STEP_NS,
    FreshSteps,
    TimingWatch,
    refuse_other_requests,
    refuse_quicker_than_fresh,
    refuse_unfinished,
)
from accelbench.run.verify.training_steps import NO_PROBE, TrainingSteps, TrainingVerdict

OK, NOT_DONE = "ok", "not_done"
#: Reasons to refuse a case that only times show. Waiting for a CPU shows the same.
_BY_TIME = frozenset(("cached", "unsynchronised", "work_skipped"))
_UNREAD = NotAvailable("nothing reads the times of the worker's threads")


@dataclass(frozen=True)
class CheckedCase:
    """The result of a case's checks."""

    self_check: Mapping[str, Any] | None  # None: an earlier case of the worker had it
    warnings: tuple[str, ...]
    steps_verified: str
    too_busy: bool = False  # other processes had the CPUs while times were compared with work


@dataclass(frozen=True)
class _TimesLook:
    """Facts of a case that are known before its times are compared with its work."""

    unseen: UnseenSteps | None  # steps of new inputs
    checked: SelfCheck | None  # None: an earlier case of the worker had it
    verified: bool  # whether outputs of timed steps were compared whole


class CaseChecks:
    """Checks of one opened model; each raises CaseError if a case fails it."""

    def __init__(
        self,
        session: Session,
        device: Device,
        seed: int,
        clock: Clock,
        wall: Clock | None,
        read_times: Callable[[], ThreadTimes | NotAvailable] = lambda: _UNREAD,
    ) -> None:
        """Ask nothing yet. `wall` is a clock that the session does not own; None if time is a
        script's."""
        self.wall = wall
        self._read_times = read_times
        self._session = session
        self._seed = seed
        self._clock = clock
        self._device = device
        self._watch = TimingWatch(device, clock, wall) if wall is not None else None
        self._done = False
        self._repeatable = True
        self._left: Sketches = {}
        self._steady: Any = None  # the inputs of the steady state, until the case is checked
        self._asked: Question | None = None
        self.training: TrainingSteps | None = None  # of the case that was measured last

    def watch(self, case: Case) -> Callable[[Block], None]:
        """Begin a case; return a listener for its blocks."""
        self.training = None
        trains = case.mode is Mode.TRAINING and isinstance(self._session, TrainingProbe)
        if not trains or self.wall is None:
            return lambda _: None
        self.training = TrainingSteps(self._session, case, self.wall)
        return self.training.note

    def steady_state_over(self, question: Question | None = None, inputs: Any = None) -> None:
        """Keep what the last block left, before the session is asked anything else."""
        self._asked, self._steady = question, inputs
        if self.training is not None:
            self.training.inputs = inputs
            self.training.look()
        if isinstance(self._session, LastStepOutputs):
            self._left = self._session.stepped(MOST_VALUES)

    def of(self, case: Case, said_ns: float, alone: bool) -> CheckedCase:
        """Check a case whose step took `said_ns`.

        `alone` if no other batch will be measured that this one could be compared with.
        """
        trained = self._trained(case, said_ns)
        try:
            if self._done:
                checked, steps, unseen = None, self._again(case, said_ns), None
            else:
                checked, steps, unseen = self._first(case, said_ns)
                self._done = True
        except CaseError as error:
            if error.reason == WRONG_STEPS and self._session.evidence().details.get(INPUTS_CHANGED):
                raise _changes_inputs(case) from error
            raise
        known = steps == OK and compared_whole(case)
        look = _TimesLook(unseen, checked, verified=known)
        found, busy = self._compare_times(case, said_ns, alone, look)
        self._steady = None
        steps = OK if trained is not None and trained.verified else steps
        warnings = trained.warnings if trained is not None else ()
        warnings = (*warnings, *found)
        if checked is None:
            return CheckedCase(None, warnings, steps, busy)
        warnings = (*checked.warnings(), *warnings, *self._unseen_steps(case))
        return CheckedCase(checked.columns, warnings, steps, busy)

    def _compare_times(
        self, case: Case, said_ns: float, alone: bool, look: _TimesLook
    ) -> tuple[tuple[str, ...], bool]:
        """Raise CaseError if times and work contradict each other; return warnings, and whether
        it was too busy."""
        # If other processes had the CPUs for longer than this one, nothing is proven, and the times
        # must not be used.
        before = self._read_times()
        unseen, warnings = look.unseen, tuple[str, ...]()
        try:
            warnings += self._refuse_unfinished(case, said_ns, look.checked)
            warnings += self._refuse_thinned(case, said_ns, unseen)
            if self._watch is not None:
                wanted = self._watch.wants(case, said_ns)
                known = (unseen.inputs, unseen.alone) if unseen is not None else None
                nbytes = _nbytes(self._left) if look.verified else None
                steady = self._steady_inputs(case)
                warnings += self._watch.look(
                    self._session, case, said_ns, alone, self._asked, known, nbytes, steady,
                    self._own_inputs(case),
                )  # fmt: skip
                if wanted and unseen is not None and look.checked is not None:
                    warnings += self._refuse_quicker(case, said_ns, unseen, look.checked)
                is_first = look.checked is not None and case.mode is Mode.INFERENCE
                if is_first and is_parted(self._session):
                    checked = CheckedSession(self._session, self._clock, self.wall)
                    refuse_cached_phases(checked, shortened(case), CHANCE)
        except CaseError as error:
            after = self._read_times()
            if error.reason not in _BY_TIME:
                raise
            if isinstance(before, NotAvailable) or isinstance(after, NotAvailable):
                raise
            waiting = compare(before, after).wait_share
            if waiting <= MOST_WAITING:
                raise
            warning = (
                f"Not checked whether every timed step did its work ({error}). Other processes had"
                f" the CPUs for {waiting:.0%} of the time of that check. {NOT_USED}"
            )
            return (*warnings, warning), True
        return tuple(dict.fromkeys(warnings)), False

    def _steady_inputs(self, case: Case) -> Any:
        """Return the inputs of the steady state if others are drawn as they were, else None."""
        # Inputs similar to an example may take another time. Other processes may have dropped
        # theirs.
        is_drawn = bool(case.model.inputs) and case.mode is Mode.INFERENCE
        return None if isinstance(self._session, OutOfProcess) or not is_drawn else self._steady

    def _own_inputs(self, case: Case) -> Callable[[], Any] | None:
        """Return a function that gives inputs like those of the steady state, or None."""
        # A user's model may decide by their values: other inputs may honestly take longer.
        if case.model.is_own or not case.model.inputs:
            return None
        steady = self._steady_inputs(case)
        return lambda: self._session.prepare(case) if steady is None else steady

    def _trained(self, case: Case, said_ns: float) -> TrainingVerdict | None:
        """Check training steps, before anything starts the training anew."""
        if self.training is not None:
            verdict = self.training.check(self._clock, self._device, self._asked, said_ns)
            self.training.inputs = None
            return verdict
        if case.mode is not Mode.TRAINING or self.wall is None:
            return None
        return TrainingVerdict(False, (NO_PROBE,))

    def _refuse_quicker(
        self, case: Case, said_ns: float, unseen: UnseenSteps, checked: SelfCheck
    ) -> tuple[str, ...]:
        """Compare the reported time with steps of new inputs, whose outputs can be compared."""
        watch, question = self._watch, self._asked
        if watch is None or question is None or checked.others is None:
            return ()
        fresh = self._fresh_steps(case, question, checked.others)
        return refuse_quicker_than_fresh(fresh, question, said_ns, unseen.first_ns)

    def _fresh_steps(self, case: Case, question: Question, others: Sketches) -> FreshSteps:
        session = CheckedSession(self._session, self._clock, self.wall)
        single = single_steps(session, self._device, self._clock, question.timing)
        return FreshSteps(session, case, single, others, self._steady_inputs(case))

    def _refuse_thinned(
        self, case: Case, said_ns: float, unseen: UnseenSteps | None
    ) -> tuple[str, ...]:
        """Compare steps in blocks with single steps, also if time is not compared with work."""
        watch, question = self._watch, self._asked
        if watch is None or question is None or question.alone or case.mode is Mode.TRAINING:
            return ()
        known = unseen.alone if unseen is not None else []
        if watch.wants(case, said_ns) or (not known and said_ns > LONGEST_STEP_NS):
            return ()
        checked = CheckedSession(self._session, self._clock, self.wall)
        if unseen is not None and known:
            inputs = unseen.inputs
        else:
            inputs = checked.session.prepare(case)
            checked.session.sample(inputs, 1, Timing.EACH)  # brings them
        if question.last_is_longer:
            refuse_late_waits(checked, inputs, CHANCE)
        single = single_steps(checked, watch.device, self._clock, question.timing, known)
        return refuse_thinned(single, inputs, question, said_ns, self._own_inputs(case))

    def _unseen_steps(self, case: Case) -> list[str]:
        """Return a warning about an engine that keeps nothing of its steps."""
        keeps = isinstance(self._session, LastStepOutputs) or case.mode is Mode.TRAINING
        if keeps or self._watch is None:
            return []
        text = (
            "Whether the steps that were timed computed the outputs that are verified is not"
            " known: the runtime keeps nothing of what they leave."
        )
        return [text]

    def _keeps(self, case: Case) -> bool:
        """Return whether what timed steps left can be compared with outputs."""
        keeps = self._watch is not None and isinstance(self._session, LastStepOutputs)
        return keeps and case.mode is Mode.INFERENCE and self._repeatable

    def _again(self, case: Case, said_ns: float) -> str:
        session = self._session
        if not self._keeps(case) or not compared_whole(case) or said_ns > LONGEST_STEP_NS:
            return NOT_DONE
        right = seen(session, case, session.prepare(case)).sketches
        unseen = session.prepare(case, other_seed(self._seed))
        refuse_other(case, self._left, right, seen(session, case, unseen).sketches)
        return OK if tells(right) else NOT_DONE

    def _first(self, case: Case, said_ns: float) -> tuple[SelfCheck, str, UnseenSteps | None]:
        session, whole = self._session, compared_whole(case)
        unseen = None
        if self._keeps(case):
            unseen = UnseenSteps(session, self._clock, self.wall, said_ns, CHANCE)
        steps = unseen.left if unseen is not None and whole else None
        checked = self_check(session, case, self._seed, steps, self._left if whole else None)
        checked.refuse(case.model.id)
        self._repeatable = checked.repeatable
        if unseen is None or not checked.repeatable:
            return checked, NOT_DONE, None
        if not whole:
            # The self-check has had the first of the other seeds.
            refuse_short(session, case, other_seed(self._seed) + 1, unseen)
            # Times of short steps say nothing of the case's.
            return checked, OK, self._refuse_other_tokens(case, said_ns, checked.seen)
        refuse_other(case, self._left, checked.seen, checked.others)
        if checked.others is not None and not case.model.is_own:
            refuse_other_sizes(checked.seen, checked.others)
        self._refuse_other_tokens(case, said_ns, checked.seen)
        if checked.others is not None and checked.stepped is not None:
            refuse_other(case, checked.stepped, checked.others, checked.seen)
            unseen.refuse_recomputed(checked.others)
        else:  # called with its own example, which no seed changes
            self._refuse_other_of_similar(case, said_ns, checked.seen)
            unseen.left(session.prepare(case))
            unseen.refuse_recomputed(checked.seen)
        return checked, OK if tells(checked.seen) else NOT_DONE, unseen

    def _refuse_other_tokens(self, case: Case, said_ns: float, own: Sketches) -> UnseenSteps | None:
        """Raise CaseError if timed requests do not leave the tokens of their outputs.

        Return steps of new inputs as long as those of the case, if there are any.
        """
        if not case.generates:
            return None
        steps = UnseenSteps(self._session, self._clock, self.wall, said_ns, CHANCE)
        asked = case if said_ns <= LONGEST_STEP_NS else shortened(case)
        refuse_other_requests(self._session, case, asked, steps, (self._left, own))
        return steps if asked == case else None

    def _refuse_unfinished(
        self, case: Case, said_ns: float, checked: SelfCheck | None
    ) -> tuple[str, ...]:
        if checked is None or checked.others is None or compared_whole(case):
            return ()
        if not self._keeps(case) or self._asked is None:
            return ()
        fresh = self._fresh_steps(case, self._asked, checked.others)
        return refuse_unfinished(fresh, said_ns)

    def _refuse_other_of_similar(self, case: Case, said_ns: float, own: Sketches) -> None:
        """Raise CaseError if a step of inputs like the example leaves other outputs."""
        session = self._session
        if not isinstance(session, SimilarInputs):
            return
        inputs = session.similar_inputs(other_seed(self._seed))
        if inputs is None:
            return
        steps = UnseenSteps(session, self._clock, self.wall, said_ns, CHANCE)
        left = steps.left(inputs)
        refuse_other(case, left, seen(session, case, inputs).sketches, own)


def _nbytes(sketches: Sketches) -> int:
    return sum(math.prod(s.shape) * s.values.itemsize for s in sketches.values())


def _changes_inputs(case: Case) -> CaseError:
    """Return the error of a model whose calls change their inputs for the next call."""
    return CHANGES_INPUTS.error(model=case.model.id)


#: RAPL moves each millisecond, NVML's counter each 20 to 100: ends of a window of 5 s are off by
#: 0.2 % each at most.
_READ_SECONDS = 0.01
#: Power is averaged by the device over 25 ms to 1 s: to read it more often tells nothing new.
_POWER_SECONDS = 0.1


class MeterThread:
    """A meter that a thread reads every few milliseconds; repeated values of a counter are
    dropped."""

    def __init__(self, meter: EnergyMeter, seconds: float | None = None) -> None:
        self._meter = meter
        self._is_counter = meter.method is EnergyMethod.COUNTER
        usual = _READ_SECONDS if self._is_counter else _POWER_SECONDS
        self._seconds = usual if seconds is None else seconds
        self._readings: list[MeterReading] = []
        self._failure: MeterError | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self._readings, self._failure = [], None
        self._done.clear()
        self._thread = threading.Thread(target=self._run, name="energy-meter", daemon=True)
        self._thread.start()

    def rest(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def readings(self) -> list[MeterReading]:
        if self._failure is not None:
            raise self._failure
        return list(self._readings)

    def end(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            self._read()
            while not self._done.wait(self._seconds):
                self._read()
        except MeterError as failure:
            self._failure = failure
        except Exception as error:  # a vendor's library: its trouble is the meter's
            self._failure = MeterError(f"{type(error).__name__}: {error}")

    def _read(self) -> None:
        values = self._meter.read()
        last = self._readings[-1].values if self._readings else None
        if values != last or not self._is_counter:
            self._readings.append(MeterReading(time.monotonic_ns(), values))


def devices_of(case: Case, device: Device, machines: int) -> list[Device] | NotAvailable:
    """Return the devices of a case's processes, or why not all of them can be metered."""
    if case.world_size == 1 or (device.hardware == "cpu" and machines == 1):
        return [device]
    if machines > 1:
        return NotAvailable(
            f"the step is of {machines} machines, and this one's meter counts nothing of the others"
        )
    # Process n runs on the nth device of the platform, as torch counts them.
    present = [entry for entry in detect(device.hardware) if isinstance(entry, Device)]
    if len(present) < case.world_size:
        return NotAvailable(
            f"{case.world_size} processes take part, and {len(present)} devices are found"
        )
    return present[: case.world_size]


def measured_energy(
    session: Session,
    case: Case,
    devices: Sequence[Device],
    step_ns: float,
    phase: Callable[[str], None],
) -> EnergyReport:
    """Return the energy of a case on an open session, or why there is none."""
    meter = energy_meter_of(devices)
    if isinstance(meter, NotAvailable):
        return no_energy(meter.reason)
    try:
        inputs = session.prepare(case)
        session.compile(inputs)
        session.sample(inputs, 1, Timing.EACH)  # it may compile or allocate
        facts = MeterFacts(meter.source, meter.scope, meter.method, meter.ranges)
        items = items_per_step(case.model, case.shapes, case.mode)
        energy = EnergyPass(session, MeterThread(meter), facts, phase=phase)
        return energy.measure(inputs, step_ns, items)
    finally:
        meter.close()
