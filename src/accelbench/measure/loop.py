"""Measurement of one case: compile, first inference, warm-up, steady state, memory, evidence.

    prepare │ compile │ first │ average memory │ warm-up … │ steady block│block│… │ phases │ device

Decisions to stop, and calls of listeners, happen only between blocks: a listener that draws or
writes does so while no sample is taken. Memory is sampled before the warm-up, because the steps of
that pass warm the model too.

The value of a launch is the median of steps timed one by one, and sampling ends by its interval.
The value of steps timed in blocks is their mean, which a few slow blocks shift and widen without an
effect on the median.

**Drift.** The medians of the first and of the last third of a run are compared by their 99 %
intervals, which account for autocorrelation. A drift is a difference of more than 5 % with disjoint
intervals and the middle third's median in between. Two disjoint 99 % intervals are much rarer than
1 %: none of 400 AR(1) series with lag-1 0.75 and 10 % noise alarmed at n = 60 to 960. A step of 15
% half-way is found in all series with 2 % noise; with 5 % noise in 47 % at n = 60 and in 86 % at
480. A trend test on ranks (Mann-Kendall) alarmed as rarely, but missed that step, the typical shape
of a lowered clock, in nearly all runs.
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
    has_phases,
    is_last_longer,
    run_side_passes,
    sample_times,
)
from accelbench.measure.intervals import Interval, Samples, median_interval, to_series
from accelbench.measure.losses import LossLog
from accelbench.measure.stopping import Decision, StoppingRule, mean_half_width, sample_warnings
from accelbench.measure.summary import Resolution, choose_timing, summarise
from accelbench.measure.validated_session import CheckedSession
from accelbench.measure.warmup import WarmupRule, WarmupState

#: Fewest samples: thirds of fewer than 20 cause false alarms, in 2.3 % of AR(1) series at n = 30.
MINIMUM_SAMPLES = 60
LEAST_CHANGE = 0.05
_LEVEL = 0.99


@dataclass(frozen=True)
class Drift:
    """Change of the step from the first third of a run to the last."""

    relative: float  # 0.1: the last third's median is 10 % above the first's
    found: bool  # large, significant and going one way

    @property
    def slower(self) -> bool:
        return self.found and self.relative > 0


def find_drift(samples: Samples) -> Drift | None:
    """Return the change between both ends of a run; None if it is too short or took no time."""
    row = to_series(samples)
    third = row.size // 3
    if row.size < MINIMUM_SAMPLES:
        return None
    start, middle, end = row[:third], row[third:-third], row[-third:]
    first, between, last = (float(np.median(part)) for part in (start, middle, end))
    if first <= 0.0:
        return None
    relative = last / first - 1.0
    one_way = min(first, last) <= between <= max(first, last)
    is_drift = abs(relative) > LEAST_CHANGE and one_way and _are_disjoint(start, end)
    return Drift(relative, is_drift)


def _are_disjoint(start: Samples, end: Samples) -> bool:
    before, after = median_interval(start, _LEVEL), median_interval(end, _LEVEL)
    if before is None or after is None:
        return False
    return before.high < after.low or after.high < before.low


def drift_quality(trend: Drift | None, clock_fell: bool | None) -> Quality | None:
    """Return the quality that a drift imposes, or None."""
    # A slow-down is throttling only if the device's clock is known to have fallen: other load on
    # the machine looks the same.
    if trend is None or not trend.found:
        return None
    return Quality.THROTTLED if trend.slower and clock_fell else Quality.UNSTEADY


def noise_warning(
    samples: Samples, timing: Timing, decision: Decision, rule: StoppingRule
) -> str | None:
    """Return a warning if the interval of a launch's value is too wide, else None.

    The warning has one number, so that a run with many warnings can give their range.
    """
    whole = timing is Timing.WHOLE
    few = rule.fixed is not None and len(samples) < rule.minimum
    wide = mean_half_width(samples) if whole and not few else 0.0
    if wide > UNUSABLE_WIDTH:
        return _noise_text(wide)
    if decision.quality is Quality.UNUSABLE and decision.interval is not None:
        wide = decision.interval.relative_half_width(median(samples))
        return _noise_text(wide)
    return None


def _noise_text(wide: float) -> str:
    return f"Too noisy: {_percent(wide)} (limit {_percent(UNUSABLE_WIDTH)}). {NOT_USED}"


def _percent(share: float) -> str:
    """Return a share as per cent, rounded up so that a value beyond the limit differs from it."""
    return f"±{math.ceil(100 * share):,} %" if math.isfinite(share) else "more than ±1,000 %"


#: The name of a detail of the evidence, the value that causes a warning, and the warning.
_FLAG_WARNINGS = (
    ("outputs_finite", False, "The outputs contain values that are not finite."),
    ("inputs_changed", True,
     "The calls changed their inputs: each call began with the changes of the previous one."),
    ("same_answer", True,
     "Each call returned the same object, made before: a step only returns it."),
    ("same_for_similar_inputs", True,
     "Other numbers than the example's gave the same answer: it may be computed only once."),
)  # fmt: skip


#: The name of a detail, and the warning if it has a value: `{}` is the value, or the names in it.
_VALUE_WARNINGS = {
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


def evidence_warnings(details: Mapping[str, Any]) -> list[str]:
    """Return the warnings for the details of a session's evidence."""
    warnings = [text for name, value, text in _FLAG_WARNINGS if details.get(name) is value]
    for name, template in _VALUE_WARNINGS.items():
        if value := details.get(name):
            shown = value if isinstance(value, str) else ", ".join(value)
            warnings.append(template.format(shown))
    return warnings


#: Longest block between two reports, so that the displayed progress moves.
REPORT_NS = 500_000_000

#: Duration of the pass in which memory is sampled, every 5 ms.
MEMORY_PASS_NS, _MOST_MEMORY_STEPS = 40_000_000, 1000


class Listener(PhaseListener, Protocol):
    """Listener that follows the measurement between blocks, and may raise to end it."""

    def progress(self, samples: int, median_ns: float, interval: Interval | None) -> None:
        """Report the samples so far."""


class Meter(Protocol):
    """Meter of memory outside the loop."""

    def reset(self) -> None:
        """Reset the peak."""

    def sample(self, work: Callable[[], object]) -> None:
        """Run `work`, and sample memory during it."""

    def columns(self) -> Mapping[str, Any]:
        """Return peaks since the reset, and averages over the sampled work."""


@dataclass(frozen=True)
class Rules:
    """Rules for the duration of the measurement."""

    warmup: WarmupRule = field(default_factory=WarmupRule)
    stopping: StoppingRule = field(default_factory=StoppingRule)


@dataclass(frozen=True)
class Measurement:
    """Results of one launch of one case."""

    metrics: Mapping[str, Any]
    samples: Mapping[str, Sequence[int]]
    sampling: Mapping[str, Mapping[str, Any]]  # timing of each, and the steps of a sample
    quality: Quality
    warnings: Sequence[str]
    evidence: Evidence
    fastest_ns: float | None = None  # the fastest step, warm-up included
    compiling_ns: int | None = None  # compiling ahead of the first step, by the worker's clock


@dataclass(frozen=True)
class BlockRequest:
    """Request for steps: their timing, the steps of a block, and the blocks at once."""

    timing: Timing
    steps: int
    blocks: int = 1
    last_is_longer: bool = False  # the last step of each block took longer than the others

    @property
    def is_single_step(self) -> bool:
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
    on_steady_end: Callable[[BlockRequest, Any], None] = lambda *_: None,
    on_block: Callable[[Block], None] = lambda _: None,
    on_steady_begin: Callable[[], None] = lambda: None,
) -> Measurement:
    """Measure one case on an open session; refuse impossible blocks, times or losses.

    `wall` is a clock that the session does not own, to check its times. `items` is the number of
    items that a step completes, if it differs from the batch. `on_steady_begin` is called when the
    steady state begins, and `on_block` after each valid block. `on_steady_end` is called when the
    steady state ends, before any other request to the session, with its largest request and the
    inputs.
    """
    listener.phase("prepare")
    log = LossLog()

    def note(block: Block) -> None:
        log.record(block)
        on_block(block)

    checked = CheckedSession(session, clock, wall, note)
    unbroken = checked if isinstance(session, ContinuousBlocks) else None
    session = checked.session
    inputs = session.prepare(case)
    listener.phase("compile")
    compile_ns = session.compile(inputs)
    if compile_ns is not None or not case.compiled:  # otherwise the first call compiles
        listener.phase("first inference")
    first = session.sample(inputs, 1, Timing.EACH)
    if first.compilations:
        compile_ns = (compile_ns or 0) + first.compile_ns
    warm = rules.warmup.start()
    early = rules.warmup.fixed is None  # a fixed warm-up comes first
    if early:
        warm = warm.add_untimed(*_sample_memory(session, inputs, first, clock, meter, listener))
    warm = _warm_up(session, inputs, warm, listener)
    resolution = _choose_resolution(session, inputs, clock, warm, first)
    meter.reset()
    on_steady_begin()
    steady = _measure_steady_state(
        session, inputs, rules.stopping, clock, listener, resolution, unbroken, on_steady_end
    )
    if not case.options.get("pure"):  # half-precision weights may stall for a while
        log.refuse_constant()
    if not early:
        _sample_memory(session, inputs, first, clock, meter, listener)
    memory = meter.columns()
    columns, side = run_side_passes(session, case, inputs, steady.step_ns, listener)
    evidence = session.evidence()
    quality, warnings = _judge(steady, warm, rules, evidence)
    if checked.is_mostly_unexplained:
        quality = Quality.UNUSABLE  # although repeated blocks explained their time
        warnings.append(
            f"{checked.budget.unexplained_share or 0.0:.0%} of the measured time is in no step:"
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
            "first_inference_ms": (sample_times(first)[0] - first.compile_ns) / 1e6,
            "compile_ms": None if compile_ns is None else compile_ns / 1e6,
            "warmup_steps": warm.steps,
            "warmup_ms": warm.elapsed_ns / 1e6,
            "sampling_ms": steady.elapsed_ns / 1e6,
            "unexplained_share": checked.budget.unexplained_share,
            **log.columns(),
            **memory,
            **columns,
        },
        samples={"step": steady.samples, **side},
        sampling={
            "step": _describe_sampling(steady),
            **{name: {"timing": _side_timing(name)} for name in side},
        },
        quality=quality,
        warnings=[*warnings, *log.warnings()],
        evidence=evidence,
        fastest_ns=checked.fastest_ns,
        compiling_ns=checked.compiling_ns,
    )


def _describe_sampling(steady: _Steady) -> dict[str, Any]:
    steps = steady.resolution.steps_per_sample
    described: dict[str, Any] = {"timing": steady.resolution.timing.value}
    if steps > 1:
        described["steps"] = [steps] * len(steady.samples)
    return described


def _side_timing(name: str) -> str:
    return (Timing.DEVICE if name == "device" else Timing.PHASES).value


def _sample_memory(
    session: Session, inputs: Any, first: Block, clock: Clock, meter: Meter, listener: Listener
) -> tuple[int, int]:
    """Sample memory over an inspected pass and some steps; return their number and duration.

    Memory is sampled within steps, so one step is enough if it takes longer than the pass.
    """
    parted = has_phases(session)  # then an inspected pass is less than a step
    step_ns = max(sample_times(first)[0] - first.compile_ns, 1)
    steps, took = 1, 0

    def work() -> None:
        nonlocal steps, took
        start = clock.now_ns()
        session.inspect(inputs)
        took = clock.now_ns() - start
        each = step_ns if parted else max(min(step_ns, took), 1)
        more = min(max(int(parted), (MEMORY_PASS_NS - took) // each), _MOST_MEMORY_STEPS)
        if more > 0:
            took += sum(sample_times(session.sample(inputs, more, Timing.EACH)))
            steps += more

    listener.phase("average memory")
    meter.sample(work)
    return steps, took


def _warm_up(session: Session, inputs: Any, state: WarmupState, listener: Listener) -> WarmupState:
    listener.phase("warm-up")
    while not state.done:
        most = max(1, int(REPORT_NS / max(state.step_ns, 1.0))) if state.step_ns else 1
        block = session.sample(inputs, min(state.next_steps(), most), Timing.EACH)
        state = state.add_block(sample_times(block), block.compilations)
    return state


def _choose_resolution(
    session: Session, inputs: Any, clock: Clock, warm: WarmupState, first: Block
) -> Resolution:
    """Return whether this clock can time single steps.

    Times of single steps include the reading of the clock, so if they suggest blocks, one block is
    measured to learn the true time of a step.
    """
    step_ns = warm.step_ns or sample_times(first)[0]
    resolution = choose_timing(step_ns, clock.tick_ns())
    if resolution.timing is Timing.WHOLE:
        block = session.sample(inputs, resolution.steps_per_sample, Timing.WHOLE)
        return choose_timing(sample_times(block)[0] / block.steps, clock.tick_ns())
    return resolution


def _measure_steady_state(
    session: Session,
    inputs: Any,
    rule: StoppingRule,
    clock: Clock,
    listener: Listener,
    resolution: Resolution,
    unbroken: ContinuousBlocks | None,
    on_end: Callable[[BlockRequest, Any], None],
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
        # The first block is one sample, which gives the number of samples between two reports.
        most = max(1, int(REPORT_NS / max(step_ns, 1.0))) if samples else 1
        latest: list[int] = []
        block_size = min(wanted, most)
        most_asked = max(most_asked, block_size)
        for block in _blocks(session, inputs, block_size, resolution, unbroken):
            latest += (times := sample_times(block))
            if len(times) >= FEWEST_COMPARED:
                longer.append(is_last_longer(times))
            compilations += block.compilations
        samples += latest
        # Only of the latest block: a median of all samples would be sorted at every report.
        step_ns = median(latest)
        elapsed = clock.now_ns() - start
        decision = rule.decide(samples, elapsed, decision, shows_mean)
        if decision.stop:
            # Before the listener is called: pending work must not finish during that call.
            largest = _largest_request(most_asked, resolution, unbroken is not None)
            on_end(replace(largest, last_is_longer=bool(longer) and all(longer)), inputs)
        listener.progress(len(samples), step_ns / resolution.steps_per_sample, decision.interval)
        if decision.stop:
            return _Steady(samples, decision, resolution, compilations, elapsed)


def _largest_request(samples: int, resolution: Resolution, unbroken: bool) -> BlockRequest:
    if resolution.timing is Timing.EACH:
        return BlockRequest(Timing.EACH, samples)
    return BlockRequest(Timing.WHOLE, resolution.steps_per_sample, samples if unbroken else 1)


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
    """Return the quality of the launch's values, and warnings for readers."""
    warnings = list(sample_warnings(len(steady.samples), rules.stopping.minimum))
    quality = steady.decision.quality or Quality.NOISE_LIMITED
    if rules.warmup.fixed is not None:
        steps = "1 step" if warm.steps == 1 else f"{warm.steps} steps"
        warnings.append(f"Warm-up was fixed at {steps}. Whether that is enough was not checked.")
    if rules.stopping.fixed is not None:
        warnings.append("The number of samples was fixed. Whether it is enough was not checked.")
    if warm.steady is False:
        quality = Quality.UNSTEADY
        warnings.append("The step was not yet steady when the warm-up reached its limit.")
    if steady.compilations:
        quality = Quality.UNSTEADY
        times = "once" if steady.compilations == 1 else f"{steady.compilations} times"
        warnings.append(f"It was compiled again {times} during the measurement.")
    trend = find_drift(steady.samples)
    drifted = drift_quality(trend, clock_fell=None)
    if drifted is not None and trend is not None:
        quality = drifted
        direction = "slower" if trend.relative > 0 else "faster"
        warnings.append(
            f"The step became {abs(trend.relative):.0%} {direction} during the measurement."
        )
    timing, decision = steady.resolution.timing, steady.decision
    noise = noise_warning(steady.samples, timing, decision, rules.stopping)
    if noise is not None:
        quality = Quality.UNUSABLE
        warnings.append(noise)
    warnings += evidence_warnings(evidence.details)
    return quality, warnings
