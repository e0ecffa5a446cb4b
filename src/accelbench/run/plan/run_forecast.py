"""Forecast of a run: how long a plan takes, and how a time budget is shared among its cases.

A case takes opening, a first step, warm-up, the steps of its rules and further passes, at most the
timeout. A case without a prediction is estimated from its operations (`run.plan.estimates`).

What can be known of a case before it is tried: memory, cost, and roughly how long it takes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.case import Case
from accelbench.core.devices import cards
from accelbench.core.errors import AccelbenchError
from accelbench.core.model import AnalyticCost
from accelbench.core.precision import bytes_per_weight
from accelbench.core.protocols import Device
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.machine import take_snapshot
from accelbench.hardware.telemetry import telemetry_for
from accelbench.hardware.telemetry.energy import combined_meter
from accelbench.models.cost import (
    UNCOUNTED_OPTIONS,
    flops,
    inference_rank_bytes,
    memory_estimate_bytes,
    rank_memory_bytes,
)
from accelbench.models.cost import cost as analytic_cost
from accelbench.run.plan.request import Plan, Planned

#: Operations a second that one core, or one accelerator, has been seen to reach on whole
#: models, slow and fast: only to tell minutes from hours, never stored.
_PER_CORE = (5e9, 100e9)
_PER_ACCELERATOR = (5e11, 3e14)
_BUILD_PARAMETERS_PER_SECOND = 50e6
START_SECONDS = 6.0
_LEAST_SECONDS = 0.4
_PROFILE_SECONDS = 1.5  # beside building it once more; seen of small models


def memory(case: Case) -> int | None:
    """Estimated bytes of a case; of one that is not counted, what its weights alone take.

    Of one that several processes share, what the largest of them takes.
    """
    if case.world_size > 1:
        return memory_of_rank(case)
    try:
        counted = memory_estimate_bytes(
            case.model, case.shapes, case.precision, case.mode, case.options
        )
    except AccelbenchError:
        counted = None
    return weights_alone(case) if counted is None else counted


def memory_of_rank(case: Case) -> int:
    """Return the same of each process of a case that several share."""
    try:
        if case.mode is Mode.TRAINING:
            counted = rank_memory_bytes(
                case.model, case.shapes, case.precision, case.options, case.world_size
            )
        else:
            counted = inference_rank_bytes(case.model, case.shapes, case.precision, case.world_size)
    except AccelbenchError:
        counted = None
    if counted is not None:
        return counted
    parts = case.world_size if case.options.get("strategy") in ("fsdp2", "fsdp") else 1
    return weights_alone(case) // parts


def of_process(case: Case, estimate: int | None) -> int | None:
    """Return an estimate as it is compared with a process's peak.

    Devices that are parts of a processor have one process, whose memory is of all of them.
    """
    info = cards().get(case.target.runtime)
    apart = case.target.hardware != "cpu" or info is None or info.ranks == "processes"
    return estimate if estimate is None or apart else estimate * case.world_size


def weights_alone(case: Case) -> int:
    """No case takes less: its weights and, where it trains, gradients and the optimizer's moments.

    Autocast has fp32 weights; so has training, unless it is purely half.
    """
    if case.mode is not Mode.TRAINING:
        return case.model.parameters * bytes_per_weight(case.precision)
    pure = bool(case.options.get("pure"))
    moments = 1 if case.options.get("optimizer") == "sgd" else 2
    return case.model.parameters * (2 if pure else 4) * (2 + moments)


def cost(case: Case) -> AnalyticCost | None:
    """Analytic cost of one step; None if not counted."""
    if any(name in case.options for name in UNCOUNTED_OPTIONS):
        return None
    try:
        return analytic_cost(case.model, case.shapes, case.precision, case.mode)
    except AccelbenchError:
        return None


def free(device: Device) -> int | None:
    """Bytes free for a model on a device now; the device's whole memory where use is not told."""
    if device.hardware == "cpu":
        return take_snapshot().memory_available
    telemetry = telemetry_for(device)
    used = telemetry.device_memory_used()
    telemetry.close()
    if device.memory_bytes is None or isinstance(used, NotAvailable):
        return device.memory_bytes
    return max(device.memory_bytes - used, 0)


def conditions(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Of the environment, what a comparison must list when it differs."""
    kept = (
        *("packages", "python", "effective_cpus", "effective_memory"),
        *("variables", "allocator", "kernel"),
    )
    return {name: environment.get(name) for name in kept}


def seconds_of_all(arms: Iterable[tuple[Plan, RunSettings]]) -> tuple[float, float]:
    """Return the same of a run's arms together."""
    ranges = [seconds(plan, settings) for plan, settings in arms]
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)


def seconds(plan: Plan, settings: RunSettings) -> tuple[float, float]:
    """Between how many seconds a plan takes, very roughly: from its operations, not measured."""
    low = high = 0.0
    groups = tried_groups(plan)
    profiled = profile_seconds(groups) if settings.profile else 0.0
    for tried in groups:
        build = build_seconds(tried[0])
        low += build
        high += build
        for planned in tried:
            fast, slow = case_seconds(planned, settings)
            low += fast
            high += slow
    if low:
        low += START_SECONDS
        high += START_SECONDS
    metered = energy_seconds(groups, settings)
    low, high = (end * settings.launches + profiled + metered for end in (low, high))
    if settings.budget is not None:
        low, high = min(low, settings.budget), min(high, settings.budget)
    return low, high


def tried_groups(plan: Plan) -> list[list[Planned]]:
    """What each worker will try at all: what cannot fit is refused and takes no time."""
    rooms: dict[str, int | None] = {}

    def is_tried(planned: Planned) -> bool:
        if planned.refusal is not None or planned.device is None:
            return False
        need, device = memory(planned.case), planned.device
        if str(device) not in rooms:
            rooms[str(device)] = free(device)
        room = rooms[str(device)]
        return need is None or room is None or need <= room

    groups = ([p for p in group if is_tried(p)] for group in plan.groups())
    return [group for group in groups if group]


def build_seconds(planned: Planned) -> float:
    """How long a model is built, from its number of weights."""
    return seconds_to_build(planned.case.model.parameters)


def seconds_to_build(weights: int) -> float:
    """Return the same of a number of weights."""
    return weights / _BUILD_PARAMETERS_PER_SECOND


def profile_seconds(groups: Iterable[Iterable[Planned]]) -> float:
    """How long the profiles of cases take, each in a session of its own."""
    return sum(build_seconds(planned) + _PROFILE_SECONDS for group in groups for planned in group)


def energy_seconds(groups: Iterable[Iterable[Planned]], settings: RunSettings) -> float:
    """How long energy passes take, of all launches: none if a device has no meter."""
    if not settings.energy or settings.verify == "only":
        return 0.0
    from accelbench.measure.energy import EnergyRules

    devices = [planned.device for group in groups for planned in group if planned.device]
    metered = {str(device): _has_meter(device) for device in devices}
    cases = sum(metered[str(device)] for device in devices)
    return cases * settings.launches * EnergyRules().seconds


def _has_meter(device: Device) -> bool:
    meter = combined_meter([device])
    if isinstance(meter, NotAvailable):
        return False
    meter.close()
    return True


def case_seconds(planned: Planned, settings: RunSettings) -> tuple[float, float]:
    """Between how many seconds a case takes once it is built, from its operations."""
    case, device = planned.case, planned.device
    assert device is not None
    operations = _operations(case)
    slow_rate, fast_rate = (
        (_PER_CORE[0], _PER_CORE[1] * max(device.count, 1))
        if device.hardware == "cpu"
        else _PER_ACCELERATOR
    )
    fast_step, slow_step = operations / fast_rate, operations / slow_rate
    if settings.iterations is not None:
        steps = settings.iterations + (settings.warmup or 10) + 2
        return (_LEAST_SECONDS / 2 + steps * fast_step, 1.0 + steps * slow_step)
    # Forty steps where they are short; of long ones the rules take a dozen, warm-up included.
    fast = _LEAST_SECONDS + min(40 * fast_step, max(13.0, 12 * fast_step))
    return (fast, max(fast, 13.0, 12 * slow_step))


def _operations(case: Case) -> float:
    try:
        counted = flops(case.model, case.shapes, case.mode)
    except AccelbenchError:
        counted = None
    # Not counted: two operations a weight and token is the usual order of magnitude, and
    # twice as many again backward.
    shapes = case.shapes
    tokens = shapes.batch * (
        (shapes.prompt_tokens or shapes.sequence or 1) + (shapes.new_tokens or 0)
    )
    each = 6.0 if case.mode is Mode.TRAINING else 2.0
    return counted or each * case.model.parameters * tokens


#: Of a case's share, what its steady state may take; the rest is for building,
#: loading, warm-up and the passes beside it.
STEADY_SHARE = 0.5
SHORTEST_SECONDS = 0.2
LONGEST_SECONDS = 10.0


class Budget:
    """Seconds for a whole run, None for no limit."""

    def __init__(
        self, seconds: float | None, cases: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._deadline = None if seconds is None else now() + seconds
        self._cases = cases

    def left(self) -> float | None:
        return None if self._deadline is None else self._deadline - self._now()

    @property
    def exhausted(self) -> bool:
        left = self.left()
        return left is not None and left <= 0

    def steady_seconds(self) -> float | None:
        """How long the steady state of the next case may last; None for the design's rule."""
        left = self.left()
        if left is None:
            return None
        share = STEADY_SHARE * left / max(self._cases, 1)
        return round(min(max(share, SHORTEST_SECONDS), LONGEST_SECONDS), 2)

    def add(self, seconds: float) -> None:
        """Have so much more time: it was spent waiting for another run."""
        if self._deadline is not None:
            self._deadline += seconds

    def case_over(self) -> None:
        self._cases -= 1


#: Steps of so many seconds are named before a run, and teach nothing that is worth their time.
LONG_STEP = 60.0
#: Half of 90 % of a normal distribution, in standard deviations.
_NINE_IN_TEN = 1.645
#: Steps of the self-check and of what is compared with a reference, where nothing was measured.
_CHECK_STEPS = 4.0


@dataclass(frozen=True)
class SecondsRange:
    """Seconds, with the ends of a 90 % interval."""

    low: float
    middle: float
    high: float

    @property
    def deviation(self) -> float:
        return math.log(max(self.high, 1e-9) / max(self.low, 1e-9)) / (2 * _NINE_IN_TEN)


@dataclass(frozen=True)
class SamplingEnds:
    """Where sampling ended between the least and the most that the rules allow.

    0 is converged at the first look, 1 the time limit; in logarithms between them.
    """

    low: float = 0.0
    middle: float = 0.5
    high: float = 1.0


@dataclass(frozen=True)
class CaseForecast:
    """What is known of a case before it runs.

    Attributes:
        step: seconds of a step, as predicted.
        memory_bytes: that it works in, as predicted.
        opening: seconds beside the steps that earlier results took as the first of a worker: build,
            load, export, compilation, checks; None if there are none.
        again: the same of a further batch in a worker.
    """

    step: SecondsRange
    memory_bytes: float | None = None
    opening: SecondsRange | None = None
    again: SecondsRange | None = None


@dataclass(frozen=True)
class PlanForecast:
    """Forecasts of the cases of a plan."""

    cases: Mapping[tuple[str, str], CaseForecast] = field(default_factory=dict)  # by `Planned.key`.
    #: where sampling ended in earlier results
    ends: SamplingEnds = field(default_factory=SamplingEnds)
    #: how many measured cases predictions rest on; 0 where nothing is predicted
    learned_from: int = 0
    learned_imported: int = 0  # how many of them others measured
    why: str = ""  # nothing is, where nothing is


@dataclass(frozen=True)
class RunSeconds:
    """How long a run takes: nine in ten such runs between the ends."""

    low: float
    high: float
    predicted: int = 0
    counted: int = 0


@dataclass
class _Sum:
    """A sum of log-normal times: means, and deviations that vary together or apart."""

    constant: float = 0.0
    mean: float = 0.0
    together: float = 0.0
    apart: dict[tuple[str, ...], float] = field(default_factory=dict)

    def add(self, middle: float, own: float, shared: float, group: tuple[str, ...]) -> None:
        """Add a time with deviations of its logarithm: of its group alone, and shared by all."""
        mean = middle * math.exp((own**2 + shared**2) / 2)
        self.mean += mean
        self.together += mean * math.sqrt(math.expm1(shared**2))
        self.apart[group] = self.apart.get(group, 0.0) + mean * math.sqrt(math.expm1(own**2))

    def range(self) -> SecondsRange:
        """Return the interval of 90 % of a log-normal distribution of this mean and variance."""
        if self.mean <= 0.0:
            return SecondsRange(self.constant, self.constant, self.constant)
        variance = self.together**2 + sum(value**2 for value in self.apart.values())
        spread = math.log1p(variance / self.mean**2)
        middle = math.log(self.mean) - spread / 2
        half = _NINE_IN_TEN * math.sqrt(spread)
        return SecondsRange(*(self.constant + math.exp(middle + end) for end in (-half, 0, half)))


def run_seconds(arms: Iterable[tuple[Plan, RunSettings]], forecast: PlanForecast) -> RunSeconds:
    """Between how many seconds a run takes.

    Adding up lower and upper ends would take every prediction for wrong in the same direction. A
    predicted step is off for reasons of its model in its engine: batches, launches and arms of one
    are off together, and their deviations are added; those of different ones are off apart, and
    their squares are added. When sampling stops depends on how noisy the machine is, which all
    cases share, and so do those that rest on operation counts: these deviations are added. The sum
    is taken for log-normal with the mean and variance that come of it (Fenton and Wilkinson).
    """
    plans = list(arms)
    if not forecast.cases:
        low, high = seconds_of_all(plans)
        return RunSeconds(low, high)
    total, predicted, counted = _Sum(), 0, 0
    for plan, settings in plans:
        groups = tried_groups(plan)
        total.constant += START_SECONDS if groups else 0.0
        steady = _steady_limit(settings, sum(len(group) for group in groups))
        for group in groups:
            for number, planned in enumerate(group):
                known = forecast.cases.get(planned.key)
                predicted, counted = predicted + bool(known), counted + (not known)
                if known is None:
                    _add_counted(total, planned, settings, first=number == 0)
                else:
                    rules = _CaseRules(settings, steady, parted=_is_parted(planned))
                    beside = known.opening if number == 0 else known.again
                    _add_predicted(total, planned, rules, known.step, beside, forecast.ends,
                                   first=number == 0)  # fmt: skip
        total.constant += profile_seconds(groups) if settings.profile else 0.0
        total.constant += energy_seconds(groups, settings)
    budgets = [settings.budget for _, settings in plans if settings.budget is not None]
    taken = total.range()
    low, high = (min((end, *budgets)) for end in (taken.low, taken.high))
    return RunSeconds(low, high, predicted, counted)


def commands_seconds(measured: Iterable[tuple[SecondsRange, int, bool]]) -> SecondsRange:
    """Return the seconds of `accelbench run` commands that each measure a case, added up as those
    of a run."""
    total = _Sum()
    for number, (step, weights, parted) in enumerate(measured):
        rules = _CaseRules(RunSettings(), LONGEST_SECONDS, parted)
        beside = _assumed_opening(seconds_to_build(weights))
        stepping, sampling = rules.ranges(step, SamplingEnds(), _CHECK_STEPS)
        group = (str(number),)
        total.constant += START_SECONDS
        total.add(stepping.middle, stepping.deviation, sampling.deviation, group)
        total.add(beside.middle, beside.deviation, 0.0, group)
    return total.range()


def _steady_limit(settings: RunSettings, cases: int) -> float:
    if settings.budget is None:
        return LONGEST_SECONDS
    share = STEADY_SHARE * settings.budget / max(cases * settings.launches, 1)
    return min(max(share, SHORTEST_SECONDS), LONGEST_SECONDS)


def _add_predicted(
    total: _Sum,
    planned: Planned,
    rules: _CaseRules,
    step: SecondsRange,
    beside: SecondsRange | None,
    ends: SamplingEnds,
    *,
    first: bool,
) -> None:
    check = 0.0
    if beside is None:
        beside = _assumed_opening(build_seconds(planned)) if first else _AGAIN
        check = 0.0 if rules.settings.verify == "off" else _CHECK_STEPS
    stepping, sampling = rules.ranges(step, ends, check)
    launches, group = rules.settings.launches, _group(planned)
    total.add(launches * stepping.middle, stepping.deviation, sampling.deviation, group)
    total.add(launches * beside.middle, beside.deviation, 0.0, group)


def _add_counted(total: _Sum, planned: Planned, settings: RunSettings, *, first: bool) -> None:
    """A case that nothing is predicted of, by its operations: its ends are off like all others'."""
    low, high = case_seconds(planned, settings)
    launches = settings.launches
    times = SecondsRange(low, math.sqrt(low * high), high)
    total.add(launches * times.middle, 0.0, times.deviation, _group(planned))
    if first:
        total.constant += launches * build_seconds(planned)


def _group(planned: Planned) -> tuple[str, ...]:
    case = planned.case
    return case.model.id, str(case.target), case.precision, case.mode.value


#: What a further batch takes beside its steps, where nothing was measured.
_AGAIN = SecondsRange(0.1, 0.3, 1.0)


def _is_parted(planned: Planned) -> bool:
    """Return whether its phases are timed in a pass of their own."""
    case = planned.case
    return case.mode is Mode.TRAINING or bool(case.shapes.new_tokens)


def _assumed_opening(build: float) -> SecondsRange:
    return SecondsRange(build + 0.2, build + 0.5, 2 * build + 1.0)


@dataclass(frozen=True)
class _CaseRules:
    """How many steps a case takes, by the rules of measuring and by what was fixed."""

    settings: RunSettings
    steady: float  # seconds that its steady state may last
    parted: bool  # its phases are timed in a pass of their own

    def ranges(
        self, step: SecondsRange, ends: SamplingEnds, check: float
    ) -> tuple[SecondsRange, SecondsRange]:
        """Return seconds of its steps, by how long a step is, and by where sampling ends."""

        def seconds(step: float, end: float) -> float:
            return self.seconds(step, end) + check * step

        middle = seconds(step.middle, ends.middle)
        stepping = (seconds(step.low, ends.middle), middle, seconds(step.high, ends.middle))
        sampling = (seconds(step.middle, ends.low), middle, seconds(step.middle, ends.high))
        return SecondsRange(*stepping), SecondsRange(*sampling)

    def seconds(self, step: float, end: float) -> float:
        """Return the seconds of a launch's steps; `end` is 0 if the rules stop at once, 1 at the
        time limit."""
        from accelbench.measure.block_validation import SIDE_PASS_NS, SIDE_PASS_STEPS
        from accelbench.measure.loop import MEMORY_PASS_NS

        settings = self.settings
        if settings.verify == "only":
            return _CHECK_STEPS * step
        least, most = sampling_limits(step, settings.iterations, settings.warmup, self.steady)
        sampled = math.exp((1 - end) * math.log(least) + end * math.log(most))
        least_steps = SIDE_PASS_STEPS if SIDE_PASS_STEPS * step < 1.0 else 1
        side = max(least_steps * step, SIDE_PASS_NS / 1e9) if self.parted else 0.0
        side += max(step, MEMORY_PASS_NS / 1e9)
        return min(step + sampled + side, settings.timeout)


def sampling_limits(
    step: float, iterations: int | None, warmup: int | None, steady: float = LONGEST_SECONDS
) -> tuple[float, float]:
    """Between how many seconds warm-up and sampling take together."""
    from accelbench.measure.intervals import MINIMUM_SAMPLES
    from accelbench.measure.stopping import StoppingRule
    from accelbench.measure.warmup import WarmupRule

    stopping, warming = StoppingRule(), WarmupRule()
    cap = max(warming.cap_fraction * steady, warming.cap_steps * step)
    windows = 2 * max(warming.window_steps * step, warming.window_ns / 1e9)
    warm = (min(windows, cap), cap) if warmup is None else (warmup * step, warmup * step)
    limit = max(steady, MINIMUM_SAMPLES * step)
    sample = (min(stopping.minimum * step, limit), limit)
    if iterations is not None:
        sample = (iterations * step, iterations * step)
    return max(warm[0] + sample[0], 1e-6), max(warm[1] + sample[1], 1e-6)
