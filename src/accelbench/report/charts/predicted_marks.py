"""Predicted latency and throughput over batches, with bands, knees and what was measured. Pure.

A prediction is a pale square with a band, where nine of ten lie; a measurement a filled circle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from accelbench.core.axes import AXES
from accelbench.core.figures import ITEMS
from accelbench.core.vocabulary import Provenance
from accelbench.hardware.common import colour_of
from accelbench.report.charts.axes import ChartAxis, Spec, axis, layer
from accelbench.report.charts.by_batch import batch_axis, reach, way_of
from accelbench.report.charts.chart import ChartBody, ChartLabel
from accelbench.report.charts.marks import (
    MOST_PANELS,
    PAINT,
    Panel,
    Record,
    arranged,
    beyond,
    dots,
    kind_legend,
    tooltip,
)
from accelbench.report.charts.theme import INK, PAPER, SHAPES, paint
from accelbench.report.charts.words import left_out, safe, short_device

if TYPE_CHECKING:
    from accelbench.predict.answers import Knee, PredictedFigures


_IS_PREDICTED = f"datum.kind === '{Provenance.PREDICTED.value}'"
#: Nine in ten are meant to lie in a prediction's interval.
LEVEL = "90 %"
_PREDICTED_NOTE = "Predicted: pale squares, with a band that nine of ten are meant to lie in."
_MEASURED_NOTE = "Measured, of the same cases: filled circles."
_BEYOND_NOTE = "A band that reaches the edge goes further."
#: Letters of a line below a panel's title.
_LONGEST = 60


@dataclass(frozen=True)
class PredictedQuantity:
    """A figure of a prediction that is drawn."""

    name: str  # above a panel
    title: str  # of its axis: the unit, as the panel says what it is
    fields: tuple[str, str, str]  # of a prediction: the figure, and the ends of its interval

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
    """A name for each way of running: engine and place, and what else they differ in."""
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
    return [_PREDICTED_NOTE, *([_BEYOND_NOTE] if cut else []), *([_MEASURED_NOTE] if known else [])]


def kind_dots(place: Spec, tooltip: Sequence[Spec], size: int = 55) -> list[Spec]:
    """Pale squares of predictions; on them circles of measurements, with a paper edge."""
    told = {**place, "tooltip": tooltip}
    form: Spec = {"size": size, "stroke": PAPER, "strokeWidth": 1.2, "opacity": 1}
    circle = {"shape": SHAPES["measured"], **form}
    return [
        {"transform": [{"filter": _IS_PREDICTED}], **dots(told, size)},
        layer("point", {**told, "fill": PAINT}, where="datum.kind === 'measured'", **circle),
    ]


PREDICTED_BY_BATCH = ChartLabel(
    "predicted-by-batch",
    "Predicted latency and throughput against batch size",
    "what a larger batch would bring where it was not measured",
    "predictions of a model at two batch sizes",
)
_KNEE_NOTE = "Ring: the predicted knee, from where on a larger batch gains under 10 %."
_ADVICE = "name fewer models to see"
_LINE_ADVICE = "name the hardware, runtimes or precisions to see"
#: More ways of running, each a line with a band, are a tangle.
MOST_WAYS = 8
#: A band is drawn this many times further than all figures reach.
_FURTHEST = 8.0


@dataclass(frozen=True)
class _Drawing:
    title: str
    about: str
    quantity_title: str
    records: list[Record]


def predicted_by_batch(
    figures: Sequence[PredictedFigures],
    knees: Sequence[Knee] = (),
    notes: Sequence[str] = (),
    quantities: Sequence[PredictedQuantity] = QUANTITIES,
) -> ChartBody | None:
    """A line for each way of running over batches; None where nothing has two."""
    works = {
        key: entries
        for key, entries in by_work(figures).items()
        if len({entry["batch_size"] for entry in entries}) > 1
    }
    if not works:
        return None
    shown = dict(list(works.items())[: MOST_PANELS // len(quantities)])
    names = way_names([entry for entries in shown.values() for entry in entries])
    kept = {key: names[key] for key in list(names)[:MOST_WAYS]}
    rings = {(work_key(knee), way_key(knee), knee["batch_size"]) for knee in knees}
    drawn = [
        entry for entries in shown.values() for entry in entries if way_key(entry) in kept
    ]  # fmt: skip
    drawings = [
        _drawing(entries, quantity, kept, rings)
        for entries in by_work(drawn).values()
        for quantity in quantities
    ]
    records = [record for drawing in drawings for record in drawing.records]
    x, way = batch_axis(records, "batch", powers=True), way_of(records)
    panels = [
        Panel(drawing.title, [drawing.about], drawing.records, _layers(drawing, x, way))
        for drawing in drawings
    ]
    cut = any(beyond(drawing.records, _scale(drawing)) for drawing in drawings)
    said = [
        *kind_notes(records, cut=cut),
        *([_KNEE_NOTE] if any(record["knee"] for record in records) else []),
        *notes,
        *left_out(len(works) - len(shown), "model", advice=_ADVICE),
        *left_out(len(names) - len(kept), "line", advice=_LINE_ADVICE),
    ]
    return ChartBody(arranged(panels, kind_legend(records)), notes=said, records=records)


def _drawing(
    entries: Sequence[PredictedFigures],
    quantity: PredictedQuantity,
    names: Mapping[WayKey, str],
    rings: Collection[tuple[object, ...]],
) -> _Drawing:
    work = work_key(entries[0])
    records: list[Record] = []
    for key, name in names.items():
        for record in quantity.records(e for e in entries if way_key(e) == key):
            ring = (work, key, record["batch"]) in rings and record["kind"] == "predicted"
            records.append({**record, "line": name, "knee": ring})
    title = f"{safe(work[0], 36)}: {quantity.name}"
    return _Drawing(title, in_common(entries), quantity.titled(entries), records)


def _scale(drawing: _Drawing) -> ChartAxis:
    return axis(drawing.quantity_title, reach(drawing.records, _FURTHEST), log=True)


def _layers(drawing: _Drawing, x: Spec, way: Mapping[str, Spec]) -> list[Spec]:
    scale = _scale(drawing)
    place = {"x": x, "y": scale.of("value")}
    ends = {"y": {**place["y"], "field": "low"}, "y2": {"field": "high"}}
    area = {"x": x, **ends, "color": way["color"], "detail": {"field": "line"}}
    band = layer("area", area, where=_IS_PREDICTED, opacity=0.16, clip=True)
    line = layer("line", {**place, **way}, where=_IS_PREDICTED, clip=True)
    form: Spec = {"size": 230, "strokeWidth": 1.6, "fill": None, "stroke": INK, "opacity": 1}
    ring = layer("point", place, where="datum.knee", shape="circle", **form)
    told = tooltip(scale.title, drawing.records, level=LEVEL)
    rings = [ring] if any(record["knee"] for record in drawing.records) else []
    return [band, line, *kind_dots(place, told), *rings]
