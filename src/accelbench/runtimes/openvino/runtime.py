"""OpenVINO's card and its units: names, precisions and properties; imports no engine.

Nothing is left to the engine's defaults that would change what is computed: without a precision
hint its CPU computes fp32 models in bf16 wherever it can, and asked for f16 it takes bf16 too, both
without a word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.case import Case
from accelbench.core.model import FileFormat
from accelbench.core.options import RuntimeOption
from accelbench.core.protocols import (
    Absent,
    ArtifactFormat,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.runtimes.shared.engine import ForwardEngine
from accelbench.runtimes.shared.refusals import missing, not_listed, refuse

AUTO, CPU, GPU, NPU = "AUTO", "CPU", "GPU", "NPU"
LATENCY, THROUGHPUT = "latency", "throughput"
HINTS = (LATENCY, THROUGHPUT)


@dataclass(frozen=True)
class Precision:
    """A precision in OpenVINO's words."""

    capability: str  # as OPTIMIZATION_CAPABILITIES says it
    hint: str  # as INFERENCE_PRECISION_HINT says it
    format: str  # of the artefact


PRECISIONS: Mapping[str, Precision] = {
    "fp32": Precision("FP32", "f32", "ir"),
    "bf16": Precision("BF16", "bf16", "ir"),
    "fp16": Precision("FP16", "f16", "ir"),
    # What is not quantised stays whole: it would be bf16 otherwise.
    "int8": Precision("INT8", "f32", "ir-int8"),
}


def engine_name(device: Device) -> str:
    """Return a device's name in the engine: "CPU", "GPU.1", "AUTO"."""
    return str(device.details.get("device") or device.unit or CPU).upper()


def kind(name: str) -> str:
    """Return the kind of a unit: "GPU" of "GPU.1"."""
    return name.partition(".")[0]


def not_computed(precision: str, name: str, capabilities: Collection[str]) -> str | None:
    """Return why a unit would compute in another precision than asked; None if it would not."""
    if not capabilities or PRECISIONS[precision].capability in capabilities:
        return None
    unit = kind(name)
    if unit == CPU and precision == "fp16":
        return "OpenVINO's CPU would compute fp16 in bf16 or fp32"
    if unit == CPU and precision == "bf16":
        return "this CPU has no bf16 instructions: OpenVINO would compute it in fp32"
    if unit == AUTO:
        return f"OpenVINO finds no device here that computes {precision}"
    return f"OpenVINO does not compute {precision} on this {unit}"


def computed(capabilities: Collection[str]) -> list[str]:
    """Return the precisions of a unit, in our words."""
    return [name for name, precision in PRECISIONS.items() if precision.capability in capabilities]


def properties(
    name: str, precision: str, hint: str, threads: int | None, capabilities: Collection[str] = ()
) -> dict[str, Any]:
    """Return what a model is compiled with on a unit."""
    wanted = PRECISIONS[precision].hint
    if precision == "int8" and capabilities and "FP32" not in capabilities:
        wanted = "f16"  # NPUs have no fp32 for what is not quantised
    settings: dict[str, Any] = {
        "PERFORMANCE_HINT": hint.upper(),
        "INFERENCE_PRECISION_HINT": wanted,
    }
    unit = kind(name)
    if unit in (CPU, GPU) and hint == LATENCY:
        settings["NUM_STREAMS"] = 1
    if threads and unit in (CPU, AUTO):
        settings["INFERENCE_NUM_THREADS"] = threads
    if unit == AUTO:
        # It would begin on the CPU while another device's compiler works, and go back there
        # when that device fails: figures of two devices in one series.
        settings |= {"ENABLE_STARTUP_FALLBACK": False, "ENABLE_RUNTIME_FALLBACK": False}
    return settings


def executing(devices: str | Sequence[str]) -> list[str]:
    """Return EXECUTION_DEVICES; AUTO puts those in brackets that only stand in for another.

    The NPU's plugin gives one string in place of a list.
    """
    names = [devices] if isinstance(devices, str) else devices
    return [name.strip("()") for name in names if name.strip("()")]


def places(device: Device, devices: str | Sequence[str]) -> tuple[str, ...]:
    """Return where the work was done: the device itself, or others by the engine's names.

    AUTO may choose: it is itself wherever that was, and the evidence says where.
    """
    target, names = engine_name(device), executing(devices)
    if target == AUTO:
        return (str(device),) if names else ()
    mine = {target, f"{target}.0"} if "." not in target else {target}
    if target.endswith(".0") or kind(target) == NPU:
        mine.add(kind(target))  # an NPU says its model's number only where there are several
    if target == NPU:
        mine |= {name for name in names if kind(name) == NPU}
    units = [str(device) if name in mine else f"{device.hardware}:{name.lower()}" for name in names]
    return tuple(dict.fromkeys(units))


_OWN = (
    RuntimeOption("hint", "what compiling is for", choices=HINTS, default=LATENCY),
    RuntimeOption(
        "model_cache", "keep compiled models for the next run", kind="truth", default=False
    ),
)


class OpenvinoRuntime(ForwardEngine):
    """Runs OpenVINO IR, made of graphs exported from PyTorch."""

    info = RuntimeInfo(
        name="openvino",
        hardware=("openvino",),
        default_for=("openvino",),
        package="openvino",
        extra="openvino",
        precisions=tuple(PRECISIONS),
        # Seen to be good after an import alone; after ov.Core() a child would hang.
        isolation="fork",
        consumes="onnx",
        files=(FileFormat.ONNX, FileFormat.OPENVINO),
        domains=("org.openvinotoolkit", "org.pytorch.aten", "mmdeploy"),
        preload=("accelbench.runtimes.openvino.session",),
        compiles=True,
        options=_OWN,
        generates=False,
        title="OpenVINO",
        engine_packages=("openvino",),
        packages=("nncf", "onnx", "onnxscript"),
        dashes=(9, 3, 2, 3),
        place=2,
    )

    needs = ("openvino", "onnx")
    remark = "its models are always compiled"

    def probe(self) -> list[Device | Absent]:
        """The devices of the installed plugins; runs in a throw-away process."""
        from accelbench.hardware.openvino import OpenvinoDetector, main

        return OpenvinoDetector(probe=lambda *_: main()).detect()

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        if case.precision == "int8":
            yield missing(self.info.name, (*self.needs, "nncf"), self.info.extra)
        yield from super().refusals(case, device)
        hint = case.options.get("hint", LATENCY)
        if hint not in HINTS:
            yield refuse("option/hint", hint=hint, known=" and ".join(HINTS))
        yield not_listed(self.info.name, case, tuple(PRECISIONS))
        capabilities = device.details.get("capabilities") or ()
        why = not_computed(case.precision, engine_name(device), capabilities)
        if why is not None:
            yield refuse("precision/unit", why=why, known=", ".join(computed(capabilities)))

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat("ir" if case.as_stored else PRECISIONS[case.precision].format)

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.openvino.session import OpenvinoSession

        return OpenvinoSession(job, self.clock())
