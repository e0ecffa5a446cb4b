"""A limit of a test is kept, missed or open by the interval of what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.core.errors import UsageError
from accelbench.pytest_plugin.gate import (
    BaselineQuestion,
    GateAnswer,
    GateVerdict,
    cases_of,
    of_limits,
    worst,
)
from accelbench.pytest_plugin.limits import figures_of, limits_of
from asked_rows import row

SAMPLES = {"latency_ci_low_ms": 7.9, "latency_ci_high_ms": 8.1, "effective_sample_count": 100.0}


def launches(*medians: float, **changes: Any) -> list[dict[str, Any]]:
    return [row(launch=n, latency_p50_ms=ms, **changes) for n, ms in enumerate(medians)]


def answered(rows: list[dict[str, Any]], **limits: float) -> GateVerdict:
    (verdict,) = of_limits(figures_of(rows), limits_of(limits))
    return verdict


FIVE = launches(7.8, 8.0, 8.2, 7.9, 8.1)


@pytest.mark.parametrize(
    ("limit", "answer", "words"),
    [
        (9.0, GateAnswer.PASSED, "within 9 ms"),
        (8.1, GateAnswer.CANNOT_TELL, "can't tell: 8.1 ms"),
        (7.0, GateAnswer.FAILED, "above 7 ms"),
    ],
)
def test_the_whole_interval_decides(limit, answer, words):
    verdict = answered(FIVE, max_latency_ms=limit)
    assert (verdict.answer, verdict.words) == (answer, words)


def test_what_a_limit_says():
    # A reason names the figure and its interval.
    why = answered(FIVE, max_latency_ms=8.1).why
    assert why.startswith("bert-tiny pytorch/cpu fp32 batch 1")
    assert "p50 latency 7.999 ms may be above 8.1: its interval is 7.805 to 8.198" in why
    # One launch is no surer than launches usually are.
    narrow = launches(8.0, **SAMPLES | {"latency_ci_low_ms": 7.999, "latency_ci_high_ms": 8.001})
    assert answered(narrow, max_latency_ms=8.1).answer is GateAnswer.CANNOT_TELL
    assert answered(narrow, max_latency_ms=8.3).answer is GateAnswer.PASSED
    wide = launches(8.0, **SAMPLES | {"latency_ci_high_ms": 9.5})
    assert answered(wide, max_latency_ms=9.0).answer is GateAnswer.CANNOT_TELL
    # Samples without an interval tell nothing.
    verdict = answered(launches(8.0), max_latency_ms=100.0)
    assert verdict.answer is GateAnswer.CANNOT_TELL
    assert "leave out iterations, or take launches=5" in verdict.why
    # Times that are unusable tell nothing.
    rows = launches(*(8.0,) * 5, quality="unusable")
    verdict = answered(rows, max_latency_ms=100.0)
    assert verdict.answer is GateAnswer.CANNOT_TELL
    assert "its times are unusable: interval wider than ±25 %" in verdict.why
    assert answered(rows, max_memory_mb=200.0).answer is GateAnswer.PASSED


def test_limits_of_several_figures():
    # Of memory the launch that took most counts.
    rows = [*launches(8.0, 8.0, memory_peak_mb=100.0), *launches(8.0, memory_peak_mb=150.0)]
    assert answered(rows, max_memory_mb=150.0).answer is GateAnswer.PASSED
    verdict = answered(rows, max_memory_mb=140.0)
    assert (verdict.answer, verdict.words) == (GateAnswer.FAILED, "above 140 MB")
    assert "memory of a launch 150 MB is above 140" in verdict.why
    assert answered(launches(8.0, memory_peak_mb=None), max_memory_mb=1.0).answer is (
        GateAnswer.CANNOT_TELL
    )
    # What is missed outweighs what is open.
    verdicts = of_limits(figures_of(FIVE), limits_of({"max_latency_ms": 8.1, "max_memory_mb": 50}))
    assert worst(verdicts) is GateAnswer.FAILED
    assert worst(verdicts[1:]) is GateAnswer.CANNOT_TELL
    assert worst([]) is GateAnswer.PASSED
    rows = [*launches(1.0, 1.1, case_id="a"), *launches(2.0, case_id="b")]
    assert [len(case) for case in cases_of(rows)] == [2, 1]


@pytest.mark.parametrize(
    ("least", "answer"),
    [(90.0, GateAnswer.PASSED), (100.0, GateAnswer.CANNOT_TELL), (110.0, GateAnswer.FAILED)],
)
def test_a_rate_has_to_be_above_its_limit(least, answer):
    rates = (99.0, 101.0, 100.0, 98.0, 102.0)
    rows = [
        row(launch=n, throughput=rate, throughput_unit="calls/s") for n, rate in enumerate(rates)
    ]
    verdict = answered(rows, min_throughput=least)
    assert verdict.answer is answer
    assert verdict.words.endswith(f"{least:g} calls/s")


@pytest.mark.parametrize("value", [0, -1, "5", float("nan")])
def test_a_limit_that_limits_nothing_is_refused_by_its_own_name(value):
    with pytest.raises(UsageError, match="max_memory_mb"):
        limits_of({"max_memory_mb": value})


@pytest.mark.parametrize("threshold", [True, "0.1"])
def test_a_threshold_is_a_number(threshold):
    with pytest.raises(UsageError, match=r"threshold takes a number.* 0\.1 stands for 10 %"):
        BaselineQuestion("main", threshold)
