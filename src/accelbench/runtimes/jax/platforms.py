"""Where JAX runs: accelbench's hardware as JAX's platforms, and what their allocators count."""

from __future__ import annotations

import os
from typing import Any

import jax

from accelbench.core.errors import CaseError
from accelbench.core.protocols import DeviceMemory

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


class Platform:
    """One device, as the worker's process sees it."""

    def __init__(self, hardware: str, ordinal: int, threads: int | None) -> None:
        if threads:
            os.environ[_THREADS] = str(threads)
        platform = PLATFORMS.get(hardware, hardware)
        # Before the first use, or jax would start every platform it has a plugin for.
        jax.config.update("jax_platforms", platform if hardware == "cpu" else f"{platform},cpu")
        try:
            seen = [d for d in jax.local_devices(backend=platform) if hardware_of(d) == hardware]
        except RuntimeError:
            seen = []
        mine = [d for d in seen if name_of(d) == f"{hardware}:{ordinal}"]
        if not mine:
            raise CaseError(
                "engine_sees_no_device",
                f"jax {jax.__version__} sees no {hardware} device {ordinal}",
                f"Install a jax with its plugin for {hardware}.",
            )
        self.device = mine[0]
        self._peak_before = 0

    def reset_memory(self) -> None:
        """The allocator's peak cannot be restarted: what it is now is remembered instead."""
        self._peak_before = self._counters().get("peak_bytes_in_use", 0)

    def memory(self) -> DeviceMemory | None:
        """The allocator's counters; no peak where only what came before the reset was as high."""
        counters = self._counters()
        if not counters:
            return None
        peak = counters.get("peak_bytes_in_use")
        known = peak is not None and peak > self._peak_before
        return DeviceMemory(
            peak_bytes=peak if known else None,
            current_bytes=counters["bytes_in_use"],
            reserved_bytes=counters.get("pool_bytes"),
            source="XLA allocator",
        )

    def _counters(self) -> dict[str, int]:
        return self.device.memory_stats() or {}

    def facts(self) -> dict[str, Any]:
        """What the engine says of the device and of settings that change its speed."""
        limit = os.environ.get(_THREADS, "")
        return {
            "threads": int(limit) if limit.isdecimal() else cores(),
            "device_kind": str(self.device.device_kind),
            "platform_version": str(self.device.client.platform_version).splitlines()[0],
            "matmul_precision": jax.config.jax_default_matmul_precision,
        }
