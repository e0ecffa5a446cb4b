"""The time of a step on a configuration, measured or predicted, with its bounds. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

from accelbench.core.case import Option, Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.jsonc import loads
from accelbench.core.precision import error_of
from accelbench.core.result_statistics import Statistic
from accelbench.core.rows import Row
from accelbench.core.unusable_reasons import FAILED, LAUNCHED
from accelbench.core.vocabulary import MIB, Mode, Provenance
from accelbench.models.cost import memory_estimate_bytes
from accelbench.predict.cases import POOR
from accelbench.recommend.evidence.cells import (
    EvidenceCell,
    EvidenceRow,
    Failure,
    FigureOrigin,
    best,
    in_the_way,
    unit_of,
)
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

    def times(self, factor: float) -> Bounds:
        return Bounds(self.middle * factor, self.low * factor, self.high * factor)


MEASURED, PREDICTED, RULE = "measured", "predicted", "rule"
#: The standard normal quantile of the ends of an interval: of 95 % if measured, 90 % if predicted.
_ENDS: Mapping[str, float] = {MEASURED: 1.96, PREDICTED: 1.645}


@dataclass(frozen=True)
class Figure:
    """The time of a step on a configuration.

    Attributes:
        low, high: the bounds of the latency.
        cell: the measurement, or the row of a prediction.
        number: of a prediction its row in the correlation of errors.
        memory: megabytes with their bounds, if they are known.
        memory_basis: measured or predicted.
        run_noise: the standard deviation of the logarithm of the time from one run to another.
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
    number: int | None = None
    memory: Bounds | None = None
    memory_basis: str | None = None
    run_noise: float = 0.0

    @property
    def measured(self) -> bool:
        return self.basis == MEASURED

    @property
    def provenance(self) -> str | None:
        return Provenance.PREDICTED if self.predicted else self.cell.row.get("provenance")

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

    @property
    def is_weak(self) -> bool:
        """Whether it rests on the peaks of a typical device, which may be off thirtyfold."""
        from accelbench.predict.answers import MIDDLE_PEAKS

        return self.predicted is not None and self.predicted["basis"] == MIDDLE_PEAKS

    @property
    def deviations(self) -> tuple[float, float]:
        """The standard deviations of the logarithm of the latency, below and above its middle."""
        ends = _ENDS[self.basis]
        down = math.log(self.latency / min(self.low, self.latency)) / ends
        up = math.log(max(self.high, self.latency) / self.latency) / ends
        return math.hypot(down, self.run_noise), math.hypot(up, self.run_noise)

    def to_dict(self) -> dict[str, object]:
        if self.predicted is not None:
            return _predicted_dict(self.predicted)
        row: Row = self.cell.row
        more = ("memory_peak_mb", "ttft_ms", "tpot_ms", "tokens_per_second", "power_watts",
                "energy_per_item_joules")  # fmt: skip
        entry: dict[str, object] = {
            "basis": self.basis,
            "latency": self.latency,
            "figure": str(self.statistic),
            "throughput": self.rate,
            "throughput_unit": self.unit,
            "latency_low": self.low,
            "latency_high": self.high,
            **{name: row[name] for name in more if row.get(name) is not None},
        }
        if (error := error_of(row)) is not None:
            entry["verification_error"] = error
        entry["launches"] = len(self.cell.latencies)
        if row.get(FAILED):
            entry |= {name: row[name] for name in (FAILED, LAUNCHED)}
        entry["provenance"] = row.get("provenance")
        entry["source"] = row.get("source")
        entry["latency_interval"] = self.cell.interval_told()
        return entry


def measured_figures(
    batch: int | None, cells: Sequence[EvidenceCell], failures: Sequence[Failure] = ()
) -> list[Figure]:
    """Return the best measurement of each way at a batch, or at every batch; failed ways have none.

    The order is that of the cells.
    """
    ways: dict[tuple[object, ...], list[EvidenceCell]] = {}
    for cell in cells:
        if batch in (None, cell.batch) and cell in in_the_way(cell.batch, [cell], failures)[0]:
            ways.setdefault((*cell.way, cell.batch), []).append(cell)
    return [_measured(best(several)) for several in ways.values()]


def _measured(cell: EvidenceCell) -> Figure:
    row = cell.row
    took = row.get("memory_peak_mb")
    memory = None
    if took is not None:
        memory = Bounds(took, took, max(took, row.get("memory_highest_mb") or took))
    return Figure(
        MEASURED, cell.latency, cell.throughput, *cell.bounds, cell, batch=cell.batch,
        origin=FigureOrigin.of([cell]), memory=memory,
        memory_basis=None if memory is None else MEASURED,
    )  # fmt: skip


def predicted_figure(
    predicted: PredictedFigures, number: int | None = None, options: str = ""
) -> Figure:
    """Return a prediction as a figure with its 90 % interval.

    `number` is its row in the correlation, `options` the settings of its configuration.
    """
    row: EvidenceRow = {
        "model": predicted["model"],
        "hardware": predicted["hardware"],
        "device_name": predicted["device"],
        "runtime": predicted["runtime"],
        "precision": predicted["precision"],
        "mode": predicted["mode"],
        "compiled": predicted["compiled"],
        "threads": predicted["threads"],
        # An optimiser may follow the settings.
        "options": loads(options[: options.rfind("}") + 1] or "{}"),
        "batch_size": predicted["batch_size"],
        "throughput_unit": predicted["throughput_unit"],
        "provenance": Provenance.PREDICTED,
    }
    cell = EvidenceCell(row, (), (predicted["throughput"],), statistic=Statistic.MEDIAN)
    return Figure(
        PREDICTED,
        predicted["latency_ms"],
        predicted["throughput"],
        predicted["latency_low_ms"],
        predicted["latency_high_ms"],
        cell,
        _basis(predicted),
        batch=predicted["batch_size"],
        predicted=predicted,
        origin=FigureOrigin(tuple(predicted["rests_on"])),
        number=number,
        memory=_memory(predicted),
        memory_basis=PREDICTED,
    )


def _memory(predicted: PredictedFigures) -> Bounds | None:
    middle, low, high = (predicted[f"memory_{end}mb"] for end in ("", "low_", "high_"))  # type: ignore[literal-required]
    return None if middle is None else Bounds(middle, low, high)


def _basis(predicted: PredictedFigures) -> str:
    """Return the basis of a prediction, with its error if that is poor."""
    error = predicted["held_out_error"]
    poor = "" if error is None or error <= POOR else f", off by {error:,.0%} in the median held out"
    return f"from {predicted['basis']}{poor}"


_AS_PREDICTED = (
    *("memory_mb", "memory_low_mb", "memory_high_mb", "memory_is_least", "provenance", "rests_on"),
    *("basis", "held_out_error", "held_out_of", "device", "runtime", "precision"),
)


def _predicted_dict(figures: PredictedFigures) -> dict[str, object]:
    return {
        "latency": figures["latency_ms"],
        "figure": str(Statistic.MEDIAN),
        "throughput": figures["throughput"],
        "throughput_unit": figures["throughput_unit"].removesuffix("/s"),
        "latency_low": figures["latency_low_ms"],
        "latency_high": figures["latency_high_ms"],
        **{name: figures[name] for name in _AS_PREDICTED},  # type: ignore[literal-required]
    }


def with_memory_of(figure: Figure, unusable: Sequence[EvidenceCell]) -> Figure:
    """Return a figure with the memory of a measurement whose times are not usable, if it has one.

    A measured memory counts although the times beside it do not.
    """
    if figure.memory_basis == MEASURED:
        return figure
    for cell in unusable:
        took = cell.row.get("memory_peak_mb")
        same = cell.row.get("batch_size") == figure.batch and took
        if same and all(
            cell.row.get(name) == figure.cell.row.get(name)
            for name in ("hardware", "device_name", "runtime", "precision", "compiled")
        ):
            return replace(figure, memory=Bounds.exact(took), memory_basis=MEASURED)
    return figure


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
