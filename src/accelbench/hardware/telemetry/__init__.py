"""Meters of power, clocks, temperature and memory: one vendor per file, and a null object."""

from __future__ import annotations

import sys

from accelbench.core.protocols import Device
from accelbench.hardware.telemetry.common import NullTelemetry, Telemetry


def telemetry_for(device: Device) -> Telemetry:
    """Return the meters of a device, or a null object with the reason why there are none."""
    if device.hardware == "cpu" and sys.platform == "linux":
        from accelbench.hardware.telemetry.rapl import CpuTelemetry

        return CpuTelemetry()
    if device.hardware == "cuda" and "uuid" in device.details:
        from accelbench.hardware.telemetry.nvidia import nvidia_telemetry

        return nvidia_telemetry(str(device.details["uuid"]))
    if device.hardware == "rocm":
        from accelbench.hardware.telemetry.amd import amd_telemetry

        return amd_telemetry(device.ordinal, device.details.get("uuid"))
    if device.hardware == "mps":
        from accelbench.hardware.telemetry.apple import AppleTelemetry

        return AppleTelemetry()
    return NullTelemetry(f"there are no meters for {device.hardware} on this system")
