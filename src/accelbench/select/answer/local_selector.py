"""A selector's answers for this machine: its own devices, and none that only stands in for one.

A database may hold figures of many machines' devices. Of a platform's figures, only those of the
device that is here say what will happen here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from accelbench.core.protocols import Absent, Device, Inventory
from accelbench.core.rows import Json
from accelbench.select.query.model_size import BROWSERS

if TYPE_CHECKING:
    from accelbench.store.database import Database


_DEVICES = """
SELECT hardware, device_name, bool_and(coalesce(emulated, false)) FROM benchmark_results
WHERE hardware IS NOT NULL AND device_name IS NOT NULL AND status = 'ok' GROUP BY ALL
"""


class Selecting(Protocol):
    """`HardwareSelector`, or one of somebody's own."""

    @property
    def select_hardware(self) -> Callable[..., Json]: ...


class LocalSelector:
    """What is here to be chosen, and a selector that is asked about nothing else."""

    def __init__(
        self, selector: Selecting, inventory: Inventory, database: Database | None
    ) -> None:
        self._selector = selector
        self._stored: dict[str, dict[str, bool]] = {}
        rows = [] if database is None else database.query(_DEVICES)[1]
        for hardware, device, emulated in rows:
            self._stored.setdefault(str(hardware), {})[str(device)] = bool(emulated)
        #: What was detected, without stand-ins: also those that only their results have shown to be
        #: such, as a browser's adapter, which nobody knows before a page asks for it.
        self.found: Inventory = {
            name: [
                device
                for device in ones
                if isinstance(device, Absent) or not self._stands_in(device)
            ]
            for name, ones in inventory.items()
        }

    def select_hardware(self, *, available_hardware: Sequence[str], **question: object) -> Json:
        """The answer for these platforms, each being the device of it that is here.

        Nobody has named them: a browser is among them only where nothing else is.
        """
        plain = [name for name in available_hardware if name not in BROWSERS]
        hardware = [self.word(platform) for platform in plain or available_hardware]
        return self._selector.select_hardware(available_hardware=hardware, **question)

    def words(self, *, browsers: bool = False) -> list[str]:
        """Everything here, as a selector takes it; browsers where they are meant."""
        present = (
            name
            for name, ones in self.found.items()
            if any(isinstance(device, Device) for device in ones)
            and (browsers or name not in BROWSERS)
        )
        return [self.word(name) for name in present]

    def word(self, platform: str) -> str:
        """The platform; or its device by name, where there are figures of other devices."""
        device = next((o for o in self.found.get(platform, ()) if isinstance(o, Device)), None)
        others = set(self._stored.get(platform, {})) - {device.name if device else ""}
        return f"{platform}:={device.name}" if device is not None and others else platform

    def _stands_in(self, device: Device) -> bool:
        return device.emulated or self._stored.get(device.hardware, {}).get(device.name, False)
