"""OpenVINO's units: names, precisions and properties.

Nothing is left to the engine's defaults that would change what is computed: without a precision
hint its CPU computes fp32 models in bf16 wherever it can, and asked for f16 it takes bf16 too, both
without a word.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.protocols import Device

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
