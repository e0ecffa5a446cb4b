"""Energy of a step, measured in a separate pass after times and memory.

    settle │ idle: the model is loaded and does not step │ block│block│… │

Energy is the mean power between two updates of the meter, times the time of a step in this pass.
Both windows last until enough seconds and updates have passed, or the meter is given up. A missing
value has a reason, and is never replaced by an estimate.

A counter moves in updates, so a window with arbitrary ends would be wrong by up to one update at
each end. Windows therefore begin and end at updates. A counter that went back has overflowed or was
reset; the implied power distinguishes the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any, Protocol

from accelbench.core.columns import ENERGY_COLUMNS
from accelbench.core.energy import EnergyMethod, MeterError, MeterReading
from accelbench.core.protocols import Session
from accelbench.core.vocabulary import Timing
from accelbench.measure.student import t_quantile

#: Largest power of a metered part: the largest sockets and boards take 2 kW at their peak. A
#: counter whose overflow would imply more was reset.
MOST_WATTS = 5e3
#: Most parts of a window whose powers give its interval; each part has at least four updates.
PARTS = 10
_UPDATES_A_PART = 4
_LEVEL = 0.975


class CounterResetError(Exception):
    """A counter was reset, so the window is invalid."""


@dataclass(frozen=True)
class EnergyPoint:
    """Joules since the first reading, at an update."""

    at_ns: int
    joules: float


@dataclass(frozen=True)
class WindowEnergy:
    """Energy of a window, between its first update and its last."""

    joules: float
    seconds: float
    updates: int  # of the counter, or readings of power
    #: 95 % interval of the power, from parts of the window; None if there are too few.
    low: float | None = None
    high: float | None = None

    @property
    def watts(self) -> float:
        return self.joules / self.seconds


def energy_points(
    readings: Sequence[MeterReading], method: EnergyMethod, ranges: Sequence[float | None]
) -> list[EnergyPoint]:
    """Return the energy at each update of a counter, or at each reading of power.

    `ranges` are the joules at which each counter overflows. Raises CounterResetError if one was
    reset.
    """
    if method is EnergyMethod.INTEGRATED:
        return list(_integrate_power(readings))
    return list(_count_energy(readings, ranges))


def _count_energy(
    readings: Sequence[MeterReading], ranges: Sequence[float | None]
) -> Iterator[EnergyPoint]:
    """Yield a point for each update. The first reading is not an update."""
    joules = 0.0
    for before, now in pairwise(readings):
        seconds = (now.at_ns - before.at_ns) / 1e9
        added = sum(
            _counter_difference(earlier, later, limit, seconds)
            for earlier, later, limit in zip(before.values, now.values, ranges, strict=True)
        )
        if now.values != before.values:
            joules += added
            yield EnergyPoint(now.at_ns, joules)


def _counter_difference(before: float, now: float, limit: float | None, seconds: float) -> float:
    """Return joules between two readings of a counter, which may have overflowed once."""
    if now >= before:
        return now - before
    if limit is None or now > limit:
        raise CounterResetError("its counter decreased, although it does not overflow")
    added = limit - before + now
    if added < 0 or added > MOST_WATTS * seconds:
        raise CounterResetError("its counter decreased before its limit, so it was reset")
    return added


def _integrate_power(readings: Sequence[MeterReading]) -> Iterator[EnergyPoint]:
    joules = 0.0
    for number, now in enumerate(readings):
        if number:
            before = readings[number - 1]
            seconds = (now.at_ns - before.at_ns) / 1e9
            joules += (sum(before.values) + sum(now.values)) / 2 * seconds
        yield EnergyPoint(now.at_ns, joules)


def window_energy(points: Sequence[EnergyPoint], begin_ns: int, end_ns: int) -> WindowEnergy | None:
    """Return the energy between two times; None with fewer than two updates between them."""
    inside = [point for point in points if begin_ns <= point.at_ns <= end_ns]
    if len(inside) < 2 or inside[0].at_ns == inside[-1].at_ns:
        return None
    first, last = inside[0], inside[-1]
    low, high = _interval(inside)
    return WindowEnergy(
        last.joules - first.joules, (last.at_ns - first.at_ns) / 1e9, len(inside), low, high
    )


def _interval(points: Sequence[EnergyPoint]) -> tuple[float | None, float | None]:
    parts = min(PARTS, len(points) // _UPDATES_A_PART)
    if parts < 3:
        return None, None
    length = (len(points) - 1) / parts
    ends = [points[round(number * length)] for number in range(parts + 1)]
    powers = [
        (later.joules - earlier.joules) / (later.at_ns - earlier.at_ns) * 1e9
        for earlier, later in pairwise(ends)
    ]
    half = t_quantile(_LEVEL, parts - 1) * stdev(powers) / math.sqrt(parts)
    mean = fmean(powers)
    whole = (points[-1].joules - points[0].joules) / (points[-1].at_ns - points[0].at_ns) * 1e9
    # Parts have equal updates, not equal times, so the interval includes the mean of the window.
    return max(min(mean, whole) - half, 0.0), max(mean, whole) + half


_SECOND = 1_000_000_000
#: Columns that this pass fills.
ENERGY_COLUMN_NAMES = tuple(column.name for column in ENERGY_COLUMNS)


@dataclass(frozen=True)
class EnergyRules:
    """Durations of the windows of the meter."""

    settle_ns: int = 1 * _SECOND  # rest before the idle window: meters average over up to a second
    idle_ns: int = 3 * _SECOND  # the idle window at least
    load_ns: int = 5 * _SECOND  # the window of steps at least
    updates: int = 20  # of the meter, in each window at least
    #: limit of idling without enough updates; the steps are measured regardless.
    most_idle_ns: int = 15 * _SECOND
    most_load_ns: int = 60 * _SECOND  # the limit of steps; then the meter is given up
    #: a counter that does not move for this long under load is stuck.
    stuck_ns: int = 10 * _SECOND
    block_ns: int = 200_000_000  # steps between two readings
    attempts: int = 2  # windows that are tried if the counter is reset

    @property
    def seconds(self) -> float:
        """Duration of the pass with a fast meter and short steps."""
        return (self.settle_ns + self.idle_ns + self.load_ns) / 1e9


class MeterWatch(Protocol):
    """Meter that is read repeatedly during other work."""

    def begin(self) -> None:
        """Start reading, and discard earlier readings."""

    def rest(self, ns: int) -> None:
        """Wait without other work."""

    def now_ns(self) -> int:
        """Return the clock of the readings."""

    def readings(self) -> Sequence[MeterReading]:
        """Return all readings so far; raise MeterError if the meter no longer answers."""

    def end(self) -> None:
        """Stop reading."""


@dataclass(frozen=True)
class MeterFacts:
    """Properties of a meter."""

    source: str
    scope: str
    method: EnergyMethod
    ranges: Sequence[float | None]


@dataclass(frozen=True)
class EnergyReport:
    """Results of the pass: columns, and reasons for missing ones."""

    columns: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


def no_energy(why: str) -> EnergyReport:
    """Return a report without results: the reason for each column, and a warning."""
    return EnergyReport(
        reasons=dict.fromkeys(ENERGY_COLUMN_NAMES, f"not available: {why}"),
        warnings=(f"Energy was not measured: {why}.",),
    )


class _UnavailableError(Exception):
    """No value is available; the message has the reason."""


@dataclass(frozen=True)
class _Load:
    window: WindowEnergy
    steps: int
    seconds: float  # of all steps

    @property
    def joules_a_step(self) -> float:
        return self.window.watts * self.step_seconds

    @property
    def step_seconds(self) -> float:
        return self.seconds / self.steps


class EnergyPass:
    """Energy measurement of one case on an open session."""

    def __init__(
        self,
        session: Session,
        watch: MeterWatch,
        meter: MeterFacts,
        rules: EnergyRules | None = None,
        phase: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._session = session
        self._watch = watch
        self._meter = meter
        self._rules = rules or EnergyRules()
        self._phase = phase
        self._shown: set[tuple[float, ...]] = set()  # readings of all windows

    def measure(self, inputs: Any, step_ns: float, items: float) -> EnergyReport:
        """Measure energy and power of steps with inputs that were stepped before.

        `step_ns` is the approximate time of a step, and `items` the number of items that it
        completes.
        """
        try:
            idle, no_idle = self._measure_idle()
            load = self._measure_load(inputs, step_ns)
        except _UnavailableError as why:
            return no_energy(str(why))
        except MeterError as error:
            return no_energy(f"the meter no longer answers: {error}")
        if self._meter.method is EnergyMethod.INTEGRATED and len(self._shown) == 1:
            return no_energy(
                "the power reading never changed, so the sensor does not follow the load"
            )
        return self._report(idle, no_idle, load, items)

    def _report(
        self, idle: WindowEnergy | None, no_idle: str, load: _Load, items: float
    ) -> EnergyReport:
        window, meter = load.window, self._meter
        columns: dict[str, Any] = {
            "energy_joules": load.joules_a_step,
            "energy_per_item_joules": load.joules_a_step / items,
            "power_watts": window.watts,
            "energy_source": f"{meter.source}: {meter.scope}",
            "energy_method": meter.method.value,
            "energy_updates": window.updates,
            "energy_steps": load.steps,
            "energy_window_ms": window.seconds * 1e3,
        }
        reasons: dict[str, str] = {}
        if window.low is None or window.high is None:
            why = f"too few updates of the meter for an interval: {window.updates}"
            reasons |= {"energy_ci_low_joules": why, "energy_ci_high_joules": why}
        else:
            columns["energy_ci_low_joules"] = window.low * load.step_seconds
            columns["energy_ci_high_joules"] = window.high * load.step_seconds
        if idle is None:
            why = f"not available: {no_idle}"
            reasons |= {"idle_power_watts": why, "energy_above_idle_joules": why}
            return EnergyReport(columns, reasons)
        columns["idle_power_watts"] = idle.watts
        above = (window.watts - idle.watts) * load.step_seconds
        columns["energy_above_idle_joules"] = above
        warnings = []
        if above <= 0:
            warnings.append(
                f"Steps took {window.watts:.3g} W and idling {idle.watts:.3g} W, so the energy"
                " above"
                " idle is not known. Other work ran during the idle window."
            )
        return EnergyReport(columns, reasons, warnings)

    # -- windows

    def _measure_idle(self) -> tuple[WindowEnergy | None, str]:
        rules, watch = self._rules, self._watch
        self._phase("energy: idle")
        watch.rest(rules.settle_ns)
        for _ in range(rules.attempts):
            watch.begin()
            begin = watch.now_ns()
            try:
                while True:
                    watch.rest(rules.block_ns)
                    now = watch.now_ns()
                    points = self._points()
                    if now - begin >= rules.idle_ns and len(points) > rules.updates:
                        break
                    if now - begin >= rules.most_idle_ns:
                        return None, self._too_few("while idle", points, now - begin)
            except CounterResetError as error:
                why = str(error)
                continue
            finally:
                watch.end()
            return window_energy(points, begin, now), self._too_few("while idle", points, 0)
        return None, why

    def _measure_load(self, inputs: Any, step_ns: float) -> _Load:
        rules, watch = self._rules, self._watch
        self._phase("energy")
        for _ in range(rules.attempts):
            watch.begin()
            try:
                return self._run_steps(inputs, step_ns)
            except CounterResetError as error:
                why = f"{error}, in {rules.attempts} windows one after another"
            finally:
                watch.end()
        raise _UnavailableError(why)

    def _run_steps(self, inputs: Any, step_ns: float) -> _Load:
        rules, watch = self._rules, self._watch
        begin, steps = watch.now_ns(), 0
        while True:
            block = max(1, int(rules.block_ns / max(step_ns, 1.0)))
            self._session.sample(inputs, block, Timing.WHOLE if block > 1 else Timing.EACH)
            steps += block
            now = watch.now_ns()
            took = now - begin
            step_ns = took / steps
            points = self._points()
            if took >= rules.load_ns and len(points) > rules.updates:
                window = window_energy(points, begin, now)
                if window is not None:
                    return _Load(window, steps, took / 1e9)
            is_stuck = took >= rules.stuck_ns and not points
            if is_stuck or took >= max(rules.most_load_ns, rules.load_ns + step_ns):
                raise _UnavailableError(self._too_few("under load", points, took))

    def _points(self) -> list[EnergyPoint]:
        readings = self._watch.readings()
        self._shown.update(reading.values for reading in readings)
        return energy_points(readings, self._meter.method, self._meter.ranges)

    def _too_few(self, when: str, points: Sequence[EnergyPoint], ns: int) -> str:
        seconds = f"{ns / 1e9:.3g} s {when}"
        if not points:
            return f"its counter did not move in {seconds}"
        return (
            f"its counter moved {len(points)} times in {seconds}, fewer than the minimum of"
            f" {self._rules.updates}"
        )
