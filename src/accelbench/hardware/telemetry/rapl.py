"""Meters of a CPU on Linux: energy by RAPL (/sys/class/powercap), clocks and temperature."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from accelbench.core.energy import EnergyMethod, MeterError
from accelbench.hardware.common import Files, NotAvailable, SystemFiles, number
from accelbench.hardware.cpufacts import NO_CPUFREQ, frequencies_mhz, meminfo, scaling
from accelbench.hardware.machine import throttle_events
from accelbench.hardware.telemetry.common import Clocks, ForeignProcess

_POWERCAP = "/sys/class/powercap"
#: Variable with the kernel's powercap folder, for containers that mount it elsewhere.
POWERCAP_VARIABLE = "ACCELBENCH_POWERCAP"

NO_POWERCAP = NotAvailable(
    "there is no /sys/class/powercap: the kernel has no RAPL driver, or a hypervisor hides it"
)
NOT_READABLE = NotAvailable(
    "RAPL counters can be read by root alone (CVE-2020-8694);"
    " allow it with: sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"
)


class CpuTelemetry:
    """Meters of the host's CPU: the sum of its packages, since a process may run on any."""

    source = "RAPL, cpufreq and /proc"

    def __init__(self, files: Files | None = None) -> None:
        self._files = files or SystemFiles()
        self._start = throttle_events(self._files)
        # energy_uj overflows at max_energy_range_uj, within minutes under load: overflows between
        # two readings are added back.
        self._last: dict[str, int] = {}
        self._turned_uj = 0

    def clocks(self) -> Clocks | NotAvailable:
        now = frequencies_mhz(self._files)
        if not now:
            return NO_CPUFREQ
        limits = scaling(self._files)
        most = None if isinstance(limits, NotAvailable) else limits.maximum_mhz
        return Clocks(sum(now.values()) / len(now), None, most)

    def energy_millijoules(self) -> float | NotAvailable:
        packages = _packages(self._files)
        if not packages:
            return NO_POWERCAP
        total = 0
        for name in packages:
            value = number(self._files.text(f"{name}/energy_uj"))
            if value is None:
                return NOT_READABLE
            if value < self._last.get(name, 0):
                turn = number(self._files.text(f"{name}/max_energy_range_uj"))
                if turn is None:
                    return NotAvailable("a RAPL counter started again and does not tell its range")
                self._turned_uj += turn
            self._last[name] = value
            total += value
        return (total + self._turned_uj) / 1000

    def power_watts(self) -> float | NotAvailable:
        return NotAvailable("RAPL counts energy; power is a difference of two of its readings")

    def temperature_celsius(self) -> float | NotAvailable:
        for zone in self._files.names("/sys/class/thermal"):
            folder = f"/sys/class/thermal/{zone}"
            if (self._files.text(f"{folder}/type") or "") in ("x86_pkg_temp", "cpu-thermal"):
                value = number(self._files.text(f"{folder}/temp"))
                if value is not None:
                    return value / 1000
        return NotAvailable("no thermal zone of the CPU is shown")

    def throttled(self) -> tuple[str, ...] | NotAvailable:
        now = throttle_events(self._files)
        if now is None or self._start is None:
            return NotAvailable("the kernel shows no thermal_throttle counters for this CPU")
        return ("temperature",) if now > self._start else ()

    def device_memory_used(self) -> int | NotAvailable:
        memory = meminfo(self._files.text("/proc/meminfo"))
        if "MemTotal" not in memory or "MemAvailable" not in memory:
            return NotAvailable("/proc/meminfo does not tell")
        return memory["MemTotal"] - memory["MemAvailable"]

    def foreign_processes(
        self, own: Collection[int] = ()
    ) -> tuple[ForeignProcess, ...] | NotAvailable:
        return NotAvailable("every process is on the CPU; see the share that others used")

    def close(self) -> None:
        return None


def _packages(files: Files) -> list[str]:
    root = os.environ.get(POWERCAP_VARIABLE) or _POWERCAP
    return [
        f"{root}/{name}"
        for name in files.names(root)
        # "intel-rapl:0" is a package, which includes its part "intel-rapl:0:1".
        if re.fullmatch(r"intel-rapl:\d+", name)
        and (files.text(f"{root}/{name}/name") or "").startswith("package")
    ]


def _memories(files: Files, package: str) -> list[str]:
    """Return folders of a package's DRAM, which servers count separately."""
    root, _, own = package.rpartition("/")
    return [
        f"{root}/{name}"
        for name in files.names(root)
        if re.fullmatch(rf"{re.escape(own)}:\d+", name)
        and files.text(f"{root}/{name}/name") == "dram"
    ]


def rapl_meter(files: Files | None = None) -> RaplMeter | NotAvailable:
    """Return all packages of the host with their DRAM, or why they cannot be read."""
    files = files or SystemFiles()
    packages = _packages(files)
    if not packages:
        return NO_POWERCAP
    memories = [memory for package in packages for memory in _memories(files, package)]
    meter = RaplMeter(files, packages, memories)
    try:
        meter.read()
    except MeterError:
        return NOT_READABLE
    return meter


def scope_of(packages: int, has_memory: bool) -> str:
    """Return a description of the hardware that the counters include."""
    noun, its = ("CPU package", "its") if packages == 1 else ("CPU packages", "their")
    memory = f" and {its} DRAM" if has_memory else "; DRAM is not included"
    return f"{packages} {noun}{memory}; other processes included"


class RaplMeter:
    """Counters of all packages and, if it is counted, of their DRAM."""

    source = "RAPL"
    method = EnergyMethod.COUNTER

    def __init__(self, files: Files, packages: list[str], memories: list[str]) -> None:
        self._files = files
        self._folders = [*packages, *memories]
        self.scope = scope_of(len(packages), bool(memories))
        limits = [number(files.text(f"{name}/max_energy_range_uj")) for name in self._folders]
        self.ranges = tuple(None if limit is None else limit / 1e6 for limit in limits)

    def read(self) -> tuple[float, ...]:
        readings = [number(self._files.text(f"{name}/energy_uj")) for name in self._folders]
        values = [reading / 1e6 for reading in readings if reading is not None]
        if len(values) < len(readings):
            raise MeterError("a RAPL counter cannot be read any more")
        return tuple(values)

    def close(self) -> None:
        return None
