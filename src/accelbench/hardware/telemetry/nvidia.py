"""NVIDIA's meters, by NVML."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry.common import (
    Clocks,
    ForeignProcess,
    LibraryTelemetry,
    NullTelemetry,
    Telemetry,
    foreign_only,
)

#: NVML's clock-event bits that limit clocks, as texts. Idle, application clocks and sync boost are
#: left out, because they are chosen.
_REASONS = {
    0x04: "power cap", 0x08: "hardware slowdown", 0x20: "temperature (software)",
    0x40: "temperature (hardware)", 0x80: "power brake", 0x200: "board limit",
}  # fmt: skip


def nvidia_telemetry(uuid: str, nvml: Any = None) -> Telemetry:
    """Return the meters of the GPU (or MIG instance) with this UUID."""
    if nvml is None:
        try:
            nvml = import_module("pynvml")
        except ImportError:
            return NullTelemetry("the package nvidia-ml-py is not installed: accelbench setup cuda")
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        return NvidiaTelemetry(nvml, handle, nvml.NVMLError)
    except nvml.NVMLError as error:
        return NullTelemetry(f"NVML: {error}")


class NvidiaTelemetry(LibraryTelemetry):
    """Meters of one GPU."""

    source = "NVML"

    def _number(self, name: str, *args: Any) -> float | None:
        answer = self._query(name, *args)
        return None if isinstance(answer, NotAvailable) else float(answer)

    def clocks(self) -> Clocks | NotAvailable:
        nvml = self._library
        compute = self._query("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)
        if isinstance(compute, NotAvailable):
            return compute
        return Clocks(
            compute_mhz=float(compute),
            memory_mhz=self._number("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            compute_max_mhz=self._number("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        )

    def energy_millijoules(self) -> float | NotAvailable:
        answer: float | NotAvailable = self._query("nvmlDeviceGetTotalEnergyConsumption")
        return answer

    def power_watts(self) -> float | NotAvailable:
        answer = self._query("nvmlDeviceGetPowerUsage")
        return answer if isinstance(answer, NotAvailable) else answer / 1000

    def temperature_celsius(self) -> float | NotAvailable:
        answer: float | NotAvailable = self._query(
            "nvmlDeviceGetTemperature", self._library.NVML_TEMPERATURE_GPU
        )
        return answer

    def throttled(self) -> tuple[str, ...] | NotAvailable:
        # The newer name came with CUDA 12; older drivers only have the older one.
        bits = self._query("nvmlDeviceGetCurrentClocksEventReasons")
        if isinstance(bits, NotAvailable):
            bits = self._query("nvmlDeviceGetCurrentClocksThrottleReasons")
        if isinstance(bits, NotAvailable):
            return bits
        return tuple(reason for bit, reason in _REASONS.items() if bits & bit)

    def device_memory_used(self) -> int | NotAvailable:
        answer = self._query("nvmlDeviceGetMemoryInfo")
        return answer if isinstance(answer, NotAvailable) else int(answer.used)

    def foreign_processes(
        self, own: Collection[int] = ()
    ) -> tuple[ForeignProcess, ...] | NotAvailable:
        processes: list[ForeignProcess] = []
        for name in (
            "nvmlDeviceGetComputeRunningProcesses",
            "nvmlDeviceGetGraphicsRunningProcesses",
        ):
            running = self._query(name)
            if isinstance(running, NotAvailable):
                return running
            processes += [
                ForeignProcess(p.pid, None if p.usedGpuMemory is None else int(p.usedGpuMemory))
                for p in running
            ]
        return foreign_only(processes, own)

    def close(self) -> None:
        # NVML counts its users, and the last one unloads it.
        self._library.nvmlShutdown()
