"""The result of a candidate for a question: measured, from other batches, or predicted.

A rung answers only if all above it have no result. Failed configurations have no estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from accelbench.core.case import Option, Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.precision import error_of
from accelbench.core.result_statistics import Statistic
from accelbench.core.rows import Row
from accelbench.core.unusable_reasons import FAILED, LAUNCHED
from accelbench.core.vocabulary import MIB, Mode, Provenance
from accelbench.models.cost import memory_estimate_bytes
from accelbench.recommend.evidence.cells import (
    SINGLE,
    EvidenceCell,
    Failure,
    FigureOrigin,
    best,
    in_the_way,
    items_a_step,
    unit_of,
)
from accelbench.recommend.platform_rules import LEANING
from accelbench.recommend.query import GENERATING, SIZES, Query

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures


@dataclass(frozen=True)
class Bounds:
    """A value with its bounds."""

    middle: float
    low: float
    high: float

    @overload
    @staticmethod
    def exact(value: float) -> Bounds: ...
    @overload
    @staticmethod
    def exact(value: float | None) -> Bounds | None: ...
    @staticmethod
    def exact(value: float | None) -> Bounds | None:
        return None if value is None else Bounds(value, value, value)


def stretched(middle: float, low: float, high: float, importance: str) -> tuple[float, float]:
    """Return bounds that are stretched by the importance of the batch."""
    by = LEANING[importance]
    return middle * (low / middle) ** by, middle * (high / middle) ** by


def no_nearer(middle: float, low: float, high: float) -> tuple[float, float]:
    """Return bounds at least as wide as those of a single launch."""
    return min(low, middle / (1 + SINGLE)), max(high, middle * (1 + SINGLE))


#: Above the largest batch, the time of an item is uncertain by this logarithm a doubling.
BEYOND = 0.2


MEASURED, BETWEEN, EXTRAPOLATED = "measured", "between batches", "extrapolated"
PREDICTED, RULE = "predicted", "rule"
_TOKENS = "tokens"
#: So many times the batch that was measured is another kind of work.
_FAR = 4


@dataclass(frozen=True)
class Figure:
    """The time of a step on a candidate, measured or estimated.

    Attributes:
        basis: how it is known.
        low, high: the bounds of the latency.
        cell: the measurement, or a cell of the way that is estimated.
        origin: the provenance of what it rests on.
    """

    basis: str
    latency: float
    throughput: float
    low: float
    high: float
    cell: EvidenceCell
    note: str = ""
    batch: int = 1
    predicted: PredictedFigures | None = field(default=None, repr=False)
    origin: FigureOrigin = field(default_factory=FigureOrigin, repr=False)

    @property
    def measured(self) -> bool:
        return self.basis == MEASURED

    @property
    def is_far(self) -> bool:
        """Whether it is extrapolated from a batch less than a quarter of its own."""
        return self.basis == EXTRAPOLATED and self.batch > _FAR * self.cell.batch

    @property
    def provenance(self) -> str | None:
        """Measured, imported or predicted; None for an estimate from other batches."""
        if self.predicted is not None:
            return Provenance.PREDICTED
        return self.cell.row.get("provenance") if self.measured else None

    @property
    def statistic(self) -> Statistic:
        return self.cell.statistic

    @property
    def rate(self) -> float | None:
        """The throughput, if it is known."""
        return self.throughput if self.cell.has_rate else None

    @property
    def unit(self) -> str:
        """The unit of the throughput in the plural: images, tokens."""
        return unit_of(self.cell.row)

    def to_dict(self) -> dict[str, object]:
        row: Row = self.cell.row
        entry: dict[str, object] = {
            "basis": self.basis,
            "latency": self.latency,
            "figure": str(self.statistic),
            "throughput": self.rate,
            "throughput_unit": self.unit,
            "latency_low": self.low,
            "latency_high": self.high,
        }
        if self.measured:
            more = ("memory_peak_mb", "ttft_ms", "tpot_ms", "tokens_per_second", "power_watts",
                    "energy_per_item_joules")  # fmt: skip
            entry |= {name: row[name] for name in more if row.get(name) is not None}
            if (error := error_of(row)) is not None:
                entry["verification_error"] = error
            entry["launches"] = len(self.cell.latencies)
            if row.get(FAILED):
                entry |= {name: row[name] for name in (FAILED, LAUNCHED)}
            entry["provenance"] = row.get("provenance")
            entry["source"] = row.get("source")
            entry["latency_interval"] = self.cell.interval_told()
        return entry


def figure(
    batch: int,
    own: Sequence[EvidenceCell],
    failures: Sequence[Failure] = (),
    predicted: Figure | None = None,
    importance: str = "medium",
) -> Figure | None:
    """Return the time of a step on a candidate; None if it is unknown."""
    here = [cell for cell in own if cell.batch == batch]
    if here:
        cell = best(here)
        origin = FigureOrigin.of([cell])
        return Figure(
            MEASURED, cell.latency, cell.throughput, *cell.bounds, cell, batch=batch, origin=origin
        )
    free, against = in_the_way(batch, own, failures)
    if (own_figure := from_batches(batch, free, importance)) is not None:
        # Above the largest batch 46 and 27 % off in the median, a prediction 17 and 18 % (CPU,
        # inference and training); between batches and below the smallest it is no nearer.
        beyond = all(cell.batch < batch for cell in free)
        # If a way failed, the remaining cells count more than a prediction.
        nearer = beyond and not against
        return predicted if predicted and nearer and _alike(predicted, own_figure) else own_figure
    return predicted


def _alike(predicted: Figure, own: Figure) -> bool:
    """Return whether their rates compare: a source may count tokens, and we items."""
    return predicted.unit == own.unit or _TOKENS not in (predicted.unit, own.unit)


def from_batches(batch: int, own: Sequence[EvidenceCell], importance: str) -> Figure | None:
    """Return the fastest estimate from other batches of the same ways."""
    ways: dict[tuple[str, ...], dict[int, EvidenceCell]] = {}
    for cell in own:
        by_batch = ways.setdefault(cell.way, {})
        by_batch[cell.batch] = best([cell, by_batch.get(cell.batch, cell)])
    estimates = [_of_batches(batch, by_batch, importance) for _, by_batch in sorted(ways.items())]
    return min(estimates, key=_time, default=None)


def _of_batches(batch: int, by_batch: Mapping[int, EvidenceCell], importance: str) -> Figure:
    """Estimate a batch of one way: between and below batches the bounds are certain."""
    basis, second = EXTRAPOLATED, None
    below = max((b for b in by_batch if b < batch), default=None)
    above = min((b for b in by_batch if b > batch), default=None)
    if below is not None and above is not None:
        # A larger batch takes no less time, and mostly no more an item.
        first, last = by_batch[below], by_batch[above]
        share = math.log(batch / below) / math.log(above / below)
        middle = first.latency ** (1 - share) * last.latency**share
        low = max(first.latency, last.latency * batch / above)
        high = min(last.latency, first.latency * batch / below)
        low, high, cell = min(low, high, middle), max(low, high, middle), first
        basis, note, second = BETWEEN, f"between batch {below} and {above}", last
    elif below is not None:
        cell = by_batch[below]
        middle = cell.latency * batch / below
        reach = math.exp(BEYOND * math.log2(batch / below))
        low, high = stretched(middle, middle / reach, middle * reach, importance)
        low = max(low, cell.latency)
        note = f"from batch {below}, the largest that was measured: whether more fits is not known"
    else:
        assert above is not None
        cell = by_batch[above]
        middle = cell.latency * math.sqrt(batch / above)
        low, high = cell.latency * batch / above, cell.latency
        note = f"from batch {above}, the smallest that was measured"
    low, high = no_nearer(middle, low, high)
    rate = 1e3 * items_a_step([cell]) * batch / middle
    origin = FigureOrigin.of([cell] if second is None else [cell, second])
    return Figure(basis, middle, rate, low, high, cell, note, batch=batch, origin=origin)


def _time(prediction: Figure) -> tuple[float, int]:
    return prediction.latency, prediction.cell.order


#: A batch → megabytes by the catalogue.
Counted = Callable[[int], float | None]


def counted_memory(
    query: Query,
    batch: int,
    precision: str,
    sizes: Mapping[str, int],
    options: Mapping[str, Option] | None = None,
) -> float | None:
    """Return megabytes as the catalogue counts them, at sizes by column; None if it does not."""
    if query.spec is None:
        return None
    made = GENERATING if query.mode == Mode.TRAINING else ()
    known: dict[str, Any] = {
        SIZES[name]: int(value) for name, value in sizes.items() if name not in made
    }
    try:
        estimate = memory_estimate_bytes(
            query.spec, Shapes(batch, **known), precision or "fp32", query.mode, options
        )
    except AccelbenchError:
        return None
    return None if estimate is None else estimate / MIB


def by_batches(batch: int, way: Sequence[EvidenceCell], count: Counted) -> Bounds | None:
    """Return the memory by other batches of the same way; None if none was measured.

    A larger batch takes no less, and mostly no more an item. Between the bounds it grows as between
    the two nearest batches, else as the catalogue counts.
    """
    known: dict[int, float] = {}
    for cell in way:
        took = float(cell.row.get("memory_peak_mb") or 0.0)
        known[cell.batch] = max(took, known.get(cell.batch, took))
    known = {size: took for size, took in known.items() if took}
    if not known:
        return None
    if batch in known:
        return Bounds.exact(known[batch])
    below = max((b for b in known if b < batch), default=None)
    above = min((b for b in known if b > batch), default=None)
    low = known[below] if below is not None else 0.0
    high = known[above] if above is not None else known[max(known)] * batch / max(known)
    low, high = min(low, high), max(low, high)
    near = min(known, key=lambda size: (abs(size - batch), size))
    growth = _growth(near, batch, known, count)
    middle = high if growth is None else known[near] + growth * (batch - near)
    return Bounds(min(max(middle, low), high), low, high)


def _growth(near: int, batch: int, known: Mapping[int, float], count: Counted) -> float | None:
    if len(known) > 1:
        first, last = sorted(sorted(known, key=lambda size: (abs(size - batch), size))[:2])
        return (known[last] - known[first]) / (last - first)
    here, there = count(near), count(batch)
    return None if here is None or there is None else (there - here) / (batch - near)
