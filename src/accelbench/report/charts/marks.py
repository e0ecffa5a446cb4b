"""Layers that several charts share: axes of times and rates, marks, intervals, panels. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.analysis.points import Point, Span
from accelbench.report.charts.chart import Spec
from accelbench.report.charts.look import (
    HIGH,
    INK,
    PANEL_HIGH,
    PANEL_WIDE,
    WIDE,
    hardware_scale,
    kind_scale,
    paint,
)
from accelbench.report.charts.words import safe

Record = dict[str, Any]

#: Values further apart than this are told apart on a logarithmic axis alone.
_FAR = 12.0


#: 0.01, 100, 1,500: neither exponents nor thousandths called "m".
NUMBER = ",.4~r"


def record(point: Point, figure: Span, **more: Any) -> Record:
    """What a mark shows, as plain values."""
    row = point.row
    return {
        "model": safe(row.get("model")),
        "hardware": safe(row.get("hardware")),
        "runtime": safe(row.get("runtime")),
        "precision": safe(row.get("precision")),
        "mode": safe(row.get("mode")),
        "batch": row.get("batch_size"),
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "launches": len(point.rows),
        "samples": point.samples,
        "kind": point.kind,
        "paint": paint(str(row.get("hardware")), point.kind),
        **more,
    }


def measure(name: str, title: str, values: Sequence[float], *, zero: bool = False) -> Spec:
    """An axis of a figure: logarithmic where values are far apart, else from zero for areas."""
    known = [one for one in values if one and one > 0]
    far = bool(known) and max(known) > _FAR * min(known) and not zero
    scale: Spec = {"type": "log"} if far else {"zero": zero}
    axis: Spec = {"format": "~s" if known and max(known) >= 1e6 else NUMBER, "labelOverlap": True}
    return {
        "field": name,
        "type": "quantitative",
        "title": f"{title} (log)" if far else title,
        "scale": scale,
        "axis": {**axis, "tickCount": 5},
    }


def hardware_colour(records: Sequence[Mapping[str, Any]], **more: Any) -> Spec:
    """Each platform in its colour; a legend where there is more than one."""
    names = [str(one["hardware"]) for one in records]
    legend = {"title": "hardware"} if len(set(names)) > 1 else None
    return {
        "field": "hardware",
        "type": "nominal",
        "scale": hardware_scale(names),
        "legend": legend,
        **more,
    }


def kind_shape(records: Sequence[Mapping[str, Any]]) -> Spec:
    """What a figure is, by its form; a legend where not all were measured here."""
    kinds = {str(one["kind"]) for one in records}
    legend = {"title": "figures"} if kinds != {"measured"} else None
    return {"field": "kind", "type": "nominal", "scale": kind_scale(kinds), "legend": legend}


#: Of what nobody measured here only the outline is drawn.
FILLED = {"condition": {"test": "datum.kind === 'measured'", "value": 1}, "value": 0}

_TOLD = ("model", "hardware", "runtime", "precision", "mode", "batch", "kind")


def tooltip(title: str, records: Sequence[Mapping[str, Any]]) -> list[Spec]:
    """What is told of a mark that somebody points at, in a page that can."""
    there = {name for one in records for name, value in one.items() if value is not None}
    figures = [("value", title), ("low", "95 % from"), ("high", "to")]
    return [
        *({"field": name, "type": "nominal"} for name in _TOLD if name in there),
        *(
            {"field": name, "type": "quantitative", "title": said, "format": ".4~g"}
            for name, said in figures
            if name in there
        ),
        *({"field": n, "type": "quantitative"} for n in ("launches", "samples") if n in there),
    ]


def dots(records: Sequence[Mapping[str, Any]], encoding: Spec, size: int = 70) -> Spec:
    """A mark for each figure."""
    return {
        "mark": {"type": "point", "size": size, "strokeWidth": 1.8, "opacity": 1},
        "encoding": {
            **encoding,
            "stroke": hardware_colour(records),
            "fill": hardware_colour(records),
            "fillOpacity": FILLED,
            "shape": kind_shape(records),
        },
    }


def whiskers(records: Sequence[Mapping[str, Any]], along: str, encoding: Spec) -> list[Spec]:
    """The interval of each figure that has one; of a prediction it is a broad band."""
    layers = []
    line: Spec = {"type": "rule", "strokeWidth": 1.4, "opacity": 0.7, "color": INK}
    band: Spec = {"type": "rule", "strokeWidth": 9, "opacity": 0.25, "color": INK}
    for other, mark in ((False, line), (True, band)):
        if not any(one["low"] and (one["kind"] == "predicted") is other for one in records):
            continue
        ends: Spec = {along: {**encoding[along], "field": "low"}, f"{along}2": {"field": "high"}}
        test = f"isValid(datum.low) && (datum.kind === 'predicted') === {str(other).lower()}"
        layers.append(
            {
                "transform": [{"filter": test}],
                "mark": mark,
                "encoding": encoding | ends,
            }
        )
    return layers


def panels(
    layers: Sequence[Spec],
    records: Sequence[Mapping[str, Any]],
    height: int | Spec | None = None,
    **shared: str,
) -> Spec:
    """A picture for each of the records' panels, two side by side.

    Args:
        layers: what is drawn in each.
        records: with a `panel` each, in the panels' order.
        height: of each, where it is not the usual one.
        shared: of each channel whose scale the panels do not share: "independent".
    """
    names = list(dict.fromkeys(str(one["panel"]) for one in records))
    alone = len(names) < 2
    size = (WIDE, HIGH) if alone else (PANEL_WIDE, PANEL_HIGH)
    facet = {"field": "panel", "type": "nominal", "sort": names}
    return {
        "data": {"values": list(records)},
        "facet": {**facet, "header": {"labels": any(names)}},
        "columns": 1 if alone else 2,
        "spec": {"layer": list(layers), "width": size[0], "height": height or size[1]},
        **({"resolve": {"scale": shared}} if shared else {}),
    }
