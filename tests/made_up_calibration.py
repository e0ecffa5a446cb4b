"""A calibration that nobody had to measure, and a database that has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from accelbench.core.calibration import (
    DeviceCalibration,
    ProbeKind,
    ProbeRefusal,
    ProbeResult,
    ProbeSpec,
)
from accelbench.core.protocols import Device
from accelbench.run import calibrating
from accelbench.run.calibrating import BUS_FACTORS, collective_specs, figure_of
from accelbench.store.database import Database
from accelbench.store.opening import open_store

PROCESSOR = Device("cpu", "A processor", count=2)


def probe_figure(
    value: float, kind: ProbeKind, name: str, precision: str = "fp32", size: int = 1024
) -> ProbeResult:
    """A figure of five blocks of ten steps."""
    seconds = value if kind is ProbeKind.LAUNCH else 1.0
    work = 1.0 if kind is ProbeKind.LAUNCH else value
    spec = ProbeSpec(kind, f"probe/{name}", precision, size, work)
    samples = tuple(int(seconds * 1e10) + number for number in range(5))
    return ProbeResult(spec, 10, samples, value, value * 0.99, value * 1.02)


def made_calibration(
    device: Device = PROCESSOR,
    fp32: float = 100e9,
    bandwidth: float = 20e9,
    day: str = "2026-03-04",
    **narrow: float,
) -> DeviceCalibration:
    """Two sizes in fp32, of which the larger is the peak; more precisions by their names."""
    figures = [
        probe_figure(fp32 * 0.8, ProbeKind.MATRIX, "matmul-512", size=512),
        probe_figure(fp32, ProbeKind.MATRIX, "matmul-1024"),
        probe_figure(bandwidth * 0.9, ProbeKind.MEMORY, "memory-copy", size=2**26),
        probe_figure(bandwidth, ProbeKind.MEMORY, "memory-triad", size=2**26),
        *(probe_figure(peak, ProbeKind.MATRIX, "matmul-1024", name)
          for name, peak in narrow.items()),
        probe_figure(bandwidth * 4, ProbeKind.CACHE, "cache-L2", size=2**18),
        probe_figure(2e-6, ProbeKind.LAUNCH, "launch", size=1),
        probe_figure(fp32 / 2, ProbeKind.ATTENTION, "attention-1024"),
    ]  # fmt: skip
    return DeviceCalibration(
        device.fingerprint, device.hardware, device.name, f"{day}T05:06:07.000000Z",
        "torch 2.13.0", 2, tuple(figures),
        (ProbeRefusal("probe/matmul-4096", "fp32", "a step would take about 3 s"),),
        {"capability": "AVX2"},
    )  # fmt: skip


def with_collectives(
    calibration: DeviceCalibration, ranks: int = 2, latency: float = 60e-6, rate: float = 2e9
) -> DeviceCalibration:
    """The same with collectives, each of which takes its latency and what its bytes take.

    One that follows in the list of all takes a fifth longer than the one before.
    """
    names = list(BUS_FACTORS)
    figures = [
        figure_of(spec, 4, [int(seconds * 4e9 * skew) for skew in _SKEWS])
        for spec in collective_specs(ranks)
        for seconds in ((latency + spec.size / rate) * 1.2 ** names.index(spec.collective),)
    ]
    return replace(calibration, figures=(*calibration.figures, *figures))


#: Of a probe's blocks against its usual one.
_SKEWS = (1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.03, 0.97)


def calibrated_store(
    path: Path,
    *several: DeviceCalibration,
    device: Device = PROCESSOR,
    machine: Mapping[str, object] | None = None,
) -> Database:
    """The database of that path with calibrations in it, made on a machine."""
    database = open_store(path)
    database.ensure()
    for number, calibration in enumerate(several):
        # A run's id sorts by its second; here several are stored in one.
        key = f"{calibration.measured_at[:10]}-{number}"
        with patch.object(calibrating, "new_run_id", lambda key=key: key):
            calibrating.record(
                calibration, device, database.journals, machine or {"machine": "lab"}
            )
    database.fill()
    return database
