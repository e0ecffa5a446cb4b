"""One case, measured: compile, first inference, warm-up, steady state, memory, evidence.

    prepare │ compile │ first │ warm-up … │ steady block│block│… │ average memory │ phases │ device

Stopping is decided only between blocks, and only there is anyone told anything:
a listener that draws or writes does so while no sample is being taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

from accelbench.core.abilities import ContinuousBlocks
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.protocols import Block, Evidence, Session
from accelbench.core.vocabulary import Quality, Timing
from accelbench.measure.block_validation import refuse_other_tokens, samples_of
from accelbench.measure.evidence_warnings import warned_of
from accelbench.measure.figure_width import too_wide
from accelbench.measure.intervals import Interval
from accelbench.measure.losses import LossLog
from accelbench.measure.stopping import Decision, StoppingRule, sample_warnings
from accelbench.measure.summary import summarise
from accelbench.measure.throttle import drift, drift_quality
from accelbench.measure.timer_resolution import Resolution, choose_timing
from accelbench.measure.validated_session import CheckedSession
from accelbench.measure.warmup import WarmupRule, WarmupState

#: Longest block between two reports: a person watching sees something move.
REPORT_NS = 500_000_000

#: The passes beside the headline one: average memory, phases, device timers.
SIDE_PASS_NS = 60_000_000
SIDE_PASS_STEPS = 3


class Listener(Protocol):
    """Hears of the measurement between blocks. May raise to end it."""

    def phase(self, name: str) -> None:
        """A phase begins."""
        ...

    def progress(self, samples: int, median_ns: float, interval: Interval | None) -> None:
        """So far."""
        ...


class Meter(Protocol):
    """Memory, counted outside the loop."""

    def reset(self) -> None:
        """Forget the peak."""
        ...

    def peaks(self) -> Mapping[str, Any]:
        """Columns of peak memory since the reset."""
        ...

    def averages(self, work: Callable[[], object]) -> Mapping[str, Any]:
        """Columns of average memory while `work` runs."""
        ...


@dataclass(frozen=True)
class Rules:
    """How long to measure, by design §5 unless someone fixed it."""

    warmup: WarmupRule = field(default_factory=WarmupRule)
    stopping: StoppingRule = field(default_factory=StoppingRule)


@dataclass(frozen=True)
class Measurement:
    """Everything one launch found out about one case."""

    metrics: Mapping[str, Any]
    samples: Mapping[str, Sequence[int]]
    sampling: Mapping[str, Mapping[str, Any]]  # how each was timed: timing, steps a sample covers
    quality: Quality
    warnings: Sequence[str]
    evidence: Evidence


@dataclass(frozen=True)
class Question:
    """How steps are asked for: so many a block, so many blocks at once."""

    timing: Timing
    steps: int
    blocks: int = 1

    @property
    def alone(self) -> bool:
        """Whether it is for a single step."""
        return self.steps * self.blocks == 1


@dataclass(frozen=True)
class _Steady:
    samples: list[int]
    largest: Question  # of all that were asked
    decision: Decision
    resolution: Resolution
    compilations: int
    elapsed_ns: int

    @property
    def step_ns(self) -> float:
        return median(self.samples) / self.resolution.steps_per_sample


def measure(
    session: Session,
    case: Case,
    rules: Rules,
    clock: Clock,
    meter: Meter,
    listener: Listener,
    items: float | None = None,
    wall: Clock | None = None,
    after: Callable[[Question], None] = lambda _: None,
) -> Measurement:
    """Measure one case on an open session.

    Args:
        session: the open model.
        case: what is measured.
        rules: how long.
        clock: the one that the session's blocks are timed by.
        meter: memory.
        listener: who hears of it.
        items: what a step completes, where that is not the batch: tokens, seconds of sound.
        wall: a clock that the session does not own, which its times are compared with.
        after: called when the steady state is over, before the session is asked anything else, with
            the largest question of it.

    Raises:
        CaseError: a block cannot be, its times are not of the time it took, or a loss is no number.
    """
    listener.phase("prepare")
    log = LossLog()
    checked = CheckedSession(session, clock, wall, log.note)
    unbroken = checked if isinstance(session, ContinuousBlocks) else None
    session = checked.session
    inputs = session.prepare(case)
    listener.phase("compile")
    compile_ns = session.compile(inputs)
    if compile_ns is not None or not case.compiled:  # else the first call is what compiles
        listener.phase("first inference")
    first = session.sample(inputs, 1, Timing.EACH)
    if first.compilations:
        compile_ns = (compile_ns or 0) + first.compile_ns
    warm = _warm_up(session, inputs, rules.warmup, listener)
    resolution = _resolution(session, inputs, clock, warm, first)
    meter.reset()
    steady = _steady_state(session, inputs, rules.stopping, clock, listener, resolution, unbroken)
    after(steady.largest)
    if not case.options.get("pure"):  # what a half type's weights lose, its losses do not show
        log.refuse_standing()
    columns, side = _side_passes(session, case, inputs, steady, meter, listener)
    evidence = session.evidence()
    quality, warnings = _judge(steady, warm, rules, evidence)
    if checked.hides_most:
        quality = Quality.UNUSABLE  # blocks that were asked again explained theirs
        warnings.append(
            f"{checked.explained.unexplained_share or 0.0:.0%} of the time between questions and"
            " answers is in no step: the process was stopped, or times are missing."
        )
    return Measurement(
        metrics={
            **summarise(
                steady.samples,
                resolution,
                batch=case.shapes.batch,
                items_per_step=items,
                interval=steady.decision.interval,
            ),
            "first_inference_ms": (samples_of(first)[0] - first.compile_ns) / 1e6,
            "compile_ms": None if compile_ns is None else compile_ns / 1e6,
            "warmup_steps": warm.steps,
            "warmup_ms": warm.elapsed_ns / 1e6,
            "sampling_ms": steady.elapsed_ns / 1e6,
            "unexplained_share": checked.explained.unexplained_share,
            **log.columns(),
            **columns,
        },
        samples={"step": steady.samples, **side},
        sampling={"step": _sampling(steady), **{name: {"timing": _side(name)} for name in side}},
        quality=quality,
        warnings=[*warnings, *log.warnings()],
        evidence=evidence,
    )


def _sampling(steady: _Steady) -> dict[str, Any]:
    steps = steady.resolution.steps_per_sample
    described: dict[str, Any] = {"timing": steady.resolution.timing.value}
    if steps > 1:
        described["steps"] = [steps] * len(steady.samples)
    return described


def _side(name: str) -> str:
    return (Timing.DEVICE if name == "device" else Timing.PHASES).value


def _warm_up(session: Session, inputs: Any, rule: WarmupRule, listener: Listener) -> WarmupState:
    listener.phase("warm-up")
    state = rule.start()
    while not state.done:
        most = max(1, int(REPORT_NS / max(state.step_ns, 1.0))) if state.step_ns else 1
        block = session.sample(inputs, min(state.next_steps(), most), Timing.EACH)
        state = state.fed(samples_of(block), block.compilations)
    return state


def _resolution(
    session: Session, inputs: Any, clock: Clock, warm: WarmupState, first: Block
) -> Resolution:
    """Whether single steps can be timed by this clock.

    The guess from single steps holds the clock's own reading, so where it says
    blocks, one block is taken to learn what a step really costs.
    """
    step_ns = warm.step_ns or samples_of(first)[0]
    resolution = choose_timing(step_ns, clock.tick_ns())
    if resolution.timing is Timing.WHOLE:
        block = session.sample(inputs, resolution.steps_per_sample, Timing.WHOLE)
        return choose_timing(samples_of(block)[0] / block.steps, clock.tick_ns())
    return resolution


def _steady_state(
    session: Session,
    inputs: Any,
    rule: StoppingRule,
    clock: Clock,
    listener: Listener,
    resolution: Resolution,
    unbroken: ContinuousBlocks | None,
) -> _Steady:
    listener.phase("steady state")
    samples: list[int] = []
    compilations = most_asked = 0
    decision: Decision | None = None
    start = clock.now_ns()
    step_ns = 1.0
    while True:
        wanted = rule.next_block(len(samples), clock.now_ns() - start, step_ns)
        # The first block is one sample: only then is it known how many fill a report.
        most = max(1, int(REPORT_NS / max(step_ns, 1.0))) if samples else 1
        latest: list[int] = []
        block_size = min(wanted, most)
        most_asked = max(most_asked, block_size)
        for block in _blocks(session, inputs, block_size, resolution, unbroken):
            latest += samples_of(block)
            compilations += block.compilations
        samples += latest
        # Of the latest block alone: a median of all would be sorted anew at every report.
        step_ns = median(latest)
        decision = rule.decide(samples, clock.now_ns() - start, decision)
        listener.progress(len(samples), step_ns / resolution.steps_per_sample, decision.interval)
        if decision.stop:
            largest = _largest(most_asked, resolution, unbroken is not None)
            elapsed = clock.now_ns() - start
            return _Steady(samples, largest, decision, resolution, compilations, elapsed)


def _largest(samples: int, resolution: Resolution, unbroken: bool) -> Question:
    if resolution.timing is Timing.EACH:
        return Question(Timing.EACH, samples)
    return Question(Timing.WHOLE, resolution.steps_per_sample, samples if unbroken else 1)


def _blocks(
    session: Session,
    inputs: Any,
    samples: int,
    resolution: Resolution,
    unbroken: ContinuousBlocks | None,
) -> Sequence[Block]:
    if resolution.timing is Timing.EACH:
        return [session.sample(inputs, samples, Timing.EACH)]
    steps = resolution.steps_per_sample
    if unbroken is not None:
        return unbroken.unbroken_blocks(inputs, steps, samples)
    return [session.sample(inputs, steps, Timing.WHOLE) for _ in range(samples)]


def _side_passes(
    session: Session, case: Case, inputs: Any, steady: _Steady, meter: Meter, listener: Listener
) -> tuple[dict[str, Any], dict[str, Sequence[int]]]:
    """What would disturb the headline pass: average memory, phases, device timers."""
    # Memory is sampled within a step: of one that takes longer, one is enough.
    fitting = max(1, int(SIDE_PASS_NS / max(steady.step_ns, 1.0)))
    # Times are medians: of at least three steps, but one where a step takes a second.
    least = SIDE_PASS_STEPS if steady.step_ns * SIDE_PASS_STEPS < 1e9 else 1
    steps = max(least, fitting)
    parted = tuple(session.phases) != ("step",)  # a request of one token is a prefill alone
    # What is looked at is a step's forward pass: where a step is more, whole ones come before.
    before = fitting if parted else fitting - 1

    def work() -> None:
        if before:
            session.sample(inputs, before, Timing.EACH)
        session.inspect(inputs)

    samples: dict[str, Sequence[int]] = {}
    listener.phase("average memory")
    averages = meter.averages(work)
    # Read after that pass: the peak is then of every step whose average is given.
    columns: dict[str, Any] = {**meter.peaks(), **averages}
    if parted:
        listener.phase("phases")
        split = session.sample(inputs, steps, Timing.PHASES)
        for phase, times in split.phase_ns.items():
            samples[f"phase:{phase}"] = times
            columns[f"{phase}_ms"] = median(times) / 1e6
        if split.token_ns:
            refuse_other_tokens(split, case.shapes.new_tokens or 0)
            columns |= token_times(split.token_ns)
            samples["tokens"] = [stamp for request in split.token_ns for stamp in request]
    if session.device_timed:
        listener.phase("device timers")
        times = samples_of(session.sample(inputs, steps, Timing.DEVICE))
        samples["device"] = times
        columns["device_time_ms"] = median(times) / 1e6
    return columns, samples


def token_times(requests: Sequence[Sequence[int]]) -> dict[str, float | None]:
    """Time to first token, and per token after it: (end − first) ÷ (n − 1), median of requests."""
    between = [(r[-1] - r[0]) / (len(r) - 1) for r in requests if len(r) > 1]
    return {
        "ttft_ms": median(r[0] for r in requests) / 1e6,
        "tpot_ms": median(between) / 1e6 if between else None,
    }


def _judge(
    steady: _Steady, warm: WarmupState, rules: Rules, evidence: Evidence
) -> tuple[Quality, list[str]]:
    """The quality of the launch's figures and what a reader should know."""
    warnings = list(sample_warnings(len(steady.samples), rules.stopping.minimum))
    quality = steady.decision.quality or Quality.NOISE_LIMITED
    if rules.warmup.fixed is not None:
        steps = "1 step" if warm.steps == 1 else f"{warm.steps} steps"
        warnings.append(f"Warm-up was fixed at {steps}; nothing judged whether they suffice.")
    if rules.stopping.fixed is not None:
        warnings.append("The number of samples was fixed; nothing judged whether they suffice.")
    if warm.steady is False:
        quality = Quality.UNSTEADY
        warnings.append("The step had not settled when warm-up had to end.")
    if steady.compilations:
        quality = Quality.UNSTEADY
        times = "once" if steady.compilations == 1 else f"{steady.compilations} times"
        warnings.append(f"It was compiled anew {times} while it was measured.")
    trend = drift(steady.samples)
    drifted = drift_quality(trend, clock_fell=None)
    if drifted is not None and trend is not None:
        quality = drifted
        way = "slower" if trend.relative > 0 else "faster"
        warnings.append(f"The step became {abs(trend.relative):.0%} {way} during the measurement.")
    timing, decision = steady.resolution.timing, steady.decision
    useless = too_wide(steady.samples, timing, decision, rules.stopping)
    if useless is not None:
        quality = Quality.UNUSABLE  # whatever else it is
        warnings.append(useless)
    warnings += warned_of(evidence.details)
    return quality, warnings
