"""ONNX Runtime's execution providers: which serve a platform, and where each one's work is done.

Providers come with a build of the package: onnxruntime for the CPU (and CoreML on macOS),
onnxruntime-gpu for CUDA and TensorRT, onnxruntime-migraphx for AMD, onnxruntime-directml for
Windows. The code is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Provider:
    """One way of executing a graph on a platform."""

    name: str  # as --provider says it
    engine: str  # as ONNX Runtime says it
    hardware: str
    package: str  # that brings it
    takes_ordinal: bool = True
    precisions: tuple[str, ...] = ("fp32", "fp16", "int8")
    why_not: Mapping[str, str] | None = None  # what a precision would silently become
    binds: str = ""  # its memory, as ONNX Runtime's OrtValue calls it; "": fed from the host


#: The first of a platform is its default.
PROVIDERS: tuple[Provider, ...] = (
    Provider(
        "cpu",
        CPU,
        "cpu",
        "onnxruntime",
        takes_ordinal=False,
        precisions=("fp32", "int8"),
        # Seen in optimised graphs: casts around every product, all of them computed in float.
        why_not={
            "fp16": "ONNX Runtime's CPU provider would compute fp16 in fp32",
            "bf16": "ONNX Runtime's CPU provider has no bf16 kernels",
        },
    ),
    Provider("cuda", "CUDAExecutionProvider", "cuda", "onnxruntime-gpu", binds="cuda"),
    Provider("tensorrt", "TensorrtExecutionProvider", "cuda", "onnxruntime-gpu", binds="cuda"),
    # Python's name of AMD's memory changed between versions of ONNX Runtime, and none could be
    # tried: a step is fed from the host, copies and all, and its evidence says so.
    Provider("migraphx", "MIGraphXExecutionProvider", "rocm", "onnxruntime-migraphx"),
    Provider("rocm", "ROCMExecutionProvider", "rocm", "onnxruntime-rocm"),
    Provider(
        "coreml",
        "CoreMLExecutionProvider",
        "mps",
        "onnxruntime",
        takes_ordinal=False,
        precisions=("fp32",),
        why_not={"fp16": "CoreML decides itself which operators it computes in fp16"},
    ),
    Provider("directml", "DmlExecutionProvider", "cuda", "onnxruntime-directml", binds="dml"),
)

HARDWARE = tuple(dict.fromkeys(one.hardware for one in PROVIDERS))


def serving(hardware: str, asked: str | None = None) -> Provider | None:
    """The provider asked for on a platform, or its default."""
    found = [one for one in PROVIDERS if one.hardware == hardware]
    if asked is not None:
        found = [one for one in found if one.name == asked]
    return found[0] if found else None


def names_on(hardware: str) -> list[str]:
    """What --provider may say on a platform."""
    return [one.name for one in PROVIDERS if one.hardware == hardware]


def with_options(provider: Provider, ordinal: int) -> Any:
    """What a session is given."""
    if not provider.takes_ordinal:
        return provider.engine
    return (provider.engine, {"device_id": str(ordinal)})


def place_of(engine: str, device: str) -> str:
    """Where a provider's work is done: the device itself, or the CPU, or by its own name."""
    if engine == CPU:
        return "cpu:0"
    hardware = device.partition(":")[0]
    if any(one.engine == engine and one.hardware == hardware for one in PROVIDERS):
        return device
    return engine
