"""`accelbench run mine.onnx --data reviews.csv`: text, counted as NumPy counts it.

What int8 costs on the same samples is asked of arrays, in `test_run_accuracy.py`.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tokenizers
from onnx import TensorProto, helper, numpy_helper
from shells import Command

FAST = ("--iterations", "3", "--warmup", "0", "--threads", "1", "--benchmark-only")
WORDS = ["[PAD]", "[CLS]", "[SEP]", *(f"w{number}" for number in range(61))]
LENGTH, CLASSES = 12, ("bad", "good", "so")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command("run", monkeypatch, capsys)


def rows_of(text: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = json.loads(text)["results"]
    return rows


def save(nodes: list[Any], inputs: list[Any], outputs: list[Any], **weights: Any) -> None:
    values = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    made = helper.make_graph(nodes, "g", inputs, outputs, values)
    onnx.save(
        helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        "mine.onnx",
    )


def tokenizer() -> Any:
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[PAD]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    made.save("tokenizer.json")
    return made


def value(name: str, kind: int, *shape: int | str) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def classifier() -> tuple[Any, Any]:
    """The mean of the rows of a table over the ids that count, times a matrix."""
    random = np.random.default_rng(2)
    table = random.standard_normal((len(WORDS), 16)).astype(np.float32)
    last = random.standard_normal((16, len(CLASSES))).astype(np.float32)
    node = helper.make_node
    save(
        [
            node("Gather", ["table", "input_ids"], ["rows"]),
            node("Cast", ["attention_mask"], ["flat"], to=TensorProto.FLOAT),
            node("Unsqueeze", ["flat", "two"], ["mask"]),
            node("Mul", ["rows", "mask"], ["kept"]),
            node("ReduceSum", ["kept", "one"], ["sum"], keepdims=0),
            node("ReduceSum", ["flat", "one"], ["count"], keepdims=1),
            node("Div", ["sum", "count"], ["mean"]),
            node("MatMul", ["mean", "last"], ["logits"]),
        ],
        [value(name, TensorProto.INT64, "batch", "sequence")
         for name in ("input_ids", "attention_mask")],
        [value("logits", TensorProto.FLOAT, "batch", len(CLASSES))],
        table=table, last=last, one=np.array([1]), two=np.array([2]),
    )  # fmt: skip
    return table, last


def test_labelled_text_is_counted_as_numpy_counts_it(run):
    table, last = classifier()
    tokens = tokenizer()
    random = np.random.default_rng(3)
    right = []
    with Path("reviews.csv").open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file)
        write.writerow(["label", "text"])
        for number in range(61):
            text = " ".join(f"w{word}" for word in random.integers(0, 61, 1 + number % 20))
            ids = tokens.encode(text).ids
            ids = ids if len(ids) <= LENGTH else [*ids[: LENGTH - 1], 2]
            scores = table[ids].mean(axis=0) @ last
            label = int(scores.argmax()) if number % 3 else number % len(CLASSES)
            right.append(int(scores.argmax()) == label)
            write.writerow([CLASSES[label], text])
    code, out, err = run(
        "mine.onnx", "--data", "reviews.csv", "--hardware", "cpu", "--batch-sizes", "8",
        "--sequence-lengths", str(LENGTH), *FAST, "--json",
    )  # fmt: skip
    assert code == 0, err
    (row,) = rows_of(out)
    assert (row["accuracy_metric"], row["accuracy_samples"]) == ("top1", len(right))
    assert row["accuracy_per_sample"] == [float(known) for known in right]
    assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]


def test_plain_text_has_the_perplexity_that_numpy_gives_it(run):
    random = np.random.default_rng(4)
    table = random.standard_normal((len(WORDS), len(WORDS))).astype(np.float32)
    save(
        [helper.make_node("Gather", ["table", "input_ids"], ["logits"])],
        [value("input_ids", TensorProto.INT64, "batch", "sequence")],
        [value("logits", TensorProto.FLOAT, "batch", "sequence", len(WORDS))],
        table=table,
    )
    words = [f"w{word}" for word in random.integers(0, 61, 100)]
    Path("book.txt").write_text("\n".join(words), encoding="utf-8")
    ids = tokenizer().encode(" ".join(words)).ids
    chances = np.exp(table.astype(np.float64))
    chances /= chances.sum(axis=1, keepdims=True)
    losses = [
        -math.log(chances[ids[at], ids[at + 1]]) for at in range(len(ids) - 1) if (at + 1) % LENGTH
    ]
    words = ["mine.onnx", "--data", "book.txt", "--hardware", "cpu", "--batch-sizes", "4",
             "--sequence-lengths", str(LENGTH), *FAST, "--json"]  # fmt: skip
    code, out, err = run(*words, "--accuracy", "perplexity")
    assert code == 0, err
    (row,) = rows_of(out)
    assert (row["accuracy_metric"], row["accuracy_samples"]) == ("perplexity", 9)
    assert row["accuracy"] == pytest.approx(math.exp(sum(losses) / len(losses)), rel=1e-5)
    assert row["evidence"]["details"]["accuracy"]["tokens"] == len(losses)


def test_a_table_that_is_none_and_a_recipe_that_is_none_are_refused_first(run):
    classifier()
    Path("reviews.csv").write_text("text,sentiment\nfine,1\n", encoding="utf-8")
    code, _, err = run("mine.onnx", "--data", "reviews.csv")
    assert (code, "has no column label" in err) == (2, True)
    code, _, err = run("mine.onnx", "--data", "absent.csv")
    assert (code, "cannot be read: No such file" in err) == (2, True)
    Path("reviews.csv").write_text("text,label\nfine,1\n", encoding="utf-8")
    code, _, err = run("mine.onnx", "--data", "reviews.csv", "--preprocessing", "wave")
    assert (code, "wave:RATE" in err) == (2, True)
