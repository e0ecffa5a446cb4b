"""Which figure a ratio is of, and that none is made of another kind."""

import pytest

from accelbench.core.result_statistics import (
    Statistic,
    best_statistic,
    common_times,
    find_tail,
    item_ms,
    rate_of,
    step_time_ms,
)
from accelbench.judge.verdicts import METRICS
from asked_rows import row

NOTHING = {"latency_p50_ms": None, "latency_mean_ms": None}
RATE = {**NOTHING, "throughput": 500.0}


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({}, (8.0, Statistic.MEDIAN)),
        ({"latency_mean_ms": None}, (8.0, Statistic.MEDIAN)),
        ({**RATE, "latency_p90_ms": 9.0}, (2.0, Statistic.RATE)),
        ({**RATE, "batch_size": 8}, (2.0, Statistic.RATE)),
        ({**NOTHING, "latency_p90_ms": 9.0, "latency_p99_ms": 12.0}, (9.0, Statistic.P90)),
        ({**NOTHING, "latency_p99_ms": 12.0}, (12.0, Statistic.P99)),
        ({**NOTHING, "latency_p90_ms": 9.0, "latency_p90_rough": True}, None),
        ({"latency_p50_ms": None}, (9.0, Statistic.MEAN)),
        ({"latency_p50_ms": 0.0, "latency_mean_ms": 9.0}, (9.0, Statistic.MEAN)),
        ({"latency_p50_ms": 0.0, "latency_mean_ms": 0.0}, None),
        (NOTHING, None),
    ],
)
def test_the_figure_that_says_most_stands_for_a_result(figures, expected):
    one = row(**figures)
    found = best_statistic(one)
    assert (None if found is None else (item_ms(one, found), found)) == expected


def test_no_figure_is_made_of_what_nobody_knows():
    offline = row(**RATE, scenario="offline", batch_size=None)
    assert step_time_ms(offline) is None
    assert [metric.of(offline) for metric in METRICS][:2] == [None, 500.0]
    assert rate_of(row(latency_mean_ms=None)) is None
    assert rate_of(row(latency_mean_ms=8.0, batch_size=None)) is None
    assert rate_of(row(latency_mean_ms=8.0, batch_size=4)) == pytest.approx(500.0)
    assert find_tail(row(**NOTHING, latency_p90_ms=9.0)) == (9.0, Statistic.P90)
    assert step_time_ms(row(**NOTHING, latency_p90_ms=9.0)) is None
    rate, mean = row(**RATE, batch_size=None), row(batch_size=None)
    assert common_times([rate], [mean]) is None
    assert common_times([rate], [row(batch_size=8)]) is not None


def test_two_sides_are_timed_by_a_figure_that_both_have():
    whole, medians = row(), row(latency_mean_ms=None)
    assert common_times([whole], [medians]) == (Statistic.MEDIAN, (8.0,))
    assert common_times([whole], [row(**NOTHING, latency_p90_ms=9.0)]) is None
    assert common_times([]) is None

    short, long = (
        row(latency_mean_ms=ms, throughput=rate, throughput_unit="tokens/s")
        for ms, rate in ((10.0, 1000.0), (20.0, 1000.0))
    )
    assert common_times([short], [long]) == (Statistic.MEAN, (1.0,))
    images = row(throughput=100.0, throughput_unit="images/s")
    assert common_times([short], [images]) == (Statistic.MEDIAN, (8.0,))
    samples = row(latency_mean_ms=20.0, throughput=50.0, throughput_unit="samples/s")
    assert common_times([samples], [images]) == (Statistic.MEDIAN, (8.0,))


def test_ratios_are_of_one_figure_of_the_same_things():
    mean = row(latency_p50_ms=None)
    assert common_times([mean], [row(**RATE)]) == (Statistic.RATE, (9.0,))
    tokens = row(**RATE, throughput_unit="tokens/s")
    assert common_times([row(latency_p50_ms=None, throughput_unit="images/s")], [tokens]) is None

    served = {
        "batch_size": 1,
        "latency_mean_ms": 10.0,
        "throughput": 60.0,
        "throughput_unit": "images/s",
    }
    assert common_times([served]) == (Statistic.MEAN, (10.0,))
    tokens = {**served, "throughput_unit": "tokens/s", "throughput": 500.0}
    assert common_times([tokens]) == (Statistic.MEAN, (2.0,))


@pytest.mark.parametrize("name", ["latency_mean_ms", "latency_p50_ms"])
def test_a_step_of_an_unknown_batch_says_nothing_of_an_item(name):
    assert common_times([{name: 10.0}], [{name: 40.0}]) is None
    assert (
        common_times([{name: 10.0, "batch_size": 1}], [{name: 40.0, "batch_size": 2}]) is not None
    )
