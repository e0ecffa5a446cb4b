"""Where JAX runs: accelbench's hardware as JAX's platforms, and what their allocators count.

What jax itself sees. Imported in a throw-away process only: asking may hang a driver.
"""

from __future__ import annotations

import os
from typing import Any

import jax

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Absent, Device, DeviceMemory

#: What jax calls each hardware, in `jax_platforms` and where it is asked for devices.
PLATFORMS = {"cpu": "cpu", "cuda": "cuda", "rocm": "rocm", "tpu": "tpu", "mps": "METAL"}

#: Read once, when XLA starts its threads. Its own flags limit one pool of several.
_THREADS = "NPROC"


def hardware_of(device: Any) -> str:
    """A device of JAX in our words; both kinds of GPU are one platform to it."""
    platform = str(device.platform).lower()
    if platform == "gpu":
        return "rocm" if "rocm" in str(device.client.platform_version).lower() else "cuda"
    return {"metal": "mps"}.get(platform, platform)


def name_of(device: Any) -> str:
    """With an ordinal always."""
    return f"{hardware_of(device)}:{getattr(device, 'local_hardware_id', None) or 0}"


def cores() -> int:
    """How many XLA would use if nobody asked for fewer."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _part_cpu(devices: int) -> None:
    """Have XLA show a processor as several devices: before it has started."""
    try:
        jax.config.update("jax_num_cpu_devices", devices)
    except RuntimeError as error:
        raise CaseError(
            "engine_sees_no_device",
            f"XLA has started in this process, and does not part the processor any more: {error}",
            "Run again with --debug.",
        ) from error


def _counters(device: Any) -> dict[str, int]:
    return device.memory_stats() or {}


class Platform:
    """One device, or the first of several, as the worker's process sees them."""

    def __init__(self, hardware: str, ordinal: int, threads: int | None, devices: int = 1) -> None:
        if threads:
            os.environ[_THREADS] = str(threads)
        platform = PLATFORMS.get(hardware, hardware)
        if hardware == "cpu" and devices > 1:
            _part_cpu(devices)
        # Before the first use, or jax would start every platform it has a plugin for.
        jax.config.update("jax_platforms", platform if hardware == "cpu" else f"{platform},cpu")
        try:
            seen = [d for d in jax.local_devices(backend=platform) if hardware_of(d) == hardware]
        except RuntimeError:
            seen = []
        mine = [d for d in seen if name_of(d) == f"{hardware}:{ordinal}"]
        if devices > 1:
            mine = sorted(seen, key=lambda device: int(device.id))[:devices]
        if len(mine) < devices:
            which = f"no {hardware} device {ordinal}"
            if devices > 1:
                which = f"{len(mine)} {hardware} devices, not {devices}"
            raise CaseError(
                "engine_sees_no_device",
                f"jax {jax.__version__} sees {which}",
                f"Install a jax with its plugin for {hardware}.",
            )
        self.devices = tuple(mine[:devices])
        self.device = self.devices[0]
        self._peaks_before = [0] * devices

    def reset_memory(self) -> None:
        """The allocator's peak cannot be restarted: what it is now is remembered instead."""
        self._peaks_before = [_counters(d).get("peak_bytes_in_use", 0) for d in self.devices]

    def peaks(self) -> list[int | None]:
        """Each device's own peak; None where its allocator counts none, or none since the reset."""
        peaks = [_counters(device).get("peak_bytes_in_use") for device in self.devices]
        return [
            peak if peak is not None and peak > before else None
            for peak, before in zip(peaks, self._peaks_before, strict=True)
        ]

    def memory(self) -> DeviceMemory | None:
        """The allocator's counters; no peak where only what came before the reset was as high.

        Of several devices those of the one with the highest peak.
        """
        counters = [_counters(device) for device in self.devices]
        if not all(counters):
            return None
        peaks = [own.get("peak_bytes_in_use", 0) for own in counters]
        most = peaks.index(max(peaks))
        own = counters[most]
        return DeviceMemory(
            peak_bytes=peaks[most] if peaks[most] > self._peaks_before[most] else None,
            current_bytes=own["bytes_in_use"],
            reserved_bytes=own.get("pool_bytes"),
            source="XLA allocator",
        )

    def facts(self) -> dict[str, Any]:
        limit = os.environ.get(_THREADS, "")
        return {
            "threads": int(limit) if limit.isdecimal() else cores(),
            "device_kind": str(self.device.device_kind),
            "platform_version": str(self.device.client.platform_version).splitlines()[0],
            "matmul_precision": jax.config.jax_default_matmul_precision,
        }


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
