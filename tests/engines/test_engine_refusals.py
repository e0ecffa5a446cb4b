"""What engines refuse before they are opened: one table of cases and codes for all cards."""

import dataclasses
import re
from pathlib import Path

import pytest

import accelbench
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Mode
from accelbench.engines.jax import JaxRuntime
from accelbench.engines.litert import LitertRuntime
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.engines.openvino import OpenvinoRuntime
from accelbench.engines.python import PythonRuntime
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.qnn import QnnRuntime
from accelbench.engines.shared import refusals
from accelbench.models.find import find
from accelbench.models.inputs import settle

ENGINES = {
    "pytorch": PytorchRuntime(), "jax": JaxRuntime(), "onnxruntime": OnnxruntimeRuntime(),
    "openvino": OpenvinoRuntime(), "qnn": QnnRuntime(), "litert": LitertRuntime(),
    "python": PythonRuntime(),
}  # fmt: skip
TRAIN, WRITE = "train", "write"

#: Engine and hardware, model, precision, what is done, options; and the code, "" if it is taken.
ASKED = [
    ("jax", "bert-tiny", "int8", "", {}, "precision"),
    ("jax", "bert-tiny", "amp-bf16", "", {}, "precision"),
    ("jax", "bert-tiny", "fp32", "", {"no-such-option": 1}, "option"),
    ("jax", "bert-tiny", "fp32", "", {"compile": False}, "option"),
    ("jax", "bert-tiny", "fp32", "", {"optimizer": "adamw"}, "option"),  # of training alone
    ("jax", "gpt2-tiny", "fp32", WRITE, {}, "generation"),
    ("jax", "bert-tiny", "fp32", WRITE, {}, "no_generation"),
    ("jax", "bert-tiny", "fp32", "", {}, ""),
    ("jax", "bert-tiny", "fp32", "", {"compile": True, "threads": 1}, ""),
    ("jax", "vit-tiny", "bf16", "", {}, ""),
    ("jax", "vit-tiny", "fp32", TRAIN, {}, ""),
    ("jax", "vit-tiny", "fp32", TRAIN, {"optimizer": "sgd"}, ""),
    ("jax", "vit-tiny", "fp32", TRAIN, {"optimizer": "lion"}, "option"),
    ("jax", "detr-tiny", "fp32", TRAIN, {}, "loss"),
    ("jax", "wav2vec2-tiny", "fp32", TRAIN, {}, "loss"),
    ("jax", "vit-tiny", "bf16", TRAIN, {}, "autocast"),
    ("jax", "vit-tiny", "bf16", TRAIN, {"pure": True}, ""),
    ("jax", "vit-tiny", "fp32", TRAIN, {"pure": True}, "option"),
    ("jax", "vit-tiny", "fp32", TRAIN, {"gradient_checkpointing": True}, "gradient_checkpointing"),
    ("jax", "untrained", "fp32", TRAIN, {}, "no_training"),
    ("pytorch", "bert-tiny", "fp32", TRAIN, {"compile": True}, ""),
    ("pytorch", "bert-tiny", "fp16", TRAIN, {}, ""),
    ("pytorch", "bert-tiny", "bf16", TRAIN, {"pure": True}, ""),
    ("pytorch", "bert-tiny", "fp32", TRAIN, {"optimizer": "sgd", "gradient_checkpointing": 1}, ""),
    ("pytorch", "untrained", "fp32", TRAIN, {}, "no_training"),
    ("pytorch", "bert-tiny", "fp32", TRAIN, {"optimizer": "lion"}, "option"),
    ("pytorch", "bert-tiny", "fp32", TRAIN, {"pure": True}, "option"),
    ("pytorch", "bert-tiny", "amp-bf16", TRAIN, {"pure": True}, "option"),
    ("pytorch", "bert-tiny", "bf16", "", {"optimizer": "sgd"}, "option"),
    ("pytorch", "bert-tiny", "bf16", "", {"gradient_checkpointing": True}, "option"),
    ("pytorch", "bert-tiny", "bf16", "", {"pure": True}, "option"),
    ("pytorch", "bert-tiny", "int8", TRAIN, {}, "precision"),
    ("pytorch", "bert-tiny", "int8", "", {"compile": True}, "option"),
    ("pytorch", "gpt2-tiny", "fp32", WRITE, {"compile": True}, "generation_compiled"),
    ("pytorch", "rag-tiny", "fp32", WRITE, {"compile": True}, "generation_compiled"),
    ("pytorch", "gpt2-tiny", "fp32", "", {"compile": True}, ""),
    ("pytorch", "rag-tiny", "fp32", "", {"compile": True}, ""),
    ("pytorch", "bert-tiny", "fp32", WRITE, {}, "no_generation"),
    ("pytorch", "bert-tiny", "fp32", "", {"compile_mode": "max-autotune"}, "option"),
    ("pytorch", "bert-tiny", "fp32", "", {"compile": True, "compile_mode": "max-autotune"}, ""),
    ("pytorch", "bert-tiny", "fp32", "", {"compile": 1, "compile_mode": "reduce-overhead"},
     "option"),
    ("pytorch/cuda", "bert-tiny", "fp32", "", {"compile": 1, "compile_mode": "reduce-overhead"},
     ""),
    ("onnxruntime", "bert-tiny", "fp32", "", {}, ""),
    ("onnxruntime", "bert-tiny", "int8", "", {}, ""),
    ("onnxruntime", "bert-tiny", "fp16", "", {}, "precision"),
    ("onnxruntime", "bert-tiny", "bf16", "", {}, "precision"),
    ("onnxruntime", "bert-tiny", "amp-bf16", "", {}, "precision"),
    ("onnxruntime/cuda", "bert-tiny", "fp16", "", {}, ""),
    ("onnxruntime/cuda", "bert-tiny", "fp32", "", {"provider": "tensorrt"}, ""),
    ("onnxruntime/mps", "bert-tiny", "fp16", "", {}, "precision"),
    ("onnxruntime", "bert-tiny", "fp32", TRAIN, {}, "mode"),
    ("onnxruntime", "gpt2-tiny", "fp32", WRITE, {}, "generation"),
    ("onnxruntime", "bert-tiny", "fp32", "", {"compile": True}, "option"),
    ("onnxruntime", "bert-tiny", "fp32", "", {"provider": "cuda"}, "provider"),
    ("onnxruntime", "bert-tiny", "fp32", "", {"provider": "nonsense"}, "provider"),
    ("onnxruntime/cuda", "bert-tiny", "fp32", "", {"provider": "cpu"}, "provider"),
    ("openvino/openvino", "bert-tiny", "fp32", TRAIN, {}, "mode"),
    ("openvino/openvino", "bert-tiny", "amp-bf16", "", {}, "precision"),
    ("openvino/openvino", "bert-tiny", "fp32", "", {"compile": True}, "option"),
    ("openvino/openvino", "bert-tiny", "fp32", "", {"hint": "fast"}, "option"),
    ("openvino/openvino", "gpt2-tiny", "fp32", WRITE, {}, "generation"),
    ("openvino/openvino", "bert-tiny", "fp32", "", {"threads": 2, "model_cache": True}, ""),
    ("openvino/openvino", "bert-tiny", "fp32", "", {"hint": "throughput"}, ""),
    ("qnn/qnn", "bert-tiny", "int8", "", {}, ""),
    ("qnn/qnn", "bert-tiny", "fp16", "", {}, ""),
    ("qnn/qnn", "bert-tiny", "fp32", "", {}, "precision"),
    ("qnn/qnn", "bert-tiny", "bf16", "", {}, "precision"),
    ("qnn/qnn", "bert-tiny", "amp-fp16", "", {}, "precision"),
    ("qnn/qnn", "bert-tiny", "int8", TRAIN, {}, "mode"),
    ("qnn/qnn", "gpt2-tiny", "int8", WRITE, {}, "generation"),
    ("qnn/qnn", "bert-tiny", "int8", "", {"compile": True}, "option"),
    ("litert", "bert-tiny", "fp32", "", {}, "format"),
    ("python", "bert-tiny", "fp32", "", {}, "not_a_callable"),
]  # fmt: skip


def case_of(target, model, precision, what, options):
    engine, _, hardware = target.partition("/")
    spec = find("bert-tiny" if model == "untrained" else model)
    if model == "untrained":
        spec = dataclasses.replace(spec, training=None)
    shapes = Shapes(1, prompt_tokens=4, new_tokens=2) if what == WRITE else settle(spec, Shapes(1))
    mode = Mode.TRAINING if what == TRAIN else Mode.INFERENCE
    target_ = Target(engine, hardware or "cpu")
    return Case(spec, target_, precision, shapes, mode, options=options)


@pytest.mark.parametrize(
    ("target", "model", "precision", "what", "options", "code"),
    ASKED,
    ids=["-".join(map(str, (*one[:4], *one[4].values()))) for one in ASKED],
)
def test_what_an_engine_cannot_do_is_refused_with_a_code(
    target, model, precision, what, options, code, monkeypatch
):
    monkeypatch.setattr(refusals, "find_spec", lambda name: name)
    case = case_of(target, model, precision, what, options)
    engine = ENGINES[case.target.runtime]
    answer = engine.supports(case, Device(case.target.hardware, "a device"))
    assert (answer.ok, answer.reason) == (not code, code)
    assert bool(answer.message) == bool(answer.advice) == bool(code)
    assert "{" not in answer.message + answer.advice


@pytest.mark.parametrize(
    ("target", "package", "extra"),
    [
        ("jax", "jax", "jax"),
        ("jax", "torch", "jax"),
        ("onnxruntime", "onnxruntime", "onnx"),
        ("onnxruntime", "onnx", "onnx"),
        ("qnn/qnn", "onnxruntime_qnn", "qnn"),
        ("litert", "ai_edge_litert", "litert"),
    ],
)
def test_a_missing_package_comes_first(target, package, extra, monkeypatch):
    monkeypatch.setattr(refusals, "find_spec", lambda name: None if name == package else name)
    case = case_of(target, "bert-tiny", "fp7", TRAIN, {})
    answer = ENGINES[case.target.runtime].supports(case, Device(case.target.hardware, "a device"))
    assert answer.reason == "package_missing"
    assert package.replace("_", "-") in answer.message
    assert f"accelbench setup {extra}" in answer.advice


def test_each_refusal_is_in_the_catalogue_and_each_text_is_used():
    sources = Path(str(accelbench.__file__)).parent.joinpath("engines").rglob("*.py")
    used = {
        key for path in sources for key in re.findall(r'refuse\(\s*"([^"]+)"', path.read_text())
    }
    assert used == set(refusals._TEXTS)
