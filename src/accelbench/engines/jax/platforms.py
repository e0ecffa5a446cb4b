"""Where JAX runs: hardware as JAX's platforms, allocators' counters, and layouts over devices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Absent, Device, DeviceMemory

#: What jax calls each hardware, in `jax_platforms` and where it is asked for devices.
PLATFORMS = {"cpu": "cpu", "cuda": "cuda", "rocm": "rocm", "tpu": "tpu", "mps": "METAL"}

#: Read once, when XLA starts its threads. Its own flags limit one pool of several.
_THREADS = "NPROC"


def hardware_of(device: Any) -> str:
    """Return a JAX device's platform in our words; both kinds of GPU are one platform to JAX."""
    platform = str(device.platform).lower()
    if platform == "gpu":
        return "rocm" if "rocm" in str(device.client.platform_version).lower() else "cuda"
    return {"metal": "mps"}.get(platform, platform)


def name_of(device: Any) -> str:
    """Return a device's name, always with an ordinal."""
    return f"{hardware_of(device)}:{getattr(device, 'local_hardware_id', None) or 0}"


def cores() -> int:
    """Return how many cores XLA would use if nobody asked for fewer."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _part_cpu(devices: int) -> None:
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
        # The allocator's peak cannot be restarted: what it is now is remembered instead.
        self._peaks_before = [_counters(d).get("peak_bytes_in_use", 0) for d in self.devices]

    def peaks(self) -> list[int | None]:
        """Return each device's peak; None if its allocator counts none, or none since the reset."""
        peaks = [_counters(device).get("peak_bytes_in_use") for device in self.devices]
        return [
            peak if peak is not None and peak > before else None
            for peak, before in zip(peaks, self._peaks_before, strict=True)
        ]

    def memory(self) -> DeviceMemory | None:
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
    """Return an entry per device, or why there is none; in a throw-away process only.

    Asking may hang a driver.
    """
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


_AXIS = "devices"
#: Axes of a weight that is split at least: biases and the like are small, and each would be
#: gathered by a collective of its own.
_SPLIT_FROM = 2


@dataclass(frozen=True)
class Layout:
    """Where arrays lie: devices or shardings, as `device=` of jax.numpy takes either.

    ddp    each device has all weights and a part of the batch
    fsdp   each device has a part of each weight, of its gradient and of its moments, and of the
           batch; a step gathers each weight once, and scatters its gradient

    The step is one program of the whole batch; XLA splits it by where its arguments lie, and puts
    the collectives if they are needed. If weights are in parts it is told that products read
    them whole: by itself it may exchange results in their place.
    """

    whole: Any  # of what each device has all of
    batch: Any  # of what has the batch as its first axis
    mesh: Mesh | None = None  # None: of one device
    splits: bool = False  # whether weights are in parts

    @classmethod
    def on(cls, device: Any) -> Layout:
        return cls(device, device)

    @classmethod
    def over(cls, devices: Sequence[Any], strategy: str) -> Layout:
        mesh = Mesh(np.asarray(devices), (_AXIS,))
        return cls(
            NamedSharding(mesh, PartitionSpec()),
            NamedSharding(mesh, PartitionSpec(_AXIS)),
            mesh,
            strategy == "fsdp",
        )

    @property
    def devices(self) -> int:
        return 1 if self.mesh is None else self.mesh.size

    def of_weight(self, shape: Sequence[int]) -> Any:
        """Return where a weight lies: in parts along its longest even axis, or whole."""
        even = [axis for axis, size in enumerate(shape) if size and size % self.devices == 0]
        if self.mesh is None or not self.splits or len(shape) < _SPLIT_FROM or not even:
            return self.whole
        longest = max(even, key=lambda axis: shape[axis])
        parts = [_AXIS if axis == longest else None for axis in range(len(shape))]
        return NamedSharding(self.mesh, PartitionSpec(*parts))

    def gathered(self, weights: dict[str, jax.Array]) -> dict[str, jax.Array]:
        """Return weights as a forward pass reads them, whole; gradients come back in parts."""
        if self.mesh is None or not self.splits:
            return weights
        return {
            name: _gathered(weight, self.whole, self.of_weight(weight.shape))
            for name, weight in weights.items()
        }

    def kept(self, arrays: Any) -> Any:
        """Return where a step's results have to lie for the next step; None on one device."""
        if self.mesh is None:
            return None
        return jax.tree.map(lambda array: array.sharding, arrays)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _gathered(weight: jax.Array, whole: NamedSharding, _part: NamedSharding) -> jax.Array:
    return jax.lax.with_sharding_constraint(weight, whole)


def _forward(
    weight: jax.Array, whole: NamedSharding, part: NamedSharding
) -> tuple[jax.Array, None]:
    return _gathered(weight, whole, part), None


def _backward(
    _whole: NamedSharding, part: NamedSharding, _: None, gradient: jax.Array
) -> tuple[jax.Array]:
    return (jax.lax.with_sharding_constraint(gradient, part),)


_gathered.defvjp(_forward, _backward)
