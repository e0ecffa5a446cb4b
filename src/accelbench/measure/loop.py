"""One case, measured: compile, first inference, warm-up, steady state, memory, evidence.

    prepare │ compile │ first │ average memory │ warm-up … │ steady block│block│… │ phases │ device

Stopping is decided only between blocks, and listeners are called only there: a listener that
draws or writes does so while no sample is taken. Memory is sampled before the warm-up, because the
steps of that pass warm the model as well.

Warnings from what a session recorded about its inputs and outputs. Pure.

Whether the interval of the figure that a launch shows is too wide for any use.

Of steps timed one by one the figure is their median, by which sampling is ended. Of steps timed in
blocks it is their mean, which a few slow blocks move and widen, and their median does not show it.

Did the step become slower (or faster) while it was being measured?

The medians of the first and of the last third of a run are compared through
their 99 % intervals, which account for autocorrelation. A drift is
a difference of more than 5 % with intervals apart and the middle third's median
in between. Two disjoint 99 % intervals are much rarer than 1 %: none of 400 AR(1) series
with lag-1 0.75 and 10 % noise alarm at n = 60 to 960. A step of 15 % half-way is seen in
all series with 2 % noise; with 5 % in 47 % at n = 60, in 86 % at 480. A trend test on
ranks (Mann-Kendall) alarmed as rarely but missed that step, the very shape of a clock
being lowered, in nearly all runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Protocol

import numpy as np

from accelbench.core.abilities import ContinuousBlocks
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.protocols import Block, Evidence, Session
from accelbench.core.unusable_reasons import NOT_USED, UNUSABLE_WIDTH
from accelbench.core.vocabulary import Quality, Timing
from accelbench.measure.block_validation import (
    FEWEST_COMPARED,
    PhaseListener,
    is_parted,
    last_is_longer,
    samples_of,
    side_passes,
)
from accelbench.measure.intervals import Interval, Samples, median_interval, series
from accelbench.measure.losses import LossLog
from accelbench.measure.stopping import Decision, StoppingRule, mean_half_width, sample_warnings
from accelbench.measure.summary import Resolution, choose_timing, summarise
from accelbench.measure.validated_session import CheckedSession
from accelbench.measure.warmup import WarmupRule, WarmupState

#: Thirds of fewer than 20 samples alarm on nothing: 2.3 % of AR(1) series at n = 30.
MINIMUM_SAMPLES = 60
LEAST_CHANGE = 0.05
_LEVEL = 0.99


@dataclass(frozen=True)
class Drift:
    """How the step changed from the first third of a run to the last."""

    relative: float  # 0.1: the last third's median is 10 % above the first's
    found: bool  # large, significant and going one way

    @property
    def slower(self) -> bool:
        return self.found and self.relative > 0


def drift(samples: Samples) -> Drift | None:
    """Compare the ends of a run; None if it is too short to tell, or its first third took 0."""
    row = series(samples)
    third = row.size // 3
    if row.size < MINIMUM_SAMPLES:
        return None
    start, middle, end = row[:third], row[third:-third], row[-third:]
    first, between, last = (float(np.median(part)) for part in (start, middle, end))
    if first <= 0.0:
        return None
    relative = last / first - 1.0
    one_way = min(first, last) <= between <= max(first, last)
    is_drift = abs(relative) > LEAST_CHANGE and one_way and _apart(start, end)
    return Drift(relative, is_drift)


def _apart(start: Samples, end: Samples) -> bool:
    before, after = median_interval(start, _LEVEL), median_interval(end, _LEVEL)
    if before is None or after is None:
        return False
    return before.high < after.low or after.high < before.low


def drift_quality(trend: Drift | None, clock_fell: bool | None) -> Quality | None:
    """Return the quality that a drift imposes, or None."""
    # Only with evidence that the device's clock fell is a slow-down called throttled: a neighbour's
    # load looks the same.
    if trend is None or not trend.found:
        return None
    return Quality.THROTTLED if trend.slower and clock_fell else Quality.UNSTEADY


def too_wide(
    samples: Samples, timing: Timing, decision: Decision, rule: StoppingRule
) -> str | None:
    """Return the warning that the interval of a launch's value is too wide, or None if it is not.

    It has one number, so that a run that warns of many results can give its range.
    """
    whole = timing is Timing.WHOLE
    few = rule.fixed is not None and len(samples) < rule.minimum
    wide = mean_half_width(samples) if whole and not few else 0.0
    if wide > UNUSABLE_WIDTH:
        return _sentence(wide)
    if decision.quality is Quality.UNUSABLE and decision.interval is not None:
        wide = decision.interval.relative_half_width(median(samples))
        return _sentence(wide)
    return None


def _sentence(wide: float) -> str:
    return f"Too noisy: {_percent(wide)} (limit {_percent(UNUSABLE_WIDTH)}). {NOT_USED}"


def _percent(share: float) -> str:
    """Round up: a value beyond the limit does not look like the limit."""
    return f"±{math.ceil(100 * share):,} %" if math.isfinite(share) else "more than ±1,000 %"


#: The name of a detail of the evidence, the value that causes a warning, and the warning.
_SEEN = (
    ("outputs_finite", False, "The outputs contain values that are not finite."),
    ("inputs_changed", True,
     "The calls changed their inputs: each call began with the changes of the previous one."),
    ("same_answer", True,
     "Each call returned the same object, made before: a step only returns it."),
    ("same_for_similar_inputs", True,
     "Other numbers than the example's gave the same answer: it may be computed only once."),
)  # fmt: skip


#: The name of a detail, and the warning if it has a value: `{}` is the value, or the names in it.
_TOLD = {
    "imported_later": "{} was imported during a call: weights_digest does not cover it. Import it "
        "at the top of the file.",
    "left_running": "Threads or processes that the calls started continue after the calls return. "
        "They do work ({} between calls), which is not in the time of their call and slows the "
        "next one down.",
    "not_compared":
        "Returned values of type {} are not verified: they are neither numbers nor text.",
    "evaluated": "Each step also evaluates the returned value, by {}: a call alone does less.",
    "computed_when_read": "The returned value computes {} only on access: this is not part of a "
        "step, and is not verified.",
    "holds_only_inputs": "The returned {} contains only the inputs or no computed numbers: what "
        "its methods compute later is not part of a step.",
    "found_in_caches":
        "Each call found results in the cache of {}. A call with new inputs may take longer.",
    "state_changed": "The steps changed the module: {}. Each step begins in the state that the "
        "previous one left, and outputs were verified in that state.",
}  # fmt: skip


def warned_of(details: Mapping[str, Any]) -> list[str]:
    """Return the warnings for the details of a session's evidence."""
    warnings = [text for name, value, text in _SEEN if details.get(name) is value]
    for name, template in _TOLD.items():
        if value := details.get(name):
            shown = value if isinstance(value, str) else ", ".join(value)
            warnings.append(template.format(shown))
    return warnings


#: Longest block between two reports: a person watching sees something move.
REPORT_NS = 500_000_000

#: Duration of the pass in which memory is sampled, every 5 ms.
MEMORY_PASS_NS, _MOST_MEMORY_STEPS = 40_000_000, 1000


class Listener(PhaseListener, Protocol):
    """Follows the measurement between blocks. May raise to end it."""

    def progress(self, samples: int, median_ns: float, interval: Interval | None) -> None:
        """Report the samples so far."""


class Meter(Protocol):
    """Memory, counted outside the loop."""

    def reset(self) -> None:
        """Forget the peak."""

    def sample(self, work: Callable[[], object]) -> None:
        """Run `work` and sample memory meanwhile."""

    def columns(self) -> Mapping[str, Any]:
        """Return peaks since the reset, and averages over the work that was sampled."""


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
    fastest_ns: float | None = None  # the fastest step, warm-up included
    compiling_ns: int | None = None  # compiling ahead of the first step, by the worker's clock


@dataclass(frozen=True)
class Question:
    """How steps are asked for: so many a block, so many blocks at once."""

    timing: Timing
    steps: int
    blocks: int = 1
    last_is_longer: bool = False  # the last step of each block took longer than the others

    @property
    def alone(self) -> bool:
        """Whether it is for a single step."""
        return self.steps * self.blocks == 1


@dataclass(frozen=True)
class _Steady:
    samples: list[int]
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
    after: Callable[[Question, Any], None] = lambda *_: None,
    watch: Callable[[Block], None] = lambda _: None,
    before: Callable[[], None] = lambda: None,
) -> Measurement:
    """Measure one case on an open session; refuse impossible blocks, times or losses.

    `wall` is a clock that the session does not own, which its times are compared with; `items` is
    what a step completes if that is not the batch. `before` is called when the steady state begins,
    `watch` after each valid block, `after` when the steady state is over, before the session is
    asked anything else, with the largest question of it and the inputs.
    """
    listener.phase("prepare")
    log = LossLog()

    def note(block: Block) -> None:
        log.note(block)
        watch(block)

    checked = CheckedSession(session, clock, wall, note)
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
    warm = rules.warmup.start()
    early = rules.warmup.fixed is None  # else so many steps and no others come first
    if early:
        warm = warm.credited(*_sample_memory(session, inputs, first, clock, meter, listener))
    warm = _warm_up(session, inputs, warm, listener)
    resolution = _resolution(session, inputs, clock, warm, first)
    meter.reset()
    before()
    steady = _steady_state(
        session, inputs, rules.stopping, clock, listener, resolution, unbroken, after
    )
    if not case.options.get("pure"):  # what a half type's weights lose, its losses do not show
        log.refuse_standing()
    if not early:
        _sample_memory(session, inputs, first, clock, meter, listener)
    memory = meter.columns()
    columns, side = side_passes(session, case, inputs, steady.step_ns, listener)
    evidence = session.evidence()
    quality, warnings = _judge(steady, warm, rules, evidence)
    if checked.hides_most:
        quality = Quality.UNUSABLE  # blocks that were asked again explained theirs
        warnings.append(
            f"{checked.explained.unexplained_share or 0.0:.0%} of the measured time is in no step:"
            f" the process was stopped, or times are missing. {NOT_USED}"
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
            **memory,
            **columns,
        },
        samples={"step": steady.samples, **side},
        sampling={"step": _sampling(steady), **{name: {"timing": _side(name)} for name in side}},
        quality=quality,
        warnings=[*warnings, *log.warnings()],
        evidence=evidence,
        fastest_ns=checked.fastest_ns,
        compiling_ns=checked.compiling_ns,
    )


def _sampling(steady: _Steady) -> dict[str, Any]:
    steps = steady.resolution.steps_per_sample
    described: dict[str, Any] = {"timing": steady.resolution.timing.value}
    if steps > 1:
        described["steps"] = [steps] * len(steady.samples)
    return described


def _side(name: str) -> str:
    return (Timing.DEVICE if name == "device" else Timing.PHASES).value


def _sample_memory(
    session: Session, inputs: Any, first: Block, clock: Clock, meter: Meter, listener: Listener
) -> tuple[int, int]:
    """Sample memory over an inspected pass and some steps; return their number and duration.

    Memory is sampled within steps, so one step is enough if it takes longer than the pass.
    """
    parted = is_parted(session)  # an inspected pass is less than a step then
    step_ns = max(samples_of(first)[0] - first.compile_ns, 1)
    steps, took = 1, 0

    def work() -> None:
        nonlocal steps, took
        start = clock.now_ns()
        session.inspect(inputs)
        took = clock.now_ns() - start
        each = step_ns if parted else max(min(step_ns, took), 1)
        more = min(max(int(parted), (MEMORY_PASS_NS - took) // each), _MOST_MEMORY_STEPS)
        if more > 0:
            took += sum(samples_of(session.sample(inputs, more, Timing.EACH)))
            steps += more

    listener.phase("average memory")
    meter.sample(work)
    return steps, took


def _warm_up(session: Session, inputs: Any, state: WarmupState, listener: Listener) -> WarmupState:
    listener.phase("warm-up")
    while not state.done:
        most = max(1, int(REPORT_NS / max(state.step_ns, 1.0))) if state.step_ns else 1
        block = session.sample(inputs, min(state.next_steps(), most), Timing.EACH)
        state = state.fed(samples_of(block), block.compilations)
    return state


def _resolution(
    session: Session, inputs: Any, clock: Clock, warm: WarmupState, first: Block
) -> Resolution:
    """Return whether single steps can be timed by this clock.

    The guess from single steps holds the clock's own reading, so if it says
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
    after: Callable[[Question, Any], None],
) -> _Steady:
    listener.phase("steady state")
    samples: list[int] = []
    compilations = most_asked = 0
    longer: list[bool] = []
    decision: Decision | None = None
    shows_mean = resolution.timing is Timing.WHOLE
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
            latest += (times := samples_of(block))
            if len(times) >= FEWEST_COMPARED:
                longer.append(last_is_longer(times))
            compilations += block.compilations
        samples += latest
        # Of the latest block alone: a median of all would be sorted anew at every report.
        step_ns = median(latest)
        elapsed = clock.now_ns() - start
        decision = rule.decide(samples, elapsed, decision, shows_mean)
        if decision.stop:
            # Before the listener hears of it: work that is still pending must not finish meanwhile.
            largest = _largest(most_asked, resolution, unbroken is not None)
            after(replace(largest, last_is_longer=bool(longer) and all(longer)), inputs)
        listener.progress(len(samples), step_ns / resolution.steps_per_sample, decision.interval)
        if decision.stop:
            return _Steady(samples, decision, resolution, compilations, elapsed)


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


def _judge(
    steady: _Steady, warm: WarmupState, rules: Rules, evidence: Evidence
) -> tuple[Quality, list[str]]:
    """Return the quality of the launch's figures and what a reader should know."""
    warnings = list(sample_warnings(len(steady.samples), rules.stopping.minimum))
    quality = steady.decision.quality or Quality.NOISE_LIMITED
    if rules.warmup.fixed is not None:
        steps = "1 step" if warm.steps == 1 else f"{warm.steps} steps"
        warnings.append(f"Warm-up was fixed at {steps}. Whether that is enough was not checked.")
    if rules.stopping.fixed is not None:
        warnings.append("The number of samples was fixed. Whether it is enough was not checked.")
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
