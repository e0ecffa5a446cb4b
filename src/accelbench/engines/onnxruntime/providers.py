"""ONNX Runtime's execution providers: which serve a platform, and where each one works.

Providers come with a build of the package: onnxruntime for the CPU (and CoreML on macOS),
onnxruntime-gpu for CUDA and TensorRT, onnxruntime-migraphx for AMD, onnxruntime-directml for
Windows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"


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
    options: Mapping[str, str] = field(default_factory=dict)  # beside the ordinal
    of_precision: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # and these
    behind: str = ""  # the engine of the same card that takes what it leaves over


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
    Provider(
        "cuda",
        CUDA,
        "cuda",
        "onnxruntime-gpu",
        binds="cuda",
        # Its own default is TF32, ten bits of a number's 23 in products of fp32.
        options={"use_tf32": "0"},
    ),
    Provider(
        "tensorrt",
        "TensorrtExecutionProvider",
        "cuda",
        "onnxruntime-gpu",
        binds="cuda",
        # Unasked it computes everything in fp32. TF32 is turned off by a variable (runtime.py): it
        # has no option of its own for that. The words are those that its parser takes.
        of_precision={"fp16": {"trt_fp16_enable": "True"}, "int8": {"trt_int8_enable": "True"}},
        behind=CUDA,
    ),
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
        # The platform is the GPU: the Neural Engine, which it would choose too, has fp16 alone. The
        # older format, its default, does not keep the types of what is computed.
        options={"ModelFormat": "MLProgram", "MLComputeUnits": "CPUAndGPU"},
    ),
    # DirectML numbers adapters as Windows does, which is no order of CUDA's or HIP's.
    Provider("directml", "DmlExecutionProvider", "directml", "onnxruntime-directml", binds="dml"),
)


HARDWARE = tuple(dict.fromkeys(provider.hardware for provider in PROVIDERS))


def serving(hardware: str, name: str | None = None) -> Provider | None:
    """Return the provider asked for on a platform, or its default."""
    candidates = [provider for provider in PROVIDERS if provider.hardware == hardware]
    if name is not None:
        candidates = [provider for provider in candidates if provider.name == name]
    return candidates[0] if candidates else None


def names_on(hardware: str) -> list[str]:
    """Return what --provider may say on a platform."""
    return [provider.name for provider in PROVIDERS if provider.hardware == hardware]


def chain(provider: Provider, ordinal: int, precision: str, has: Collection[str]) -> list[Any]:
    """Return what a session is given: the provider, and who takes what it leaves over.

    `ordinal` is its device's, `has` are the engines of the installed build.
    """
    behind = [link for link in PROVIDERS if link.engine == provider.behind and link.engine in has]
    return [_with_options(link, ordinal, precision) for link in (provider, *behind)]


def _with_options(provider: Provider, ordinal: int, precision: str) -> Any:
    options = {**provider.options, **provider.of_precision.get(precision, {})}
    if provider.takes_ordinal:
        options = {"device_id": str(ordinal), **options}
    return (provider.engine, options) if options else provider.engine


def place_of(engine: str, device: str) -> str:
    """Return where a provider's work is done: the device itself, the CPU, or its own name."""
    if engine == CPU:
        return "cpu:0"
    hardware = device.partition(":")[0]
    if any(provider.engine == engine and provider.hardware == hardware for provider in PROVIDERS):
        return device
    return engine
