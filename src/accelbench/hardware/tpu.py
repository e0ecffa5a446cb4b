"""Google's TPUs, by their PCI ids and device files; libtpu drives them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from accelbench.core.protocols import Device
from accelbench.hardware.common import DeviceSearch, Files, NoDeviceError, SystemFiles, number

_REMEDY = "Needs a Google Cloud TPU machine; there: pip install 'jax[tpu]'"
_GOOGLE = 0x1AE0

#: Generation by PCI device id, as in jax's hardware_utils.
_CHIPS = {
    0x0027: "TPU v2 or v3", 0x005E: "TPU v4", 0x0062: "TPU v5p", 0x0063: "TPU v5e",
    0x006F: "TPU v6e", 0x0076: "TPU 7x",
}  # fmt: skip
_PCI = "/sys/bus/pci/devices"


def _libtpu() -> str:
    if find_spec("libtpu") is None:
        return ""
    try:
        return f"libtpu {version('libtpu')}"
    except PackageNotFoundError:
        return "libtpu of unknown version"


@dataclass(frozen=True)
class TpuDetector(DeviceSearch):
    """Detector of TPU chips that does not initialise them: only one process may hold a TPU."""

    hardware = "tpu"
    colour = "#6c0030"
    remedy = _REMEDY

    files: Files = field(default_factory=SystemFiles)
    library: Callable[[], str] = _libtpu
    system: str = sys.platform

    def _devices(self) -> list[Device]:
        if self.system != "linux":
            raise NoDeviceError("TPUs are attached to Linux machines only", _REMEDY)
        library, chips = self.library(), self._chips()
        if not chips:
            have = f"{library} is installed, but " if library else ""
            raise NoDeviceError(f"{have}no TPU chip is on the PCI bus", _REMEDY)
        doors = self._device_files()
        return [
            Device(
                hardware="tpu",
                name=f"Google {name}",
                ordinal=ordinal,
                vendor="Google",
                driver=library,
                details={
                    "doors": doors or "none: the kernel driver shows no /dev/accel* or /dev/vfio/*",
                    "libtpu": library or "missing: pip install 'jax[tpu]'",
                },
            )
            for ordinal, name in enumerate(chips)
        ]

    def _chips(self) -> list[str]:
        chips = []
        for slot in self.files.names(_PCI):
            if number(self.files.text(f"{_PCI}/{slot}/vendor")) != _GOOGLE:
                continue
            name = _CHIPS.get(number(self.files.text(f"{_PCI}/{slot}/device")) or 0)
            # Google's network and disk adapters have the same vendor: only known chips count.
            if name:
                chips.append(name)
        return chips

    def _device_files(self) -> list[str]:
        accel = [f"/dev/{n}" for n in self.files.names("/dev") if re.fullmatch(r"accel\d+", n)]
        vfio = [f"/dev/vfio/{n}" for n in self.files.names("/dev/vfio") if n.isdigit()]
        return accel + vfio
