"""What was measured with times of no use is said, and what it took of memory counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.core.unusable_reasons import REASON_TEXTS, UnusableReason
from accelbench.recommend.selector import HardwareSelector

#: Answers here rest on predictions too.
PREDICTS = True

NO_USE = {"quality": "unusable", "memory_peak_mb": 38.9, "latency_p50_ms": 12.0}
SAID = (
    "Measured, and set aside: cpu (A processor) pytorch fp32, batch 8 (1 launch): its times are not"
    " usable, interval wider than ±25 %"
)


@pytest.fixture
def chosen(tmp_path: Path) -> HardwareSelector:
    return selector(
        tmp_path,
        result(memory_peak_mb=30.0),
        result(batch_size=8, **NO_USE),
        result(batch_size=8, mode="training", **NO_USE),
    )


@pytest.mark.parametrize("at_once", [False, True])
def test_it_is_said_and_nothing_is_chosen_by_it(chosen, at_once):
    if at_once:
        chosen._knows.store.expect_many()
    found = chosen.select_hardware(
        model_name="bert-tiny", available_hardware=["cpu", "cuda"], batch_size=8
    )
    assert found["all_scores"]["cpu"]["basis"] == "predicted"
    (aside,) = found["set_aside"]
    told: dict[str, Any] = {"hardware": "cpu", "batch_size": 8, "memory_mb": 38.9, "launches": 1}
    assert {name: aside[name] for name in told} == told
    assert f"{SAID}." in found["explanation"]
    other = chosen.select_hardware(model_name="bert-tiny", available_hardware=["cuda"])
    assert other["set_aside"] == []


def test_the_best_launch_of_a_run_of_no_use_rates_no_platform(tmp_path):
    known = {"sample_count": 500, "effective_sample_count": 300.0}
    cpus = [result(launch=n, quality="converged", **known) for n in range(3)]
    quick = [
        result(hardware="openvino", runtime="openvino", launch=n, latency_p50_ms=ms, **known)
        | {"quality": quality}
        for n, (ms, quality) in enumerate(
            [(1.0, "converged"), (9.0, "unusable"), (12.0, "unusable")]
        )
    ]
    shown = selector(tmp_path, *cpus, *quick).compatibility_matrix
    entry = shown["model_families"]["embedding"]["hardware_compatibility"]["openvino"]
    assert entry["compatible"] is True
    assert entry["performance_rating"] != "high"  # eight times as fast, in its best launch


@pytest.mark.parametrize(("limit", "kept"), [(40, True), (35, False)])
def test_its_memory_was_measured(chosen, limit, kept):
    found = chosen.best_under(
        {"memory_mb": limit}, model_name="bert-tiny", available_hardware=["cpu"], batch_sizes=[8]
    )
    (there,) = (one for one in found["fits" if kept else "does_not_fit"] if one["batch_size"] == 8)
    assert (there["memory_mb"], there["memory_basis"]) == (38.9, "measured")
    assert there["basis"] == "predicted"
    says = f"{SAID}; its 38.9 MB are {'within' if kept else 'above'} {limit}."
    assert says in found["explanation"]
    if not kept:
        assert there["why"] == ["memory 38.9 MB is above 35"]


def test_where_nothing_else_was_measured_it_is_all_that_is_said(tmp_path):
    chosen = selector(tmp_path, result(batch_size=8, **NO_USE))
    found = chosen.best_under({"memory_mb": 40}, model_name="bert-tiny", available_hardware=["cpu"])
    assert SAID in found["explanation"]
    assert found["fits"] == []


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ({}, REASON_TEXTS[UnusableReason.TOO_NOISY]),
        ({"cpu_wait_share": 0.7}, REASON_TEXTS[UnusableReason.WAITED]),
        ({"unexplained_share": 0.7}, REASON_TEXTS[UnusableReason.UNACCOUNTED]),
    ],
)
def test_recommend_names_the_reason(tmp_path, cause, reason):
    chosen = selector(tmp_path, result(), result(batch_size=8, **NO_USE, **cause))
    found = chosen.select_hardware(
        model_name="bert-tiny", available_hardware=["cpu", "cuda"], batch_size=8
    )
    (aside,) = found["set_aside"]
    assert aside["reason"].endswith(reason)
