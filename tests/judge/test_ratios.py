"""Ratios: of one stated figure, with an interval and what it is of, or not told."""

from __future__ import annotations

import math
from typing import Any

import pytest

from accelbench.core.result_statistics import Statistic
from accelbench.judge.ratios import LAUNCHES, SAMPLES, interval_within, mean_beside, ratio
from accelbench.judge.run_noise import Histories
from asked_rows import row


def several(*medians: float, **changes: Any) -> list[dict[str, Any]]:
    """Launches of one run."""
    return [row(launch=n, latency_p50_ms=ms, **changes) for n, ms in enumerate(medians)]


def test_a_ratio_is_of_medians_and_its_inverse_the_other_way_round():
    quick, slow = several(2.0, 2.02, 1.98), several(8.0, 8.1, 7.9)
    there, back = ratio(quick, slow, Histories()), ratio(slow, quick, Histories())
    assert there is not None
    assert back is not None
    assert (there.statistic, there.of, there.launches) == (Statistic.MEDIAN, LAUNCHES, (3, 3))
    assert there.value == pytest.approx(4.0, rel=1e-3)
    assert there.value * back.value == pytest.approx(1.0)
    assert there.low is not None
    assert back.high is not None
    assert there.low * back.high == pytest.approx(1.0)
    assert there.low < 4.0 < (there.high or 0.0)


def test_where_means_point_to_the_other_side_it_says_so():
    calm = row(latency_p50_ms=8.0, latency_mean_ms=8.2)
    wild = row(latency_p50_ms=7.0, latency_mean_ms=10.0)
    found = ratio([wild], [calm], Histories())
    assert found is not None
    assert (found.value, found.by_means) == (pytest.approx(8 / 7), pytest.approx(0.82))
    assert "0.82×" in found.otherwise
    other = ratio([calm], [wild], Histories())
    assert other is not None
    assert other.by_means == pytest.approx(1 / 0.82)
    alike = ratio([row()], [row(latency_p50_ms=4.0)], Histories())
    assert alike is not None
    assert alike.otherwise == ""


def test_of_single_launches_the_interval_is_of_their_samples_and_says_so():
    ends = {"latency_ci_low_ms": 7.0, "latency_ci_high_ms": 8.5}
    medians = {**ends, "latency_mean_ms": None, "throughput": None}
    found = ratio([row(**medians)], [row(**medians)], Histories())
    assert found is not None
    assert (found.value, found.of) == (1.0, SAMPLES)
    reach = math.hypot(math.log(8.0 / 7.0), math.log(8.5 / 8.0))
    assert (math.log(found.low or 0), math.log(found.high or 0)) == pytest.approx((-reach, reach))


def test_an_interval_that_reaches_down_to_zero_bounds_no_ratio():
    ends = {"latency_ci_low_ms": 0.0, "latency_ci_high_ms": 9.0, "latency_mean_ms": None}
    found = ratio([row(**ends, throughput=None)], [row(**ends, throughput=None)], Histories())
    assert found is not None
    assert (found.value, found.low, found.high) == (1.0, None, None)


def test_a_mean_has_the_interval_of_its_own_samples_not_its_medians():
    narrow = {"latency_ci_low_ms": 7.99, "latency_ci_high_ms": 8.01}  # half of the steps are alike
    one = row(**narrow, latency_std_ms=8.0, effective_sample_count=19.0)  # others are not
    of_mean, of_median = (interval_within(one, by) for by in (Statistic.MEAN, Statistic.MEDIAN))
    assert of_median == (7.99, 8.01)
    assert of_mean is not None
    reach = 2.1009 * 8.0 / (one["latency_mean_ms"] * math.sqrt(19.0))
    assert math.log(of_mean[1] / one["latency_mean_ms"]) == pytest.approx(reach, rel=1e-3)
    for low, mean, known in ((7.99, 7.99, True), (8.0, 7.99, False), (7.9, 8.01, True)):
        told = row(latency_ci_low_ms=low, latency_ci_high_ms=8.01, latency_mean_ms=mean)
        assert (interval_within(told, Statistic.MEAN) is not None) is known
    assert interval_within(row(**narrow), Statistic.MEAN) is None


@pytest.mark.parametrize(
    ("mean", "ends", "beside"),
    [
        (8.2, {}, None),  # by less than 3 %
        (9.0, {}, 9.0),
        (9.0, {"latency_ci_low_ms": 6.8, "latency_ci_high_ms": 9.4}, None),  # within the interval
        (24.0, {"latency_std_ms": 90.0, "effective_sample_count": 9.0}, 24.0),  # wider than ±25 %
        (None, {}, None),
    ],
)
def test_a_mean_stands_beside_a_median_that_it_contradicts(mean, ends, beside):
    assert mean_beside([row(latency_p50_ms=8.0, latency_mean_ms=mean, **ends)]) == beside


def test_a_mean_of_several_launches_is_held_against_their_spread():
    apart = [row(latency_p50_ms=8.0 + n / 10, latency_mean_ms=9.0 + n / 10) for n in range(5)]
    assert mean_beside(apart) == pytest.approx(9.2, rel=1e-3)
    wild = [row(latency_p50_ms=ms, latency_mean_ms=ms * 1.1) for ms in (5.0, 8.0, 12.0)]
    assert mean_beside(wild) is None


def test_launches_that_are_alike_to_the_last_digit_say_nothing_of_how_far_they_differ():
    sides = [
        [row(launch=n, latency_mean_ms=ms, throughput=1e3 / ms) for n in (0, 1)]
        for ms in (9.0, 10.0)
    ]
    found = ratio(*sides, Histories())
    assert found is not None
    assert (found.low, found.high) == (None, None)


def test_runs_differ_and_that_is_in_the_interval():
    ends = {"latency_ci_low_ms": 7.9, "latency_ci_high_ms": 8.1}
    same = ratio([row(**ends)], [row(**ends)], Histories())
    other = ratio([row(**ends)], [row(**ends, run_id="r2")], Histories())
    assert same is not None
    assert other is not None
    assert (other.high or 0.0) > 1.05 > (same.high or 0.0)


def test_an_interval_that_says_nothing_is_not_told():
    found = ratio(several(1.0, 80.0, 2.0), several(9.0, 10.0, 9.5), Histories())
    assert found is not None
    assert not found.told
    single = {"provenance": "imported"}
    known = ratio([row(**single)], [row(**single)], Histories())
    assert known is not None
    assert (known.told, known.low, known.of) == (True, None, "")


def test_what_has_no_figure_in_common_has_no_ratio():
    tail = row(latency_p50_ms=None, latency_mean_ms=None, latency_p90_ms=9.0)
    assert ratio([tail], [row()], Histories()) is None
    assert ratio([], [row()], Histories()) is None
