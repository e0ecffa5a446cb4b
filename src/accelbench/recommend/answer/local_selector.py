"""A selector's answers for the devices of this machine, without emulated ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accelbench.core.protocols import Absent, Device, Inventory
from accelbench.core.rows import Json
from accelbench.recommend.query.config import BROWSERS

if TYPE_CHECKING:
    from accelbench.recommend.selector import HardwareSelector
    from accelbench.store.database import Database


_DEVICES = """
SELECT hardware, device_name, bool_and(coalesce(emulated, false)) FROM benchmark_results
WHERE hardware IS NOT NULL AND device_name IS NOT NULL AND status = 'ok' GROUP BY ALL
"""


class LocalSelector:
    """A selector restricted to the devices of this machine."""

    def __init__(
        self, selector: HardwareSelector, inventory: Inventory, database: Database | None
    ) -> None:
        self._selector = selector
        self._stored: dict[str, dict[str, bool]] = {}
        rows = [] if database is None else database.query(_DEVICES)[1]
        for hardware, device, emulated in rows:
            self._stored.setdefault(str(hardware), {})[str(device)] = bool(emulated)
        #: The detected devices without emulated ones. A browser's adapter is only known to be
        #: emulated by its results.
        self.found: Inventory = {
            name: [
                device
                for device in ones
                if isinstance(device, Absent) or not self._stands_in(device)
            ]
            for name, ones in inventory.items()
        }

    def select_hardware(self, *, available_hardware: Sequence[str], **question: Any) -> Json:
        """Return the answer for the devices of these platforms here.

        Browsers only count if there is nothing else, because they were not named.
        """
        plain = [name for name in available_hardware if name not in BROWSERS]
        hardware = [self.word(platform) for platform in plain or available_hardware]
        return self._selector.select_hardware(available_hardware=hardware, **question)

    def words(self, *, browsers: bool = False) -> list[str]:
        """Return all devices here as a selector takes them, with browsers if asked."""
        present = (
            name
            for name, ones in self.found.items()
            if any(isinstance(device, Device) for device in ones)
            and (browsers or name not in BROWSERS)
        )
        return [self.word(name) for name in present]

    def word(self, platform: str) -> str:
        """Return the platform, or its device by name if other devices have results."""
        device = next((o for o in self.found.get(platform, ()) if isinstance(o, Device)), None)
        others = set(self._stored.get(platform, {})) - {device.name if device else ""}
        return f"{platform}:={device.name}" if device is not None and others else platform

    def _stands_in(self, device: Device) -> bool:
        return device.emulated or self._stored.get(device.hardware, {}).get(device.name, False)
