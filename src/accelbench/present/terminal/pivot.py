"""Engines × precisions × batches: a table for each model and device, as document and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from accelbench.core.devices import device_count_text
from accelbench.core.formatting import NO_DATA, format_batch, format_count, format_value, join_first
from accelbench.core.result_statistics import common_unit, throughput_unit
from accelbench.core.rows import number
from accelbench.core.unusable_reasons import FAILED, LAUNCHED, failed_launches_text
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.judge.pivot import Pivot, PivotLine
from accelbench.judge.versions import engine_version, versions_apart
from accelbench.present.comparison import OF_A_SIDE
from accelbench.present.document import Document, DocumentSection, Notes, Table, TableColumn
from accelbench.present.terminal.compare import by_figure
from accelbench.present.terminal.words import other_machines, shapes
from accelbench.present.texts import phrase


def document(pivots: Sequence[Pivot]) -> list[dict[str, object]]:
    """Return each table in plain JSON values."""
    return [
        {
            **_common(pivot),
            "batches": list(pivot.batches),
            "lines": [{**_line(line), "cells": list(_cells(line))} for line in pivot.lines],
        }
        for pivot in pivots
    ]


def records(pivots: Sequence[Pivot]) -> list[dict[str, object]]:
    """Return a record for each cell, with what its table and its line have in common."""
    return [
        {**_common(pivot), **_line(line), **cell}
        for pivot in pivots
        for line in pivot.lines
        for cell in _cells(line)
    ]


_OF_A_LINE = frozenset(
    (*("runtime", "hardware", "precision", "compiled", "threads", "options", "batch_size"),
     *("run_id", "provenance"))
)  # fmt: skip


def _common(pivot: Pivot) -> dict[str, object]:
    return {name: pivot.row.get(name) for name in OF_A_SIDE if name not in _OF_A_LINE}


def _line(line: PivotLine) -> dict[str, object]:
    return {
        **{name: line.row.get(name) for name in OF_A_SIDE if name in _OF_A_LINE - {"batch_size"}},
        "engine_version": engine_version(line.row) or None,
        "verification": line.verification,
        "verification_error": line.error,
    }


def _cells(line: PivotLine) -> Iterator[dict[str, object]]:
    for batch, side in sorted(line.cells.items()):
        yield {
            "batch_size": batch,
            "figure": str(side.statistic),
            "item_ms": line.item_ms[batch] if side.step is not None else None,
            "throughput": side.throughput,
            "throughput_unit": side.row.get("throughput_unit"),
            "launches": len(side.times),
            "launches_tried": side.row.get(LAUNCHED) or len(side.rows) + side.unusable,
            "failed_launches": side.row.get(FAILED) or 0,
            "usable": side.usable,
            "best": batch in line.best,
            "may_be_as_fast": batch in line.near,
            "differs": list(line.differs.get(batch, ())),
        }


_BEST, _NEAR, _USELESS, _OTHERWISE = "*", "~", "?", "≠"

#: Differences along lines that are told below the tables.
_MOST_TOLD = 6


def pivoted(pivots: Sequence[Pivot], about: Mapping[str, Any]) -> Document:
    """Return pivots as a document."""
    notes = [*_below(pivots), *other_machines(about["other_machines"]), *about["not_shown"]]
    return Document(
        phrase("compare.engines-precision-batch", machine=about["machine"]),
        (*(DocumentSection(_heading(pivot), [_table(pivot)]) for pivot in pivots), Notes(notes)),
        data=lambda: {**about, "pivots": document(pivots)},
        records=lambda: records(pivots),
    )


def _table(pivot: Pivot) -> Table:
    rates = bool(_rates(pivot.lines))
    apart = _apart(pivot.lines)
    versions = versions_apart(line.row for line in pivot.lines)
    labels = [*map(format_batch, pivot.batches), "error"]
    rows = [
        (
            _engine(line, apart, versions),
            str(line.row.get("precision")),
            *(_cell(line, batch, rates) for batch in pivot.batches),
            _error(line),
        )
        for line in pivot.lines
    ]
    words = [TableColumn("engine"), TableColumn("precision")]
    numbers = [TableColumn(label, is_number=True) for label in labels]
    return Table([*words, *numbers], rows, repeated=len(words))


def _heading(pivot: Pivot) -> str:
    row, unit = pivot.row, _rates(pivot.lines) or "ms an item"
    parts = [
        str(row.get("model")),
        str(row.get("device_name") or row.get("hardware")),
        shapes(row),
        "training" if row.get("mode") == "training" else "",
        device_count_text(row, str(row.get("device_name") or "")),
        str(row["scenario"]) if row.get("scenario") not in (None, SINGLE_STREAM) else "",
        unit,
    ]
    return " · ".join(part for part in parts if part)


def _rates(lines: Iterable[PivotLine]) -> str:
    sides = [side for line in lines for side in line.cells.values()]
    if any(side.throughput is None for side in sides):
        return ""
    is_one = len({throughput_unit(side.row) for side in sides}) == 1
    return common_unit(side.row for side in sides) if is_one else ""


def _cell(line: PivotLine, batch: int, rates: bool) -> str:
    side = line.cells.get(batch)
    if side is None:
        return NO_DATA
    value = format_value(side.throughput if rates else line.item_ms[batch])
    mark = _USELESS if not side.usable else _BEST if batch in line.best else ""
    mark = mark or (_NEAR if batch in line.near else "")
    return f"{value}{mark}{_OTHERWISE if batch in line.differs else ''}"


def _apart(lines: Sequence[PivotLine]) -> list[str]:
    names = ("compiled", "threads", "options")
    return [
        name for name in names if len({str(pivot_line.row.get(name)) for pivot_line in lines}) > 1
    ]


def _engine(line: PivotLine, apart: Sequence[str], versions: bool) -> str:
    row = line.row
    version = engine_version(row) if versions else ""
    words = [str(row.get("runtime")), *([f"({version})"] if version else [])]
    if "compiled" in apart and row.get("compiled"):
        words.append("compiled")
    if "threads" in apart and (threads := number(row, "threads")):
        words.append(format_count(int(threads), "thread"))
    options: Any = row.get("options") or {}
    if "options" in apart and isinstance(options, Mapping):
        words += [f"{name}={value}" for name, value in options.items() if name != "compile"]
    return " ".join(words)


def _error(line: PivotLine) -> str:
    if line.verification == "reference":
        return "reference"
    if line.error is None:
        return "not verified" if line.verification == "not_done" else line.verification
    return f"{line.error:.1e}"


def _failed(lines: Sequence[PivotLine]) -> Iterable[str]:
    failures = [
        f"{line.row.get('runtime')} {line.row.get('precision')} at batch {batch} ({failed})"
        for line in lines
        for batch, side in sorted(line.cells.items())
        if (failed := failed_launches_text(side.rows))
    ]
    if failures:
        yield phrase(
            "compare.launches-of-lines-failed", failures=join_first(failures, _MOST_TOLD, "; ")
        )


def _below(pivots: Sequence[Pivot]) -> Iterable[str]:
    yield phrase("compare.error-legend")
    lines = [line for pivot in pivots for line in pivot.lines]
    figures = {str(side.statistic) for line in lines for side in line.cells.values()}
    if any(line.best for line in lines):
        yield phrase("compare.fastest-batch", best=_BEST, by_figure=by_figure(figures))
    if any(line.near for line in lines):
        yield phrase("compare.near-legend", near=_NEAR)
    if any(not side.usable for line in lines for side in line.cells.values()):
        yield phrase("compare.unusable", useless=_USELESS)
    yield from _failed(lines)
    if otherwise := dict.fromkeys(
        text for line in lines for texts in line.differs.values() for text in texts
    ):
        listing = join_first(list(otherwise), _MOST_TOLD)
        yield phrase("compare.line-differs", otherwise=_OTHERWISE, listing=listing)
