"""Models by devices without operator graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prediction import cells, device_grid, grid_evaluation
from prediction.evaluation import EvaluationRequest, evaluate

pytestmark = pytest.mark.full

MODELS, DEVICES = 30, 12


def row(model: int, device: int, latency: float) -> dict[str, Any]:
    return {
        "model": f"model {model}", "family": f"family {model % 7}",
        "hardware_name": f"board {device}",
        "hardware_kind": "board", "runtime": "engine", "precision": "fp32", "batch_size": 1,
        "img_size": 224, "mode": "inference", "latency_ms": latency, "memory_mb": latency * 3,
        "extra": json.dumps({"num_threads": 4}),
    }  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Two hidden traits of boards, to which models answer differently."""
    rng = np.random.default_rng(0)
    level, answer = rng.normal(3, 1, MODELS), rng.normal(0, 0.3, (MODELS, 2))
    shift, trait = rng.normal(0, 0.5, DEVICES), rng.normal(0, 1, (DEVICES, 2))
    log_ms = level[:, None] + shift + answer @ trait.T + rng.normal(0, 0.01, (MODELS, DEVICES))
    return [row(m, d, float(np.exp(log_ms[m, d]))) for m in range(MODELS) for d in range(DEVICES)]


def scores(rows: list[dict[str, Any]], out: set[int], folder: Path, **more: Any) -> dict[str, Any]:
    train = [one for n, one in enumerate(rows) if n not in out]
    test = [one for n, one in enumerate(rows) if n in out]
    pq.write_table(pa.Table.from_pylist(train), folder / "train.parquet")
    pq.write_table(pa.Table.from_pylist(test), folder / "test.parquet")
    return evaluate(EvaluationRequest((folder / "train.parquet",), folder / "test.parquet", **more))


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_TREES", 40)
    monkeypatch.setattr(cells, "_SCALE_TREES", 10)
    monkeypatch.setattr(cells, "_SEEDS", 1)


@pytest.mark.parametrize("target", ["latency", "memory"])
def test_empty_cells_of_known_devices(rows, tmp_path, few_trees, target):
    pytest.importorskip("sklearn")
    out = set(np.random.default_rng(1).choice(len(rows), 40, replace=False).tolist())
    found = scores(rows, out, tmp_path, target=target)
    assert found["methods"] == {"board": "device vectors"}  # whose errors are smaller here
    assert found["n"] == 40
    assert found["mdape"] < 12


def test_a_new_device_by_its_anchors(rows, tmp_path):
    out = {n for n, one in enumerate(rows) if one["hardware_name"] == "board 3"}
    without = scores(rows, out, tmp_path)
    anchored = scores(rows, out, tmp_path, anchors=8)
    assert anchored["n"] == MODELS - 8
    assert anchored["mdape"] < min(15, without["mdape"])
    assert list(anchored["per_basis"]) == ["measured on other hardware"]


def test_empty_cells_by_what_is_better_on_held_out_cells(rows, tmp_path, few_trees, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(device_grid, "_SHIFT", 0.0)
    monkeypatch.setattr(device_grid, "_NOISE", 3.0)  # vectors say nothing any more
    out = set(range(0, len(rows), 9))
    answer = scores(rows, out, tmp_path)
    assert answer["methods"] == {"board": "boosting on neighbours"}
    assert answer["mdape"] < 25


def test_empty_cells_without_scikit_learn(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(grid_evaluation, "sklearn_is_here", lambda: False)
    out = set(np.random.default_rng(1).choice(len(rows), 40, replace=False).tolist())
    answer = scores(rows, out, tmp_path)
    assert answer["methods"] == {"board": "device vectors"}
    assert answer["mdape"] < 12


def test_a_measured_cell_is_said_by_its_nearest_release(rows, tmp_path, few_trees):
    """Releases were averaged: half the way to a figure of a year ago."""
    dated = [
        {**each, "latency_ms": each["latency_ms"] * factor, "extra": json.dumps({"date": date})}
        for each in rows
        for factor, date in ((3.0, "2024-05-01"), (1.0, "2025-05-01"), (1.01, "2025-06-01"))
    ]
    answer = scores(dated, set(range(2, len(dated), 3)), tmp_path)
    assert list(answer["per_basis"]) == ["measured in the same configuration"]
    assert answer["mdape"] == pytest.approx(1, abs=0.1)


def test_settings_of_a_new_device_share_its_anchors(rows, tmp_path):
    """Twice the threads take 0.6 of the time; a new board's settings were apart by 30 %."""
    settings = [
        {**each, "latency_ms": each["latency_ms"] * 0.6**doubling,
         "extra": json.dumps({"num_threads": 2**doubling})}
        for each in rows for doubling in (0, 1, 2)
    ]  # fmt: skip
    out = {n for n, each in enumerate(settings) if each["hardware_name"] == "board 3"}
    assert scores(settings, out, tmp_path, anchors=8)["mdape"] < 8
