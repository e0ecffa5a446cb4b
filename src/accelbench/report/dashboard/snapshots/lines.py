"""Lines of a snapshot: what was measured in several runs, whatever versions it went through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from accelbench.core.rows import Row, number
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.snapshots.cells import Cell
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: Words of a search that count.
_MOST_WORDS = 8
_SEARCHED = "lower(concat_ws(' ', model, runtime, hardware, device_name, precision))"
_NEWEST = "moment DESC, lower(model), model, key"
#: What lines are told apart and ordered by: a page's rows are found by these alone.
_ORDERING = (
    "series_key, machine, moment, key, model, hardware, device_name, runtime, precision, batch_size"
)
_BY_NAME = "lower(model), model, hardware, device_name, runtime, precision, batch_size, key"


@dataclass(frozen=True)
class LineOrder:
    """Which lines, and in which order.

    Attributes:
        words: each of which has to be in the name of the model, engine, platform, device or
            precision.
        changed: series and machine of those that come first; the newest follow.
        by_name: by their names instead.
    """

    words: str = ""
    changed: Sequence[tuple[str, str]] = ()
    by_name: bool = False


EVERY_LINE = LineOrder()


def lines_of(
    snapshot: Snapshot, query: PageQuery, most: int, order: LineOrder
) -> tuple[list[Cell], int]:
    """A page of the lines that have several runs, and how many there are.

    A line goes through versions, of which each is a cell of its own: its newest stands for it.
    """
    where, values = query.where()
    for word in order.words.lower().split()[:_MOST_WORDS]:
        where += f" AND contains({_SEARCHED}, ?)"
        values.append(word)
    lines = (
        "SELECT * FROM (SELECT rowid AS spot, sum(runs) OVER line AS of_line,"  # noqa: S608
        f" row_number() OVER (line ORDER BY moment DESC, key) AS nth, {_ORDERING} FROM cell"
        f" WHERE {where} AND series_key IS NOT NULL AND moment IS NOT NULL"
        " AND kind IN ('measured', 'imported')"
        " WINDOW line AS (PARTITION BY series_key, machine)) WHERE nth = 1 AND of_line > 1"
    )
    series = [key for key, _ in order.changed]
    machines = [machine for _, machine in order.changed]
    by = _BY_NAME if order.by_name else f"place NULLS LAST, {_NEWEST}"
    here = snapshot.ask(
        "WITH first AS (SELECT unnest(?::VARCHAR[]) AS of_series,"  # noqa: S608
        " unnest(?::VARCHAR[]) AS of_machine, unnest(?::INTEGER[]) AS place)"
        f" SELECT spot, count(*) OVER () AS every FROM ({lines}) AS line"
        " LEFT JOIN first ON series_key = of_series AND coalesce(machine, '') = of_machine"
        f" ORDER BY {by} LIMIT {most} OFFSET {(query.page - 1) * most}",
        [series, machines, list(range(len(series))), *values],
    )
    if not here:  # none, or beyond the last page
        (count,) = snapshot.ask(f"SELECT count(*) AS every FROM ({lines})", values)  # noqa: S608
        return [], _whole(count, "every")
    rows = snapshot.lying([_whole(row, "spot") for row in here], "* EXCLUDE (results)")
    return cast("list[Cell]", rows), _whole(here[0], "every")


def _whole(row: Row, name: str) -> int:
    return int(number(row, name) or 0)
