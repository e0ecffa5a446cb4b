"""Calibration of a device: what probes measured of its limits, and how that is kept. Pure.

A probe is work of known operations or bytes. Its value is the median over blocks of steps, with an
interval; a peak is the value of the best size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msgspec import ValidationError, convert

from accelbench.core.identity import plain
from accelbench.core.precision import narrowed


class ProbeKind(StrEnum):
    """What a probe is bound by."""

    MATRIX = "matrix product"
    ATTENTION = "attention"
    MEMORY = "memory"
    CACHE = "cache"
    LAUNCH = "launch"
    COLLECTIVE = "collective"


#: What a figure is in; a launch is a time, everything else a rate.
UNITS = {
    ProbeKind.MATRIX: "FLOP/s",
    ProbeKind.ATTENTION: "FLOP/s",
    ProbeKind.MEMORY: "B/s",
    ProbeKind.CACHE: "B/s",
    ProbeKind.LAUNCH: "s",
    ProbeKind.COLLECTIVE: "B/s",
}


#: Of a calibration's conditions: what speaks against its collectives, and not its peaks.
COLLECTIVE_WARNINGS = "collective_warnings"
_AMONG = re.compile(r"-\d{1,6}-ranks$")


@dataclass(frozen=True)
class ProbeSpec:
    """A probe to be timed."""

    kind: ProbeKind  # what it is bound by
    name: str  # as results and tables call it: probe/matmul-1024
    precision: str  # of its values
    size: int  # side of the matrices, bytes of an array, or length of the sequence
    work: float  # operations or bytes of a step; launches of one

    @property
    def unit(self) -> str:
        return UNITS[self.kind]

    @property
    def among_ranks(self) -> bool:
        """Whether it is a collective's, and says among how many ranks."""
        return self.kind is ProbeKind.COLLECTIVE and bool(_AMONG.search(self.name))

    @property
    def collective(self) -> str:
        """Of a collective's probe its name: all_reduce of probe/all_reduce-1MiB-2-ranks."""
        return self.name.removeprefix("probe/").partition("-")[0]

    @property
    def ranks(self) -> int:
        return int(self.name.removesuffix("-ranks").rpartition("-")[2])


@dataclass(frozen=True)
class ProbeFigure:
    """A probe's figure."""

    spec: ProbeSpec
    steps: int  # how many steps a block has
    samples_ns: tuple[int, ...]  # what each block took
    value: float  # the median over blocks, in the unit of the probe
    low: float | None  # with high, the 95 % interval of the median; None of fewer than five blocks
    high: float | None

    @property
    def step_seconds(self) -> float:
        """What a step takes, by the figure."""
        return self.value if self.spec.kind is ProbeKind.LAUNCH else self.spec.work / self.value

    @property
    def algorithm_rate(self) -> float:
        """Of a collective bytes of its buffer a second; its figure is the bus's."""
        return self.spec.size / self.step_seconds


@dataclass(frozen=True)
class ProbeRefusal:
    """A probe without a figure, and why."""

    name: str
    precision: str
    reason: str


@dataclass(frozen=True)
class CalibratedLimits:
    """Measured limits of a device, by the name of its platform and its own."""

    hardware: str
    device_name: str
    measured_at: str  # when, UTC
    peaks: Mapping[str, float]  # operations a second of the best matrix product, by precision
    bandwidth: float  # bytes a second between memory and processor

    @property
    def day(self) -> str:
        return self.measured_at[:10]

    def peak(self, precision: str) -> float | None:
        """The peak that a precision's products meet; autocast multiplies in its narrow type."""
        return self.peaks.get(narrowed(precision) or precision)


@dataclass(frozen=True)
class TimedCollectives:
    """What collectives among some ranks took, by one calibration."""

    fingerprint: str  # of the device that was calibrated
    hardware: str
    device_name: str
    measured_at: str  # when the calibration began, UTC
    engine: str  # what the ranks ran in
    ranks: int  # how many they were
    figures: tuple[ProbeFigure, ...]  # of each collective and size
    warnings: tuple[str, ...] = ()  # what speaks against them

    @property
    def day(self) -> str:
        return self.measured_at[:10]

    def by_name(self) -> dict[str, list[ProbeFigure]]:
        """The figures of each collective, smallest size first."""
        names: dict[str, list[ProbeFigure]] = {}
        for entry in sorted(self.figures, key=lambda entry: entry.spec.size):
            names.setdefault(entry.spec.collective, []).append(entry)
        order = dict.fromkeys(entry.spec.collective for entry in self.figures)
        return {name: names[name] for name in order}


@dataclass(frozen=True)
class DeviceCalibration:
    """What the probes of one calibration measured of a device."""

    fingerprint: str
    hardware: str
    device_name: str
    measured_at: str  # when it began, UTC
    engine: str  # what ran the probes: "torch 2.13.0"
    threads: int | None  # how many the engine had on the host
    figures: tuple[ProbeFigure, ...]  # of probes that were timed
    refusals: tuple[ProbeRefusal, ...] = ()
    # what the engine says of the device and of itself, and the machine around it
    conditions: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # what speaks against the figures

    def best(self, kind: ProbeKind, precision: str | None = None) -> ProbeFigure | None:
        """Of a kind's probes the one with the highest median; of launches the shortest."""
        some = [
            figure for figure in self.figures
            if figure.spec.kind is kind and precision in (None, figure.spec.precision)
        ]  # fmt: skip
        sign = -1 if kind is ProbeKind.LAUNCH else 1
        return max(some, key=lambda figure: sign * figure.value, default=None)

    def precisions(self, kind: ProbeKind) -> list[str]:
        """The precisions in which probes of a kind have figures, in the order they were timed."""
        return list(dict.fromkeys(f.spec.precision for f in self.figures if f.spec.kind is kind))

    @property
    def collectives(self) -> list[TimedCollectives]:
        groups: dict[int, list[ProbeFigure]] = {}
        for entry in self.figures:
            if entry.spec.among_ranks and entry.value > 0:
                groups.setdefault(entry.spec.ranks, []).append(entry)
        about = (self.fingerprint, self.hardware, self.device_name, self.measured_at, self.engine)
        against = tuple(map(str, self.conditions.get(COLLECTIVE_WARNINGS) or ()))
        return [
            TimedCollectives(*about, ranks, tuple(groups[ranks]), against)
            for ranks in sorted(groups)
        ]

    @property
    def limits(self) -> CalibratedLimits | None:
        """Peaks and bandwidth; None without a peak in fp32 or a bandwidth, which both are asked."""
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
        body: dict[str, Any] = plain(self)
        return body

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> DeviceCalibration:
        """Return the calibration of a fact; raise ValueError for others."""
        try:
            return convert(body, cls)
        except ValidationError as error:
            raise ValueError(str(error)) from error


def spec_from_body(body: Mapping[str, Any]) -> ProbeSpec:
    """A probe from its plain form."""
    return ProbeSpec(**{**body, "kind": ProbeKind(body["kind"])})
