"""A pivot as JSON: a table a model and device, a line an engine and precision. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelbench.core.worth import FAILED, LAUNCHED
from accelbench.judge.pivot import Pivot, PivotLine
from accelbench.judge.versions import engine_version
from accelbench.present.comparison import OF_A_SIDE


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
