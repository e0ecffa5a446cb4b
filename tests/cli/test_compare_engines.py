"""One machine, all its engines: in tables, by filters, in one pivot; what is not shown is said."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from stored_rows import store

DB = "accelbench.duckdb"
OPENVINO = {"hardware": "openvino", "runtime": "openvino", "latency_p50_ms": 4.0}
ORT = {"runtime": "onnxruntime", "latency_p50_ms": 6.0}
GPU = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 1.0}


@pytest.fixture
def stored(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {},
        ORT,
        OPENVINO,
        GPU,
        {**GPU, **OPENVINO, "device_name": "An iGPU"},
    ]
    store(tmp_path / DB, *rows)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("axis", ["engine", "runtime"])
def test_all_engines_of_a_device_stand_in_one_table(compare, axis):
    found = compare.json("--by", axis)["comparisons"]
    assert [line["runtime"] for line in found] == ["pytorch", "onnxruntime", "openvino"]
    assert found[2]["speedup"] == pytest.approx(2.0, rel=0.03)  # of rates


@pytest.mark.usefixtures("stored")
def test_the_processor_means_what_openvino_runs_on_it(compare):
    words = ("--hardware", "cpu", "--framework", "pytorch,onnxruntime,openvino")
    found = compare.json("--by", "engine", *words)
    assert {line["runtime"] for line in found["comparisons"]} == {
        *("pytorch", "onnxruntime", "openvino")
    }
    assert found["not_shown"] == []
    assert {line["device_name"] for line in found["comparisons"]} == {"A processor"}


@pytest.mark.usefixtures("stored")
def test_what_a_request_drops_is_said(compare):
    words = ("--by", "engine", "--hardware", "cpu,cuda", "--framework", "pytorch,openvino")
    code, out, _ = compare(*words)
    assert code == 0
    assert "Not shown: hardware cuda: there is nothing beside it that was asked alike." in out
    said = compare.json(*words, "--precision", "fp32,bf16")["not_shown"]
    assert "Not shown: precision bf16: no result has it beside the rest of what was asked for." in (
        said
    )


@pytest.mark.usefixtures("stored")
def test_a_model_is_told_to_be_missing_by_the_name_that_was_typed(tmp_path, compare):
    """Of a model of another's results “Not shown: model resnet-50” was said under its own table."""
    store(tmp_path / DB, {"model": "resnet50"}, {"model": "resnet50", **ORT}, run="theirs")
    assert compare.json("resnet50", "--by", "engine")["not_shown"] == []
    (said,) = compare.json("bert-tiny", "vit-tiny", "--by", "engine")["not_shown"]
    assert said.startswith("Not shown: model vit-tiny: ")


@pytest.mark.usefixtures("stored")
def test_one_table_of_engines_precisions_and_batches(tmp_path, compare):
    more = {"verification": "ok", "verification_error": 3e-5}
    store(
        tmp_path / DB,
        {"batch_size": 8, "latency_p50_ms": 40.0},
        {**ORT, **more, "precision": "int8", "latency_p50_ms": 3.0},
        run="more",
    )
    code, out, _ = compare("--pivot", "--hardware", "cpu")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["engine", "precision", "batch", "1", "batch", "8", "error"] in lines
    assert next(line for line in lines if "int8" in line)[-1] == "3.0e-05"
    assert out.index("int8") < out.index("pytorch")
    (told,) = compare.json("--pivot", "--hardware", "cpu", "--sort", "precision")["pivots"]
    assert [line["precision"] for line in told["lines"]] == ["fp32", "fp32", "fp32", "int8"]
    best = [line["runtime"] for line in told["lines"] if line["cells"][0]["best"]]
    assert best == ["onnxruntime"]
    assert compare("--pivot", "--hardware", "cpu", "--output", "a.csv")[0] == 0
    with (tmp_path / "a.csv").open(encoding="utf-8") as stream:
        cells = list(csv.DictReader(stream))
    assert {cell["runtime"] for cell in cells if cell["best"] == "true"} == {"onnxruntime"}


@pytest.mark.usefixtures("stored")
def test_what_does_not_go_together_is_refused(compare):
    assert compare("--sort", "speed")[0] == 2
    assert compare("--pivot", "--sort", "name")[0] == 2
