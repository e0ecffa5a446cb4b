"""What every runtime must do, whatever it runs on.

A runtime joins by a line in `SUBJECTS`: how it is made, where it runs, which
model and precision, and how inputs are changed a little. Every check of
`card_checks.py` and `session_checks.py` is then run for it.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conformance_subject import Subject
from other_inputs import other_bound, other_matrices, other_named, other_numbers

from accelbench.core.protocols import Runtime
from accelbench.core.vocabulary import Mode
from accelbench.engines.browser import BrowserRuntime
from accelbench.engines.browser.assets import engine_folder
from accelbench.engines.jax import JaxRuntime
from accelbench.engines.litert import LitertRuntime
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.engines.openvino import OpenvinoRuntime
from accelbench.engines.python import PythonRuntime
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.qnn import QnnRuntime
from accelbench.engines.scripted import ScriptedRuntime
from accelbench_executorch import ExecutorchRuntime
from accelbench_ncnn import NcnnRuntime


def scripted() -> Runtime:
    operators = {"MatMul": 0.75, "Add": 0.2}
    return ScriptedRuntime(
        {"step_ns": 1_000_000, "build_ns": 5, "load_ns": 7, "operators": operators}
    )


def array_subject(
    runtime: Callable[[], Runtime], hardware: str, model: str, precision: str
) -> Subject:
    """A runtime that opens an artefact."""
    made = runtime().__class__
    return Subject(
        runtime=runtime,
        card=f"{made.__module__}:{made.__qualname__}",
        hardware=hardware,
        model=model,
        precision=precision,
        changed=other_named,
        freed=lambda session: session._session,
    )


def torch_subject(
    hardware: str,
    model: str,
    precision: str,
    new_tokens: int | None = None,
    mode: Mode = Mode.INFERENCE,
    **options: Any,
) -> Subject:
    return Subject(
        runtime=PytorchRuntime,
        card="accelbench.engines.pytorch:PytorchRuntime",
        hardware=hardware,
        model=model,
        precision=precision,
        changed=other_named,
        freed=lambda session: session._module,
        dtypes=lambda evidence: evidence["weight_dtypes"],
        too_large=10**9,
        options=options,
        new_tokens=new_tokens,
        mode=mode,
    )


def written_model(engine: str, writer: str) -> str:
    """A file for who opens files; on a bare machine with a GPU its engine is not there."""
    return "absent" if find_spec(engine) is None else str(import_module(writer).kept())


OWN_ONNX = written_model("onnx", "own_onnx")

OPENVINO = [
    Subject(
        runtime=OpenvinoRuntime,
        card="accelbench.engines.openvino:OpenvinoRuntime",
        hardware="openvino",
        model=model,
        precision=precision,
        changed=other_bound,
        freed=lambda session: session._model,
        ahead=True,
    )
    for model, precision in (
        ("bert-tiny", "fp32"),
        ("resnet-tiny", "fp32"),
        ("resnet-tiny", "int8"),
        (OWN_ONNX, "fp32"),
    )
]
ONNXRUNTIME = [
    array_subject(OnnxruntimeRuntime, "cpu", model, precision)
    for model, precision in (
        ("bert-tiny", "fp32"),
        ("bert-tiny", "int8"),
        ("resnet-tiny", "fp32"),
        ("resnet-tiny", "int8"),
        ("unet-tiny", "fp32"),
        (OWN_ONNX, "fp32"),
        (OWN_ONNX, "int8"),
    )
]


LITERT = [
    Subject(
        runtime=LitertRuntime,
        card="accelbench.engines.litert:LitertRuntime",
        hardware="cpu",
        model=written_model("ai_edge_litert", "tflite_model"),
        precision="fp32",
        changed=lambda inputs: {place: array + 1 for place, array in inputs.items()},
        freed=lambda session: session._interpreter,
        options=options,
    )
    for options in ({}, {"kernels": "reference"})
]


NCNN = [
    Subject(
        runtime=NcnnRuntime,
        card="accelbench_ncnn:NcnnRuntime",
        hardware="cpu",
        model=written_model("ncnn", "ncnn_model"),
        precision=precision,
        changed=other_matrices,
        freed=lambda session: session._net,
        options=options,
    )
    for precision, options in (("fp32", {}), ("bf16", {}), ("fp32", {"kernels": "plain"}))
]
PYTHON = [
    Subject(
        runtime=PythonRuntime,
        card="accelbench.engines.python:PythonRuntime",
        hardware="cpu",
        model=f"{Path(__file__).with_name('product_of_rows.py')}:Product",
        precision="fp32",
        changed=lambda inputs: ((), {name: array + 1 for name, array in inputs[1].items()}),
        freed=lambda session: session._loaded.subject,
        inputs=("x=float32[batch,4]",),
    )
]
EXECUTORCH = [
    Subject(
        runtime=ExecutorchRuntime,
        card="accelbench_executorch:ExecutorchRuntime",
        hardware="cpu",
        model=written_model("executorch", "executorch_programs"),
        precision="fp32",
        changed=lambda inputs: tuple(value + 1 for value in inputs),
        freed=None,  # its method is no object that can be watched
    )
]
#: A runtime of another package, as its author would have it tested.
EXAMPLE = Path(__file__).parents[2] / "examples" / "new-runtime"
sys.path.append(str(EXAMPLE))


def onnxreference() -> Runtime:
    made: Runtime = import_module("accelbench_onnx_reference").OnnxReferenceRuntime()
    return made


PLUGIN = [
    dataclasses.replace(
        array_subject(onnxreference, "cpu", "resnet-tiny", "fp32"),
        freed=None,  # the evaluator keeps itself alive
    )
]
QNN = [
    array_subject(QnnRuntime, "qnn", model, precision)
    for model, precision in (
        ("resnet-tiny", "int8"),
        ("resnet-tiny", "fp16"),
        ("llama-tiny", "int8"),
    )
]
#: In software WebGPU compiles a model's shaders for seconds: one model, and no first visit of it.
BROWSER = [
    dataclasses.replace(
        array_subject(BrowserRuntime, hardware, model, "fp32"),
        freed=None,
        options={"first_visit": False} if hardware == "webgpu" else {},
    )
    for hardware, model in (
        ("wasm", "resnet-tiny"),
        ("wasm", "bert-tiny"),
        ("wasm", "unet-tiny"),
        ("webnn", "resnet-tiny"),
        ("webnn", "bert-tiny"),
        ("webgpu", "resnet-tiny"),
    )
]
JAX = [
    Subject(
        runtime=JaxRuntime,
        card="accelbench.engines.jax:JaxRuntime",
        hardware="cpu",
        model=model,
        precision="fp32",
        changed=other_named,
        freed=lambda session: session._model.module,
        dtypes=lambda evidence: evidence["weight_dtypes"],
        ahead=True,
        mode=mode,
    )
    for model, mode in (
        ("bert-tiny", Mode.INFERENCE),
        ("resnet-tiny", Mode.INFERENCE),
        ("vit-tiny", Mode.TRAINING),
    )
]
SCRIPTED = [
    Subject(
        runtime=scripted,
        card="accelbench.engines.scripted:ScriptedRuntime",
        hardware="cpu",
        model="bert-tiny",
        precision="fp32",
        changed=other_numbers,
    )
]
#: What a step is where it is no single pass: requests, images made pass by pass, retrieval.
PROCEDURES = [
    ("gpt2-tiny", "fp32", 3),
    ("gpt2-tiny", "bf16", 3),
    ("whisper-mini", "fp32", 3),
    ("rag-tiny", "fp32", 3),
    ("rag-tiny", "bf16", 3),
    ("unet-tiny", "fp32", None),
    ("unet-tiny", "bf16", None),
]
MODELS = ("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny")
#: On the CPU each model and each precision, not all of both together: a GPU is asked with those.
PYTORCH_CPU = [
    *(torch_subject("cpu", model, "fp32") for model in MODELS),
    *(torch_subject("cpu", "bert-tiny", one) for one in ("fp16", "bf16", "int8", "amp-fp16")),
    torch_subject("cpu", "vit-tiny", "amp-bf16"),
    *(torch_subject("cpu", *one) for one in PROCEDURES if one[1] == "fp32" or "gpt2" in one[0]),
    torch_subject("cpu", "bert-tiny", "fp32", mode=Mode.TRAINING),
    *(torch_subject("cpu", "vit-tiny", one, mode=Mode.TRAINING) for one in ("bf16", "fp16")),
]
PYTORCH_CUDA = [
    *(
        torch_subject("cuda", model, precision)
        for model in MODELS
        for precision in ("fp32", "fp16", "bf16", "amp-fp16", "amp-bf16")
    ),
    *(torch_subject("cuda", *one) for one in PROCEDURES),
    *(
        torch_subject("cuda", model, precision, mode=Mode.TRAINING)
        for model in ("bert-tiny", "vit-tiny")
        for precision in ("fp32", "bf16", "fp16")
    ),
]
COMPILED = [
    torch_subject("cpu", "bert-tiny", "fp32", compile=True),
    torch_subject("cpu", "vit-tiny", "fp32", mode=Mode.TRAINING, compile=True),
]
COMPILED += OPENVINO[:1]
COMPILED_CUDA = [
    torch_subject("cuda", "bert-tiny", "fp32", compile=True),
    torch_subject("cuda", "vit-tiny", "fp32", mode=Mode.TRAINING, compile=True),
]


#: Run by default, and behind the markers of pyproject.toml; browsers have a file of their own.
SUBJECTS: list[Subject] = [
    *SCRIPTED,
    *PYTORCH_CPU,
    *JAX,
    *ONNXRUNTIME,
    *LITERT,
    *NCNN,
    *PYTHON,
    *EXECUTORCH,
    *OPENVINO,
    *QNN,
    *PLUGIN,
]
CUDA_SUBJECTS: list[Subject] = PYTORCH_CUDA


def parameters(subjects: list[Subject], *marks: Any) -> list[Any]:
    return [
        pytest.param(subject, id=str(subject), marks=[*marks, *in_full(subject), *absent(subject)])
        for subject in subjects
    ]


def cards(subjects: list[Subject]) -> list[Any]:
    """One subject for each device of a runtime."""
    found = {(subject.card, subject.hardware): subject for subject in subjects}
    return [
        pytest.param(
            subject,
            id=str(subject),
            marks=[*in_full(subject), *absent(subject)]
            if subject in (*LITERT, *NCNN, *EXECUTORCH)
            else [],
        )
        for subject in found.values()
    ]


def in_full(subject: Subject) -> list[Any]:
    """Of an engine that `make test-full` alone installs."""
    return [pytest.mark.full] if subject in EXECUTORCH else []


def absent(subject: Subject) -> list[Any]:
    """Of what is not everywhere: diffusers on a machine with a PyTorch of its own, npm."""
    if subject.model.startswith("unet") and find_spec("diffusers") is None:
        return [pytest.mark.skip(reason="diffusers, which unet-tiny is built by, is not installed")]
    for subjects, package in (
        (LITERT, "ai_edge_litert"),
        (NCNN, "ncnn"),
        (EXECUTORCH, "executorch"),
    ):
        if subject in subjects and find_spec(package) is None:
            return [pytest.mark.skip(reason=f"{package} is not installed")]
    if subject not in BROWSER or engine_folder() is not None or shutil.which("npm"):
        return []
    return [pytest.mark.skip(reason="npm is not here to fetch onnxruntime-web and a browser")]
