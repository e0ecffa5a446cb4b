"""NVIDIA GPUs, by NVML in a disposable process, or by nvidia-smi without its Python package.

NVML counts devices in PCI order whatever CUDA_VISIBLE_DEVICES contains; the detector determines
which of them a worker sees, and under what number.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.protocols import Device
from accelbench.hardware.common import (
    Command,
    DeviceSearch,
    DriverMissingError,
    Files,
    HardwareError,
    NoDeviceError,
    PackageMissingError,
    Probe,
    SystemFiles,
    filter_visible,
    probe_in_process,
    run_command,
)

#: A machine with eight cards without persistence mode takes seconds to initialise.
_TIMEOUT_SECONDS = 30.0

_DRIVER_REMEDY = "Needs an NVIDIA GPU and its driver; then: accelbench setup cuda"
_PACKAGE_REMEDY = "Install the reader of NVIDIA's library with: accelbench setup cuda"

#: Files that show a driver: on Linux, in containers, in WSL, on Jetson.
_SIGNS = ("/proc/driver/nvidia/version", "/sys/module/nvidia/initstate")
_SIGN_FOLDERS = ("/proc/driver/nvidia", "/usr/lib/wsl/lib", "/proc/device-tree/gpu")
_DEVICE_FILES = {"nvidiactl", "nvidia0", "dxg"}

_SMI_QUERY = ("name", "uuid", "memory.total", "power.limit", "compute_cap", "pci.bus_id")


@dataclass(frozen=True)
class CudaDetector(DeviceSearch):
    """Detector of NVIDIA GPUs that does not load CUDA."""

    hardware = "cuda"
    colour = "#5ca400"
    remedy = _DRIVER_REMEDY

    files: Files = field(default_factory=SystemFiles)
    probe: Probe = probe_in_process
    command: Command = run_command
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    system: str = sys.platform

    def _devices(self) -> list[Device]:
        self._require_driver()
        return devices(self._read_answer(), self.environment)

    def _require_driver(self) -> None:
        if self.system == "darwin":
            raise DriverMissingError("NVIDIA has no driver for macOS", "Use Linux or Windows.")
        if self.system != "linux":
            return
        signs = (
            any(self.files.text(path) is not None for path in _SIGNS)
            or any(self.files.names(path) for path in _SIGN_FOLDERS)
            or not _DEVICE_FILES.isdisjoint(self.files.names("/dev"))
        )
        if not signs:
            raise DriverMissingError("no NVIDIA driver is loaded")

    def _read_answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.probe("accelbench.hardware.cuda", _TIMEOUT_SECONDS)
        if answer.get("missing") == "package":
            try:
                return parse_smi(self._smi())
            except HardwareError as error:
                raise PackageMissingError(
                    "an NVIDIA driver is here, but the package nvidia-ml-py is not installed",
                    _PACKAGE_REMEDY,
                ) from error
        if answer.get("missing") == "driver":
            raise DriverMissingError(f"NVIDIA's management library says: {answer['reason']}")
        return answer

    def _smi(self) -> str:
        query = ",".join(("driver_version", *_SMI_QUERY))
        return self.command(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"],
            _TIMEOUT_SECONDS,
        )


def parse_smi(text: str) -> dict[str, Any]:
    """Return nvidia-smi's table in the form of NVML's answers."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.strip().splitlines()]
    cards = []
    for _, name, uuid, memory, limit, capability, pci in rows:
        cards.append(
            {
                "name": name,
                "uuid": uuid,
                "memory_bytes": int(memory) * 2**20 if memory.isdigit() else None,
                "power_limit_watts": float(limit) if limit[:1].isdigit() else None,
                "compute_capability": capability,
                "pci": pci,
                "source": "nvidia-smi; processes and MIG instances are not read",
            }
        )
    return {"driver": rows[0][0] if rows else "", "cuda": None, "cards": cards}


def devices(answer: Mapping[str, Any], environment: Mapping[str, str]) -> list[Device]:
    """Return the cards as CUDA numbers them in a worker of this environment."""
    cards = list(answer["cards"])
    if not cards:
        raise NoDeviceError("an NVIDIA driver is loaded, but it has no GPU")
    places = _allocatable(cards)
    if not places:
        raise NoDeviceError(
            "MIG is on, but no MIG instance exists",
            "Make one with: nvidia-smi mig -cgi 0 -C, or switch MIG off.",
        )
    chosen = filter_visible(places, environment.get("CUDA_VISIBLE_DEVICES"))
    if not chosen:
        raise NoDeviceError(
            f"CUDA_VISIBLE_DEVICES={environment['CUDA_VISIBLE_DEVICES']} hides every GPU",
            "Unset CUDA_VISIBLE_DEVICES.",
        )
    order_matters = len({place["name"] for place in chosen}) > 1
    by_bus = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    note = (
        "numbered in PCI order; CUDA numbers the fastest first unless CUDA_DEVICE_ORDER=PCI_BUS_ID"
        if order_matters and not by_bus
        else None
    )
    return [_device(place, i, answer, note) for i, place in enumerate(chosen)]


def _allocatable(cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return where work can run: whole cards, or each MIG instance of a divided card."""
    places: list[dict[str, Any]] = []
    for card in cards:
        if not card.get("mig"):
            places.append(card)
        for part in card.get("instances", ()):
            shared = {k: v for k, v in card.items() if k not in ("instances", "cores", "mig")}
            places.append({**shared, **part, "mig_instance_of": card["uuid"]})
    return places


def _device(
    place: Mapping[str, Any], ordinal: int, answer: Mapping[str, Any], note: str | None
) -> Device:
    known = ("name", "memory_bytes", "power_limit_watts", "instances")
    details = {k: v for k, v in place.items() if k not in known and v is not None}
    details["cuda"] = answer["cuda"]
    if note:
        details["ordinal_note"] = note
    name = str(place["name"])
    return Device(
        hardware="cuda",
        name=name if name.startswith("NVIDIA") else f"NVIDIA {name}",
        ordinal=ordinal,
        vendor="NVIDIA",
        memory_bytes=place["memory_bytes"],
        power_limit_watts=place["power_limit_watts"],
        driver=str(answer["driver"]),
        details=details,
    )


def main() -> dict[str, Any]:
    """Return every card as plain values, or the reason why NVML gives none."""
    try:
        import pynvml
    except ImportError:
        return {"missing": "package"}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"missing": "driver", "reason": str(error)}
    try:
        return read_cards(pynvml)
    finally:
        pynvml.nvmlShutdown()


def read_cards(nvml: Any) -> dict[str, Any]:
    """Return all cards of an initialised NVML module."""
    count = nvml.nvmlDeviceGetCount()
    version = _query(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    return {
        "driver": _text(nvml.nvmlSystemGetDriverVersion()),
        "cuda": None if version is None else f"{version // 1000}.{version % 1000 // 10}",
        "cards": [_card(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(count)],
    }


def _query(nvml: Any, question: Callable[..., Any], *args: Any) -> Any:
    try:
        return question(*args)
    except nvml.NVMLError:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _card(nvml: Any, handle: Any) -> dict[str, Any]:
    capability = _query(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    limit = _query(nvml, nvml.nvmlDeviceGetPowerManagementLimit, handle)
    mig = _query(nvml, nvml.nvmlDeviceGetMigMode, handle)
    pci = _query(nvml, nvml.nvmlDeviceGetPciInfo, handle)
    return {
        **_identity(nvml, handle),
        "power_limit_watts": None if limit is None else limit / 1000,
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "cores": _query(nvml, nvml.nvmlDeviceGetNumGpuCores, handle),
        "max_sm_clock_mhz": _query(
            nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM
        ),
        "pci": None if pci is None else _text(pci.busId),
        "processes": _processes(nvml, handle),
        "mig": bool(mig and mig[0]),
        "instances": _instances(nvml, handle) if mig and mig[0] else [],
    }


def _identity(nvml: Any, handle: Any) -> dict[str, Any]:
    memory = _query(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    return {
        "name": _text(nvml.nvmlDeviceGetName(handle)),
        "uuid": _text(nvml.nvmlDeviceGetUUID(handle)),
        "memory_bytes": None if memory is None else int(memory.total),
    }


def _processes(nvml: Any, handle: Any) -> list[int] | None:
    running = _query(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return None if running is None else [process.pid for process in running]


def _instances(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    instances = []
    for index in range(_query(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        part = _query(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if part is not None:
            instances.append(_identity(nvml, part))
    return instances
