import numpy as np
import pytest
from known_series import ar1

from accelbench.core.columns import BY_NAME
from accelbench.core.vocabulary import Timing
from accelbench.measure.intervals import Interval, mean_interval, median_interval
from accelbench.measure.summary import Resolution, summarise

EACH = Resolution(Timing.EACH)


def test_figures_of_samples():
    row = [1_000_000, 2_000_000, 3_000_000, 4_000_000, 15_000_000]
    figures = summarise(row, EACH, batch=8)
    assert figures["latency_mean_ms"] == 5.0
    assert figures["latency_p50_ms"] == 3.0
    assert figures["latency_min_ms"] == 1.0
    assert figures["latency_max_ms"] == 15.0
    assert figures["latency_std_ms"] == pytest.approx(np.std([1, 2, 3, 4, 15], ddof=1))
    assert figures["throughput"] == pytest.approx(8 / 0.005)
    assert figures["sample_count"] == 5
    assert figures["outlier_count"] == 1  # 15 > 4 + 3 · (4 − 2), and still in the mean
    assert figures["latency_p90_ms"] is None
    assert figures["latency_ci_low_ms"] == 1.0
    assert figures["latency_ci_high_ms"] == 15.0

    whole = summarise([10**6] * 10, Resolution(Timing.WHOLE, 5))
    each = summarise([10**6] * 10, EACH)
    assert set(each) == set(whole)
    assert set(each) <= {name for name, column in BY_NAME.items() if column.is_metric}

    row = np.random.default_rng(4).normal(20e6, 1e6, 20_000)
    figures = summarise(row, EACH, batch=4)
    z = {"p50": 0.0, "p90": 1.2816, "p95": 1.6449, "p99": 2.3263}
    for name, distance in z.items():
        assert figures[f"latency_{name}_ms"] == pytest.approx(20 + distance, abs=0.05)
    assert figures["latency_std_ms"] == pytest.approx(1, rel=0.02)
    assert figures["throughput"] == pytest.approx(200, rel=0.001)
    assert figures["effective_sample_count"] == pytest.approx(20_000, rel=0.1)

    figures = summarise(ar1(1200, 0.75, seed=1), EACH)
    assert figures["lag1_autocorrelation"] == pytest.approx(0.75, abs=0.06)
    assert 100 < figures["effective_sample_count"] < 200
    assert figures["latency_p90_ms"] is not None  # 1200 / 7 = 171
    assert not figures["latency_p90_rough"]
    assert figures["latency_p95_rough"]
    assert figures["latency_p99_rough"]
    for name in ("p90", "p95", "p99"):
        assert figures[f"latency_{name}_low_ms"] < figures[f"latency_{name}_ms"]
    assert figures["latency_p95_high_ms"] > figures["latency_p95_ms"]
    assert figures["latency_p99_high_ms"] is None  # needs 368 independent samples


@pytest.mark.parametrize(
    ("n", "known"), [(9, 0), (10, 1), (19, 1), (20, 2), (50, 2), (99, 2), (100, 3)]
)
def test_percentiles_are_given_at_the_sizes_that_the_documents_use(n, known):
    figures = summarise(np.random.default_rng(n).normal(20e6, 1e5, n), EACH)
    for name in ("p90", "p95", "p99")[:known]:
        assert figures[f"latency_{name}_ms"] is not None
        assert figures[f"latency_{name}_rough"] in (True, n == 100 and name == "p90")
    for name in ("p90", "p95", "p99")[known:]:
        for column in (f"{name}_ms", f"{name}_low_ms", f"{name}_high_ms", f"{name}_rough"):
            assert figures[f"latency_{column}"] is None


def test_blocks_of_steps_give_the_mean_and_its_interval_and_nothing_about_single_steps():
    blocks = np.random.default_rng(3).normal(500_000, 5_000, 400)  # 100 steps of 5 µs each
    figures = summarise(blocks, Resolution(Timing.WHOLE, 100), batch=2)
    assert figures["latency_mean_ms"] == pytest.approx(0.005, rel=0.002)
    assert figures["throughput"] == pytest.approx(400_000, rel=0.002)
    assert figures["sample_count"] == 400
    for name in ("p50", "p90", "p95", "p99", "min", "max", "std"):
        assert figures[f"latency_{name}_ms"] is None
    interval = mean_interval(blocks / 100)
    assert figures["latency_ci_low_ms"] == interval.low / 1e6
    assert figures["latency_ci_high_ms"] == interval.high / 1e6
    assert interval.low < blocks.mean() / 100 < interval.high


def test_what_a_summary_takes_over_or_leaves_out():
    row = ar1(120, 0.5, seed=1)
    own = summarise(row, EACH)
    assert own["latency_ci_low_ms"] == median_interval(row).low / 1e6
    assert summarise(row, EACH, interval=Interval(1e6, 2e6))["latency_ci_high_ms"] == 2.0

    figures = summarise([0] * 10, EACH)
    assert figures["latency_mean_ms"] == 0.0
    assert figures["throughput"] is None
    assert figures["lag1_autocorrelation"] is None
    assert figures["latency_ci_low_ms"] == figures["latency_ci_high_ms"] == 0.0

    assert summarise([10**9] * 5, EACH, batch=2, items_per_step=256)["throughput"] == 256
    with pytest.raises(ValueError, match="phase"):
        summarise([1, 2, 3], Resolution(Timing.PHASES))
    with pytest.raises(ValueError, match="one step per sample"):
        summarise([1, 2, 3], Resolution(Timing.EACH, 5))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_what_few_samples_cannot_say_is_absent(n):
    figures = summarise([5_000_000] * n, EACH)
    assert figures["sample_count"] == n
    assert figures["latency_p50_ms"] == (5.0 if n else None)
    assert figures["latency_min_ms"] == (5.0 if n else None)
    assert figures["throughput"] == (200.0 if n else None)
    assert figures["latency_std_ms"] == (0.0 if n == 2 else None)
    assert figures["latency_ci_low_ms"] is None
    assert figures["lag1_autocorrelation"] is None
