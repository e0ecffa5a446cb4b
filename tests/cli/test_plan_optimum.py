"""Configs in the form of optimum-benchmark's, read as plans: written for these tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shells import Command

HEAD = """\
defaults:
  - benchmark
  - scenario: inference
  - launcher: process
  - backend: pytorch
  - _base_
  - _self_
name: made_up
launcher:
  device_isolation: true
"""


@pytest.fixture
def run(command: Callable[..., Command]) -> Command:
    return command("run")


def planned(run: Command, text: str) -> dict[str, Any]:
    Path("config.yaml").write_text(HEAD + text, encoding="utf-8")
    code, out, err = run("config.yaml", "--dry-run", "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_a_config_is_a_case(run):
    document = planned(
        run,
        "backend: {device: cpu, no_weights: true, torch_dtype: bfloat16, model: bert-tiny,\n"
        "          task: fill-mask, intra_op_num_threads: 2}\n"
        "scenario: {memory: true, iterations: 4, warmup_runs: 1,\n"
        "           input_shapes: {batch_size: 4, sequence_length: 32}}\n",
    )
    (case,) = document["cases"]
    told = ("model", "runtime", "hardware", "precision", "batch_size", "sequence_length", "mode")
    assert [case[name] for name in told] == [
        *("bert-tiny", "pytorch", "cpu", "bf16", 4, 32, "inference")
    ]
    assert case["options"] == {"threads": 2}
    passed_over = [note.partition(": ")[2] for note in document["notes"] if "is ignored" in note]
    assert [note.removesuffix(" of optimum-benchmark is ignored.") for note in passed_over] == [
        *("backend.task", "scenario.memory", "launcher", "defaults: _base_")
    ]


def test_what_it_leaves_open_is_as_theirs(run):
    """A batch of two, float32, and weights from the hub."""
    document = planned(run, "backend: {device: cpu, model: bert-tiny}\n")
    (case,) = document["cases"]
    assert (case["batch_size"], case["precision"], case["options"]) == (2, "fp32", {})
    code, _, _ = run("config.yaml", "--save-plan", "saved.json")
    saved = json.loads(Path("saved.json").read_text())
    assert (code, saved["run"], saved["name"]) == (0, {"weights": "hub"}, "made_up")
    assert saved["matrix"]["batch_sizes"] == 2


def test_text_that_is_written_and_what_is_trained(run):
    written = planned(
        run,
        "backend: {device: cpu, no_weights: true, model: gpt2-tiny}\n"
        "scenario: {input_shapes: {batch_size: 1, sequence_length: 16},\n"
        "           generate_kwargs: {max_new_tokens: 8, min_new_tokens: 8}}\n",
    )
    (case,) = written["cases"]
    assert (case["prompt_tokens"], case["new_tokens"]) == (16, 8)
    Path("config.yaml").unlink()
    trained = planned(
        run,
        "backend: {device: cpu, no_weights: true, model: bert-tiny, autocast_enabled: true,\n"
        "          autocast_dtype: bfloat16}\n"
        "scenario: {name: training, max_steps: 20, warmup_steps: 5,\n"
        "           training_arguments: {per_device_train_batch_size: 8}}\n",
    )
    (case,) = trained["cases"]
    assert (case["mode"], case["batch_size"], case["precision"]) == ("training", 8, "bf16")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "backend: {name: vllm, device: cuda, model: gpt2-tiny}",
            "line 11, 'matrix.framework': There is no runtime named 'vllm'.",
        ),
        (
            "backend: {device: cpu, model: gpt2-tiny, quantization_config: {bits: 4}}",
            "line 11, 'quantization_config': backend.quantization_config changes the measurement",
        ),
        (
            "backend: {model: vit-tiny}\nscenario:\n input_shapes: {height: 3, width: 6}",
            "images are square here",
        ),
        ("backend: {device: cuda, device_ids: '0,1', model: gpt2-tiny}", "one device is measured"),
        ("backend: {device: cpu}", "'model': it is missing"),
        ("backend: {device: cpu, model: bert-tiny}\nscenario: {name: energy_star}", "energy_star"),
        ("backend: cpu", "an object was expected"),
        ("backend: {device: cpu, model: nobody/knows-it}", "There is no model, file or folder"),
    ],
)
def test_what_has_no_counterpart_is_refused(run, text, sentence):
    Path("config.yaml").write_text(HEAD + text + "\n", encoding="utf-8")
    code, out, err = run("config.yaml", "--dry-run")
    assert (code, out) == (2, "")
    assert sentence in " ".join(err.split())
