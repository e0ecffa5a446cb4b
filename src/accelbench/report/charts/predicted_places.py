"""Predicted latency and throughput at one batch: a row a way of running. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelbench.report.charts.axes import Spec, axis, far
from accelbench.report.charts.chart import ChartBody, ChartLabel
from accelbench.report.charts.marks import COLOUR, Record, ends, kind_legend, tooltip
from accelbench.report.charts.panels import MOST_PANELS, Panel, arranged
from accelbench.report.charts.phrases import left_out, safe
from accelbench.report.charts.predicted_marks import (
    LEVEL,
    QUANTITIES,
    PredictedQuantity,
    by_work,
    in_common,
    kind_dots,
    kind_notes,
    way_key,
    way_names,
)

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures

PREDICTED_PLACES = ChartLabel(
    "predicted-places",
    "Predicted latency and throughput",
    "how fast each platform and engine would be",
    "predictions of a model at one batch size",
)
_ADVICE = "name the hardware or the models to see"
#: More rows than this are no picture.
_MOST_ROWS = 24
_ROW = 26


def predicted_places(
    figures: Sequence[PredictedFigures], notes: Sequence[str] = ()
) -> ChartBody | None:
    """A row for each way of running, the fastest first; None of no predictions."""
    works = by_work(figures)
    if not works:
        return None
    shown = list(works.values())[: MOST_PANELS // len(QUANTITIES)]
    drawings = [_fastest(entries) for entries in shown]
    panels: list[Panel] = []
    everything: list[Record] = []
    for entries in drawings:
        names = way_names(entries)
        for place, quantity in enumerate(QUANTITIES):
            records = [
                {**record, "bar": names[way_key(entry)]}
                for entry in entries
                for record in quantity.records([entry])
            ]
            everything += records
            title = f"{safe(entries[0]['model'], 36)}: {quantity.name}"
            layers = _layers(records, entries, quantity, labels=not place)
            panels.append(Panel(title, [_about(entries)], records, layers, {"step": _ROW}))
    drawn = [entry for entries in drawings for entry in entries]
    said = [
        *kind_notes(everything),
        *notes,
        *left_out(len(works) - len(shown), "model", advice=_ADVICE),
        *left_out(sum(map(len, shown)) - len(drawn), "row", advice=_ADVICE),
    ]
    return ChartBody(arranged(panels, kind_legend(everything)), notes=said, records=everything)


def _fastest(entries: Sequence[PredictedFigures]) -> list[PredictedFigures]:
    return sorted(entries, key=lambda entry: entry["latency_ms"])[:_MOST_ROWS]


def _about(entries: Sequence[PredictedFigures]) -> str:
    return " · ".join(filter(None, [f"batch {entries[0]['batch_size']:,}", in_common(entries)]))


def _layers(
    records: Sequence[Record],
    entries: Sequence[PredictedFigures],
    quantity: PredictedQuantity,
    *,
    labels: bool,
) -> list[Spec]:
    """Bands and marks on rows; the rows of two panels beside each other are named once."""
    reach = ends(records)
    scale = axis(quantity.titled(entries), reach, log=far(reach))
    rows: Spec = {
        "field": "bar",
        "type": "nominal",
        "title": None,
        "sort": list(dict.fromkeys(record["bar"] for record in records)),
        "axis": {"labelLimit": 300, "ticks": False, "domain": False, "labels": labels,
                 "grid": True},
    }  # fmt: skip
    place = {"y": rows, "x": scale.of("value")}
    band: Spec = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "bar", "height": 13, "opacity": 0.25, "clip": True},
        "encoding": {
            "y": rows,
            "x": {**place["x"], "field": "low"},
            "x2": {"field": "high"},
            "color": COLOUR,
        },
    }
    return [band, *kind_dots(place, tooltip(scale.title, records, level=LEVEL))]
