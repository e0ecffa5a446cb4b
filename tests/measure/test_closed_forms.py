"""Limits and estimates at exact values: each follows from a formula, or lies just at a bound."""

import math

import numpy as np
import pytest
from scipy import stats

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block
from accelbench.core.vocabulary import Quality, Timing
from accelbench.measure import changes, intervals, loop, stopping
from accelbench.measure.block_validation import refuse_bad_block, refuse_bad_time
from accelbench.measure.changes import find_cuts
from accelbench.measure.intervals import Interval, MedianEstimate, mean_interval
from accelbench.measure.launch_verdicts import (
    Noise,
    find_launch_count,
    independent_launches,
    minimum_detectable_effect,
    verdict,
)
from accelbench.measure.loop import Drift, find_drift
from accelbench.measure.run_to_run_noise import (
    UnpairedPower,
    fewest_launches,
    noise_between,
    noise_of_levels,
    single_launch_error,
    unpaired_interval,
)
from accelbench.measure.stopping import Decision, StoppingRule
from accelbench.measure.summary import Percentile, required_size
from accelbench.measure.validated_session import LOCAL, REMOTE, TimeAllowance, TimeBudget, can_fit
from accelbench.measure.warmup import WarmupRule

MS = 1_000_000


def t(p, freedom):
    return float(stats.t.ppf(p, freedom))


def test_the_noise_of_launches_and_runs():
    error = 0.03 * math.sqrt(1 / 8 + 1 / 12)
    sides = UnpairedPower(0.03, 8, 12)
    assert sides.least_effect == pytest.approx(3 * error)
    found = math.log1p(sides.detectable() or 0.0)
    past_floor = math.log1p(3 * error) + t(0.8, 18) * error
    assert found == pytest.approx(max(past_floor, (t(0.995, 18) + t(0.8, 18)) * error))

    forty = math.log1p(0.05) / ((t(0.995, 78) + t(0.8, 78)) * math.sqrt(2 / 40))
    assert fewest_launches(0.05, lambda n: UnpairedPower(forty * (1 - 1e-6), n, n)) == 40
    assert fewest_launches(0.05, lambda n: UnpairedPower(forty * (1 + 1e-6), n, n)) is None
    assert fewest_launches(0.05, lambda n: UnpairedPower(1e-9, n, n)) == 5
    of_pairs = math.log1p(0.05) / ((t(0.995, 39) + t(0.8, 39)) * math.sqrt(2 / 40))
    assert find_launch_count(of_pairs * (1 - 1e-6), 0.05) == 40
    assert find_launch_count(of_pairs * (1 + 1e-6), 0.05) is None
    assert not UnpairedPower(1e-9, 4, 40).suffices(0.05)
    assert not UnpairedPower(1e-9, 40, 4).suffices(0.05)

    reach = single_launch_error(0.99, Noise(0.03, 7), Noise(0.04, 100))
    assert reach == pytest.approx(t(0.99, 7) * math.sqrt(2) * 0.05)  # 3, 4 and 5
    assert single_launch_error(0.99, Noise(0.03, 7)) == pytest.approx(
        t(0.99, 7) * math.sqrt(2) * 0.03
    )

    a, b = [-0.01, 0.0, 0.01], [0.05, 0.07, 0.09, 0.11]
    found = unpaired_interval(np.exp(a).tolist(), np.exp(b).tolist(), 0.95, Noise(0.02, 6))
    parts = [(np.var(a, ddof=1) / 3, 2), (np.var(b, ddof=1) / 4, 3), (2 * 0.02**2, 6)]
    total = sum(part for part, _ in parts)
    freedom = total**2 / sum(part**2 / of for part, of in parts)
    assert math.log(found.high) - 0.08 == pytest.approx(t(0.975, freedom) * math.sqrt(total))
    assert found.p_value == pytest.approx(2 * stats.t.sf(0.08 / math.sqrt(total), freedom))

    # Three runs of 2, 4 and 2 launches, each with a standard deviation of known size.
    spread = 0.01
    two = [-spread / math.sqrt(2), spread / math.sqrt(2)]
    four = [-spread * math.sqrt(3) / 2, -spread * math.sqrt(3) / 2] + [
        spread * math.sqrt(3) / 2
    ] * 2
    middles = (0.0, 0.06, 0.03)
    runs = [
        np.exp([middle + one for one in each]).tolist()
        for middle, each in zip(middles, (two, four, two), strict=True)
    ]
    of_launches = spread**2 * (1 / 2 + 1 / 4 + 1 / 2) / 3
    own = np.var(middles, ddof=1) - of_launches
    found = noise_between(runs, prior=Noise(0.02, 3.0))
    assert found.freedom == 5.0
    assert found.value == pytest.approx(math.sqrt((3 * 0.02**2 + 2 * own) / 5))

    found = noise_of_levels([[0.0, 0.02], [1.0], [5.0, 5.03, 5.06]], Noise(0.02, 3.0))
    assert found.freedom == 3 + 1 + 2
    assert found.value == pytest.approx(math.sqrt((3 * 4e-4 + 2e-4 + 2 * 9e-4) / 6))


def test_verdicts_need_launches_past_the_floor():
    quiet = [1.0, 1.001, 0.999, 1.0, 1.001]
    slower = [1.05 * one for one in quiet]
    assert verdict(quiet, slower, 0.001).answer == "slower"  # five are required, and are enough
    assert verdict(quiet[:4], slower[:4], 0.001).answer == "can't tell"
    within = [1.029 * one for one in quiet]
    found = verdict(quiet, within, 0.001)
    assert (found.answer, found.interval is not None) == ("no difference shown", True)
    assert found.interval.p_value < 0.01

    for k, noise in ((5, 0.001), (5, 0.02), (40, 0.02)):
        error = noise * math.sqrt(2 / k)
        past = math.log1p(max(0.03, 3 * error)) + t(0.8, k - 1) * error
        shown = (t(0.995, k - 1) + t(0.8, k - 1)) * error
        assert minimum_detectable_effect(k, noise) == pytest.approx(math.expm1(max(past, shown)))


def alternating(count, size):
    return size * (np.arange(count) % 2)


@pytest.mark.parametrize(("times", "alone"), [(4.9, False), (5.1, True)])
def test_a_point_stands_alone_from_five_times_the_noise_on(times, alone):
    size = 0.02
    noise = size / (math.sqrt(2) * stats.norm.ppf(0.75))  # the median of |difference| is the size
    logs = alternating(31, size)
    logs[16] = size / 2 + times * noise  # the middle of its four neighbours is half the size
    assert bool(changes.find_changes(np.exp(logs).tolist()).spikes) == alone


def test_noise_and_levels_of_a_history():
    for apart, alone in ((0.45, True), (0.55, False)):
        logs = np.zeros(21)
        logs[10], logs[11] = 1.0, apart  # the neighbours on both sides are so far apart
        spikes = [spike.at for spike in changes.find_changes(np.exp(logs).tolist()).spikes]
        assert (10 in spikes) == alone

    assert changes.find_changes([1.0] * 10).noise == pytest.approx(math.expm1(1e-3))

    triangle = np.abs((np.arange(48) % 24) - 12.0)  # points k apart differ by k
    assert changes._wander_factor(triangle[:24]) == 16.0
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        logs = rng.normal(0.0, 1.0, 24)
        near, far = changes._lag_noise(logs, 1), changes._lag_noise(logs, 2)
        seen.add(far > 1.25 * near)
        if far <= 1.25 * near:
            assert changes._wander_factor(logs) == 1.0
        else:
            r = 1.0 - (near / far) ** 2
            expected = min((1 + r) / (1 - r) * (far / near) ** 2, 16.0)
            assert changes._wander_factor(logs) == pytest.approx(expected)
    assert seen == {True, False}

    hill = np.array([0.0, 0.01, 0.02, 0.03, 0.04, 0.03, 0.02, 0.01, 0.0])
    logs = np.concatenate([hill, 0.2 + hill[1:8]])
    (step,) = changes.find_changes(np.exp(logs).tolist()).steps
    known = stats.ttest_ind(logs[9:], logs[:9])
    interval = known.confidence_interval(0.999)
    # The spread within the levels is larger than the noise of neighbours here.
    within = math.sqrt((np.var(logs[:9]) * 9 + np.var(logs[9:]) * 7) / 14)
    assert within > math.log1p(changes.find_changes(np.exp(logs).tolist()).noise)
    assert step.at == 9
    assert step.p_value == pytest.approx(known.pvalue, rel=1e-6, abs=0.0)
    assert math.log1p(step.low) == pytest.approx(interval.low, rel=1e-6)
    assert math.log1p(step.high) == pytest.approx(interval.high, rel=1e-6)

    logs = 0.002 * np.arange(20) + alternating(20, 0.004)
    found = changes._find_drift(logs, np.arange(3, 23), 0.03)
    line = stats.linregress(np.arange(20), logs)
    assert found.since == 3
    assert math.log1p(found.share) == pytest.approx(line.slope * 19)
    assert found.p_value == pytest.approx(line.pvalue, rel=1e-6, abs=0.0)
    assert changes._find_drift(logs, np.arange(20), math.expm1(line.slope * 19.5)) is None
    assert changes._find_drift(logs[:7], np.arange(7), 0.0) is None  # eight points are the fewest

    assert find_cuts(np.repeat([0.0, 5.0], [18, 2]), 1.0) == [18]
    assert find_cuts(np.repeat([0.0, 9.0], 2)[:3], 1.0) == []


@pytest.mark.parametrize(("size", "cut"), [(1.33, []), (1.35, [10])])
def test_a_cut_costs_three_times_the_logarithm_of_the_points(size, cut):
    """Two halves of ten gain 5·d², and the price is 3·ln 20 = 8.99."""
    assert find_cuts(np.repeat([0.0, size], 10), 1.0) == cut


def decide(monkeypatch, half_width, effective, elapsed_ns=0, before=None, n=60):
    """Decide on samples of 1 whose interval is what is given."""
    estimate = MedianEstimate(Interval(1.0 - half_width, 1.0 + half_width), effective)
    monkeypatch.setattr(stopping, "median_estimate", lambda _: estimate)
    return StoppingRule().decide([1] * n, elapsed_ns, before)


def test_where_sampling_ends(monkeypatch):
    assert decide(monkeypatch, 0.00999, 20.0).quality is Quality.CONVERGED
    assert not decide(monkeypatch, 0.00999, 19.9).stop
    assert not decide(monkeypatch, 0.0101, 1000.0).stop

    monkeypatch.undo()
    once = Decision(False, None, Interval(0.9, 1.1), stalls=1)
    second = 1_000_000_000
    assert decide(monkeypatch, 0.0901, 30.0, second, once).quality is Quality.NOISE_LIMITED
    assert not decide(monkeypatch, 0.0901, 29.9, second, once).stop
    assert not decide(monkeypatch, 0.0901, 30.0, second - 1, once).stop
    narrowed = decide(monkeypatch, 0.0899, 30.0, second, once)  # by more than a tenth
    assert (narrowed.stop, narrowed.stalls) == (False, 0)

    monkeypatch.undo()
    ten = 10_000_000_000
    assert decide(monkeypatch, 0.1, 9.0, ten, n=5).quality is Quality.TIME_LIMITED
    assert not decide(monkeypatch, 0.1, 9.0, ten - 1, n=5).stop
    assert not decide(monkeypatch, 0.1, 9.0, ten, n=4).stop


@pytest.mark.parametrize(("n", "quality"), [(29, Quality.FIXED), (30, Quality.UNUSABLE)])
def test_from_thirty_fixed_samples_on_a_wide_interval_is_unusable(monkeypatch, n, quality):
    wide = MedianEstimate(Interval(0.5, 1.5), 9.0)
    monkeypatch.setattr(stopping, "median_estimate", lambda _: wide)
    assert StoppingRule(fixed=n).decide([1] * n, 0, None).quality is quality


def warm(*steps, rule=None):
    state = (rule or WarmupRule()).start()
    for step in steps:
        state = state.add_block([round(step)])
    return state


@pytest.mark.parametrize(("second", "steady"), [(102.0, True), (102.03, None)])
def test_windows_agree_within_two_percent_of_the_smaller(second, steady):
    state = warm(*[100 * MS] * 5, *[second * MS] * 5)
    assert state.steady is steady


def test_windows_of_warm_up():
    assert warm(*[20 * MS] * 5).closed is not None
    assert warm(*[20 * MS - 1] * 5).closed is None
    assert warm(*[200 * MS] * 4).closed is None

    assert warm(900 * MS, 900 * MS, 900 * MS).steady is True
    assert warm(900 * MS, 900 * MS, 927 * MS).steady is False
    assert warm(900 * MS, 1200 * MS, 900 * MS).steady is True
    # Halves of two steps each, which end with the two seconds.
    assert warm(400 * MS, 600 * MS, 500 * MS, 500 * MS).steady is True
    assert not warm(400 * MS, 600 * MS, 500 * MS, 500 * MS - 1).done

    # Windows of 200 and 100 ms a step differ; after them come steps for which no time is left.
    state = warm(*[200 * MS] * 5, *[100 * MS] * 5, 500 * MS)
    assert (state.done, state.compared, state.steady) == (True, True, False)
    level = warm(*[200 * MS] * 5, *[210 * MS] * 5)
    assert (level.done, level.steady) == (True, False)

    assert warm(1).next_steps() == 10
    assert warm(1, 1, 1).next_steps() == 30


def test_times_and_losses_of_a_block():
    assert (LOCAL.share, REMOTE.share) == (0.10, 0.30)
    second = 1000 * MS
    most = 100 * MS + 3 * LOCAL.request_ns
    assert not TimeBudget(second, second - most, 3).is_doubtful(LOCAL)
    assert TimeBudget(second, second - most - 1, 3).is_doubtful(LOCAL)
    half = 500 * MS + 3 * LOCAL.request_ns
    assert not TimeBudget(second, second - half, 3).is_mostly_unexplained(LOCAL)
    assert TimeBudget(second, second - half - 1, 3).is_mostly_unexplained(LOCAL)
    allowed = TimeAllowance(0.1, 5, 0, 1)
    assert allowed.unexplained_ns(1000, 800) == pytest.approx(900 - 800 - 5)
    assert allowed.unexplained_ns(1000, 900) == 0.0

    assert can_fit(1001 + 4 * 7, 1000, 3, 7.0)
    assert not can_fit(1001 + 4 * 7 + 1, 1000, 3, 7.0)

    for count, refused in ((0, False), (2, True), (3, False), (4, True)):
        block = Block(3, Timing.EACH, {"step": [5, 5, 5]}, losses=[1.0] * count)
        if not refused:
            refuse_bad_block(block, 3, Timing.EACH, ["step"])
            continue
        with pytest.raises(CaseError, match="losses"):
            refuse_bad_block(block, 3, Timing.EACH, ["step"])

    refuse_bad_time("loading", 0)
    with pytest.raises(CaseError):
        refuse_bad_time("loading", -1)


@pytest.mark.parametrize(("tick", "refused"), [(1000.0, True), (1001.0, False)])
def test_a_step_of_no_time_is_possible_only_on_a_coarse_clock(tick, refused):
    block = Block(1, Timing.EACH, {"step": [0]})
    if not refused:
        refuse_bad_block(block, 1, Timing.EACH, ["step"], tick)
        return
    with pytest.raises(CaseError):
        refuse_bad_block(block, 1, Timing.EACH, ["step"], tick)


def test_intervals_of_launches_and_samples():
    assert [required_size(q) for q in (50, 90, 95, 99)] == pytest.approx([20, 100, 200, 1000])
    assert not Percentile(100.0, 90.0, 110.0, False).is_wide
    assert Percentile(100.0, 90.0, 110.1, False).is_wide
    assert Percentile(100.0, 89.9, 110.0, False).is_wide

    # Neighbours that alternate count as n, which leaves n/2 degrees of freedom.
    row = [1.0, 3.0] * 20
    found = mean_interval(row)
    spread = np.std(row, ddof=1)
    given_back = 1 / (1 - 1 / 40)
    assert found.high - 2.0 == pytest.approx(
        t(0.975, 20) * spread * math.sqrt(given_back / 40), rel=1e-6
    )

    ramp = (0.01 * np.arange(12)).tolist()
    assert independent_launches(ramp[:9]) == 9.0
    assert independent_launches(ramp[:10]) == pytest.approx(2.84, abs=0.01)
    wide = intervals._half_width(40.0, 40.0, 40, 0.95)
    assert wide == pytest.approx(t(0.975, 1) * math.sqrt(40 / 0.25 / 40))


@pytest.mark.parametrize(("last", "found"), [(104.9, False), (105.1, True)])
def test_five_percent_from_the_first_third_to_the_last_are_a_drift(last, found):
    row = [100.0] * 20 + [103.0] * 20 + [last] * 20
    assert find_drift(row) == Drift(pytest.approx(last / 100.0 - 1.0), found)


def test_thirds_are_apart_by_their_intervals_of_99_percent(monkeypatch):
    levels = []

    def interval(row, level):
        levels.append(level)
        return Interval(float(row[0]), float(row[0]))

    monkeypatch.setattr(loop, "median_interval", interval)
    assert find_drift([100.0] * 20 + [105.0] * 20 + [110.0] * 20) == Drift(pytest.approx(0.1), True)
    assert set(levels) == {0.99}
