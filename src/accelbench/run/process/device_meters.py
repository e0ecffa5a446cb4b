"""An accelerator's own meters, read while a worker waits between two blocks.

Reading them while a sample is taken would disturb it, and after the case the
device is idle and tells nothing. The host's CPU is not watched here: its counters
are in the machine's snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Quality
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry import telemetry_for
from accelbench.hardware.telemetry.common import NullTelemetry, Telemetry


class DeviceWatch:
    """What a device's meters showed during one case."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._throttled: set[str] = set()
        self._clocks: list[float] = []
        self._watts: list[float] = []
        self._temperatures: list[float] = []
        self._foreign = 0

    @classmethod
    def of(cls, device: Device | None) -> DeviceWatch:
        """The watch of a device; one without meters sees nothing."""
        if device is None or device.hardware == "cpu":
            return cls(NullTelemetry("the host is watched by snapshots"))
        return cls(telemetry_for(device))

    def look(self, own_pid: int | None = None) -> None:
        """Read every meter once."""
        if isinstance(self._telemetry, NullTelemetry):
            return
        held = self._telemetry.throttled()
        if not isinstance(held, NotAvailable):
            self._throttled.update(held)
        clocks = self._telemetry.clocks()
        if not isinstance(clocks, NotAvailable) and clocks.compute_mhz is not None:
            self._clocks.append(clocks.compute_mhz)
        for kept, reading in (
            (self._watts, self._telemetry.power_watts()),
            (self._temperatures, self._telemetry.temperature_celsius()),
        ):
            if not isinstance(reading, NotAvailable):
                kept.append(reading)
        foreign = self._telemetry.foreign_processes(() if own_pid is None else (own_pid,))
        if not isinstance(foreign, NotAvailable):
            self._foreign = max(self._foreign, len(foreign))

    def report(self) -> Mapping[str, Any]:
        """For the result's environment; nothing where the device has no meters."""
        if isinstance(self._telemetry, NullTelemetry):
            return {}
        return {
            "device_meters": self._telemetry.source,
            "device_throttled": sorted(self._throttled),
            "device_clock_mhz": _range(self._clocks),
            "device_power_watts": _range(self._watts),
            "device_temperature_celsius": _range(self._temperatures),
            "device_foreign_processes": self._foreign,
        }

    def quality(self) -> Quality | None:
        """The quality that throttling imposes."""
        return Quality.THROTTLED if self._throttled else None

    def warnings(self) -> list[str]:
        """What a reader should know."""
        notes = []
        if self._throttled:
            held = ", ".join(sorted(self._throttled))
            notes.append(f"The device held its clocks down while it was measured: {held}.")
        if self._foreign:
            notes.append(
                f"{self._foreign} other processes were on the device while it was measured."
            )
        return notes

    def close(self) -> None:
        """Let go of the meters."""
        self._telemetry.close()


def _range(values: list[float]) -> list[float] | None:
    return [min(values), max(values)] if values else None
