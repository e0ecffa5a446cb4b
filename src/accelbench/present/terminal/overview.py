"""A store at a glance for people: the fastest step for each task, and what is unsteady."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from accelbench.core.columns import step_ms
from accelbench.core.devices import short_of
from accelbench.core.figures import unit_beside, unit_of_all
from accelbench.core.nouns import counted
from accelbench.core.rows import ResultRow
from accelbench.present.document import Table, columns
from accelbench.present.terminal.words import case_name, figure, shapes, spread, where
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.judge.overview import StoreOverview


def fastest_by_task(rows: Sequence[ResultRow]) -> Table:
    """Return a row a model, those of a task together, the fastest first."""
    unit = unit_of_all(rows)
    tasks = [_task(row) for row in rows]
    changes = [task != before for before, task in pairwise(["", *tasks])]
    cells = [
        (
            task if is_first else "",
            str(row["model"]),
            f"{short_of(str(row['runtime']))}/{where(row)} {row['precision']}",
            str(row["batch_size"]),
            shapes(row),
            figure(step_ms(row)),
            spread(row),
            f"{figure(row.get('throughput'))} {unit_beside(row, unit)}".rstrip(),
        )
        for row, task, is_first in zip(rows, tasks, changes, strict=True)
    ]
    heads = ("task", "model", "by", "batch", "size", "p50 ms", "95 %", unit)
    ends = [at - 1 for at, is_first in enumerate(changes) if is_first and at]
    return Table(columns(heads, (3, 4, 5, 6, 7)), cells, ends, intervals={6: 5})


def _task(row: ResultRow) -> str:
    return str(row.get("task") or row.get("family") or "task unknown").replace("_", " ")


def unsteady_lines(found: StoreOverview) -> Iterator[str]:
    """How much of what was measured last is of no use, and the newest of it."""
    if not found.unsteady_count:
        return
    yield phrase(
        "run.unsteady",
        unsteady_count=found.unsteady_count,
        series_count=counted(found.series_count, "figure"),
    )
    for row in found.unsteady:
        quality = str(row.get("quality")).replace("_", " ")
        interval = spread(row, " ms")
        yield (
            f"  {case_name(row)} batch {row['batch_size']}: {figure(step_ms(row))} ms"
            f"{f' {interval}' if interval else ''}, {quality}"
        )
    if (more := found.unsteady_count - len(found.unsteady)) > 0:
        yield phrase("run.more-unsteady", more=more)
