"""Qualcomm's NPU, through the package onnxruntime-qnn, which emulates it on x86-64.

Only the package and the platform are examined: a session's evidence shows whether a graph runs on
the NPU.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec

from accelbench.core.plugins import version_of
from accelbench.core.protocols import Device
from accelbench.hardware.common import (
    DeviceSearch,
    Files,
    NoDeviceError,
    PackageMissingError,
    SystemFiles,
)

_REMEDY = (
    "Needs a Snapdragon machine with Qualcomm's NPU driver; then, and for its emulation on"
    " x86-64 Linux too: accelbench setup qnn"
)

#: Device files of Hexagon's compute DSP, newest driver first.
_DEVICE_FILES = ("fastrpc-cdsp", "fastrpc-cdsp-secure", "adsprpc-smd", "adsprpc-smd-secure")


def _package() -> str | None:
    spec = find_spec("onnxruntime_qnn")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return places[0] if places else None


def _version() -> str:
    version = version_of("onnxruntime-qnn")
    return f"onnxruntime-qnn {version}" if version else ""


@dataclass(frozen=True)
class QnnDetector(DeviceSearch):
    """Detector of Hexagon NPUs, or their emulation."""

    hardware = "qnn"
    colour = "#3c3ca8"
    remedy = _REMEDY

    files: Files = field(default_factory=SystemFiles)
    package: Callable[[], str | None] = _package
    system: str = sys.platform
    machine: str = field(default_factory=platform.machine)
    processor: str | None = None

    def _only_device(self) -> Device:
        arm = self.machine.lower() in ("aarch64", "arm64")
        door = self._device_file() if arm else None
        package = self.package()
        if door is not None:
            return Device(
                hardware="qnn",
                name=self._chip(),
                vendor="Qualcomm",
                driver=_version() if package else "",
                details={
                    "door": door,
                    "package": _version() if package else "missing: accelbench setup qnn",
                },
            )
        if package is None:
            seen = "and no Qualcomm NPU is seen" if arm else "and this is no Snapdragon machine"
            raise PackageMissingError(f"the package onnxruntime-qnn is not installed, {seen}")
        if arm or "libQnnHtp.so" not in self.files.names(package):
            raise NoDeviceError(
                "onnxruntime-qnn is installed, but no Qualcomm NPU is seen and this build of the"
                " package carries no emulation"
            )
        return Device(
            hardware="qnn",
            name="QNN HTP emulation",
            vendor="Qualcomm",
            driver=_version(),
            emulated=True,
            details={"note": "software on the CPU: right for correctness, its times mean nothing"},
        )

    def _device_file(self) -> str | None:
        if self.system == "win32":
            return "Windows on Snapdragon" if "qualcomm" in self._chip().lower() else None
        names = self.files.names("/dev")
        return next((f"/dev/{name}" for name in _DEVICE_FILES if name in names), None)

    def _chip(self) -> str:
        if self.system == "win32":
            from accelbench.hardware.cpu import CpuDetector

            host = CpuDetector().detect()[0]
            named = host.name if isinstance(host, Device) else ""
            return self.processor or named
        for path in ("/sys/devices/soc0/machine", "/proc/device-tree/model"):
            text = self.files.text(path)
            if text:
                return f"Qualcomm Hexagon NPU of {text.rstrip(chr(0))}"
        return "Qualcomm Hexagon NPU"
