"""Marks of predicted figures, and of what was measured of the same cases. Pure.

A prediction is a pale square with a band, where nine of ten lie; a measurement a filled circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from accelbench.core.axes import AXES
from accelbench.core.rates import ITEMS
from accelbench.core.vocabulary import Provenance
from accelbench.hardware.colours import colour_of
from accelbench.report.charts.axes import Spec
from accelbench.report.charts.marks import PAINT, Record, dots
from accelbench.report.charts.phrases import safe
from accelbench.report.charts.theme import PAPER, SHAPES, paint
from accelbench.report.charts.words import short_device

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures
    from accelbench.predict.knees import Knee

#: Nine in ten are meant to lie in a prediction's interval.
LEVEL = "90 %"
_PREDICTED_NOTE = "Predicted: pale squares, with a band that nine of ten are meant to lie in."
_MEASURED_NOTE = "Measured, of the same cases: filled circles."
_BEYOND_NOTE = "A band that reaches the edge goes further."
#: Letters of a line below a panel's title.
_LONGEST = 60


@dataclass(frozen=True)
class PredictedQuantity:
    """A figure of a prediction that is drawn.

    Attributes:
        name: above a panel.
        title: of its axis: the unit, as the panel says what it is.
        fields: of a prediction: the figure, and the ends of its interval.
    """

    name: str
    title: str
    fields: tuple[str, str, str]

    def records(self, figures: Iterable[PredictedFigures]) -> list[Record]:
        """A record a prediction, and another one where the same case was measured."""
        records = []
        for entry in figures:
            said = cast("Mapping[str, Any]", entry)
            value, low, high = (said[name] for name in self.fields)
            records.append(_record(entry, Provenance.PREDICTED, value, low, high))
            if (known := self._measured(entry)) is not None:
                records.append(_record(entry, Provenance.MEASURED, known, None, None))
        return records

    def titled(self, figures: Sequence[PredictedFigures]) -> str:
        """The axis's title, with the unit that all of these have."""
        units = {entry["throughput_unit"] for entry in figures}
        unit = units.pop() if len(units) == 1 else ITEMS
        return self.title.replace(ITEMS, safe(unit))

    def _measured(self, entry: PredictedFigures) -> float | None:
        known = entry["measured_latency_ms"]
        if known is None or self is PREDICTED_LATENCY:
            return known
        # As many items as the prediction's step completes.
        return entry["throughput"] * entry["latency_ms"] / known


PREDICTED_LATENCY = PredictedQuantity(
    "latency", "ms a step", ("latency_ms", "latency_low_ms", "latency_high_ms")
)
PREDICTED_THROUGHPUT = PredictedQuantity(
    "throughput", "items/s", ("throughput", "throughput_low", "throughput_high")
)
QUANTITIES = (PREDICTED_LATENCY, PREDICTED_THROUGHPUT)


def _record(
    entry: PredictedFigures, kind: str, value: float, low: float | None, high: float | None
) -> Record:
    hardware = entry["hardware"]
    return {
        "model": safe(entry["model"]),
        "hardware": safe(hardware),
        "device": safe(entry["device"]),
        "runtime": safe(entry["runtime"]),
        "precision": safe(entry["precision"]),
        "mode": entry["mode"],
        "batch": entry["batch_size"],
        "kind": kind,
        "value": value,
        "low": low,
        "high": high,
        "basis": safe(entry["basis"]) if kind == Provenance.PREDICTED else "",
        "colour": colour_of(hardware),
        "paint": paint(hardware, kind),
        "form": SHAPES[kind],
    }


#: Where and how something runs: of each an answer has one way, compiled or not.
WayKey = tuple[str, str, str, str]
#: What a panel is of.
WorkKey = tuple[str, tuple[tuple[str, int], ...]]


def way_key(entry: PredictedFigures | Knee) -> WayKey:
    """Where and how a prediction, or a knee, runs."""
    return entry["hardware"], entry["device"], entry["runtime"], entry["precision"]


def work_key(entry: PredictedFigures | Knee) -> WorkKey:
    """The model at sizes that a prediction, or a knee, is of."""
    return entry["model"], tuple(entry["sizes"].items())


def by_work(figures: Iterable[PredictedFigures]) -> dict[WorkKey, list[PredictedFigures]]:
    """Predictions of each model at each of its sizes."""
    works: dict[WorkKey, list[PredictedFigures]] = {}
    for entry in figures:
        works.setdefault(work_key(entry), []).append(entry)
    return works


def way_names(figures: Sequence[PredictedFigures], *, longest: int = _LONGEST) -> dict[WayKey, str]:
    """A name for each way of running: engine and place, and what else they differ in.

    Args:
        figures: of all ways.
        longest: so many letters of a name are kept.
    """
    entries = {way_key(entry): entry for entry in figures}
    devices: dict[str, set[str]] = {}
    for hardware, device, *_ in entries:
        devices.setdefault(hardware, set()).add(device)
    precisions = {entry["precision"] for entry in entries.values()}
    plain = {entry["runtime"] for entry in entries.values() if not entry["compiled"]}

    def words(entry: PredictedFigures) -> Iterable[str]:
        hardware = entry["hardware"]
        yield entry["runtime"]
        yield hardware
        if len(devices[hardware]) > 1 and entry["device"]:
            yield short_device(entry["device"])
        if len(precisions) > 1:
            yield entry["precision"]
        if entry["compiled"] and entry["runtime"] in plain:
            yield "compiled"

    return {
        key: safe(" · ".join(dict.fromkeys(words(entry))), longest)
        for key, entry in entries.items()
    }


def in_common(figures: Sequence[PredictedFigures]) -> str:
    """What all predictions of a panel have in common: sizes, precision, training."""
    labels = {axis.column: axis.label for axis in AXES}
    words = [labels[name].format(size) for name, size in figures[0]["sizes"].items()]
    precisions = {entry["precision"] for entry in figures}
    modes = {entry["mode"] for entry in figures} - {"inference"}
    words += [*precisions] if len(precisions) == 1 else []
    words += sorted(modes)
    return safe(" · ".join(words), 2 * _LONGEST)


def kind_notes(records: Sequence[Record], *, cut: bool = False) -> list[str]:
    """What squares, bands and circles are; and that a band is cut off, where one is."""
    known = any(record["kind"] == Provenance.MEASURED for record in records)
    return [
        _PREDICTED_NOTE,
        *([_BEYOND_NOTE] if cut else []),
        *([_MEASURED_NOTE] if known else []),
    ]


def kind_dots(place: Spec, tooltip: Sequence[Spec], size: int = 55) -> list[Spec]:
    """Pale squares of predictions; on them circles of measurements, with a paper edge."""
    square: Spec = {
        "transform": [{"filter": f"datum.kind === '{Provenance.PREDICTED.value}'"}],
        **dots({**place, "tooltip": tooltip}, size),
    }
    circle: Spec = {
        "transform": [{"filter": f"datum.kind === '{Provenance.MEASURED.value}'"}],
        "mark": {"type": "point", "shape": SHAPES["measured"], "size": size, "stroke": PAPER,
                 "strokeWidth": 1.2, "opacity": 1},
        "encoding": {**place, "fill": PAINT, "tooltip": tooltip},
    }  # fmt: skip
    return [square, circle]
