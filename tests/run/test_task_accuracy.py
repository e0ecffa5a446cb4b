"""In a worker: what a session's answers are worth against labels, and what is refused."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import soundfile

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.clock import MonotonicClock
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Architecture, Family, Mode
from accelbench.engines.shared.arrays import Inputs
from accelbench.run.conduct.launch import passed_over
from accelbench.run.worker.task_accuracy import NO_LABELS, task_accuracy

Answers = Callable[[Mapping[str, Any]], Mapping[str, Any]]
X = InputSpec("x", ("batch", 4), "float32")
IDS = InputSpec("ids", ("batch", 5), "int64", high=7)


class Answering:
    """A session whose outputs a function of its inputs gives; it counts what it was fed."""

    def __init__(self, case, settings, answers):
        self._inputs = Inputs(Job(case, Device("cpu", "x"), settings), MonotonicClock())
        self._answers = answers
        self.batches = []

    def prepare(self, case, seed=None):
        return self._inputs.arrays(case, seed)

    def outputs(self, inputs):
        self.batches.append(len(next(iter(inputs.values()))))
        return self._answers(inputs)


def asked(input_=X, batch=4):
    model = ModelSpec(
        "m", Family.VISION, Architecture.VISION, ("vision",), "", "tiny", "made:up", {},
        (input_,), 1,
    )  # fmt: skip
    return Case(model, Target("onnxruntime", "cpu"), "fp32", Shapes(batch))


def told(tmp_path, answers, input_=X, accuracy="auto", **arrays):
    path = tmp_path / "d.npz"
    np.savez(path, **arrays)
    settings = JobSettings(data=str(path), accuracy=accuracy)
    case = asked(input_)
    session = Answering(case, settings, answers)
    answer = task_accuracy(session, case, settings)
    assert set(session.batches) <= {4}
    return answer


def itself(inputs):
    return {"scores": inputs["x"]}


def test_each_sample_counts_once_however_batches_fall(tmp_path):
    x = np.random.default_rng(0).standard_normal((11, 4)).astype(np.float32)
    labels = np.random.default_rng(1).integers(0, 4, 11)
    answer = told(tmp_path, itself, x=x, labels=labels)
    right = x.argmax(axis=1) == labels
    assert answer["columns"]["accuracy_per_sample"] == right.astype(float).tolist()
    assert answer["columns"]["accuracy"] == right.sum() / 11
    assert answer["details"]["figures"]["top1"][0] == right.sum() / 11
    assert answer["details"]["batch_size"] == 4


def test_samples_of_one_class_are_said_to_be(tmp_path):
    answer = told(
        tmp_path, itself, x=np.eye(4, dtype=np.float32)[[0] * 9 + [1]], labels=[0] * 9 + [1]
    )
    (note,) = answer["notes"]
    assert note.startswith("90% of the samples are of one class")
    assert note.endswith("--accuracy f1 weighs classes alike.")


@pytest.mark.parametrize("following", [False, True])
def test_perplexity_is_of_the_tokens_that_come_next(tmp_path, following):
    random = np.random.default_rng(3)
    table = random.standard_normal((7, 7))
    ids = random.integers(0, 7, (6, 5))
    labels = (
        np.concatenate([ids[:, 1:], np.full((6, 1), -100)], axis=1) if following else ids.copy()
    )
    labels[2, 3] = -100  # padding
    answer = told(
        tmp_path, lambda inputs: {"y": table[inputs["ids"]].astype(np.float32)}, IDS,
        ids=ids, labels=labels,
    )  # fmt: skip
    shares = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
    losses = [
        [-math.log(shares[ids[row, at], ids[row, at + 1]]) for at in range(4)
         if labels[row, at if following else at + 1] >= 0]
        for row in range(6)
    ]  # fmt: skip
    tokens = sum(map(len, losses))
    columns = answer["columns"]
    assert columns["accuracy_metric"] == "perplexity"
    assert columns["accuracy"] == pytest.approx(math.exp(sum(map(sum, losses)) / tokens), rel=1e-5)
    assert columns["accuracy_samples"] == 6
    assert columns["accuracy_low"] < columns["accuracy"] < columns["accuracy_high"]
    assert answer["details"]["tokens"] == tokens


def test_labelled_sound_is_counted_as_numpy_counts_it(tmp_path):
    rate, samples = 4000, 800
    times = np.arange(samples) / rate
    waves = np.stack([np.sin(2 * np.pi * hertz * times) for hertz in (250, 1000)], axis=1)
    basis = waves.astype(np.float32)
    random = np.random.default_rng(5)
    right = []
    for label, name in enumerate(("deep", "high")):
        (tmp_path / name).mkdir()
        for number in range(7):
            wave = 0.02 * waves[:, label] + 0.3 * random.standard_normal(samples)
            path = tmp_path / name / f"{number}.wav"
            soundfile.write(path, wave[: samples - 40 * number], rate)
            read, _ = soundfile.read(path, dtype="float32")
            scores = np.abs(read @ basis[: len(read)])
            right.append(float(scores.argmax() == label))
    assert 0 < sum(right) < len(right)
    settings = JobSettings(data=str(tmp_path), preprocessing=f"wave:{rate}")
    case = asked(InputSpec("wave", ("batch", samples), "float32"))
    session = Answering(case, settings, lambda fed: {"scores": np.abs(fed["wave"] @ basis)})
    answer = task_accuracy(session, case, settings)
    assert answer["columns"]["accuracy_per_sample"] == right
    assert any(note.startswith("Sounds as wave:4000 says") for note in answer["notes"])


def test_labels_that_are_no_tokens_of_the_model_are_refused(tmp_path):
    def uniform(inputs):
        return {"y": np.zeros((4, 5, 7), np.float32)}

    ids = np.arange(20).reshape(4, 5) % 7
    why = told(tmp_path, uniform, IDS, ids=ids, labels=(ids + 3) % 7)["why"]
    assert "neither the model's tokens themselves nor those that come next" in why
    why = told(tmp_path, uniform, IDS, ids=ids + 3, labels=ids + 3)["why"]
    assert "A label is 7, and the model knows 7 tokens." in why


@pytest.mark.parametrize(
    ("answers", "accuracy", "why"),
    [
        (lambda i: {"y": i["x"][:, :1]}, "auto", "there is none: y [4, 1]"),
        (lambda i: {"a": i["x"], "b": i["x"]}, "auto", "several: a [4, 4], b [4, 4]"),
        (lambda i: {"y": i["x"][:, :2]}, "auto", "label 2, and the model tells 2 apart"),
        (itself, "perplexity", "Perplexity needs a label a token"),
    ],
)
def test_what_cannot_be_decided_is_said_and_not_guessed(tmp_path, answers, accuracy, why):
    x = np.eye(4, dtype=np.float32)
    answer = told(tmp_path, answers, accuracy=accuracy, x=x, labels=np.arange(4))
    assert why in answer["why"]
    assert answer["wanted"]


def test_an_output_called_logits_is_meant_where_there_are_others(tmp_path):
    x = np.eye(4, dtype=np.float32)
    answer = told(
        tmp_path, lambda i: {"other": -i["x"], "logits": i["x"]}, x=x, labels=np.arange(4)
    )
    assert (answer["columns"]["accuracy"], answer["details"]["output"]) == (1.0, "logits")


def test_what_has_no_accuracy_says_why(tmp_path):
    path = tmp_path / "d.npz"
    np.savez(path, x=np.eye(4, dtype=np.float32), labels=np.arange(4))
    settings, case = JobSettings(data=str(path)), asked()

    class Drawing(Answering):
        def prepare(self, case, seed=None):
            return {"x": np.eye(4, dtype=np.float32)}

    answer = task_accuracy(Drawing(case, settings, itself), case, settings)
    assert "onnxruntime draws its inputs by itself" in answer["why"]
    assert "columns" not in answer

    (tmp_path / "a.txt").write_text("some words")
    settings = JobSettings(data=str(tmp_path))
    session = object()
    assert task_accuracy(session, asked(), settings) == {"why": NO_LABELS}

    case, data = asked(), JobSettings(data="d.npz")
    assert passed_over(case, data) == "its weights are random: --weights names others"
    assert passed_over(case, JobSettings(data="d.npz", weights="hub")) == ""
    assert "--accuracy off" in passed_over(case, JobSettings(data="d.npz", accuracy="off"))
    assert "no labelled data" in passed_over(case, JobSettings())
    trains = Case(case.model, case.target, "fp32", Shapes(4), Mode.TRAINING)
    assert passed_over(trains, data) == "accuracy is of inference"
