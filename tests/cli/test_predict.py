"""`accelbench predict`: figures of what nobody has measured, and what they rest on."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from shells import Command
from stored_rows import store

from accelbench.cli.commands import predict as predicting
from accelbench.cli.commands.run import app as run_app
from accelbench.core.formatting import format_digits
from accelbench.core.protocols import Device
from accelbench.predict import graph_file_models, traces
from accelbench.store.database import Database
from made_up_calibration import calibrated_store, made_calibration
from predict_tables import made_up


@pytest.fixture
def predict(command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, with analytic costs in place of traces, which torch would take seconds for."""
    monkeypatch.setattr(traces, "torch_is_here", lambda: False)
    made = command("predict")
    monkeypatch.setenv("ACCELBENCH_CACHE", str(Path.cwd() / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    return made


def measured(*models: str) -> None:
    """A database here with batches 1, 4 and 16 of models."""
    rows = [
        {"model": model, "batch_size": batch, "latency_p50_ms": 4.0 * number + batch,
         "series_key": f"{model} {batch}"}
        for number, model in enumerate(models, start=1) for batch in (1, 4, 16)
    ]  # fmt: skip
    store(Path("accelbench.duckdb"), *rows)


def test_without_measurements_it_says_so_and_is_wide(predict):
    words = ("t5-small", "--hardware", "cuda", "--batch-size", "16", "--new-tokens", "0")
    code, out, _ = predict(*words)
    assert code == 0
    assert "A100" in out
    assert "vendor peaks alone" in out
    assert "nothing is measured" in out
    assert "Memory has a 90 % interval too" in out
    found = predict.json(*words)
    (entry,) = found["predictions"]
    # Its lower end is where the peaks are, of which nothing is faster.
    assert entry["latency_high_ms"] / entry["latency_ms"] > 2.0
    assert entry["latency_low_ms"] < entry["latency_ms"] / 1.5
    assert entry["throughput"] == pytest.approx(16e3 / entry["latency_ms"])
    assert entry["provenance"] == "predicted"
    assert entry["memory_low_mb"] < entry["memory_mb"] < entry["memory_high_mb"]


def test_what_was_measured_stands_beside_the_prediction(predict):
    measured("bert-tiny", "distilbert-tiny")
    found = predict.json("bert-tiny", "--batch-sizes", "4", "8")
    four, eight = found["predictions"]
    assert found["learned_from"] == 6
    assert four["measured_latency_ms"] == pytest.approx(8.0)  # of medians, as is learned from
    assert eight["measured_latency_ms"] is None
    assert eight["basis"] == "the model here, at other sizes"
    assert four["latency_ms"] < eight["latency_ms"]
    _, out, _ = predict("bert-tiny", "--batch-sizes", "4", "8")
    assert "measured ms" in out
    assert "Predicted, not measured" in out


def test_a_range_of_batches_has_a_knee(predict):
    measured("bert-tiny", "distilbert-tiny")
    found = predict.json("bert-base", "--batch-sizes", "1..64")
    assert [entry["batch_size"] for entry in found["predictions"]] == [1, 2, 4, 8, 16, 32, 64]
    (knee,) = found["knees"]
    assert knee["batch_size"] in {None, 2, 4, 8, 16, 32}


def test_nothing_that_is_predicted_is_stored(predict):
    measured("bert-tiny")
    assert predict("bert-base", "--hardware", "cuda")[0] == 0
    _, rows = Database(Path("accelbench.duckdb")).query(
        "SELECT DISTINCT provenance, model FROM benchmark_results"
    )
    assert rows == [("measured", "bert-tiny")]


def test_a_matrix_is_written_to_a_file_that_is_not_there_yet(predict):
    measured("bert-tiny")
    code, _, err = predict("--generate-matrix", "--output-file", "matrix.json")
    assert code == 0, err
    found = json.loads(Path("matrix.json").read_text())
    assert len({entry["model"] for entry in found["predictions"]}) > 40
    assert {entry["batch_size"] for entry in found["predictions"]} == {1, 8, 32, 128}
    code, _, err = predict("--matrix", "--output", "matrix.json")
    assert code == 2
    assert "matrix.json" in err


def test_what_to_measure_first_are_commands_that_run_takes(predict):
    measured("bert-tiny")
    found = predict.json("--suggest-anchors", "2", "--batch-sizes", "1", "4")
    commands = [entry["command"] for entry in found["measurements"]]
    assert len(set(commands)) == 2
    known = typer.main.get_command(run_app)
    for line in commands:
        program, name, *arguments = shlex.split(line)
        assert (program, name) == ("accelbench", "run")
        assert known.make_context("run", arguments).params["models"]
    assert 0 < found["seconds_low"] < found["seconds"] < found["seconds_high"]
    assert found["seconds_low"] < sum(entry["seconds"] for entry in found["measurements"])
    _, out, _ = predict("--suggest-anchors", "2", "--batch-sizes", "1", "4")
    assert "as predicted." in out
    after = [entry["deviation_after"] for entry in found["measurements"]]
    assert found["deviation_before"] > after[0] >= after[1]


def test_its_own_errors_on_models_that_it_had_not_seen(predict):
    measured("bert-tiny", "distilbert-tiny", "vit-tiny", "resnet-tiny")
    found = predict.json("--evaluate")
    assert found["latency"]["n"] == 12
    assert found["latency"]["models"] == 4
    assert found["latency"]["per_engine"].keys() == {"pytorch/cpu"}
    code, out, _ = predict("--evaluate")
    assert code == 0
    assert "every unseen model" in out


def test_tables_are_scored_by_the_predictor_that_users_ask(predict):
    tables = made_up(Path.cwd(), a_family=2)
    words = ("--evaluate", "--train", str(tables["train"]), "--test", str(tables["new_card"]))
    words += ("--graph-features", str(tables["signatures"]), "--anchors", "2")
    code, out, _ = predict(*words, "--plot", "t.svg", "--output", "t.json")
    assert (code, out) == (0, "")
    found = json.loads(Path("t.json").read_text(encoding="utf-8"))
    assert (found["n"], found["learned_from"], found["anchors"]) == (8, 22, 2)
    assert Path("t.svg").exists()
    code, out, _ = predict(*words)
    assert code == 0
    assert "overall" in out
    assert "this case, measured" not in out  # the anchors, which are not scored


def test_a_picture_of_predictions_is_written_beside_what_is_printed(predict):
    measured("bert-tiny", "distilbert-tiny")
    code, out, err = predict("bert-tiny", "--batch-sizes", "1..16", "--plot", "b.svg")
    assert (code, "Wrote b.svg" in err) == (0, True)
    assert "Predicted, not measured" in out
    drawn = Path("b.svg").read_text(encoding="utf-8")
    assert "Predicted latency and throughput against batch size" in drawn
    code, _, err = predict("bert-tiny", "--plot", "b.svg")
    assert code == 2
    assert "b.svg" in err


def test_a_picture_of_a_matrix_stands_in_for_its_document(predict):
    measured("bert-tiny")
    code, out, _ = predict("--matrix", "--plot", "m.html", "--batch-sizes", "1")
    assert (code, out) == (0, "")
    assert "Predicted latency and throughput by model" in Path("m.html").read_text("utf-8")


def test_a_picture_of_an_evaluation_says_its_scores(predict):
    measured("bert-tiny", "distilbert-tiny", "vit-tiny", "resnet-tiny")
    scores = predict.json("--evaluate", "--plot", "e.svg")
    drawn = Path("e.svg").read_text(encoding="utf-8")
    assert "12 cases" in drawn
    assert f"{format_digits(scores['latency']['mdape'])} %" in drawn


@pytest.mark.parametrize("words", [("--anchors", "3"), ("--target", "memory")])
@pytest.mark.parametrize("question", ["--evaluate", "bert-tiny", "--matrix"])
def test_what_only_tables_have_is_refused_without_them(predict, question, words):
    measured("bert-tiny", "distilbert-tiny")
    code, out, err = predict(question, *words)
    assert (code, out) == (2, "")
    said = " ".join(err.split())
    assert f"{words[0]} is for --evaluate on tables." in said
    assert "--train" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "No model is named"),
        (("bert-tiny", "--plot", "b.pdf"), "End it with .png, .svg, .html"),
        (("--suggest-anchors", "2", "--plot", "b.svg"), "--plot draws predictions"),
        (("--retrain", "--plot", "b.svg"), "--plot draws predictions"),
        (("bert-tinny",), "bert-tiny"),
        (("bert-tiny", "--hardware", "cuda:abacus"), "no peaks of it are documented"),
        (("bert-tiny", "--batch-sizes", "8..2"), "ends before it begins"),
        (("bert-tiny", "--batch-sizes", "many"), "whole numbers"),
        (("bert-tiny", "--mode", "sleeping"), "no mode 'sleeping'. Modes: inference, training."),
        (("bert-tiny", "--precision", "fp33"), "no precision"),
        (("--evaluate", "--train", "a.parquet"), "needs --train and --test"),
        (("--evaluate", "bert-tiny"), "MODEL changes nothing"),
        (("--evaluate", "--suggest-anchors", "3"), "--suggest-anchors changes nothing"),
        (("--train", "a.parquet", "--hardware", "cuda"), "--hardware changes nothing"),
    ],
)
def test_what_it_cannot_answer_is_a_sentence(predict, words, sentence):
    code, _, err = predict(*words)
    assert code == 2
    assert sentence in " ".join(err.split())


def test_a_calibrated_device_is_what_its_platform_stands_for(predict, monkeypatch):
    """Without a calibration `cuda` is a documented card that many have."""
    monkeypatch.setattr(predicting, "device_here", lambda _platform: None)
    card = Device("cuda", "A card of 2031")
    calibration = made_calibration(card, fp32=90e12, bandwidth=3e12)
    calibrated_store(Path("accelbench.duckdb"), calibration, device=card)
    found = predict.json("bert-tiny", "--hardware", "cuda", "rocm")
    there, elsewhere = found["predictions"]
    assert (there["device"], there["basis"]) == ("A card of 2031", "measured peaks alone")
    assert elsewhere["basis"] == "vendor peaks alone"
    assert not [note for note in found["notes"] if note.startswith("no peaks")]


def test_a_file_is_predicted_by_its_graph_and_named_with_its_digest(predict):
    onnx = pytest.importorskip("onnx")
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [tensor("x", onnx.TensorProto.FLOAT, ["batch", "seq", 64])],
        [tensor("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.zeros((64, 32), np.float32), "w")],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    onnx.save(model, "m.onnx")
    measured("bert-tiny", "distilbert-tiny")
    found = predict.json("m.onnx", "bert-tiny", "--sequence-lengths", "8", "--batch-sizes", "2")
    (about,) = found["files"]
    assert about["sha256"] == hashlib.sha256(Path("m.onnx").read_bytes()).hexdigest()
    assert (about["format"], about["parameters"]) == ("onnx", 64 * 32)
    entry = next(e for e in found["predictions"] if e["model"] == "m.onnx")
    assert entry["family"] == "unknown"
    assert entry["basis"] == "other models in this configuration"
    assert (entry["batch_size"], entry["sizes"]) == (2, {"sequence_length": 8})
    (counts,) = (e for e in found["operators"] if e["model"] == "m.onnx")
    product = counts["classes"]["lin"]
    assert product["macs"] == 8 * 64 * 32
    assert product["bytes"] == 4 * (8 * 64 + 64 * 32 + 8 * 32)
    assert product["intensity"] == pytest.approx(2 * product["macs"] / product["bytes"])
    code, _, err = predict("m.onnx")
    assert code == 2
    assert "'seq' of its input x is free" in err


def test_a_documented_device_is_enough_of_a_name(predict):
    for word, device in (("rtx 4090", "RTX 4090"), ("RTX4090", "RTX 4090"),
                         ("h100 sxm", "H100 80GB HBM3"), ("a100", "A100-SXM4-80GB"),
                         ("Core i9-10940X", "Core i9-10940X")):  # fmt: skip
        (entry,) = predict.json("bert-tiny", "--hardware", word)["predictions"]
        assert device in entry["device"]
    code, _, err = predict("bert-tiny", "--hardware", "rtx 6000")
    assert code == 2
    assert "cuda:rtx-6000-ada" in err
    code, _, err = predict("bert-tiny", "--hardware", "no-such-device")
    assert code == 2
    assert "no documented device" in err


def test_a_size_that_no_model_has_is_said(predict):
    notes = predict.json("bert-tiny", "--image-sizes", "64", "--sequence-lengths", "128")["notes"]
    assert [n for n in notes if "changes nothing" in n] == [
        "--image-sizes changes nothing: no model that is asked about takes images"
    ]


def test_why_nothing_is_predicted_is_one_sentence(predict):
    code, _, err = predict("bert-tiny", "--hardware", "cuda", "--sequence-lengths", "5000")
    assert code == 2
    said = " ".join(err.split())
    assert "Nothing of that is predicted: " in said
    assert "5000" in said or "5,000" in said
    assert ".." not in said
    assert "predicted. nothing" not in said


def test_a_platform_with_a_colon_and_no_name_is_the_platform(predict):
    found = predict.json("bert-tiny", "--hardware", "cuda:")
    assert any("was measured on cuda: " in note for note in found["notes"])
    assert not any("cuda::" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--db", "absent.duckdb"), 3, "There is no database at "),
        (("--precision", "fp33"), 2, "no precision"),
        (("--batch-sizes", "8..2"), 2, "ends before it begins"),
        (("bert-tinny",), 2, "bert-tiny"),
    ],
)
def test_other_words_are_looked_at_before_a_file_is_read(
    predict, monkeypatch, words, code, sentence
):
    def read(*_: object) -> None:
        raise AssertionError("the file was read")

    monkeypatch.setattr(graph_file_models, "file_model", read)
    Path("m.onnx").touch()
    ended, _, err = predict("m.onnx", *words)
    assert ended == code
    assert sentence in " ".join(err.split())


def test_text_and_picture_name_the_device_where_a_platform_has_one(predict):
    for plot, words in (("a.svg", ("--batch-sizes", "1..8")), ("b.svg", ())):
        words = ("bert-tiny", "--hardware", "cuda:h200", *words, "--plot", plot)
        code, out, _ = predict(*words)
        assert code == 0
        assert "On NVIDIA H200 (cuda)." in out
        assert "On NVIDIA H200 (cuda)." in Path(plot).read_text("utf-8")
    _, out, _ = predict("bert-tiny", "--hardware", "cuda:h200", "cuda:h100")
    assert "On NVIDIA" not in out  # each row says its own


def test_a_model_that_only_results_know_is_refused_with_what_answers_of_it(predict):
    measured("mine.onnx", "detector", "net.py:make")
    Path("net.py").write_text("raise SystemExit\n", encoding="utf-8")  # it is not run
    for word, name, why in (
        ("mine.onnx", "mine.onnx", "its file is not here, and of its operators nothing is stored"),
        ("gone/mine.onnx", "mine.onnx", "its file is not here"),
        ("detector", "detector", "its file is not here"),
        ("net.py:make", "net.py:make", "operators are read from files and configs, and this is"),
    ):
        code, _, err = predict(word)
        told = " ".join(err.split())
        assert code == 2
        assert f"'{word}' is not predicted: {why}" in told
        assert "3 results of it are stored." in told
        assert f"accelbench recommend {name}" in told
    code, _, err = predict("other.py:make")
    assert (code, "Measure it: accelbench run other.py:make" in " ".join(err.split())) == (2, True)
    code, _, err = predict("other.onnx")
    assert (code, "there is no such file" in " ".join(err.split())) == (2, True)


@pytest.mark.parametrize("word", ["mine.onnx", "detector", "net.py:make"])
def test_recommend_answers_of_a_model_that_only_results_know(command, word):
    measured(word)
    found = command("recommend").json(word)
    assert found["recommendations"][0]["primary_recommendation"]


def test_what_does_not_fit_is_said_in_each_precision_from_its_smallest_batch(predict):
    words = ("mixtral-8x7b", "--hardware", "cuda:h100", "--precision", "fp32", "bf16",
             "--batch-sizes", "8", "1")  # fmt: skip
    notes = [note for note in predict.json(*words)["notes"] if "does not fit" in note]
    assert [note.partition(": predicted")[0] for note in notes] == [
        f"mixtral-8x7b does not fit NVIDIA H100 80GB HBM3 from batch 1 on in {precision}"
        for precision in ("fp32", "bf16")
    ]
