"""Whether power and energy can be measured here, before anybody is told to measure them."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.core.protocols import Device
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry.energy import energy_meter

#: Limits that only a run with --energy can show to be kept.
METERED = ("max_power", "max_energy")
#: Platforms whose work is the host's CPU.
_OF_THE_HOST = ("cpu", "wasm")


def host_unmetered() -> str:
    """Why energy of the host's CPU cannot be measured; "" where it can."""
    meter = energy_meter(Device("cpu", ""))
    if isinstance(meter, NotAvailable):
        return meter.reason
    meter.close()
    return ""


def why_unmetered(platforms: Iterable[str]) -> str:
    """Why energy can be measured on none of some platforms; "" where it may be on one.

    Of accelerators nobody knows it before a run asks their drivers.
    """
    if all(platform.partition(":")[0] in _OF_THE_HOST for platform in platforms):
        return host_unmetered()
    return ""
