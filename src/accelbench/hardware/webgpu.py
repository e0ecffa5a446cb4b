"""WebGPU: a browser's door to the GPU."""

from __future__ import annotations

from accelbench.core.protocols import Absent, Device
from accelbench.hardware.browsers import InstalledPrograms, Programs, browser_devices


class WebgpuDetector:
    """Finds browsers that may have WebGPU; without a GPU they answer with a software adapter."""

    hardware = "webgpu"
    colour = "#9c6024"

    def __init__(self, programs: Programs | None = None) -> None:
        self._programs = programs or InstalledPrograms()

    def detect(self) -> list[Device | Absent]:
        engines = ("chromium", "firefox", "webkit")
        return browser_devices(self.hardware, self._programs, engines)
