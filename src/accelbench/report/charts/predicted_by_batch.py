"""Predicted latency and throughput over batches, with bands, knees and what was measured. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2
from typing import TYPE_CHECKING

from accelbench.report.charts.axes import ChartAxis, Spec, axis
from accelbench.report.charts.chart import ChartBody, ChartLabel
from accelbench.report.charts.lines import MARGIN, way_of
from accelbench.report.charts.marks import Record, beyond, ends, kind_legend, tooltip
from accelbench.report.charts.panels import MOST_PANELS, Panel, arranged
from accelbench.report.charts.phrases import left_out, safe
from accelbench.report.charts.predicted_marks import (
    LEVEL,
    QUANTITIES,
    PredictedQuantity,
    WayKey,
    by_work,
    in_common,
    kind_dots,
    kind_notes,
    way_key,
    way_names,
    work_key,
)
from accelbench.report.charts.theme import INK

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures
    from accelbench.predict.knees import Knee

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
    """A panel before its axes: a quantity of a model."""

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
    """A line for each way of running over batches; None where nothing has two.

    Args:
        figures: predictions.
        knees: of their lines.
        notes: what else is to be said below the title.
        quantities: a panel of each for each model.
    """
    works = {key: entries for key, entries in by_work(figures).items() if _batches(entries) > 1}
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
    x, way = _batch_axis(records), way_of(records)
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


def _batches(entries: Sequence[PredictedFigures]) -> int:
    return len({entry["batch_size"] for entry in entries})


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


def _batch_axis(records: Sequence[Record]) -> Spec:
    """Batches as powers of two, with those between their lines."""
    batches = sorted({record["batch"] for record in records})
    powers = range(ceil(log2(batches[0])), floor(log2(batches[-1])) + 1)
    ticks = [2**power for power in powers]
    return {
        "field": "batch",
        "type": "quantitative",
        "title": "batch size (log)",
        "scale": {
            "type": "log",
            "base": 2,
            "domain": [batches[0] / MARGIN, batches[-1] * MARGIN],
            "nice": False,
        },
        "axis": {
            "values": ticks if len(ticks) > 1 else batches,
            "format": "d",
            "labelOverlap": True,
            "grid": False,
        },
    }


def _scale(drawing: _Drawing) -> ChartAxis:
    """An axis of all figures, and of their bands as far as these do not go too far."""
    values = [record["value"] for record in drawing.records]
    least, most = min(values) / _FURTHEST, max(values) * _FURTHEST
    reach = [end and min(max(end, least), most) for end in ends(drawing.records)]
    return axis(drawing.quantity_title, reach, log=True)


def _layers(drawing: _Drawing, x: Spec, way: Mapping[str, Spec]) -> list[Spec]:
    scale = _scale(drawing)
    place = {"x": x, "y": scale.of("value")}
    predicted = [{"filter": "datum.kind === 'predicted'"}]
    band: Spec = {
        "transform": predicted,
        "mark": {"type": "area", "opacity": 0.16, "clip": True},
        "encoding": {
            "x": x,
            "y": {**place["y"], "field": "low"},
            "y2": {"field": "high"},
            "color": way["color"],
            "detail": {"field": "line"},
        },
    }
    line: Spec = {
        "transform": predicted,
        "mark": {"type": "line", "clip": True},
        "encoding": {**place, **way},
    }
    ring: Spec = {
        "transform": [{"filter": "datum.knee"}],
        "mark": {"type": "point", "shape": "circle", "size": 230, "strokeWidth": 1.6, "fill": None,
                 "stroke": INK, "opacity": 1},
        "encoding": place,
    }  # fmt: skip
    told = tooltip(scale.title, drawing.records, level=LEVEL)
    rings = [ring] if any(record["knee"] for record in drawing.records) else []
    return [band, line, *kind_dots(place, told), *rings]
