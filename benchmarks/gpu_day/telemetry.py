"""Telemetry: do clocks, temperature, power and utilisation answer while the device works?"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from accelbench.core.protocols import Device
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.detect import detect
from accelbench.hardware.telemetry import telemetry_for
from accelbench.hardware.telemetry.common import Telemetry
from gpu_day.part import NotHereError, Recorder

#: Queued between two readings: about 0.2 s of a data-centre GPU's work.
PRODUCTS = 100


def telemetry(at: Recorder) -> None:
    device = device_of(at.day.hardware)
    meters = telemetry_for(device)
    used = utilisation(device)
    at.figure("source", meters.source)
    idle = readings(meters)
    at.figure("idle", {**idle, "utilisation": used()})
    seen = _under_load(at, meters, used)
    at.figure("under_load", seen)
    meters.close()
    unknown = {name: said["absent"] for name, said in idle.items() if isinstance(said, dict)}
    if {"clocks", "power_watts"} <= set(unknown):
        raise NotHereError(f"no meters of {device.name}: {unknown['clocks']}")
    for name in ("clocks", "power_watts", "temperature_celsius"):
        at.check(f"{name} is read", name not in unknown, True, name not in unknown)
    _rises(at, idle, seen)


def _rises(at: Recorder, idle: dict[str, Any], seen: list[dict[str, Any]]) -> None:
    """Power and utilisation must be those of a device at work."""
    watts = [one["power_watts"] for one in seen if isinstance(one["power_watts"], float)]
    if watts and isinstance(idle["power_watts"], float):
        at.at_least("power under load ÷ idle", max(watts) / max(idle["power_watts"], 1e-9), 1.2)
    busy = [one["utilisation"] for one in seen if isinstance(one["utilisation"], int)]
    if busy:
        at.at_least("utilisation under load, per cent", max(busy), 90)


def device_of(hardware: str) -> Device:
    """The first device of a platform, as accelbench detects it."""
    found = detect(hardware)[0]
    if not isinstance(found, Device):
        raise NotHereError(f"{hardware}: {found.reason}")
    return found


def readings(meters: Telemetry) -> dict[str, Any]:
    """Every meter once; a reason in place of what cannot be read."""
    questions: dict[str, Callable[[], Any]] = {
        "clocks": lambda: meters.clocks(),
        "power_watts": meters.power_watts,
        "temperature_celsius": meters.temperature_celsius,
        "throttled": meters.throttled,
        "device_memory_used": meters.device_memory_used,
    }
    return {name: plain(question()) for name, question in questions.items()}


def plain(said: Any) -> Any:
    """An answer as JSON holds it."""
    if isinstance(said, NotAvailable):
        return {"absent": said.reason}
    if hasattr(said, "compute_mhz"):
        return [said.compute_mhz, said.memory_mhz]
    return float(said) if isinstance(said, int | float) else said


def utilisation(device: Device) -> Callable[[], Any]:
    """Reads NVML's utilisation in per cent, which accelbench's own meters do not have."""
    absent = {"absent": "NVML alone counts it"}
    if device.hardware != "cuda":
        return lambda: absent
    nvml = import_module("pynvml")
    nvml.nvmlInit()
    handle = nvml.nvmlDeviceGetHandleByUUID(str(device.details["uuid"]))
    return lambda: int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)


def _under_load(at: Recorder, meters: Telemetry, used: Callable[[], Any]) -> list[dict[str, Any]]:
    """Readings taken while products of matrices are queued on the device."""
    hardware, size = at.day.hardware, at.day.pick(8192, 128)
    dtype = torch.float16 if hardware == "cuda" else torch.float32
    matrix = torch.randn(size, size, device=hardware, dtype=dtype)
    seen = []
    ends = time.monotonic() + at.day.pick(5.0, 0.3)
    while time.monotonic() < ends:
        for _ in range(PRODUCTS):
            torch.mm(matrix, matrix)
        seen.append({**readings(meters), "utilisation": used()})
        if hardware == "cuda":
            torch.cuda.synchronize()
    return seen
