"""What the runner makes of a model's results over its batch sizes."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.api.enhanced import outcome_of


def result(batch: int, ms: float, **more: Any) -> dict[str, Any]:
    return {
        "result_id": f"{batch}-{ms}", "model": "bert-tiny", "hardware": "cpu", "runtime": "pytorch",
        "device_name": "A processor", "precision": "fp32", "mode": "inference", "batch_size": batch,
        "status": "ok", "provenance": "measured", "latency_p50_ms": ms, "latency_mean_ms": ms,
        "throughput": 1e3 * batch / ms, "throughput_unit": "sequences/s",
        "memory_peak_mb": 100.0 + batch, "sample_count": 50, **more,
    }  # fmt: skip


FAILED = {"status": "failed", "latency_p50_ms": None, "latency_mean_ms": None, "throughput": None}


def test_figures_over_batch_sizes():
    # The best of the batch sizes and the means over them.
    found = outcome_of([result(8, 16.0), result(1, 4.0)])
    whole = found["aggregate"]
    assert whole["best_throughput"]["throughput"] == 500.0
    assert whole["best_throughput"]["batch_size"] == 8
    assert whole["best_throughput"]["unit"] == "sequences/s"
    assert (whole["best_latency"]["latency_ms"], whole["best_latency"]["batch_size"]) == (4.0, 1)
    assert whole["memory_peak"]["memory_peak_mb"] == 108.0
    assert whole["geometric_mean_latency_ms"] == pytest.approx(8.0)
    assert whole["geometric_mean_throughput"] == pytest.approx((250 * 500) ** 0.5)
    assert whole["batch_scaling_efficiency"] == pytest.approx(500 / (250 * 8))
    assert [one["batch_size"] for one in whole["batches"]] == found["batch_sizes"] == [1, 8]
    # Launches of a batch are one of its figures.
    found = outcome_of([result(1, ms, launch=i) for i, ms in enumerate((4.0, 6.0, 5.0))])
    assert found["aggregate"]["best_latency"]["latency_ms"] == 5.0
    assert [row["launch"] for row in found["results"]] == [0, 1, 2]
    assert outcome_of([result(1, 4.0, provenance="simulated")])["aggregate"] is None
    assert outcome_of([result(1, 4.0, emulated=True)])["aggregate"] is None


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([result(1, 4.0)], "ok"),
        ([result(1, 4.0), result(8, 1.0, **FAILED)], "partial"),
        ([result(1, 1.0, **FAILED), result(8, 1.0, **FAILED)], "failed"),
        ([], "skipped"),
    ],
)
def test_how_it_ended_as_a_whole(results, status):
    found = outcome_of(results)
    assert found["status"] == status
    assert (found["aggregate"] is None) == (status not in ("ok", "partial"))
