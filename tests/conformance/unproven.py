"""Engines whose evidence has no types, and precisions that this machine cannot ask an engine for.

Everything else that an engine's card offers has a subject in suite.py, whose evidence proves it.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance_subject import Subject

#: Engines that cannot report in which types they compute, and why; by the name on the card.
WITHOUT_TYPES: Mapping[str, str] = {
    "executorch": "a program does not report what its backend computes in",
    "onnxreference": "the example of a plugin, which offers fp32 alone: outputs prove that",
    "python": "a callable computes in the types that its owner chose",
    "scripted": "a script computes nothing",
}

#: What no subject asks for, and why, by engine and precision.
NOT_ASKED: Mapping[tuple[str, str], str] = {
    ("jax", "fp16"): "on a GPU or TPU: XLA upcasts it on CPUs, and the session refuses",
    ("jax", "bf16"): "on a GPU or TPU: XLA upcasts it on CPUs, and the session refuses",
    ("onnxruntime", "fp16"): "on a GPU: test_onnxruntime_binding.py has its evidence",
    ("openvino", "bf16"): "on a CPU with bf16: test_openvino_session.py",
    ("openvino", "fp16"): "on a CPU or GPU with fp16: test_openvino_session.py",
    ("browser", "fp16"): "on WebGPU with shader-f16; elsewhere it is computed in fp32 and refused",
    ("browser", "int8"): "docs/browser.md has its grid; the engine is ONNX Runtime's",
    ("litert", "int8"): "nothing here writes a quantised model",
    ("ncnn", "fp16"): "on Arm: test_ncnn.py",
    ("ncnn", "int8"): "test_ncnn.py has a quantised network",
}


#: Platforms of engines that report types elsewhere: WebNN gives the whole graph to its provider.
PLATFORMS_WITHOUT_TYPES = frozenset({"webnn"})


def reports_no_types(subject: Subject) -> bool:
    """Return whether a subject's engine is one that cannot report types."""
    name = subject.runtime().info.name
    return name in WITHOUT_TYPES or subject.hardware in PLATFORMS_WITHOUT_TYPES
