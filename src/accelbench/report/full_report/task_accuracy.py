"""The section of a report about task accuracy: what each precision costs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from accelbench.analysis.accuracies import (
    accuracy_against,
    accuracy_among,
    cost_sentence,
)
from accelbench.analysis.points import Point
from accelbench.core.rows import Row
from accelbench.report.full_report.contents import Block, Section, Table, Text

_WHAT = (
    "What outputs are worth against labelled data, by the sessions that were timed. Intervals are"
    " of the samples, 95 %; a difference is of the same samples, pair by pair."
)
_HEADERS = ("model", "engine", "precision", "metric", "accuracy", "95 % interval", "samples")
Cell = tuple[str, str, str, str]


def task_accuracy(points: Sequence[Point]) -> Iterable[Section]:
    """The section; none where nothing was labelled. Batches of a cell have one line."""
    cells: dict[Cell, list[Row]] = {}
    for point in points:
        if accuracy_among(point.rows) is not None:
            row = point.row
            place = f"{row.get('runtime')}/{row.get('hardware')}"
            cell = (str(row.get("model")), place, str(row.get("precision")), point.machine)
            cells.setdefault(cell, []).extend(point.rows)
    if not cells:
        return
    blocks: list[Block] = [Text([_WHAT])]
    lines = [_line(cell, rows) for cell, rows in cells.items()]
    blocks.append(Table(_HEADERS, lines, frozenset({4, 5, 6}), "Every cell"))
    costs = list(_costs(cells))
    if costs:
        blocks.append(Text(costs, listed=True))
    yield Section("Task accuracy", blocks)


def _line(cell: Cell, rows: Sequence[Row]) -> list[str]:
    known = accuracy_among(rows)
    assert known is not None  # else it were no cell
    figures = (known.metric.heading, known.shown, known.interval, f"{known.samples:,}")
    return [*cell[:3], *figures]


def _costs(cells: Mapping[Cell, Sequence[Row]]) -> Iterable[str]:
    for (model, place, precision, machine), rows in cells.items():
        base = cells.get((model, place, "fp32", machine))
        cost = accuracy_against(rows, base) if base and precision != "fp32" else None
        if cost is not None:
            yield cost_sentence(f"{model}, {place}, {precision}", "fp32", cost)
