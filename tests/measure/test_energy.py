"""Energy from recorded readings and on a virtual clock: turns, resets, stuck and coarse meters."""

import math

import pytest

from accelbench.core.energy import EnergyMethod, MeterError, MeterReading
from accelbench.measure.energy import (
    ENERGY_COLUMN_NAMES,
    CounterResetError,
    EnergyPass,
    EnergyPoint,
    MeterFacts,
    energy_points,
    window_energy,
)

SECOND = 1_000_000_000
COUNTER, INTEGRATED = EnergyMethod.COUNTER, EnergyMethod.INTEGRATED


def recorded(*values, every=1.0):
    """Readings of one meter, so many seconds apart."""
    return [MeterReading(round(i * every * SECOND), (value,)) for i, value in enumerate(values)]


# -- recorded sequences


def test_counters_that_run_over():
    points = energy_points(recorded(262_000.0, 262_100.0, 57.0, 157.0), COUNTER, [262_143.0])
    assert [point.joules for point in points] == [100.0, 200.0, 300.0]

    readings = [
        MeterReading(0, (990.0, 5.0)),
        MeterReading(SECOND, (10.0, 15.0)),  # the first is full at 1000
        MeterReading(2 * SECOND, (30.0, 25.0)),
    ]
    points = energy_points(readings, COUNTER, [1000.0, 1000.0])
    assert [point.joules for point in points] == [30.0, 60.0]


@pytest.mark.parametrize(
    ("values", "limit", "why"),
    [
        ((130_000.0, 130_100.0, 3.0), 262_143.0, "was reset"),  # 132 kJ in a second
        ((500.0, 600.0, 3.0), None, "does not overflow"),
        ((500.0, 600.0, 300.0), 250.0, "does not overflow"),  # above its own range
    ],
)
def test_a_counter_that_was_started_anew_is_told_from_a_full_one(values, limit, why):
    with pytest.raises(CounterResetError, match=why):
        energy_points(recorded(*values), COUNTER, [limit])


def test_a_window_lies_between_updates_and_has_an_interval():
    # A counter of 50 W that moves each second: the window ends half a second after an update.
    points = energy_points(recorded(*(50.0 * i for i in range(30))), COUNTER, [None])
    window = window_energy(points, round(0.5 * SECOND), round(25.5 * SECOND))
    assert (window.seconds, window.watts, window.updates) == (24.0, 50.0, 25)
    assert window.low == pytest.approx(50.0)
    assert window.high == pytest.approx(50.0)

    powers = [40.0, 60.0] * 60
    joules = [sum(powers[:i]) for i in range(0, 121, 3)]
    points = energy_points(recorded(*joules, every=3.0), COUNTER, [None])
    window = window_energy(points, 0, 10**12)
    assert window.low is not None
    assert window.high is not None
    assert 40 < window.low < window.watts < window.high < 60

    # Four updates a part: 4 s of 100 W, 3 s of 101 W and 12 s of 102 W.
    steps = [(1, 100.0)] * 4 + [(1, 101.0)] * 3 + [(3, 102.0)] * 4
    points = [EnergyPoint(0, 0.0)]
    for seconds, watts in steps:
        before = points[-1]
        at_ns = before.at_ns + seconds * SECOND
        points.append(EnergyPoint(at_ns, before.joules + seconds * watts))
    found = window_energy(points, 0, 19 * SECOND)
    half = 4.302653 / math.sqrt(3)  # t at 97.5 % with two degrees of freedom, a deviation of 1 W
    assert (found.low, found.high) == pytest.approx((101 - half, 1927 / 19 + half), rel=1e-6)
    fewer = window_energy(points[1:], 0, 19 * SECOND)
    assert (fewer.low, fewer.high) == (None, None)

    points = energy_points(recorded(1.0, 1.0, 2.0, 2.0), COUNTER, [None])
    assert len(points) == 1
    assert window_energy(points, 0, 10 * SECOND) is None
    points = energy_points(recorded(100.0, 200.0, 200.0), INTEGRATED, [None])
    assert [point.joules for point in points] == [0.0, 150.0, 350.0]


# -- the pass on a virtual clock


class VirtualWatch:
    """A meter whose readings are a function of a clock that steps and rests move on."""

    def __init__(self, shown, every=0.01, busy_s=0.001):
        self._shown = shown
        self._every = round(every * SECOND)
        self.step_ns = round(busy_s * SECOND)
        self._now = 0
        self._next = 0
        self._kept = []
        self.windows = 0
        self.failure = None

    def begin(self):
        self.windows += 1
        self._kept = []
        self._next = self._now
        self._pass(0, busy=False)

    def end(self):
        return None

    def rest(self, ns):
        self._pass(ns, busy=False)

    def now_ns(self):
        return self._now

    def readings(self):
        if self.failure:
            raise MeterError(self.failure)
        return self._kept

    def sample(self, inputs, steps, timing):
        """In place of a session: steps take time."""
        self._pass(steps * self.step_ns, busy=True)

    def _pass(self, ns, *, busy):
        self._now += ns
        while self._next <= self._now:
            self._kept.append(MeterReading(self._next, (self._shown(self._next / SECOND, busy),)))
            self._next += self._every


class TwoPowers:
    """A counter of a device that takes 20 W while it rests and 120 W while it steps."""

    def __init__(self, update=0.05):
        self._update = update
        self._at = self._joules = self._shown = self._told = 0.0

    def __call__(self, seconds, busy):
        self._joules += (120.0 if busy else 20.0) * (seconds - self._at)
        self._at = seconds
        if seconds - self._told >= self._update:
            self._told, self._shown = seconds, self._joules
        return self._shown


def measured(watch, method=COUNTER, limit=None, rules=None):
    meter = MeterFacts("made up", "all of it", method, [limit])
    energy = EnergyPass(watch, watch, meter, rules)
    return energy.measure(None, watch.step_ns, items=8)


def why_none(report):
    assert not report.columns
    assert set(report.reasons) == set(ENERGY_COLUMN_NAMES)
    (why,) = set(report.reasons.values())
    return why


def test_steps_and_idling_are_told_apart():
    report = measured(VirtualWatch(TwoPowers()))
    columns = report.columns
    assert columns["power_watts"] == pytest.approx(120, rel=0.01)
    assert columns["idle_power_watts"] == pytest.approx(20, rel=0.01)
    assert columns["energy_joules"] == pytest.approx(0.12, rel=0.01)  # steps of a millisecond
    assert columns["energy_above_idle_joules"] == pytest.approx(0.1, rel=0.01)
    assert columns["energy_per_item_joules"] == pytest.approx(0.015, rel=0.01)
    low, high = columns["energy_ci_low_joules"], columns["energy_ci_high_joules"]
    assert low <= columns["energy_joules"] <= high
    assert columns["energy_source"] == "made up: all of it"
    assert columns["energy_method"] == "counter"
    assert columns["energy_updates"] >= 20
    assert columns["energy_window_ms"] >= 4900
    assert columns["energy_steps"] >= 5000
    assert not report.warnings


def test_windows_of_slow_and_stuck_counters():
    report = measured(VirtualWatch(TwoPowers(update=1.0)))
    assert 20 <= report.columns["energy_updates"] <= 22
    assert report.columns["energy_window_ms"] >= 19_000
    # Idling ends after 15 s, which are not 20 updates: that alone is missing.
    assert "its counter moved 15 times in 15 s while idle" in report.reasons["idle_power_watts"]
    assert "energy_above_idle_joules" in report.reasons

    why = why_none(measured(VirtualWatch(TwoPowers(update=7.0))))
    assert why.startswith("not available: its counter moved 8 times in 60")
    assert "minimum of 20" in why
    watch = VirtualWatch(lambda seconds, busy: 4711.0)
    assert "its counter did not move in 10 s under load" in why_none(measured(watch))
    report = measured(VirtualWatch(TwoPowers(), busy_s=90.0))
    assert report.columns["energy_steps"] == 1
    assert report.columns["energy_joules"] == pytest.approx(90 * 120, rel=0.01)
    counted = TwoPowers()
    watch = VirtualWatch(lambda seconds, busy: counted(seconds, busy) % 300)
    report = measured(watch, limit=300.0)
    assert report.columns["power_watts"] == pytest.approx(120, rel=0.01)


class StartedAnew:
    """A counter that starts again from 0 at these seconds, long before it is full."""

    def __init__(self, *moments):
        self._counted = TwoPowers()
        self._moments = moments

    def __call__(self, seconds, busy):
        passed = [moment for moment in self._moments if moment <= seconds]
        counted = 10_000.0 + self._counted(seconds, busy)
        return counted - 10_000.0 * bool(passed) - 100.0 * len(passed)


def test_resets_are_measured_again_and_power_is_integrated():
    # Settling and idling take 4 s: the first window of steps has it.
    watch = VirtualWatch(StartedAnew(6.0))
    report = measured(watch, limit=262_143.0)
    assert watch.windows == 3
    assert report.columns["power_watts"] == pytest.approx(120, rel=0.01)

    watch = VirtualWatch(StartedAnew(6.0, 7.0))
    why = why_none(measured(watch, limit=262_143.0))
    assert "was reset" in why
    assert "in 2 windows one after another" in why

    watch = VirtualWatch(lambda seconds, busy: 120.0 if busy else 20.0, every=0.1)
    report = measured(watch, INTEGRATED)
    assert report.columns["energy_method"] == "integrated"
    assert report.columns["power_watts"] == pytest.approx(120, rel=0.01)
    assert report.columns["idle_power_watts"] == pytest.approx(20, rel=0.01)

    watch = VirtualWatch(lambda seconds, busy: 120.0 + seconds, every=4.0)
    assert "minimum of 20" in why_none(measured(watch, INTEGRATED))
    watch = VirtualWatch(lambda seconds, busy: 65.0, every=0.1)
    assert "never changed" in why_none(measured(watch, INTEGRATED))


def test_steps_that_cannot_be_told_from_idling():
    watch = VirtualWatch(TwoPowers())
    watch.failure = "GPU is lost"
    assert "the meter no longer answers: GPU is lost" in why_none(measured(watch))
    report = measured(VirtualWatch(lambda seconds, busy: 50.0 - busy, every=0.1), INTEGRATED)
    assert report.columns["energy_above_idle_joules"] < 0
    assert "Other work ran" in report.warnings[0]
