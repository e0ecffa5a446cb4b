"""What jax itself sees. Imported in a throw-away process only: asking may hang a driver."""

from __future__ import annotations

from typing import Any

import jax

from accelbench.core.protocols import Absent, Device
from accelbench.runtimes.jax.platforms import PLATFORMS, cores, hardware_of


def devices() -> list[Device | Absent]:
    """One entry per device, or why there is none."""
    entries: list[Device | Absent] = []
    for hardware, platform in PLATFORMS.items():
        seen, why = _seen(hardware, platform)
        entries += seen or [Absent(hardware, why, f"Install a jax with its plugin for {hardware}.")]
    return entries


def _seen(hardware: str, platform: str) -> tuple[list[Device], str]:
    try:
        local = jax.local_devices(backend=platform)
    except RuntimeError as error:  # so jax says of a platform that it has no plugin for
        return [], str(error).splitlines()[0][:200]
    mine = [_device(hardware, device) for device in local if hardware_of(device) == hardware]
    return mine, f"jax sees no {hardware} device"


def _device(hardware: str, device: Any) -> Device:
    if hardware == "cpu":
        return Device("cpu", "host", count=cores())
    return Device(
        hardware,
        str(device.device_kind),
        int(getattr(device, "local_hardware_id", None) or 0),
        memory_bytes=(device.memory_stats() or {}).get("bytes_limit"),
    )
