"""`accelbench run mine.onnx --data labelled.npz`: accuracy beside speed, and what int8 costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from shells import Command

from accelbench.engines.artifacts.cache import Cache

FEW = ("--iterations", "3", "--warmup", "0", "--threads", "1")
FAST = (*FEW, "--benchmark-only")
CLASSES, SIZE, HIDDEN, COUNT = 10, 64, 256, 403


def classifier(folder: Path, batch: int | str = "batch") -> tuple[Path, Path]:
    """Random features and least squares on clouds that overlap, and samples that it never saw.

    Weights come in closed form: what it has right is known to a sample.
    """
    random = np.random.default_rng(1)
    centres = random.standard_normal((CLASSES, SIZE)).astype(np.float32)

    def clouds(count: int, seed: int) -> tuple[Any, Any]:
        drawn = np.random.default_rng(seed)
        labels = drawn.integers(0, CLASSES, count)
        noise = 2.2 * drawn.standard_normal((count, SIZE))
        return (centres[labels] + noise).astype(np.float32), labels

    first = (random.standard_normal((SIZE, HIDDEN)) / 8).astype(np.float32)
    x, labels = clouds(4000, 5)
    features = np.maximum(x @ first, 0).astype(np.float64)
    normal = features.T @ features + 10 * np.eye(HIDDEN)
    last = np.linalg.solve(normal, features.T @ (np.eye(CLASSES)[labels] - 0.1)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "last"], ["scores"]),
    ]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, SIZE])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, CLASSES])],
        [numpy_helper.from_array(first, "first"), numpy_helper.from_array(last, "last")],
    )
    path = folder / "mine.onnx"
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              str(path))  # fmt: skip
    x, labels = clouds(COUNT, 9)
    np.savez(folder / "held-out.npz", x=x, labels=labels)
    return path, folder / "held-out.npz"


def hits(model: Path, data: Path) -> Any:
    """Which samples a graph has right, one at a time, by ONNX Runtime and NumPy alone."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    arrays = dict(np.load(data))
    scores = np.concatenate([session.run(None, {"x": row[None]})[0] for row in arrays["x"]])
    return scores.argmax(axis=1) == arrays["labels"]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command("run", monkeypatch, capsys)


def rows_of(text: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = json.loads(text)["results"]
    return rows


def test_what_int8_costs_is_told_to_the_sample(run, monkeypatch, capsys):
    model, data = classifier(Path())
    code, out, err = run(
        "mine.onnx", "--data", "held-out.npz", "--hardware", "cpu", "--precision", "fp32,int8",
        "--batch-sizes", "8", *FEW, "--json",
    )  # fmt: skip
    assert code == 0, err
    whole, narrow = rows_of(out)
    right = {"fp32": hits(model, data)}
    key = narrow["evidence"]["details"]["artefact"]["key"]
    right["int8"] = hits(next(Cache().folder.rglob(f"{key}/*.onnx")), data)
    assert right["fp32"].sum() > right["int8"].sum() > COUNT / 2  # else nothing is told apart
    for row in (whole, narrow):
        expected = right[row["precision"]]
        assert row["accuracy_metric"] == "top1"
        assert row["accuracy_samples"] == COUNT  # the last batch of 3 as well
        assert row["accuracy"] == expected.sum() / COUNT
        assert row["accuracy_per_sample"] == expected.astype(float).tolist()
        assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]
        assert row["evidence"]["details"]["accuracy"]["right"] == expected.sum()
    assert whole["accuracy_digest"] == narrow["accuracy_digest"]

    compare = Command("compare", monkeypatch, capsys)
    code, out, err = compare("--by", "precision", "--json")
    assert code in (0, 4), err  # 4: the times are unusable on a busy machine
    line = next(c for c in json.loads(out)["comparisons"] if c["precision"] == "int8")
    lost = int((right["fp32"] & ~right["int8"]).sum())
    gained = int((right["int8"] & ~right["fp32"]).sum())
    assert (line["accuracy_lost"], line["accuracy_gained"]) == (lost, gained)
    assert line["accuracy_difference"] == pytest.approx((gained - lost) / COUNT)
    assert line["accuracy_difference_low"] < line["accuracy_difference"]
    code, out, err = compare("--by", "precision")
    sentence = " ".join(out.split())
    assert f"on the same {COUNT} samples: {lost} lost, {gained} gained." in sentence
    assert f"{100 * right['int8'].sum() / COUNT:.1f} %" in out


def test_a_graph_of_one_batch_answers_every_sample(run):
    model, data = classifier(Path(), batch=4)
    arrays = dict(np.load(data))
    np.savez(data, x=arrays["x"][:10], labels=arrays["labels"][:10])
    code, out, err = run(
        "mine.onnx", "--data", "held-out.npz", "--hardware", "cpu", *FAST, "--json"
    )
    assert code == 0, err
    (row,) = rows_of(out)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    x = np.concatenate([arrays["x"][:10], arrays["x"][:2]])
    scores = np.concatenate([session.run(None, {"x": x[i : i + 4]})[0] for i in (0, 4, 8)])[:10]
    right = scores.argmax(axis=1) == arrays["labels"][:10]
    assert (row["batch_size"], row["accuracy_samples"]) == (4, 10)
    assert row["accuracy_per_sample"] == right.astype(float).tolist()


def test_the_table_says_it_with_its_interval_and_a_wrong_label_leaves_the_time(run):
    _, data = classifier(Path())
    words = ("mine.onnx", "--data", "held-out.npz", "--hardware", "cpu", "--batch-sizes", "8")
    code, out, err = run(*words, "--accuracy", "f1", "--accuracy-samples", "100", *FAST)
    assert code == 0, err
    assert " F1 quality" in out
    assert " of 100 samples" in out
    assert "100 of 403 samples were drawn for accuracy." in out
    arrays = dict(np.load(data))
    np.savez(data, x=arrays["x"], labels=arrays["labels"] + 1)
    code, out, err = run(*words, *FAST, "--json")
    assert code == 0, err
    (row,) = rows_of(out)
    assert row["latency_p50_ms"] or row["latency_mean_ms"]
    assert row["accuracy"] is None
    why = "A sample has the label 10, and the model tells 10 apart, from 0."
    assert why in row["nulls"]["accuracy"]
    assert any(why in warning for warning in row["warnings"])


def test_pictures_in_class_folders_are_answered_as_their_recipe_says(run):
    """The mean colour is the class; three pictures lie in a folder that they are not of."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixels"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["scores"]),
    ]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 3])],
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              "colours.onnx")  # fmt: skip
    random = np.random.default_rng(0)
    for number in range(21):
        colour, folder = number % 3, (number + (number < 3)) % 3
        values = random.integers(0, 120, (12 + number % 4, 10, 3))
        values[..., colour] += 120
        path = Path("photos", ("a-red", "b-green", "c-blue")[folder], f"{number}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values.astype(np.uint8)).save(path)
    words = ("colours.onnx", "--data", "photos", "--hardware", "cpu", "--batch-sizes", "2", *FAST)
    code, out, err = run(*words, "--preprocessing", "unit", "--json")
    assert code == 0, err
    (row,) = rows_of(out)
    assert (row["accuracy_metric"], row["accuracy_samples"]) == ("top1", 21)
    assert row["accuracy"] == 18 / 21
    assert row["data_load_ms"] > 0
    assert any(warning.startswith("Pictures as unit says") for warning in row["warnings"])
    code, out, err = run(*words)
    assert code == 1
    assert "how pictures are prepared for colours.onnx" in " ".join((err + out).split())
    code, _, err = run(*words, "--preprocessing", "torchvision")
    assert (code, "Known: imagenet, half, unit, bytes" in err) == (2, True)


def test_what_cannot_be_measured_is_refused_before_anything_runs(run):
    classifier(Path())
    np.savez("bare.npz", x=np.zeros((4, SIZE), np.float32))
    code, _, err = run("mine.onnx", "--data", "bare.npz")
    assert (code, "has no array labels: there are x" in err) == (2, True)
    code, _, err = run("mine.onnx", "--data", "held-out.npz", "--accuracy", "auc")
    assert (code, "Known: top1, top5, f1, perplexity, auto, off" in err) == (2, True)
    code, _, err = run("mine.onnx", "--accuracy", "f1")
    assert (code, "named with --data" in err) == (2, True)
