"""Where a step's time goes in PyTorch, by torch.profiler.

On the CPU it is an operator's own time, without the operators that it calls; on another device the
time of the kernels that it started there, which run beside the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, record_function

from accelbench.core.clock import Clock
from accelbench.core.profile import Profile, Spent, profiled
from accelbench.engines.shared.local import walls

NAME = "torch.profiler"
_STEP = "accelbench::step"
_TRACE = "trace.json"
#: CUPTI's own work, which torch.profiler lists among the operators: on an H200 "Activity Buffer
#: Request" came as one that took 0.065 ms of a step.
_OVERHEADS = frozenset(
    {
    "Activity Buffer Request", "Buffer Flush", "Command Buffer Full", "Driver Compiler",
    "Instrumentation", "Lazy Function Loading", "Resource", "Runtime Triggered Module Loading",
    }
)  # fmt: skip
_HOST = (
    "Own times of operators on the host's calling thread. What they leave of the step is Python's"
    " and the profiler's."
)
_DEVICE = (
    "Times of kernels on the device, by the operator that started them. What they leave of the"
    " step the device spent waiting for the host."
)


def profile(
    step: Callable[[], Any], clock: Clock, steps: int, device: str, traces: Path | None
) -> Profile:
    """Run steps, each done when it returns, under torch's profiler; `device` is such as "cpu:0"."""
    on_host = device.startswith("cpu")
    activities = [ProfilerActivity.CPU]
    more = ProfilerActivity.XPU if device.startswith("xpu") else ProfilerActivity.CUDA
    if not on_host and more in torch.profiler.supported_activities():
        activities.append(more)

    def marked() -> None:
        with record_function(_STEP):
            step()

    with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
        times = walls(clock, steps, marked)
    rows = profiler.key_averages(group_by_input_shape=True)
    report = profiled(NAME, spent(rows, device), times, _HOST if on_host else _DEVICE)
    if traces is None:
        return report
    profiler.export_chrome_trace(str(traces / _TRACE))
    return replace(report, trace=_TRACE)


def spent(rows: Iterable[Any], device: str) -> Iterator[Spent]:
    """Yield what the profiler's rows say, each an operator with some shapes of its inputs."""
    on_host = device.startswith("cpu")
    for row in rows:
        # The kernels' own rows say once more what is told of the operators that started them.
        if row.key == _STEP or row.device_type != torch.autograd.DeviceType.CPU:
            continue
        if row.key in _OVERHEADS:
            continue
        us = row.self_cpu_time_total if on_host else row.self_device_time_total
        yield Spent(shapes(row.input_shapes), row.key, us * 1e3, row.count, device)


def shapes(input_shapes: Iterable[Any]) -> str:
    """Return shapes of inputs as people write them: 128x768, 768x768; none of numbers."""
    return ", ".join("x".join(map(str, shape)) for shape in input_shapes if shape)
