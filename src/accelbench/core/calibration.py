"""Calibration of a device: limits measured by probes, and their stored form.

A probe is work with a known number of operations or bytes. Its value is the median over blocks of
steps, with an interval. A peak is the value of the best size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msgspec import ValidationError, convert

from accelbench.core.identity import to_plain
from accelbench.core.precision import narrow_type


class ProbeKind(StrEnum):
    """Resource that limits a probe."""

    MATRIX = "matrix product"
    ATTENTION = "attention"
    MEMORY = "memory"
    CACHE = "cache"
    LAUNCH = "launch"
    COLLECTIVE = "collective"


#: Unit of each kind's value: a time for a launch, a rate for the others.
UNITS = {
    ProbeKind.MATRIX: "FLOP/s",
    ProbeKind.ATTENTION: "FLOP/s",
    ProbeKind.MEMORY: "B/s",
    ProbeKind.CACHE: "B/s",
    ProbeKind.LAUNCH: "s",
    ProbeKind.COLLECTIVE: "B/s",
}


#: Condition with the warnings about collectives; the measured peaks do not depend on them.
COLLECTIVE_WARNINGS = "collective_warnings"
_RANK_COUNT = re.compile(r"-\d{1,6}-ranks$")


@dataclass(frozen=True)
class ProbeSpec:
    """A probe to be timed."""

    kind: ProbeKind
    name: str  # in results and tables: probe/matmul-1024
    precision: str  # of its values
    size: int  # side of the matrices, bytes of an array, or length of the sequence
    work: float  # operations or bytes of a step; launches of one

    @property
    def unit(self) -> str:
        return UNITS[self.kind]

    @property
    def has_rank_count(self) -> bool:
        """Whether it is a collective whose name has the number of ranks."""
        return self.kind is ProbeKind.COLLECTIVE and bool(_RANK_COUNT.search(self.name))

    @property
    def collective(self) -> str:
        """Name of the collective: all_reduce for probe/all_reduce-1MiB-2-ranks."""
        return self.name.removeprefix("probe/").partition("-")[0]

    @property
    def ranks(self) -> int:
        return int(self.name.removesuffix("-ranks").rpartition("-")[2])


@dataclass(frozen=True)
class ProbeResult:
    """Timed probe."""

    spec: ProbeSpec
    steps: int  # in each block
    samples_ns: tuple[int, ...]  # one for each block
    value: float  # the median over blocks, in the unit of the probe
    low: float | None  # 95 % interval of the median; None for fewer than five blocks
    high: float | None

    @property
    def step_seconds(self) -> float:
        """Duration of a step that follows from the value."""
        return self.value if self.spec.kind is ProbeKind.LAUNCH else self.spec.work / self.value

    @property
    def algorithm_rate(self) -> float:
        """Bytes of a collective's buffer per second; `value` counts the bytes on the bus."""
        return self.spec.size / self.step_seconds


@dataclass(frozen=True)
class ProbeRefusal:
    """Probe that could not be timed, with the reason."""

    name: str
    precision: str
    reason: str


@dataclass(frozen=True)
class CalibratedLimits:
    """Measured limits of a device, with its platform and name."""

    hardware: str
    device_name: str
    measured_at: str  # UTC
    peaks: Mapping[str, float]  # operations per second of the best matrix product, by precision
    bandwidth: float  # bytes per second between memory and processor

    @property
    def day(self) -> str:
        return self.measured_at[:10]

    def peak(self, precision: str) -> float | None:
        """Return the peak for a precision; autocast multiplies in its narrow type."""
        return self.peaks.get(narrow_type(precision) or precision)


@dataclass(frozen=True)
class TimedCollectives:
    """Collectives among some ranks, timed by one calibration."""

    fingerprint: str  # of the device that was calibrated
    hardware: str
    device_name: str
    measured_at: str  # when the calibration began, UTC
    engine: str  # of the ranks
    ranks: int
    figures: tuple[ProbeResult, ...]  # of each collective and size
    warnings: tuple[str, ...] = ()

    @property
    def day(self) -> str:
        return self.measured_at[:10]

    def group_by_name(self) -> dict[str, list[ProbeResult]]:
        """Return the results of each collective, smallest size first."""
        names: dict[str, list[ProbeResult]] = {}
        for entry in sorted(self.figures, key=lambda entry: entry.spec.size):
            names.setdefault(entry.spec.collective, []).append(entry)
        order = dict.fromkeys(entry.spec.collective for entry in self.figures)
        return {name: names[name] for name in order}


@dataclass(frozen=True)
class DeviceCalibration:
    """Results of the probes of one calibration of a device."""

    fingerprint: str
    hardware: str
    device_name: str
    measured_at: str  # when it began, UTC
    engine: str  # of the probes: "torch 2.13.0"
    threads: int | None  # of the engine on the host
    figures: tuple[ProbeResult, ...]  # of probes that were timed
    refusals: tuple[ProbeRefusal, ...] = ()
    # versions and settings of the engine, the device and the machine
    conditions: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def best(self, kind: ProbeKind, precision: str | None = None) -> ProbeResult | None:
        """Return the result of a kind with the highest median; for launches, the shortest."""
        results = [
            figure for figure in self.figures
            if figure.spec.kind is kind and precision in (None, figure.spec.precision)
        ]  # fmt: skip
        sign = -1 if kind is ProbeKind.LAUNCH else 1
        return max(results, key=lambda figure: sign * figure.value, default=None)

    def precisions(self, kind: ProbeKind) -> list[str]:
        """Return the precisions in which probes of a kind were timed, in that order."""
        return list(dict.fromkeys(f.spec.precision for f in self.figures if f.spec.kind is kind))

    @property
    def collectives(self) -> list[TimedCollectives]:
        groups: dict[int, list[ProbeResult]] = {}
        for entry in self.figures:
            if entry.spec.has_rank_count and entry.value > 0:
                groups.setdefault(entry.spec.ranks, []).append(entry)
        identity = (
            self.fingerprint,
            self.hardware,
            self.device_name,
            self.measured_at,
            self.engine,
        )
        warnings = tuple(map(str, self.conditions.get(COLLECTIVE_WARNINGS) or ()))
        return [
            TimedCollectives(*identity, ranks, tuple(groups[ranks]), warnings)
            for ranks in sorted(groups)
        ]

    @property
    def limits(self) -> CalibratedLimits | None:
        """Peaks and bandwidth; None without a peak in fp32 or without a bandwidth."""
        peaks = {
            precision: best.value
            for precision in self.precisions(ProbeKind.MATRIX)
            if (best := self.best(ProbeKind.MATRIX, precision))
        }
        memory = self.best(ProbeKind.MEMORY)
        if memory is None or "fp32" not in peaks:
            return None
        return CalibratedLimits(
            self.hardware, self.device_name, self.measured_at, peaks, memory.value
        )

    def to_body(self) -> dict[str, Any]:
        body: dict[str, Any] = to_plain(self)
        return body

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> DeviceCalibration:
        """Return the calibration of a fact; raise ValueError for others."""
        try:
            return convert(body, cls)
        except ValidationError as error:
            raise ValueError(str(error)) from error


def spec_from_body(body: Mapping[str, Any]) -> ProbeSpec:
    """Return the probe of its plain form."""
    return ProbeSpec(**{**body, "kind": ProbeKind(body["kind"])})
