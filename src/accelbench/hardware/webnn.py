"""WebNN: neural networks in a browser of the Chromium kind."""

from __future__ import annotations

from accelbench.core.protocols import Absent, Device
from accelbench.hardware.browsers import FETCHED, InstalledPrograms, Programs, browser_devices


class WebnnDetector:
    """Finds browsers that may have WebNN; many builds of Chromium have no backend for it."""

    hardware = "webnn"
    colour = "#c048c0"

    def __init__(self, programs: Programs | None = None) -> None:
        self._programs = programs or InstalledPrograms()

    def detect(self) -> list[Device | Absent]:
        units = browser_devices(self.hardware, self._programs, ("chromium",))
        # The one that was fetched has a backend, which many others have not.
        return sorted(units, key=lambda dev: not (isinstance(dev, Device) and dev.name == FETCHED))
