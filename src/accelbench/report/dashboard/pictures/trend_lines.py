"""Which histories a picture of the trend shows: those in which most changed, as far as it has room.

Of long histories it has room for one or two, and to find them all were read and judged: 48 lines of
2,000 runs took 0.9 s of a processor. What was judged for the page of histories is not read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from accelbench.report.dashboard.history.changes import (
    ChangesKeeper,
    JudgedLines,
    LineKey,
    line_key,
)
from accelbench.report.dashboard.snapshots import details

if TYPE_CHECKING:
    from accelbench.analysis.history import Series
    from accelbench.report.dashboard.snapshots.cells import Cell
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot
    from accelbench.store.database import Database

#: Series whose history is drawn.
MOST_SERIES = 12
#: Points of all series of a picture together.
_MOST_POINTS = 3000
#: Points from which on it is worth while to judge every line, so that the next picture reads few.
_MANY_POINTS = 4 * _MOST_POINTS
_LATENCY = "latency"
T = TypeVar("T")


def trend_lines(
    database: Database, snapshot: Snapshot, chosen: Sequence[Cell], changes: ChangesKeeper
) -> list[Series]:
    """The series that are drawn of some cells.

    Args:
        database: the store.
        snapshot: of which the cells are.
        chosen: the cells, in the order of the page.
        changes: which lines were judged already.
    """
    several = chosen[: 4 * MOST_SERIES]
    known = changes.known(snapshot, _LATENCY)
    if known is not None:
        return drawn_lines(database, snapshot, several, known)
    series = details.history_of(database, snapshot, several, details.BY_METRIC[_LATENCY])
    if sum(len(one.points) for one in series) > _MANY_POINTS:
        changes.of(snapshot, _LATENCY, 0.0)
    return _few((one, len(one.points)) for one in series)


def drawn_lines(
    database: Database, snapshot: Snapshot, cells: Sequence[Cell], judged: JudgedLines
) -> list[Series]:
    """The same by what was judged: read are lines that nobody judged, and those that are drawn."""
    metric = details.BY_METRIC[_LATENCY]
    keys = list(dict.fromkeys(line_key(cell) for cell in cells if cell.get("series_key")))
    unknown = _of(cells, {key for key in keys if key not in judged.ranks})
    read = {
        line_key(one.row): one for one in details.history_of(database, snapshot, unknown, metric)
    }
    lines: list[tuple[tuple[bool, float], LineKey, int]] = []
    for key in keys:
        if key in read:
            lines.append((details.foremost(read[key]), key, len(read[key].points)))
        elif (rank := judged.ranks.get(key)) is not None:
            lines.append((rank.place, key, rank.points))
    lines.sort(key=lambda line: line[0])
    few = _few((key, points) for _, key, points in lines)
    more = _of(cells, {key for key in few if key not in read})
    read |= {line_key(one.row): one for one in details.history_of(database, snapshot, more, metric)}
    return [read[key] for key in few if key in read]


def _of(cells: Sequence[Cell], keys: set[LineKey]) -> list[Cell]:
    return [cell for cell in cells if cell.get("series_key") and line_key(cell) in keys]


def _few(lines: Iterable[tuple[T, int]]) -> list[T]:
    """As many as a picture has room for: one of ten thousand points is megabytes, and a stain.

    Args:
        lines: the foremost first, each with how many points it has.
    """
    room = _MOST_POINTS
    selection: list[T] = []
    for line, points in lines:
        room -= points
        if len(selection) == MOST_SERIES or (selection and room < 0):
            break
        selection.append(line)
    return selection
