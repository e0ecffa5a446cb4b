"""Options under limits: each way at each batch with its values. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from accelbench.core.case import Option as Setting
from accelbench.core.precision import error_of
from accelbench.core.result_statistics import Statistic
from accelbench.core.rows import Row
from accelbench.recommend.choosing import Prices
from accelbench.recommend.constraints.limits import LimitReason
from accelbench.recommend.estimated_figures import (
    MEASURED,
    Bounds,
    Figure,
    by_batches,
    counted_memory,
    figure,
)
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import (
    ITEMS,
    EvidenceCell,
    EvidenceRow,
    FigureOrigin,
    settings_of,
    sizes_of,
    way_of,
)
from accelbench.recommend.evidence.model_evidence import ModelEvidence
from accelbench.recommend.query import Query

ESTIMATED = "estimated"
#: Where a way ran, next to its platform and its device's name.
_WHERE = ("machine", "device_fingerprint")


@dataclass(frozen=True)
class Option:
    """A way at a batch with its values; `why` has the limits that it does not keep."""

    hardware: str
    batch_size: int
    basis: str
    latency: Bounds
    rate: Bounds
    unit: str = ITEMS  # of its rate, in the plural
    statistic: Statistic = Statistic.MEAN
    has_rate: bool = True  # else the rate only follows from the time of a step
    memory: Bounds | None = None
    memory_basis: str | None = None
    cost: Bounds | None = None
    error: float | None = None
    #: of its cell, or of the cell that it is estimated from
    row: EvidenceRow = field(default_factory=EvidenceRow, hash=False, repr=False)
    why: tuple[LimitReason, ...] = ()
    origin: FigureOrigin = field(default_factory=FigureOrigin)  # the provenance of what it rests on

    @property
    def measured(self) -> bool:
        return self.basis == MEASURED

    @property
    def device(self) -> str | None:
        return self.row.get("device_name")

    @property
    def runtime(self) -> str:
        return str(self.row.get("runtime") or "")

    @property
    def precision(self) -> str:
        return str(self.row.get("precision") or "")

    @property
    def power_watts(self) -> float | None:
        return self.row.get("power_watts") if self.measured else None

    @property
    def energy_per_item(self) -> float | None:
        return self.row.get("energy_per_item_joules") if self.measured else None

    @cached_property
    def settings(self) -> dict[str, Setting]:
        return settings_of(self.row)

    @property
    def name(self) -> tuple[object, ...]:
        """What identifies an option in an answer; versions of an engine share it."""
        settings = json.dumps(self.settings, sort_keys=True, default=str)
        ran = (
            *(str(self.row.get(name) or "") for name in ("compiled", "threads", *_WHERE)),
            settings,
        )
        way = (self.hardware, self.device or "", self.runtime, self.precision, *ran)
        return (*way, self.batch_size)

    @property
    def pace(self) -> float:
        """Items of the batch a second, by the slow end of an estimate."""
        return 1e3 * self.batch_size / self.time

    @property
    def time(self) -> float:
        """Milliseconds of a step, by the slow end of an estimate."""
        return self.latency.middle if self.measured else self.latency.high

    @property
    def throughput(self) -> float:
        return self.rate.middle if self.measured else self.rate.low

    def to_dict(self, command: str | None, unmeasurable: str | None = None) -> dict[str, object]:
        entry: dict[str, object] = {
            "hardware": self.hardware,
            **way_of(self.row),
            "batch_size": self.batch_size,
            "basis": self.basis,
            "provenance": self.row.get("provenance") if self.measured else None,
            **self.origin.to_dict(),
            "latency_ms": self.latency.middle,
            "latency_high": self.latency.high,
            "figure": str(self.statistic),
            "throughput": self.rate.middle if self.has_rate else None,
            "throughput_low": self.rate.low if self.has_rate else None,
            "throughput_unit": self.unit,
            "memory_mb": self.memory and self.memory.middle,
            "memory_high": self.memory and self.memory.high,
            "memory_basis": self.memory_basis,
            "error": self.error,
            "power_watts": self.power_watts,
            "energy_per_item_joules": self.energy_per_item,
            "cost_per_million": self.cost and self.cost.middle,
            "measured_at": self.row.get("moment") if self.measured else None,
            "run_id": self.row.get("run_id") if self.measured else None,
            "command": command,
        }
        if unmeasurable:
            entry["unmeasurable"] = unmeasurable
        return {**entry, "why": [reason.text for reason in self.why]} if self.why else entry


def options(
    query: Query,
    own: ModelEvidence,
    candidates: Sequence[Candidate],
    batches: Sequence[int],
    prices: Prices | None,
) -> Iterator[Option]:
    """Yield each way at each of its batches and at the given ones, without those that failed."""
    for candidate in candidates:
        evidence = own.of(candidate)
        ways: dict[tuple[str, ...], list[EvidenceCell]] = defaultdict(list)
        for cell in evidence.cells:
            ways[cell.way].append(cell)
        aside: dict[tuple[str, ...], list[EvidenceCell]] = defaultdict(list)
        for cell in (cell for cell in evidence.unusable if cell.row.get("batch_size") is not None):
            aside[cell.way].append(cell)
        for way, cells in sorted(ways.items()):
            for batch in sorted({*batches, *(cell.batch for cell in cells)}):
                prediction = figure(batch, cells, evidence.failures)
                if prediction is not None:
                    yield _option(
                        query, candidate.name, batch, prediction, cells, prices, aside[way]
                    )


def _option(
    query: Query,
    name: str,
    batch: int,
    prediction: Figure,
    way: Sequence[EvidenceCell],
    prices: Prices | None,
    unusable: Sequence[EvidenceCell],
) -> Option:
    row = prediction.cell.row
    memory, basis = _memory(query, batch, prediction, [*way, *unusable])
    # A measured result without an interval is taken as exact.
    measured = prediction.cell.interval or (prediction.latency, prediction.latency)
    low, high = measured if prediction.measured else (prediction.low, prediction.high)
    latency = Bounds(
        prediction.latency, min(low, prediction.latency), max(high, prediction.latency)
    )
    rate = Bounds(
        prediction.throughput,
        prediction.throughput * prediction.latency / latency.high,
        prediction.throughput * prediction.latency / latency.low,
    )
    return Option(
        hardware=name,
        batch_size=batch,
        basis=prediction.basis,
        latency=latency,
        rate=rate,
        unit=prediction.unit,
        statistic=prediction.statistic,
        has_rate=prediction.rate is not None,
        memory=memory,
        memory_basis=basis,
        cost=None if prediction.rate is None else _cost(row, rate, prices),
        error=_error([prediction.cell] if prediction.measured else way),
        row=row,
        origin=prediction.origin,
    )


def _memory(
    query: Query, batch: int, prediction: Figure, way: Sequence[EvidenceCell]
) -> tuple[Bounds | None, str | None]:
    cell = prediction.cell
    measured = cell.row.get("memory_peak_mb") if prediction.measured else None
    if measured is not None:
        highest = cell.row.get("memory_highest_mb") or measured
        return Bounds(measured, measured, max(measured, highest)), MEASURED
    sizes, settings = {**query.shapes, **sizes_of(cell.row)}, settings_of(cell.row)

    def count(batch: int) -> float | None:
        return counted_memory(query, batch, cell.precision, sizes, settings)

    if any(cell.batch == batch and cell.row.get("memory_peak_mb") for cell in way):
        # The memory of a cell with unusable times is measured all the same.
        return by_batches(batch, way, count), MEASURED
    known = by_batches(batch, way, count) or Bounds.exact(count(batch))
    return known, None if known is None else ESTIMATED


def _cost(row: Row, rate: Bounds, prices: Prices | None) -> Bounds | None:
    if prices is None:
        return None
    ends = [prices({**row, "throughput": speed}) for speed in (rate.middle, rate.high, rate.low)]
    if any(end is None for end in ends):
        return None
    middle, low, high = (float(end) for end in ends if end is not None)
    return Bounds(middle, min(low, middle), max(high, middle))


def _error(cells: Sequence[EvidenceCell]) -> float | None:
    """Return the largest error of some cells; None if one is unknown."""
    known = [error_of(cell.row) for cell in cells]
    return None if None in known else max(error for error in known if error is not None)
