"""The collectives of a rank's steps, as torch.profiler saw them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from accelbench.core.clock import MonotonicClock
from accelbench.runtimes.pytorch.places import TorchPlace
from accelbench.runtimes.shared.communication import (
    CommunicationShare,
    Span,
    is_collective,
    shared,
)
from accelbench.runtimes.shared.profiling import walls

#: Kernels by which NCCL and RCCL carry out collectives; copies compute nothing.
_KERNELS, _COPIES = ("nccl", "rccl"), ("memcpy", "memset")
_US = 1e3  # in a millisecond


def communication(step: Callable[[], Any], steps: int, place: TorchPlace) -> dict[str, Any]:
    """What collectives take of a step, in milliseconds: the mean of so many."""
    device = place.device.type != "cpu"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device else [])]

    def done() -> None:
        step()
        if place.synchronize is not None:
            place.synchronize()

    with torch.profiler.profile(activities=activities, acc_events=True) as profiler:
        times = walls(MonotonicClock(), steps, done)
    share: CommunicationShare = shared(_spans(profiler.events(), device))
    return {
        "steps": steps,
        "wall_ms": sum(times) / steps / 1e6,
        "communication_ms": share.collectives / steps / _US,
        "exposed_ms": share.exposed / steps / _US,
        "computing_ms": share.computing / steps / _US,
        "collectives": share.calls / steps,
    }


def _spans(events: Any, device: bool) -> Iterator[Span]:
    """What the host did, or on a device its kernels: each on a stream as on a thread."""
    kinds = torch.autograd.DeviceType
    for event in events:
        start, end = event.time_range.start, event.time_range.end
        if not device:
            if event.device_type == kinds.CPU and (not event.is_async or is_collective(event.name)):
                yield Span(event.name, event.thread, start, end)
        elif event.device_type != kinds.CPU:
            name = event.name.lower()
            if any(word in name for word in _KERNELS):
                yield Span(f"nccl:{event.name}", event.device_resource_id, start, end)
            elif not any(word in name for word in _COPIES):
                yield Span(f"kernel::{event.name}", event.device_resource_id, start, end)
