"""Energy: what the device's own counter says over a load and over idling, and how often it moves.

What `accelbench run --energy` says of a device can be compared with it. The counter is read here
through the meters of `accelbench.hardware.telemetry`: of NVML it is
nvmlDeviceGetTotalEnergyConsumption.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry import telemetry_for
from accelbench.hardware.telemetry.common import Telemetry
from gpu_day.bare_loop import BareLoop, allow_tf32
from gpu_day.part import NotHereError, Recorder
from gpu_day.telemetry import device_of

NOTE = "read from the device's counter, without the energy pass of accelbench run"
#: Readings of power are averages over up to a second: both begin after so long of the same.
SETTLE, PAUSE = 1.5, 0.1
#: How far the counter may be from the average of power readings over the same seconds.
AGREEMENT = 1.1
BATCH = 32


@dataclass(frozen=True)
class Window:
    """What one stretch of time used."""

    seconds: float
    joules: float
    read_watts: float | None  # average of readings of power
    steps: int

    @property
    def watts(self) -> float:
        """Average power by the counter."""
        return self.joules / self.seconds


def energy(at: Recorder) -> None:
    meters = telemetry_for(device_of(at.day.hardware))
    first = meters.energy_millijoules()
    if isinstance(first, NotAvailable):
        raise NotHereError(f"no energy counter: {first.reason}")
    at.figure("source", {"meters": meters.source, "note": NOTE})
    seconds = at.day.pick(6.0, 0.5)
    allow_tf32(False)
    loop = BareLoop("resnet-50", at.day.pick(BATCH, 1), at.day.hardware)
    loop.forward(at.day.pick(20, 1))
    settle = at.day.pick(SETTLE, 0.1)
    idle = window(meters, settle, seconds, lambda: time.sleep(0.01))
    load = window(meters, settle, seconds, lambda: loop.forward(1))
    for name, one in (("idle", idle), ("load", load)):
        at.figure(name, {"seconds": one.seconds, "joules": one.joules, "watts": one.watts,
                         "read_watts": one.read_watts, "steps": one.steps})  # fmt: skip
    items = load.steps * at.day.pick(BATCH, 1)
    at.figure(
        "joules_per_item",
        {
            "model": "resnet-50 fp32",
            "items": items,
            "whole": load.joules / items,
            "above_idle": (load.joules - idle.watts * load.seconds) / items,
        },
    )
    _update_rate(at, meters, lambda: loop.forward(1))
    if load.read_watts:
        ratio = load.watts / load.read_watts
        reached = 1 / AGREEMENT <= ratio <= AGREEMENT
        at.check("power, counter ÷ readings", ratio, f"within {AGREEMENT:g}", reached)
    at.at_least("power by the counter, load ÷ idle", load.watts / max(idle.watts, 1e-9), 1.0)


def window(meters: Telemetry, settle: float, seconds: float, step: Callable[[], object]) -> Window:
    """Energy and power while a step is repeated, once it has been for a while."""
    begins = time.monotonic() + settle
    while time.monotonic() < begins:
        step()
    powers: list[float] = []
    steps, asked = 0, 0.0
    before, start = _joules(meters), time.monotonic()
    while (now := time.monotonic()) < start + seconds:
        step()
        steps += 1
        if now >= asked + PAUSE:
            asked, said = now, meters.power_watts()
            powers += [] if isinstance(said, NotAvailable) else [said]
    took = time.monotonic() - start
    watts = statistics.fmean(powers) if powers else None
    return Window(took, _joules(meters) - before, watts, steps)


def _joules(meters: Telemetry) -> float:
    said = meters.energy_millijoules()
    if isinstance(said, NotAvailable):
        raise NotHereError(f"the energy counter stopped answering: {said.reason}")
    return said / 1000


def _update_rate(at: Recorder, meters: Telemetry, step: Callable[[], object]) -> None:
    """How often the counter moves, asked without a pause after a load."""
    step()
    moved: list[tuple[float, float]] = [(time.monotonic(), _joules(meters))]
    ends = time.monotonic() + at.day.pick(2.0, 0.2)
    asked = 0
    while time.monotonic() < ends:
        asked += 1
        joules = _joules(meters)
        if joules != moved[-1][1]:
            moved.append((time.monotonic(), joules))
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(moved[1:])]
    if gaps:
        at.figure("counter", {"asked": asked, "moved": len(moved) - 1,
                              "median_gap_ms": 1000 * statistics.median(gaps),
                              "longest_gap_ms": 1000 * max(gaps)})  # fmt: skip
    else:
        at.absent("counter", f"it moved less than twice in {asked} questions")
