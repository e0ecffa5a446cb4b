"""AMD's meters, by amdsmi."""

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


def amd_telemetry(ordinal: int, uuid: str | None = None, smi: Any = None) -> Telemetry:
    """Return the meters of the GPU with this UUID, or of the nth without one."""
    if smi is None:
        try:
            smi = import_module("amdsmi")
        except (ImportError, KeyError, OSError):  # amdsmi raises KeyError if its library is missing
            return NullTelemetry(
                "amdsmi is not installed or finds no library: accelbench setup rocm"
            )
    try:
        smi.amdsmi_init()
        handles = smi.amdsmi_get_processor_handles()
        if uuid is not None:
            named = [h for h in handles if smi.amdsmi_get_gpu_device_uuid(h) == uuid]
            handles, ordinal = (named, 0) if named else (handles, ordinal)
        return AmdTelemetry(smi, handles[ordinal], smi.AmdSmiException)
    except smi.AmdSmiException as error:
        return NullTelemetry(f"amdsmi: {error}")
    except IndexError:
        return NullTelemetry(f"amdsmi shows no GPU {ordinal}")


class AmdTelemetry(LibraryTelemetry):
    """Meters of one GPU; amdsmi returns "N/A" for values that a card lacks."""

    source = "amdsmi"

    def clocks(self) -> Clocks | NotAvailable:
        kinds = self._library.AmdSmiClkType
        compute = self._query("amdsmi_get_clock_info", kinds.GFX)
        if isinstance(compute, NotAvailable):
            return compute
        memory = self._query("amdsmi_get_clock_info", kinds.MEM)
        return Clocks(
            compute_mhz=_to_number(compute.get("clk")),
            memory_mhz=None if isinstance(memory, NotAvailable) else _to_number(memory.get("clk")),
            compute_max_mhz=_to_number(compute.get("max_clk")),
        )

    def energy_millijoules(self) -> float | NotAvailable:
        energy = self._query("amdsmi_get_energy_count")
        if isinstance(energy, NotAvailable):
            return energy
        # The accumulator counts steps of `counter_resolution` microjoules.
        return float(energy["energy_accumulator"]) * float(energy["counter_resolution"]) / 1000

    def power_watts(self) -> float | NotAvailable:
        power = self._query("amdsmi_get_power_info")
        if isinstance(power, NotAvailable):
            return power
        for key in ("current_socket_power", "average_socket_power"):
            if (watts := _to_number(power.get(key))) is not None:
                return watts
        return NotAvailable("amdsmi: this card tells no power")

    def temperature_celsius(self) -> float | NotAvailable:
        smi = self._library
        answer: float | NotAvailable = self._query(
            "amdsmi_get_temp_metric",
            smi.AmdSmiTemperatureType.HOTSPOT,
            smi.AmdSmiTemperatureMetric.CURRENT,
        )
        return answer

    def throttled(self) -> tuple[str, ...] | NotAvailable:
        metrics = self._query("amdsmi_get_gpu_metrics_info")
        if isinstance(metrics, NotAvailable):
            return metrics
        status = metrics.get("throttle_status")
        if not isinstance(status, (bool, int)):
            return NotAvailable("amdsmi: this card tells no throttle status")
        return ("throttled; amdsmi does not say why",) if status else ()

    def device_memory_used(self) -> int | NotAvailable:
        answer: int | NotAvailable = self._query(
            "amdsmi_get_gpu_memory_usage", self._library.AmdSmiMemoryType.VRAM
        )
        return answer

    def foreign_processes(
        self, own: Collection[int] = ()
    ) -> tuple[ForeignProcess, ...] | NotAvailable:
        running = self._query("amdsmi_get_gpu_process_list")
        if isinstance(running, NotAvailable):
            return running
        return foreign_only([ForeignProcess(p["pid"], p.get("mem")) for p in running], own)

    def close(self) -> None:
        self._library.amdsmi_shut_down()


def _to_number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
