"""Models by devices without operator graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accelbench.predict.evaluation import EvaluationRequest, evaluate

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


@pytest.mark.parametrize("target", ["latency", "memory"])
def test_empty_cells_of_known_devices(
    rows: list[dict[str, Any]], tmp_path: Path, target: str
) -> None:
    out = set(np.random.default_rng(1).choice(len(rows), 40, replace=False).tolist())
    found = scores(rows, out, tmp_path, target=target)
    assert found["methods"] == {"board": "boosting on neighbours"}
    assert found["n"] == 40
    assert found["mdape"] < 15  # 12.7; with vectors of devices below 12: the table is small


def test_a_new_device_by_its_anchors(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    out = {n for n, one in enumerate(rows) if one["hardware_name"] == "board 3"}
    without = scores(rows, out, tmp_path)
    anchored = scores(rows, out, tmp_path, anchors=8)
    assert anchored["n"] == MODELS - 8
    assert anchored["mdape"] < min(15, without["mdape"])
    assert list(anchored["per_basis"]) == ["measured on other hardware"]
