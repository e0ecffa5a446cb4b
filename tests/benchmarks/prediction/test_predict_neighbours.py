"""What neighbours say of a cell, and how far counts alone are off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from predict_tables import made_up
from prediction import boosting
from prediction.evaluation import EvaluationRequest, evaluate
from prediction.measurements import TableConfiguration, TableMeasurement
from prediction.neighbour_features import distances, neighbour_features, precision_of, runtime_of
from prediction.repeats import MeasuredCells

pytestmark = pytest.mark.full


def measurement(
    model: str, device: str, value: float, *, month: float = float("nan"), **more: str
) -> TableMeasurement:
    configuration = TableConfiguration(
        device, "npu", more.get("runtime", "tflite"), more.get("precision", "fp16"),
        "inference", "", "",
    )  # fmt: skip
    return TableMeasurement(
        model, "family", 224, 1, configuration, value, 5.0, 1.0, 1.0, more.get("job", ""), month
    )


def test_a_cell_is_the_level_of_its_item_at_the_offset_of_its_device():
    values = {"a": 1.0, "b": 5.0, "c": 20.0, "d": 3.0}
    train = [
        measurement(model, device, value * factor)
        for model, value in values.items()
        for device, factor in (("slow", 4.0), ("fast", 1.0), ("middle", 2.0))
        if (model, device) != ("d", "slow")
    ]
    said = neighbour_features(train, [measurement("d", "slow", 1.0)])
    assert np.exp(said.estimate[-1]) == pytest.approx(12, rel=0.1)
    assert said.features.shape[0] == len(train) + 1


def test_the_cell_itself_is_left_out_of_its_features():
    train = [measurement(m, d, 2.0) for m in "abcd" for d in ("x", "y", "z")]
    changed = [measurement("a", "x", 2.0001), *train[1:]]
    before, after = neighbour_features(train, []), neighbour_features(changed, [])
    assert after.estimate[0] == pytest.approx(before.estimate[0], abs=1e-4)


def test_a_near_release_counts_more_than_a_far_one():
    """A device that became three times faster was said to be something between."""
    train = [
        measurement(model, device, (30.0 if month == 0 and device == "x" else 10.0), month=month)
        for model in "abcdef" for device in ("x", "y", "z") for month in (0.0, 12.0)
        if (model, device) != ("a", "x")
    ]  # fmt: skip
    said = neighbour_features(train, [measurement("a", "x", 1.0, month=m) for m in (0.0, 12.0)])
    early, late = np.exp(said.estimate[-2:])
    assert early > 1.4 * late


def test_names_of_runtimes_and_precisions_that_are_one():
    names = {
        "torchscript_onnx_tflite": "tflite", "torchscript_onnx_qnn": "qnn", "qnn_dlc": "qnn",
        "torchscript_onnx": "onnx", "torchscript_onnx_ort": "onnx", "ncnn cpu": "ncnn cpu",
    }  # fmt: skip
    assert {name: runtime_of(measurement("a", "x", 1, runtime=name)) for name in names} == names
    assert precision_of(measurement("a", "x", 1, precision="int8")) == "w8a8"


def test_devices_that_share_nothing_are_at_the_typical_distance():
    rng = np.random.default_rng(0)
    level = rng.normal(0, 1, (60, 1)) + rng.normal(0, 0.1, (60, 4))
    level[:30, 3] = np.nan
    level[:, 2] = level[:, 1]
    level[30:, 0] = np.nan
    apart = distances(level)
    assert apart[1, 2] < 0.02
    assert apart[0, 3] == pytest.approx(np.median(apart[0, 1:3]), rel=0.8)


def test_how_far_repeats_differ_is_told_by_jobs_that_differ():
    copies = [measurement("a", "x", 1.0 + n, job="one", month=float(n)) for n in range(40)]
    assert MeasuredCells(copies).half_width == 0.05
    again = [
        measurement(f"m{n}", "x", 1.0 + 0.2 * k, job=f"{n}.{k}", month=float(k))
        for n in range(40) for k in range(2)
    ]  # fmt: skip
    assert MeasuredCells(again).half_width == pytest.approx(np.log(1.2))


@pytest.fixture
def ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosting, "sklearn_is_here", lambda: False)


@pytest.mark.parametrize(
    ("test", "basis"),
    [
        ("new_family", "new model, known hardware"),
        ("new_card", "measured on other hardware"),
        ("both_new", "new model, new hardware"),
    ],
)
def test_rows_from_counts_say_what_is_new(tmp_path, ridge, test, basis):
    """Every row from counts was said to be a new model on known hardware."""
    tables = made_up(tmp_path)
    answer = evaluate(EvaluationRequest((tables["train"],), tables[test]))
    assert list(answer["per_basis"]) == [basis]


def test_anchors_shift_what_counts_say_of_a_new_device(tmp_path, ridge):
    """Anchors did nothing for rows from counts."""
    tables = made_up(tmp_path)
    slow: Any = pq.read_table(tables["new_card"]).to_pylist()
    slow = [{**row, "latency_ms": row["latency_ms"] * 3} for row in slow]
    pq.write_table(pa.Table.from_pylist(slow), tmp_path / "slow.parquet")
    request = EvaluationRequest((tables["train"],), tmp_path / "slow.parquet")
    anchored = EvaluationRequest(request.train, request.test, anchors=6)
    without, with_six = evaluate(request), evaluate(anchored)
    assert with_six["n"] == without["n"] - 6
    assert with_six["mdape"] < without["mdape"] / 2
