"""Imported rates above the documented peak: marked once, and left out by every consumer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bodies import body

from accelbench.core.device_facts import bits_of, documented_peak
from accelbench.core.unusable_reasons import REASON_TEXTS, UnusableReason, reason_unusable
from accelbench.evidence.launches import launches_of
from accelbench.predict.stored_cases import stored_cases
from accelbench.recommend.evidence.reader import EvidenceStore
from accelbench.store.database import Database
from accelbench.store.duck import connect

RK3588S = "Station-M3, Rockchip RK3588S (Quad Core A76 2.4GHz + Mali-G610)"
RESNET50: Mapping[str, Any] = {
    "model": "resnet-50", "hardware": "vulkan", "device_name": RK3588S, "runtime": "ncnn",
    "precision": "default(fp16/fp32)", "batch_size": 1, "provenance": "imported", "flops": 8.18e9,
    "samples": {},
}  # fmt: skip


def imported(path: Path, *milliseconds: float, **changes: Any) -> Database:
    database = Database(path)
    bodies = (
        body(number, result_id=f"r{number}", **{**RESNET50, "latency_mean_ms": ms, **changes})
        for number, ms in enumerate(milliseconds)
    )
    database.bring_in("import-a", [], bodies)
    return database


def marked(database: Database) -> dict[str, Mapping[str, float] | None]:
    return {row["result_id"]: row["implausible_rate"] for row in database.results()}


def test_a_rate_beyond_three_times_the_peak_is_marked_with_its_calculation(tmp_path):
    database = imported(tmp_path / "a.duckdb", 0.96, 38.0)
    rates = marked(database)
    assert rates["r1"] is None
    assert rates["r0"] == {
        "operations": 8.18e9,
        "milliseconds": 0.96,
        "operations_per_second": pytest.approx(8.52e12, rel=1e-3),
        "documented_peak": pytest.approx(1.024e12),
    }
    quick, slow = sorted(database.results(), key=lambda row: row["latency_mean_ms"] or 0)
    quick, slow = launches_of([quick, slow])
    assert not quick["times_usable"]
    assert reason_unusable(quick) == REASON_TEXTS[UnusableReason.IMPLAUSIBLE]
    assert slow["times_usable"]
    listed: Any = database.status()["implausible"]
    assert [one["result_id"] for one in listed] == ["r0"]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"provenance": "measured"}, 0),
        ({"device_name": "an unknown board"}, 0),
        ({"hardware": "cpu"}, 1),
        ({"flops": None}, 0),
        ({"flops": None, "family": "vision", "parameters": 25_500_000, "batch_size": 256}, 1),
        ({"flops": 2.94e9}, 0),
        ({"flops": 2.96e9}, 1),
        ({"flops": 2.96e9, "world_size": 2}, 0),
    ],
)
def test_only_imported_work_on_a_documented_device_is_judged(tmp_path, changes, count):
    database = imported(tmp_path / "a.duckdb", 0.96, **changes)
    assert sum(rate is not None for rate in marked(database).values()) == count


def test_predictions_and_recommendations_leave_it_out(tmp_path):
    where = {"device_name": "NVIDIA GeForce RTX 3090", "hardware": "cuda", "precision": "fp16"}
    database = imported(tmp_path / "a.duckdb", 0.01, **where)
    assert marked(database)["r0"] is not None
    assert stored_cases(database).cases == ()
    evidence = EvidenceStore(database)
    assert [cell.counts for cell in evidence.cells(["resnet-50"])] == []
    (aside,) = evidence.unusable(["resnet-50"])
    assert reason_unusable(aside.row) == REASON_TEXTS[UnusableReason.IMPLAUSIBLE]


def test_a_merge_marks_what_the_other_store_has_not_marked(tmp_path):
    older = imported(tmp_path / "a.duckdb", 0.96)
    with connect(older.path, write=True) as con:
        con.execute("UPDATE fact_result SET quality = NULL, implausible_rate = NULL")
    merged = Database(tmp_path / "b.duckdb")
    merged.merge(older.path)
    assert marked(merged)["r0"] is not None


def test_importing_twice_changes_nothing(tmp_path):
    database = imported(tmp_path / "a.duckdb", 0.96)
    before = json.dumps(marked(database))
    imported(tmp_path / "a.duckdb", 0.96)
    assert json.dumps(marked(database)) == before


@pytest.mark.parametrize(
    ("device", "hardware", "precision", "teraops"),
    [
        ("NVIDIA GeForce RTX 4090", "cuda", "fp32", 82.6),
        ("NVIDIA GeForce RTX 4090", "cuda", "amp-fp16", 330.4),
        ("NVIDIA A100-SXM4-80GB", "cuda", "fp32", 156.0),  # convolutions run in TF32
        ("NVIDIA A100-SXM4-80GB", "cuda", "int8", 624.0),
        ("2x NVIDIA A100-SXM4-80GB", "cuda", "fp16", 624.0),
        ("Tesla V100-PCIE-16GB", "cuda", "fp32", 14.0),  # no TF32 before Ampere
        ("Intel Core i9-10940X", "cpu", "int8", 11.8272),
        ("OrangePi5, Rockchip RK3588s", "cpu", "fp32", 0.211),
        ("Hailo-8L", "hailo", "int8(w8/a8, some a16/w4)", 26.0),
        ("Hailo-8", "hailo", "fp16", 26.0),
    ],
)
def test_the_peak_is_that_of_the_precision(device, hardware, precision, teraops):
    assert documented_peak(device, hardware, precision) == pytest.approx(teraops * 1e12)


def test_an_unknown_precision_counts_as_the_narrowest():
    assert [bits_of(name) for name in ("float", "w8a16", "tf32", "fp64", "bf16")] == [
        4,
        8,
        32,
        32,
        16,
    ]
