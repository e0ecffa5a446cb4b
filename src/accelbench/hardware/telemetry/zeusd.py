"""RAPL through zeusd, the daemon of the zeus project: it reads as root what others may not.

Only where zeus is installed and its environment variable names the daemon. Importing its client
takes httpx alone, a tenth of a second; the rest of zeus is not imported.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from accelbench.core.energy import EnergyMethod, MeterError

#: What zeus itself looks for, in this order.
ENDPOINTS = ("ZEUSD_SOCK_PATH", "ZEUSD_HOST_PORT")


def zeusd_meter(module: Any = None) -> ZeusdMeter | None:
    """The daemon's counters of CPU packages and their memory; None where no daemon serves them."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    try:
        module = module or import_module("zeus.utils.zeusd")
        client = module.ZeusdClient()
        meter = ZeusdMeter(client)
        meter.read()
    except Exception:  # whatever zeus or httpx raise: RAPL's own reason stands
        return None
    return meter


class ZeusdMeter:
    """Every package that the daemon reads. It counts its counters' turns itself."""

    source = "RAPL, through zeusd"
    method = EnergyMethod.COUNTER

    def __init__(self, client: Any) -> None:
        self._client = client
        self._ids = list(client.cpu_ids)
        dram = sum(bool(known) for known in client.dram_available)
        self.ranges = (None,) * (len(self._ids) + dram)
        noun = "CPU package" if len(self._ids) == 1 else "CPU packages"
        its = "its" if len(self._ids) == 1 else "their"
        memory = f" and {its} DRAM" if dram else "; DRAM is not included"
        self.scope = f"{len(self._ids)} {noun}{memory}; other processes included"

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
