"""Memory of devices by name (of this machine, a store, documents), and whether a case fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from accelbench.core.device_facts import facts_of
from accelbench.core.protocols import Device

if TYPE_CHECKING:
    from accelbench.store.database import Database


_MIB = 2**20
#: Several devices may have one name: only what fits none of them does not fit.
_STORED_SQL = """
SELECT hardware, device_name, max(memory_mb) FROM hardware_info
WHERE memory_mb > 0 AND device_name IS NOT NULL AND NOT coalesce(emulated, false)
GROUP BY ALL
"""


@dataclass
class MemoryByDevice:
    """How much memory devices have, in bytes.

    Attributes:
        detected: what this machine has of a platform.
    """

    detected: Callable[[str], Iterable[object]]
    database: Database | None = None
    _looked_up: dict[tuple[str, str], int | None] = field(default_factory=dict)

    def __call__(self, platform: str, device: str) -> int | None:
        """The memory of a device; None where nobody knows it."""
        key = (platform, device)
        if key not in self._looked_up:
            self._looked_up[key] = self._here(*key) or self._stored.get(key) or documented(*key)
        return self._looked_up[key]

    def _here(self, platform: str, device: str) -> int | None:
        entries = (entry for entry in self.detected(platform) if isinstance(entry, Device))
        return next((entry.memory_bytes for entry in entries if entry.name == device), None)

    @cached_property
    def _stored(self) -> Mapping[tuple[str, str], int]:
        if self.database is None or not self.database.begun:
            return {}
        _, rows = self.database.query(_STORED_SQL)
        return {
            (str(platform), str(device)): int(memory * _MIB)
            for platform, device, memory in rows
            if isinstance(memory, float)
        }


def documented(platform: str, device: str) -> int | None:
    """The memory of a device by its maker's document."""
    facts = facts_of(device, platform)
    return None if facts is None else facts.memory_bytes


_GIB = 2.0**30


def is_too_large(needed: float | None, room: float | None) -> bool:
    """Whether more memory is needed than there is; of what is not known it is not said."""
    return needed is not None and room is not None and needed > room


def memory_words(needed: float, room: float) -> str:
    """How much is needed of how much there is."""
    return f"{needed / _GIB:,.3g} GiB of {room / _GIB:,.3g} GiB"
