"""Pictures of predictions: told apart from what was measured, with bands, knees and scores."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from accelbench.predict.answers import Knee, PredictedFigures, PredictionAnswer
from accelbench.predict.scoring import EvaluatedCases, Predictions
from accelbench.present.charts import draw
from accelbench.present.charts.chart import Picture
from accelbench.present.charts.predicted import evaluation_picture, prediction_picture
from hostile_names import FEW as HOSTILE


def figures(model: str = "bert-tiny", batch: int = 1, **changes: Any) -> PredictedFigures:
    latency = float(changes.pop("latency_ms", 10.0 * batch))
    entry = {
        "provenance": "predicted", "model": model, "family": "embedding", "hardware": "cpu",
        "device": "A processor", "runtime": "pytorch", "precision": "fp32", "mode": "inference",
        "compiled": False, "options": "", "threads": 2, "batch_size": batch,
        "sizes": {"sequence_length": 128},
        "basis": "other models in this configuration", "latency_ms": latency,
        "latency_low_ms": latency / 1.5, "latency_high_ms": latency * 1.5,
        "throughput": 1e3 * batch / latency, "throughput_low": 1e3 * batch / latency / 1.5,
        "throughput_high": 1.5e3 * batch / latency, "throughput_unit": "sequences/s",
        "memory_mb": 100.0, "memory_low_mb": 90.0, "memory_high_mb": 110.0,
        "measured_latency_ms": None, "measured_memory_mb": None, **changes,
    }  # fmt: skip
    return cast("PredictedFigures", entry)


def over_batches() -> PredictionAnswer:
    """Two engines at seven batches; one of them measured at batch 4, with a knee at 8."""
    entries = [
        figures(batch=2**power, runtime=runtime,
                measured_latency_ms=36.0 if (runtime, power) == ("pytorch", 2) else None)
        for runtime in ("pytorch", "onnxruntime") for power in range(7)
    ]  # fmt: skip
    knees: list[Knee] = [
        {"model": "bert-tiny", "hardware": "cpu", "device": "A processor", "compiled": False,
         "options": "", "runtime": runtime, "precision": "fp32",
         "sizes": {"sequence_length": 128}, "batch_size": batch}
        for runtime, batch in (("pytorch", 8), ("onnxruntime", None))
    ]  # fmt: skip
    return PredictionAnswer(entries, knees, learned_from=12)


def at_one_batch() -> PredictionAnswer:
    entries = [figures(hardware="cuda", device="A card", latency_ms=1.0),
               figures(measured_latency_ms=8.0)]  # fmt: skip
    return PredictionAnswer(entries, learned_from=12)


def of_many(models: int = 6, batches: tuple[int, ...] = (1, 8), **changes: Any) -> PredictionAnswer:
    entries = [
        figures(f"model-{n}", batch, family=family, latency_ms=3.0 + n, **changes)
        for n in range(models)
        for family in (("vision", "audio")[n % 2],)
        for batch in batches
    ]
    return PredictionAnswer(entries, learned_from=12)


def evaluated(count: int = 40, groups: int = 2, target: str = "latency") -> EvaluatedCases:
    """Cases predicted 10 % too high; intervals of ±20 %."""
    measured = np.geomspace(1.0, 100.0, count)
    half = np.full(count, np.log(1.2))
    predictions = Predictions(np.log(measured * 1.1), half, [""] * count, np.zeros(count, bool))
    names = [f"engine-{n % groups}" for n in range(count)]
    return EvaluatedCases(target, predictions, measured, ["bert-tiny"] * count, names)


def drawn(answer: PredictionAnswer) -> Picture:
    picture = prediction_picture(answer)
    assert picture is not None
    return picture


def scattered(*every: EvaluatedCases) -> Picture:
    picture = evaluation_picture(every, "Each from the others.")
    assert picture is not None
    return picture


EVERY = {
    "over batches": lambda: drawn(over_batches()),
    "at one batch": lambda: drawn(at_one_batch()),
    "matrix": lambda: drawn(of_many()),
    "scatter": lambda: scattered(evaluated(), evaluated(target="memory")),
    "scatter of many": lambda: scattered(evaluated(200, 12)),
}


def views(value: Any, mark: str) -> list[dict[str, Any]]:
    """Layers of a mark, wherever they are."""
    if isinstance(value, list):
        return [layer for part in value for layer in views(part, mark)]
    if not isinstance(value, dict):
        return []
    kind = value.get("mark")
    own = [value] if isinstance(kind, dict) and kind.get("type") == mark else []
    return own + [layer for part in value.values() for layer in views(part, mark)]


@pytest.mark.parametrize("name", EVERY)
def test_the_specification_is_what_vega_lite_says_it_may_be_and_is_drawn(name):
    altair = pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    spec = EVERY[name]().spec
    altair.Chart.from_dict(spec, validate=True)
    assert draw.svg(spec).startswith("<svg")


@pytest.mark.parametrize("name", ["over batches", "at one batch"])
def test_measured_and_predicted_are_told_apart_by_form_and_filling(name):
    picture = EVERY[name]()
    forms = {(r["kind"], r["form"], r["paint"] == r["colour"]) for r in values(picture.spec)}
    assert forms == {("predicted", "square", False), ("measured", "circle", True)}
    said = " ".join(picture.about)
    assert "Predicted: pale squares" in said
    assert "Measured, of the same cases: filled circles" in said
    legend = [layer for layer in views(picture.spec, "point") if layer["mark"].get("opacity") == 0]
    (domain,) = {tuple(layer["encoding"]["fill"]["scale"]["domain"]) for layer in legend}
    assert domain == ("measured", "predicted")


def values(spec: Any) -> list[dict[str, Any]]:
    """Records of all panels, wherever they are."""
    if isinstance(spec, list):
        return [record for part in spec for record in values(part)]
    if not isinstance(spec, dict):
        return []
    own = spec["data"]["values"] if "data" in spec else []
    return [*own, *(record for part in ("concat", "hconcat", "vconcat")
                    for record in values(spec.get(part)))]  # fmt: skip


def test_predictions_over_batches():
    # Without a measurement none is spoken of.
    answer = PredictionAnswer([figures(batch=batch) for batch in (1, 2)])
    assert "Measured" not in " ".join(drawn(answer).about)
    assert {record["kind"] for record in drawn(answer).records} == {"predicted"}
    # Batches are powers of two with bands and one ring at the knee.
    spec = drawn(over_batches()).spec
    latency, throughput = spec["concat"]
    (band,) = views(latency, "area")
    assert (band["encoding"]["y"]["field"], band["encoding"]["y2"]["field"]) == ("low", "high")
    assert band["encoding"]["x"]["axis"]["values"] == [1, 2, 4, 8, 16, 32, 64]
    assert band["encoding"]["x"]["scale"]["type"] == "log"
    for panel in (latency, throughput):
        rings = [r for r in panel["data"]["values"] if r["knee"]]
        assert [(r["line"], r["batch"], r["kind"]) for r in rings] == [
            ("pytorch · cpu", 8, "predicted")
        ]
    # A measured rate is of the items that a step completes.
    (measured,) = [r for r in drawn(at_one_batch()).spec["concat"][1]["data"]["values"]
                   if r["kind"] == "measured"]  # fmt: skip
    assert measured["value"] == pytest.approx(1e3 / 8.0)
    assert measured["low"] is None
    # A batch between two powers has its place and no line of the axis.
    answer = PredictionAnswer([figures(batch=batch) for batch in (1, 3, 6)])
    (band, _) = views(drawn(answer).spec, "area")
    assert band["encoding"]["x"]["axis"]["values"] == [1, 2, 4]


def test_heat_maps():
    # Many models are a heat map by family.
    picture = drawn(of_many())
    assert [part["title"]["text"] for part in picture.spec["vconcat"]] == ["vision", "audio"]
    assert len(picture.records) == 12
    assert {record["said"] for record in values(picture.spec)} == {*"345678"}
    assert "not drawn" not in " ".join(picture.about)
    # A heat map says which intervals are wide and what is left out.
    wide = of_many(1, latency_high_ms=1e3).figures
    picture = drawn(PredictionAnswer([*wide, *of_many(70).figures[2:]]))
    said = " ".join(picture.about)
    assert "10 more models not drawn" in said
    assert "~: its 90 % interval" in said
    assert {r["model"] for r in values(picture.spec) if r["said"].startswith("~")} == {"model-0"}
    assert len({record["model"] for record in picture.records}) == 60
    # A measured case of a heat map has a frame.
    picture = drawn(of_many(measured_latency_ms=99.0))
    assert "Frame: this very case was measured" in " ".join(picture.about)
    assert {record["said"] for record in values(picture.spec)} == {*"345678"}
    assert any(view["mark"].get("fill", "") is None for view in views(picture.spec, "rect"))


def test_scatters():
    # A scatter says its scores and has the diagonal and a quarter either way.
    picture = scattered(evaluated(), evaluated(target="memory"))
    latency, memory = picture.spec["concat"]
    said = " ".join(latency["title"]["subtitle"])
    assert "40 cases · median error 10.0 % · 100 % inside 25 %" in said
    assert "100 % inside their 90 % interval" in said
    ratios = {
        round(row["predicted"] / row["measured"], 6)
        for line in views(latency, "line")
        for row in line["data"]["values"]
    }
    assert ratios == {1.0, 1.25, 0.75}
    assert memory["title"]["text"] == "Memory"
    assert views(latency, "rule")  # intervals
    # A scatter of thousands draws some and scores all.
    picture = scattered(evaluated(3000, 12))
    assert len(picture.records) == 2000
    assert "2,000 of 3,000 are drawn" in " ".join(picture.about)
    assert "3,000 cases" in picture.spec["concat"][0]["title"]["subtitle"][0]
    assert len({record["group"] for record in picture.records}) == 8
    assert not views(picture.spec, "rule")
    # Anchors and what has no prediction are in no scatter.
    cases = evaluated(4)
    cases.predictions.log_value[0] = np.nan
    cases.predictions.anchor[1] = True
    assert len(scattered(cases).records) == 2
    cases.predictions.log_value[:] = np.nan
    assert evaluation_picture([cases]) is None


def test_no_predictions_are_no_picture():
    assert prediction_picture(PredictionAnswer([])) is None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text(name):
    answer = PredictionAnswer([figures(name, batch, runtime=name, device=name) for batch in (1, 2)])
    assert draw.svg(drawn(answer).spec).count("<script") == 0
