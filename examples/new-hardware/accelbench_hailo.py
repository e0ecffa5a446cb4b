"""Finds Hailo accelerators (as on a Raspberry Pi AI HAT) by their device files."""

from __future__ import annotations

import re

from accelbench.core.protocols import Absent, Device
from accelbench.hardware.common import Files, SystemFiles


class HailoDetector:
    """One platform. `detect` never raises and imports no engine."""

    hardware = "hailo"
    colour = "#287878"  # its own in every chart: far from all others, however many colours one sees

    def __init__(self, files: Files | None = None) -> None:
        self._files = files or SystemFiles()

    def detect(self) -> list[Device | Absent]:
        doors = [name for name in self._files.names("/dev") if re.fullmatch(r"hailo\d+", name)]
        if not doors:
            return [
                Absent(
                    self.hardware,
                    reason="there is no /dev/hailo*",
                    remedy="Attach a Hailo accelerator and install Hailo's PCIe driver.",
                )
            ]
        version = self._files.text("/sys/module/hailo_pci/version")
        return [
            Device(
                hardware=self.hardware,
                name="Hailo accelerator",
                ordinal=ordinal,
                vendor="Hailo",
                driver=f"hailo_pci {version}" if version else "",
                details={"door": f"/dev/{door}"},
            )
            for ordinal, door in enumerate(doors)
        ]
