"""Whether a figure may be judged by, and how its interval and its percentiles are told."""

import pytest

from accelbench.core.result_statistics import interval_text
from accelbench.core.unusable_reasons import percentile_text, rough_column
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import merge_groups, merge_launches

ENDS = {"latency_p50_ms": 100.0, "latency_ci_low_ms": 99.0, "effective_sample_count": 20.0}
GOOD, BAD = {"quality": "converged"}, {"quality": "unusable"}


def shown(value):
    return "no data" if value is None else f"{value:.3g}"


@pytest.mark.parametrize("quality", ["converged", "noise_limited", "fixed", "unsteady", None])
def test_all_qualities_but_unusable_may_be_judged(quality):
    rows = launches_of([{"quality": quality}, {}, BAD])
    assert [row["times_usable"] for row in rows] == [True, True, False]


def test_launches_and_rough_percentiles():
    good, bad = ({"status": "ok", **one} for one in (GOOD, BAD))
    most, half, none = merge_groups([[good, bad, good], [good, bad], []])
    assert [row["quality"] for row in most.usable_rows] == ["converged", "converged"]
    assert (list(half.usable_rows), len(half.rows), list(none.usable_rows)) == ([], 2, [])

    row = {"latency_p90_ms": 12.34, "latency_p90_rough": False, "latency_p95_ms": 15.0}
    row |= {"latency_p95_rough": True, "latency_p99_ms": None, "latency_p99_rough": None}
    told = [percentile_text(row, f"latency_{p}_ms", shown) for p in ("p90", "p95", "p99")]
    assert told == ["12.3", "~15", "no data"]
    assert percentile_text({"latency_p99_ms": 9.0}, "latency_p99_ms", shown) == "9"  # another's
    assert rough_column("latency_p99_ms") == "latency_p99_rough"


@pytest.mark.parametrize(
    ("row", "borne_out"),
    [
        ({}, True),
        ({"quality": "converged"}, True),
        ({"quality": "noise_limited"}, False),
        ({"quality": "unusable"}, False),
        ({"quality": "fixed"}, False),
        ({"quality": "fixed", **ENDS, "latency_ci_high_ms": 100.9}, True),
        ({"quality": "fixed", **ENDS, "latency_ci_high_ms": 101.1}, False),
        *(
            (
                {"quality": q, **ENDS, "latency_ci_high_ms": 100.9, "effective_sample_count": n},
                False,
            )
            for q, n in (("fixed", 19.0), ("fixed", None), ("unsteady", 30.0), ("throttled", 30.0))
        ),
    ],
)
def test_a_fixed_number_of_samples_is_judged_by_its_interval(row, borne_out):
    (launch,) = launches_of([row])
    assert launch["settled"] is borne_out


@pytest.mark.parametrize(
    ("low", "middle", "high", "said"),
    [
        (12.0, 12.3456, 12.5, "±2.0%"),
        (99.0, 100.0, 101.0, "±1.0%"),
        (1.05, 1.8, 23.2, "1.05 … 23.2"),  # of which ± said 615 %
        (1.05, 9.9, 10.2, "1.05 … 10.2"),
        (99.9, 100.0, 100.3, "±0.2%"),  # lopsided by less than is shown
        (99.9, 100.0, 101.5, "99.9 … 102"),
        (90.0, 100.0, 116.0, "90 … 116"),
        (40.0, 100.0, 160.0, "40 … 160"),
        (90.0, 100.0, 111.0, "±10.5%"),
        (100.0, 100.0, 100.0, "±0.0%"),
        (101.0, 100.0, 103.0, "101 … 103"),  # a median of the latest block alone
        (None, 100.0, 101.0, ""),
        (99.0, 100.0, None, ""),
        (0.0, 0.0, 0.0, ""),
        (0.0, None, 0.0, ""),
    ],
)
def test_an_interval_is_told_by_both_ends_where_they_are_not_equally_far(low, middle, high, said):
    assert interval_text(low, middle, high, shown) == said


@pytest.mark.parametrize(
    ("quality", "compared"), [("unsteady", True), ("throttled", True), ("unusable", False)]
)
def test_launches_that_differ_widely_are_usable_unless_one_by_one_they_are_not(quality, compared):
    launches = [
        {"status": "ok", "quality": quality, "latency_p50_ms": step,
         "latency_ci_low_ms": step * 0.97,
         "latency_ci_high_ms": step * 1.03}
        for step in (6.0, 8.0, 10.0)
    ]  # fmt: skip
    assert merge_launches(launches).is_usable is compared
