"""The compatibility matrix as a heat map. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.formatting import format_value
from accelbench.core.unusable_reasons import COMPARABLE
from accelbench.judge.matrix import UNRATED, MatrixCell, MatrixLine, Rating
from accelbench.judge.points import EMULATED
from accelbench.present.charts.axes import Record, Spec, grid, grouped, layer, view
from accelbench.present.charts.chart import ChartBody, Subject
from accelbench.present.charts.marks import labels
from accelbench.present.charts.words import left_out, safe
from accelbench.present.matrix import precisions
from accelbench.present.texts import phrase

#: Level → fill and the word in the cell: never by colour alone.
_LEVELS = {
    "high": "#8fd3a6",
    "medium": "#cfe8b0",
    "low": "#f6dc93",
    "incompatible": "#eeb0aa",
    "not rated": "#d5dff0",
    "not verified": "#dcd3f0",
    "not sure": "#dcd3f0",
    "not available": "#e6e9ed",
    "not measured": "#e6e9ed",
}
_MOST_LINES = 40


def _level(cell: MatrixCell) -> str:
    if cell.rating is not Rating.NONE:
        return cell.rating.value
    if cell.compatible:  # no time of it is usable, or the CPU has none beside it
        return UNRATED.get(cell.token, "not rated")
    return cell.availability.value


def _said(cell: MatrixCell) -> str:
    if cell.emulated:
        return "emulated"
    level = _level(cell)
    if cell.speed is not None:
        return f"{level} {format_value(cell.speed)}×"
    return "–" if level in ("not available", "not measured") else level


def draw_matrix(subject: Subject) -> ChartBody | None:
    """The level of each model on each platform."""
    matrix = subject.matrix
    if matrix is None or not (matrix.models or matrix.families):
        return None
    lines: Sequence[MatrixLine] = matrix.models or matrix.families
    records: list[Record] = [
        {
            "model": safe(line.name),
            "hardware": name,
            "level": _level(cell),
            "rating": _said(cell),
            "precision": safe(" and ".join(precisions(cell))),
            "why": safe(cell.reason, 300),
        }
        for line in lines[:_MOST_LINES]
        for name, cell in line.cells.items()
    ]
    notes = [
        phrase("charts.matrix-scope"),
        phrase("charts.matrix-legend"),
        *left_out(
            len(lines) - len(lines[:_MOST_LINES]), "line", advice=phrase("charts.name-models")
        ),
    ]
    column = "model" if matrix.models else "family"
    names = {line.name for line in lines[:_MOST_LINES]}
    rated = [
        point
        for point in subject.points
        if point.row.get("mode") == "inference"
        and point.kind in (*COMPARABLE, EMULATED)
        and str(point.row.get(column)) in names
    ]
    return ChartBody(_body(records, matrix.hardware), rated, notes, records)


def _body(records: Sequence[Record], hardware: Sequence[str]) -> Spec:
    levels = {record["level"] for record in records}
    place = grid("hardware", hardware, "model", (record["model"] for record in records))
    shown = {"title": None, "symbolType": "square", "columns": 5}
    fills = {level: fill for level, fill in _LEVELS.items() if level in levels}
    tips = [{"field": name} for name in ("model", "hardware", "level", "precision", "why")]
    channels = {"fill": grouped("level", fills, shown), "tooltip": tips}
    fields = layer("rect", channels, stroke="#ffffff", strokeWidth=2)
    text = labels({"text": {"field": "rating"}})
    return {"encoding": place, **view(records, {"step": 82}, {"step": 24}, fields, text)}
