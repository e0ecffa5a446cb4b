"""WebAssembly: the CPU as a browser's page sees it."""

from __future__ import annotations

from dataclasses import replace

from accelbench.core.protocols import Absent, Device
from accelbench.hardware.browsers import InstalledPrograms, Programs, browser_devices


class WasmDetector:
    """Finds browsers: every one of today has WebAssembly with SIMD."""

    hardware = "wasm"
    colour = "#009c78"

    def __init__(self, programs: Programs | None = None) -> None:
        self._programs = programs or InstalledPrograms()

    def detect(self) -> list[Device | Absent]:
        engines = ("chromium", "firefox", "webkit")
        units = browser_devices(self.hardware, self._programs, engines)
        return [_without_adapter(unit) if isinstance(unit, Device) else unit for unit in units]


def _without_adapter(device: Device) -> Device:
    """WebAssembly runs on the CPU: there is no adapter to ask for."""
    return replace(device, details={k: v for k, v in device.details.items() if k != "adapter"})
