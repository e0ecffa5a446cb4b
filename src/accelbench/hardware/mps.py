"""Apple's GPUs, reached through Metal: by sysctl and system_profiler."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.protocols import Device
from accelbench.hardware.common import (
    Command,
    DeviceSearch,
    HardwareError,
    NoDeviceError,
    run_command,
)
from accelbench.hardware.cpu import read_sysctls

#: system_profiler answers in a second; its display section has been seen to take several.
_TIMEOUT_SECONDS = 20.0
_REMEDY = "Use a Mac with an Apple chip (M1 or later) and macOS 12.3 or later."


@dataclass(frozen=True)
class MpsDetector(DeviceSearch):
    """Detector of the GPU of an Apple chip."""

    hardware = "mps"
    colour = "#24306c"
    remedy = _REMEDY

    command: Command = run_command
    system: str = sys.platform
    machine: str = field(default_factory=platform.machine)
    release: str = field(default_factory=lambda: platform.mac_ver()[0])

    def _only_device(self) -> Device:
        if self.system != "darwin":
            raise NoDeviceError("Metal exists on macOS only", _REMEDY)
        if self.machine != "arm64":
            raise NoDeviceError("this Mac has no Apple chip", _REMEDY)
        sysctls = read_sysctls(self.command, ("machdep.cpu.brand_string", "hw.memsize"))
        chip, memory = sysctls.get("machdep.cpu.brand_string"), sysctls.get("hw.memsize")
        card = self._card()
        return Device(
            hardware="mps",
            name=chip or card.get("sppci_model") or "Apple GPU",
            vendor="Apple",
            memory_bytes=int(memory) if memory else None,
            count=int(card["sppci_cores"]) if str(card.get("sppci_cores", "")).isdigit() else 1,
            driver=f"macOS {self.release}",
            details={
                "gpu_cores": card.get("sppci_cores", "not told"),
                "metal": card.get("spdisplays_mtlgpufamilysupport", "not told"),
                "memory": "unified: shared with the CPU",
            },
        )

    def _card(self) -> dict[str, Any]:
        try:
            text = self.command(
                ["system_profiler", "-json", "SPDisplaysDataType"], _TIMEOUT_SECONDS
            )
            cards = json.loads(text)["SPDisplaysDataType"]
        except (HardwareError, ValueError, KeyError):
            return {}
        apple = [
            card for card in cards if "apple" in str(card.get("spdisplays_vendor", "")).lower()
        ]
        return dict((apple or cards or [{}])[0])
