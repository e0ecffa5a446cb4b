"""Energy meter of a device, or the reason why there is none.

A counter of energy is preferred to readings of power. The CPU's meter counts the work of every
engine on the host's CPU. Nothing is estimated from a table of chips.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from accelbench.core.energy import EnergyMeter, EnergyMethod, MeterError
from accelbench.core.protocols import Device
from accelbench.hardware.common import Files, NotAvailable, is_processor
from accelbench.hardware.telemetry import telemetry_for
from accelbench.hardware.telemetry.apple import apple_meter
from accelbench.hardware.telemetry.common import Telemetry
from accelbench.hardware.telemetry.rapl import NOT_READABLE, rapl_meter, scope_of

#: Variables that zeus reads, in this order.
ENDPOINTS = ("ZEUSD_SOCK_PATH", "ZEUSD_HOST_PORT")


def zeusd_meter(module: Any = None) -> ZeusdMeter | None:
    """Return the counters of zeusd; None without a daemon.

    The daemon of the zeus project reads RAPL as root. It is used if zeus is installed and its
    variable names the daemon. Importing its client only imports httpx, which takes a tenth of a
    second.
    """
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    try:
        module = module or import_module("zeus.utils.zeusd")
        client = module.ZeusdClient()
        meter = ZeusdMeter(client)
        meter.read()
    except Exception:  # of zeus or httpx: the reason of RAPL is reported
        return None
    return meter


class ZeusdMeter:
    """All packages that the daemon reads; it handles overflows of its counters."""

    source = "RAPL, through zeusd"
    method = EnergyMethod.COUNTER

    def __init__(self, client: Any) -> None:
        self._client = client
        self._ids = list(client.cpu_ids)
        dram = sum(bool(known) for known in client.dram_available)
        self.ranges = (None,) * (len(self._ids) + dram)
        self.scope = scope_of(len(self._ids), bool(dram))

    def read(self) -> tuple[float, ...]:
        try:
            energy = self._client.get_cpu_energy(self._ids, cpu=True, dram=True)
        except Exception as error:
            raise MeterError(f"zeusd: {' '.join(str(error).split())}") from error
        counters = [energy[package].cpu_energy_uj for package in self._ids]
        memory = [energy[package].dram_energy_uj for package in self._ids]
        counters += [value for value in memory if value is not None]
        if len(counters) != len(self.ranges) or None in counters:
            raise MeterError("zeusd left out a counter")
        return tuple(value / 1e6 for value in counters)

    def close(self) -> None:
        return None


#: Platforms with meters that accelbench can read.
_METERED = ("cpu", "cuda", "rocm", "mps")


def energy_meter(
    device: Device, files: Files | None = None, system: str = sys.platform
) -> EnergyMeter | NotAvailable:
    """Return the meter of one device, which the caller must close."""
    if device.emulated:
        return NotAvailable("software stands in for the device: the energy is not the device's")
    if system == "darwin" and (is_processor(device) or device.hardware == "mps"):
        return apple_meter("cpu" if is_processor(device) else "gpu")
    if is_processor(device):
        return _host_meter(files, system)
    if device.hardware in ("cuda", "rocm"):
        return telemetry_meter(telemetry_for(device))
    return NotAvailable(f"no meter of {_name(device)} is known to accelbench on this system")


def _host_meter(files: Files | None, system: str) -> EnergyMeter | NotAvailable:
    if system != "linux":
        return NotAvailable("on this system accelbench reads no energy counter of the CPU")
    meter = rapl_meter(files)
    if meter is NOT_READABLE:
        daemon = zeusd_meter()  # it reads as root
        return meter if daemon is None else daemon
    return meter


def describe_meters(devices: Sequence[Device], files: Files | None = None) -> dict[str, str]:
    """Return a description of each device's meter, or the reason why it has none.

    Platforms without a known meter are left out.
    """
    texts: dict[str, str] = {}
    for device in devices:
        if device.hardware in _METERED:
            meter = energy_meter(device, files)
            if isinstance(meter, NotAvailable):
                texts[str(device)] = str(meter)
                continue
            texts[str(device)] = f"{meter.source}: {meter.scope}"
            meter.close()
    return texts


def combined_meter(
    devices: Sequence[Device], files: Files | None = None
) -> EnergyMeter | NotAvailable:
    """Return one meter of all devices of a case, or the reason why one of them has none."""
    meters: list[EnergyMeter] = []
    hosts = 0
    for device in devices:
        hosts += is_processor(device)
        if is_processor(device) and hosts > 1:
            continue  # all processes on the CPU share its packages, which count once
        meter = energy_meter(device, files)
        if isinstance(meter, NotAvailable):
            for opened in meters:
                opened.close()
            return NotAvailable(f"{device}: {meter.reason}") if len(devices) > 1 else meter
        meters.append(meter)
    if not meters:
        return NotAvailable("no device was named")
    if len({meter.method for meter in meters}) > 1:
        for meter in meters:
            meter.close()
        return NotAvailable("one device counts energy, and another shows its power alone")
    return meters[0] if len(meters) == 1 else MeterSum(meters)


class MeterSum:
    """Meters of several devices as one."""

    def __init__(self, meters: Sequence[EnergyMeter]) -> None:
        self._meters = meters
        self.source = " + ".join(dict.fromkeys(meter.source for meter in meters))
        self.scope = "; ".join(dict.fromkeys(meter.scope for meter in meters))
        self.scope += f" (sum over {len(meters)} devices)"
        self.method = meters[0].method
        self.ranges = tuple(limit for meter in meters for limit in meter.ranges)

    def read(self) -> tuple[float, ...]:
        return tuple(value for meter in self._meters for value in meter.read())

    def close(self) -> None:
        for meter in self._meters:
            meter.close()


def telemetry_meter(telemetry: Telemetry) -> EnergyMeter | NotAvailable:
    """Return an accelerator's telemetry as a meter: its counter, else its power."""
    energy = telemetry.energy_millijoules()
    if not isinstance(energy, NotAvailable):
        return TelemetryMeter(telemetry, EnergyMethod.COUNTER)
    power = telemetry.power_watts()
    if not isinstance(power, NotAvailable):
        return TelemetryMeter(telemetry, EnergyMethod.INTEGRATED)
    telemetry.close()
    same = energy.reason == power.reason
    return energy if same else NotAvailable(f"{energy.reason}; nor its power: {power.reason}")


class TelemetryMeter:
    """Meter of one GPU by its telemetry. Its 64-bit counter decreases only if it is reset."""

    ranges = (None,)

    def __init__(self, telemetry: Telemetry, method: EnergyMethod) -> None:
        self._telemetry = telemetry
        self.method = method
        self.source = telemetry.source
        self.scope = "the device's board, all that runs on it; the host is not included"

    def read(self) -> tuple[float, ...]:
        if self.method is EnergyMethod.COUNTER:
            value, parts = self._telemetry.energy_millijoules(), 1000.0
        else:
            value, parts = self._telemetry.power_watts(), 1.0
        if isinstance(value, NotAvailable):
            raise MeterError(value.reason)
        return (value / parts,)

    def close(self) -> None:
        self._telemetry.close()


def _name(device: Device) -> str:
    return f"{device.hardware}:{device.unit}" if device.unit else device.hardware
