"""DirectML: every GPU for which Windows has a DirectX 12 driver.

DirectML numbers adapters in the order of Windows, which differs from CUDA's and HIP's. The first
one shows the desktop, but no command names it. So only the first device is found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from accelbench.core.protocols import Device
from accelbench.hardware.common import (
    Command,
    DeviceSearch,
    NoDeviceError,
    PackageMissingError,
    run_command,
)

_REMEDY = "Needs Windows 10 or later with a driver for DirectX 12."
_ASK = "Get-CimInstance Win32_VideoController | ForEach-Object { $_.Name }"
_TIMEOUT_SECONDS = 20.0
_PACKAGE = "onnxruntime-directml"
#: Adapters of Windows without a vendor's driver: software, or display only.
_NO_CARD = ("microsoft basic", "microsoft remote", "microsoft hyper-v")


@dataclass(frozen=True)
class DirectmlDetector(DeviceSearch):
    """Detector of DirectML's first adapter."""

    hardware = "directml"
    colour = "#1818fc"
    remedy = _REMEDY

    command: Command = run_command
    system: str = sys.platform
    version_of: Callable[[str], str] = version

    def _only_device(self) -> Device:
        if self.system != "win32":
            raise NoDeviceError("DirectML is a part of Windows", _REMEDY)
        try:
            build = f"{_PACKAGE} {self.version_of(_PACKAGE)}"
        except PackageNotFoundError:
            raise PackageMissingError(
                f"{_PACKAGE} is not installed",
                f"Install it in place of onnxruntime: pip install {_PACKAGE}",
            ) from None
        output = self.command(["powershell", "-NoProfile", "-Command", _ASK], _TIMEOUT_SECONDS)
        names = [line.strip() for line in output.splitlines() if line.strip()]
        cards = [name for name in names if not name.lower().startswith(_NO_CARD)]
        if not cards:
            raise NoDeviceError("Windows has no driver of a graphics card", _REMEDY)
        single = len(cards) == 1
        return Device(
            hardware=self.hardware,
            name=cards[0] if single else f"the first of {', '.join(sorted(cards))}",
            driver=build,
            details={"adapters": cards},
        )
