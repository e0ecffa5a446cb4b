"""A worker's checks of a case after its measurement, in the order of their cost.

the model against itself   `self_check`, once a worker: it holds for the model
steps against outputs      `timed_steps`, every case with steps that are short enough
time against work          `timing_plausibility`, if there is something to compare with
training steps             `training_steps`, every case that trains

The worker's energy pass: a thread reads a meter while the session steps.

It comes after everything that is timed, because each reading takes the interpreter's lock.

The worker's threads while steps are measured.

waiting   if other processes had the CPUs for longer than the threads ran, the times are mostly
          those of other work: the quality is unusable
threads   if more threads ran than the result names, its number of threads is absent
idle      if the processor is the device and the threads hardly ran, something else does the work
pages     if each step touches memory anew because the allocator returned it to the system
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accelbench.core.abilities import (
    LastStepOutputs,
    OutOfProcess,
    RankExchange,
    SimilarInputs,
    TrainingProbe,
)
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.energy import EnergyMeter, EnergyMethod, MeterError, MeterReading
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, Device, Job, Session
from accelbench.core.unusable_reasons import MAX_WAITING, NOT_USED
from accelbench.core.vocabulary import Mode, Quality, Timing
from accelbench.engines.shared.sketches import MOST_VALUES
from accelbench.hardware.common import NotAvailable, is_processor
from accelbench.hardware.detect import detect
from accelbench.hardware.hostmemory import PageUse, read_page_use
from accelbench.hardware.telemetry.energy import combined_meter
from accelbench.hardware.thread_times import (
    ThreadTimes,
    ThreadUse,
    compare,
    descendants,
    read_thread_times,
)
from accelbench.measure.block_validation import has_phases
from accelbench.measure.energy import EnergyPass, EnergyReport, MeterFacts, no_energy
from accelbench.measure.loop import BlockRequest, Measurement
from accelbench.measure.validated_session import CheckedSession
from accelbench.models.inputs import items_per_step
from accelbench.models.short_steps import shorten_steps
from accelbench.run.messages import CHANGES_INPUTS, INPUTS_CHANGED, WRONG_STEPS
from accelbench.run.verify.block_lengths import refuse_late_waits, refuse_thinned, single_steps
from accelbench.run.verify.plausibility import KnownFacts, remove_implausible
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
        self._asked: BlockRequest | None = None
        self.training: TrainingSteps | None = None  # of the case that was measured last

    def watch(self, case: Case) -> Callable[[Block], None]:
        """Begin a case; return a listener for its blocks."""
        self.training = None
        trains = case.mode is Mode.TRAINING and isinstance(self._session, TrainingProbe)
        if not trains or self.wall is None:
            return lambda _: None
        self.training = TrainingSteps(self._session, case, self.wall)
        return self.training.note

    def steady_state_over(self, question: BlockRequest | None = None, inputs: Any = None) -> None:
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
                if is_first and has_phases(self._session):
                    checked = CheckedSession(self._session, self._clock, self.wall)
                    refuse_cached_phases(checked, shorten_steps(case), CHANCE)
        except CaseError as error:
            after = self._read_times()
            if error.reason not in _BY_TIME:
                raise
            if isinstance(before, NotAvailable) or isinstance(after, NotAvailable):
                raise
            waiting = compare(before, after).wait_share
            if waiting <= MAX_WAITING:
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
        if case.model.is_user_model or not case.model.inputs:
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

    def _fresh_steps(self, case: Case, question: BlockRequest, others: Sketches) -> FreshSteps:
        session = CheckedSession(self._session, self._clock, self.wall)
        single = single_steps(session, self._device, self._clock, question.timing)
        return FreshSteps(session, case, single, others, self._steady_inputs(case))

    def _refuse_thinned(
        self, case: Case, said_ns: float, unseen: UnseenSteps | None
    ) -> tuple[str, ...]:
        """Compare steps in blocks with single steps, also if time is not compared with work."""
        watch, question = self._watch, self._asked
        if (
            watch is None
            or question is None
            or question.is_single_step
            or case.mode is Mode.TRAINING
        ):
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
        if checked.others is not None and not case.model.is_user_model:
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
        asked = case if said_ns <= LONGEST_STEP_NS else shorten_steps(case)
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
    meter = combined_meter(devices)
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


ReadTimes = Callable[[Iterable[int]], ThreadTimes | NotAvailable]

#: Threads that wait for a device have little to do. What they wait for a CPU then does not matter,
#: if it is less of the measured time than an interval of ±25 % is of a value.
_LEAST_OF_WALL = 0.25
#: Engines that were asked for one thread kept at most 1.1 busy (JAX, whose main thread hands over).
_MOST_TIMES, _MOST_MORE = 1.3, 0.2
#: Engines on a CPU kept at least one thread busy.
_LEAST_ACTIVE = 0.25
#: A shorter steady state can be the moment in which a helper thread works.
_LEAST_NS = 100_000_000
#: bert-tiny at batch 8 touched 1,000 to 1,500 pages a step, which took 25 to 33 % of its CPU time:
#: 9 to 14 ms a step. With kept memory it was 7.4 ms ±3 %, at fewer than 15 pages a step.
_LEAST_FAULTS, _LEAST_SYSTEM_SHARE = 200, 0.15
#: Settings of glibc with which freed memory stays with the process.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}


@dataclass(frozen=True)
class LoadReport:
    """Findings about a measurement from the times of its threads."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)  # of columns that are absent
    warnings: tuple[str, ...] = ()
    unusable: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)  # of the evidence

    def applied_to(self, measurement: Measurement) -> Measurement:
        evidence = measurement.evidence
        return replace(
            measurement,
            evidence=replace(evidence, details={**evidence.details, **self.details}),
            metrics={**measurement.metrics, **self.columns},
            warnings=[*measurement.warnings, *self.warnings],
            quality=Quality.UNUSABLE if self.unusable else measurement.quality,
        )


class SideChecks:
    """Checks one opened model's values other than the time of its steps."""

    def __init__(
        self,
        session: Session,
        job: Job,
        wall: Clock | None,
        read_times: ReadTimes = read_thread_times,
        read_pages: Callable[[], PageUse | None] = read_page_use,
    ) -> None:
        """Check nothing yet. `wall` is a clock that the session does not own; None if time is a
        script's."""
        self._session, self._job, self._wall = session, job, wall
        self._in_process = not isinstance(session, OutOfProcess)
        self._is_alone = self._in_process and not isinstance(session, RankExchange)
        self._read_times = read_times
        self._before: ThreadTimes | NotAvailable = NotAvailable("nothing was measured")
        self._after: ThreadTimes | NotAvailable = self._before
        self._read_pages = read_pages if self._is_alone and wall else lambda: None
        self._pages_before: PageUse | None = None
        self._pages_after: PageUse | None = None

    def judge_opening(self, opening_ns: int) -> dict[str, str]:
        """Return why build or load cannot have taken what the session reports."""
        told = {f"{what}_ms": ns / 1e6 for what, ns in self._session.timings.items()}
        return self._kept(told, self._known(self._job.case, opening_ns=opening_ns))[1]

    def begin_steady_state(self) -> None:
        self._before = self.read_threads()
        self._pages_before = self._read_pages()

    def end_steady_state(self) -> None:
        self._pages_after = self._read_pages()
        self._after = self.read_threads()

    def judge_load(self, case: Case, measured: Measurement) -> LoadReport:
        """Judge how the threads were used in the steady state."""
        for reading in (self._before, self._after):
            if isinstance(reading, NotAvailable):
                return LoadReport(reasons={"cpu_wait_share": reading.reason})
        assert isinstance(self._before, ThreadTimes)
        assert isinstance(self._after, ThreadTimes)
        told = measured.evidence.details.get("threads", self._job.settings.threads)
        computes = self._is_alone and is_processor(self._job.device) and case.world_size == 1
        threads = told if computes and isinstance(told, int) else None
        return judge(compare(self._before, self._after), threads, computes)

    def judge_pages(self, measured: Measurement) -> LoadReport:
        """Judge how much memory the steady state touched anew."""
        if self._pages_before is None or self._pages_after is None:
            return LoadReport()
        samples = measured.samples["step"]
        steps = sum(measured.sampling["step"].get("steps") or [1] * len(samples))
        return judge_pages(self._pages_before, self._pages_after, steps, os.environ)

    def keep_plausible(
        self, case: Case, measured: Measurement, columns: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Replace values that cannot be by None; return the columns and the reasons."""
        known = self._known(
            case, compiling_ns=measured.compiling_ns, fastest_ns=measured.fastest_ns
        )
        return self._kept(columns, known)

    def _kept(
        self, columns: Mapping[str, Any], facts: KnownFacts
    ) -> tuple[dict[str, Any], dict[str, str]]:
        if self._wall is None:
            return dict(columns), {}
        return remove_implausible(columns, facts)

    def _known(self, case: Case, **times: Any) -> KnownFacts:
        return KnownFacts(case, self._job.device, self._in_process, **times)

    def read_threads(self) -> ThreadTimes | NotAvailable:
        if self._wall is None:
            return NotAvailable("the time is a script's")
        return self._read_times(() if self._is_alone else descendants(os.getpid()))


def judge(use: ThreadUse, threads: int | None, computes: bool = False) -> LoadReport:
    """Judge what the threads did in the steady state.

    `threads` is the engine's own number, `computes` whether these threads have to do a step's work.
    """
    # The conductor warns of the waiting, because it knows what else ran on the machine.
    warnings, reasons = [], {}
    active = (use.ran_ns + use.waited_ns) / use.wall_ns
    if computes and use.wall_ns >= _LEAST_NS and active < _LEAST_ACTIVE:
        warnings.append(
            f"The worker's threads had work for {active:.0%} of the time: a step waits, or another"
            " process or device computes it."
        )
    share: float | None = use.wait_share
    unusable = use.wait_share > MAX_WAITING
    if unusable and use.waited_ns <= _LEAST_OF_WALL * use.wall_ns:
        share, unusable = None, False
        reasons["cpu_wait_share"] = "its threads had too little work for a share to mean anything"
    limit = None if threads is None else _MOST_TIMES * threads + _MOST_MORE
    if limit is not None and use.wall_ns >= _LEAST_NS and use.busy_threads > limit:
        why = f"{use.busy_threads:.1f} threads were busy at once, where the engine names {threads}"
        reasons["threads"] = why
        warnings.append(f"{why[0].upper()}{why[1:]}: the number of threads is not known.")
    return LoadReport({"cpu_wait_share": share}, reasons, tuple(warnings), unusable)


def judge_pages(
    before: PageUse, after: PageUse, steps: int, variables: Mapping[str, str]
) -> LoadReport:
    """Judge how much memory the steps touched anew, and what the system's part of it cost."""
    system_s = after.system_s - before.system_s
    used_s = system_s + after.user_s - before.user_s
    faults = (after.faults - before.faults) / max(1, steps)
    share = system_s / used_s if used_s > 0 else 0.0
    details = {"page_faults_per_step": round(faults, 1), "system_time_share": round(share, 3)}
    if faults < _LEAST_FAULTS or share < _LEAST_SYSTEM_SHARE:
        return LoadReport(details=details)
    warning = (
        f"Each step touched {faults:,.0f} memory pages anew. The system took {100 * share:.0f} % of"
        " the CPU time, mostly for this."
    )
    if not KEEP_MEMORY.keys() & variables.keys():
        settings = " ".join(f"{name}={value}" for name, value in KEEP_MEMORY.items())
        warning += (
            " The allocator returns freed memory to the system after each step. To keep it, set"
            f" {settings}."
        )
    return LoadReport(warnings=(warning,), details=details)
