"""OpenVINO's devices (CPU, GPU, NPU), read in a disposable process.

`ov.Core()` loads every plugin and driver. In the conductor it would start threads that every worker
inherits, and a broken GPU driver would block it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from accelbench.core.protocols import Absent, Device
from accelbench.hardware.common import (
    DeviceSearch,
    NoDeviceError,
    PackageMissingError,
    Probe,
    probe_in_process,
)
from accelbench.hardware.cpu import CpuDetector

#: It took 0.4 s with only a CPU; with other devices every plugin's driver is loaded.
_TIMEOUT_SECONDS = 60.0
_REMEDY = "Install it with: accelbench setup openvino"
_REINSTALL = "Reinstall it: accelbench setup openvino --reinstall"


#: Virtual unit: OpenVINO chooses one of the others.
_AUTO = "AUTO"


def disable_telemetry() -> None:
    """Keep OpenVINO and nncf from reporting home; importing them would start a thread for it."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]


def main() -> dict[str, Any]:
    """Return the devices that OpenVINO finds."""
    disable_telemetry()
    import openvino

    core = openvino.Core()

    def property_of(device: str, name: str) -> Any:
        try:
            return core.get_property(device, name)
        except RuntimeError:
            return None

    return {
        "version": openvino.__version__,
        "devices": [
            {
                "device": device,
                "name": property_of(device, "FULL_DEVICE_NAME"),
                "capabilities": sorted(property_of(device, "OPTIMIZATION_CAPABILITIES") or ()),
                "memory_bytes": property_of(device, "GPU_DEVICE_TOTAL_MEM_SIZE"),
                "units": property_of(device, "GPU_EXECUTION_UNITS_COUNT"),
                "architecture": property_of(device, "DEVICE_ARCHITECTURE"),
            }
            for device in core.available_devices
        ],
    }


def _is_installed() -> bool:
    return find_spec("openvino") is not None


def _host() -> Device | Absent:
    return CpuDetector().detect()[0]


@dataclass(frozen=True)
class OpenvinoDetector(DeviceSearch):
    """Detector of OpenVINO's devices."""

    hardware = "openvino"
    colour = "#18546c"
    remedy = _REINSTALL

    probe: Probe = probe_in_process
    installed: Callable[[], bool] = _is_installed
    host: Callable[[], Device | Absent] = _host

    def _devices(self) -> list[Device | Absent]:
        if not self.installed():
            raise PackageMissingError("the package openvino is not installed", _REMEDY)
        return self._to_devices(self.probe("accelbench.hardware.openvino", _TIMEOUT_SECONDS))

    def _to_devices(self, info: dict[str, Any]) -> list[Device | Absent]:
        if not info["devices"]:
            raise NoDeviceError("OpenVINO is installed, but finds no device")
        units = [self._device(unit, i, info["version"]) for i, unit in enumerate(info["devices"])]
        return [*units, _automatic_device(units)]

    def _device(self, unit: dict[str, Any], ordinal: int, version: str) -> Device:
        memory, count = unit["memory_bytes"], unit["units"] or 1
        if unit["device"] == "CPU":
            host = self.host()
            if isinstance(host, Device):
                memory, count = host.memory_bytes, host.count
        return Device(
            hardware="openvino",
            name=unit["name"] or unit["device"],
            ordinal=ordinal,
            unit=unit["device"].partition(".")[0].lower(),
            memory_bytes=memory,
            count=count,
            driver=f"OpenVINO {version.split('-')[0]}",
            details={
                "device": unit["device"].lower(),
                "capabilities": unit["capabilities"],
                "architecture": unit["architecture"],
            },
        )


def _automatic_device(units: Sequence[Device]) -> Device:
    """Return AUTO as the last device, which is only used on request.

    Its name lists its choices, so that it differs between machines. Its memory is that of the first
    unit, the CPU.
    """
    first = units[0]
    return Device(
        hardware=first.hardware,
        name=f"{_AUTO} of {', '.join(device.name for device in units)}",
        ordinal=len(units),
        unit=_AUTO.lower(),
        memory_bytes=first.memory_bytes,
        count=len(units),
        driver=first.driver,
        details={
            "device": _AUTO.lower(),
            "capabilities": sorted({c for device in units for c in device.details["capabilities"]}),
            "architecture": None,
        },
    )
