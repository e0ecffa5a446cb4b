"""Apple's meters: macOS shows GPU power and clocks only to root (powermetrics).

Users can read the GPU's memory from the I/O registry and, through zeus-apple-silicon, the energy
counters of IOReport.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from accelbench.core.energy import EnergyMethod, MeterError
from accelbench.hardware.common import Command, HardwareError, NotAvailable, run_command
from accelbench.hardware.telemetry.common import NullTelemetry, query_library

_SECONDS = 5.0


class AppleTelemetry(NullTelemetry):
    """Meters of the GPU of an Apple chip."""

    source = "ioreg"

    def __init__(self, command: Command = run_command) -> None:
        super().__init__("macOS shows it to root alone, through powermetrics")
        self._command = command

    def device_memory_used(self) -> int | NotAvailable:
        text = query_library(
            lambda: self._command(["ioreg", "-r", "-d", "1", "-c", "IOAccelerator"], _SECONDS),
            HardwareError,
            "ioreg",
        )
        if isinstance(text, NotAvailable):
            return text
        match = re.search(r'"In use system memory"=(\d+)', text)
        return int(match[1]) if match else NotAvailable("ioreg shows no GPU memory in use")


#: Summed counters of IOReport for each part of the chip, with their description.
_PARTS = {"cpu": ("cpu_total_mj", "the CPU's cores"), "gpu": ("gpu_mj", "the GPU")}


def apple_meter(part: str, library: Any = None) -> AppleMeter | NotAvailable:
    """Return the counters of an Apple chip's part, "cpu" or "gpu"."""
    try:
        library = library or import_module("zeus_apple_silicon")
    except ImportError:
        return NotAvailable(
            "the package zeus-apple-silicon is not installed: accelbench setup energy"
        )
    try:
        return AppleMeter(library.AppleEnergyMonitor(), part)
    except (RuntimeError, MeterError) as error:
        return NotAvailable(f"zeus-apple-silicon: {' '.join(str(error).split())}")


class AppleMeter:
    """Energy of a chip's CPU or GPU, with its DRAM if that is counted."""

    source = "IOReport, through zeus-apple-silicon"
    method = EnergyMethod.COUNTER

    def __init__(self, monitor: Any, part: str) -> None:
        name, words = _PARTS[part]
        self._monitor = monitor
        known = monitor.get_cumulative_energy()
        if getattr(known, name, None) is None:
            raise MeterError(f"this chip does not count the energy of {words}")
        has_memory = known.dram_mj is not None
        self._names = (name, "dram_mj") if has_memory else (name,)
        self.ranges = (None,) * len(self._names)
        memory = " and the chip's DRAM" if has_memory else "; DRAM is not included"
        self.scope = f"{words}{memory}; other processes included"

    def read(self) -> tuple[float, ...]:
        try:
            energy = self._monitor.get_cumulative_energy()
        except RuntimeError as error:
            raise MeterError(f"zeus-apple-silicon: {error}") from error
        values = [getattr(energy, name) for name in self._names]
        if None in values:
            raise MeterError("zeus-apple-silicon left out a counter")
        return tuple(value / 1e3 for value in values)

    def close(self) -> None:
        return None
