"""The points of an exploration: all of few, counts by place of many, and the front of either.

Distributions of all cells that were asked for: quantiles by group, in one question each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from accelbench.core.nouns import NO_DATA, counted
from accelbench.core.rows import Row, number, text
from accelbench.report.charts.axes import ChartAxis, axis, decades, far
from accelbench.report.charts.chart import ChartLabel, Picture
from accelbench.report.charts.spread import MOST_GROUPS, SpreadGroup, spread_picture
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.explore.query import (
    FIELDS,
    FIGURES,
    ExploreFigure,
    ExploreQuery,
    field_named,
)
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: Of what was asked for, and for which figures, a store of thousands is summarised.
SUMMARIES = ("latency", "throughput", "memory")
#: The fields that they are by, the finest first.
_BY = ("place", "device", "runtime", "hardware")
#: What counts: as in every chart, neither what is unusable nor times of a stand-in.
COUNTS = "status = 'ok' AND kind IN ('measured', 'imported')"
_USABLE = "quality IS DISTINCT FROM 'unusable'"


def usable_sql(figure: ExploreFigure) -> str:
    """That a cell has a figure that may be looked at, in SQL."""
    parts = ["status = 'ok'", f"{figure.sql} > 0"]
    return " AND ".join([*parts, *([_USABLE, "kind <> 'emulated'"] if figure.timed else [])])


def spread_of(
    snapshot: Snapshot, query: PageQuery, figure: ExploreFigure, by: str = _BY[0]
) -> Picture | None:
    """How a figure is spread within each group; None where no cell has it."""
    about, field = field_named(by)
    title = figure.title
    groups = _spreads_groups(snapshot, query, figure, field)
    label = ChartLabel(
        f"{figure.name}-by-{by}",
        f"{title[:1].upper()}{title[1:].rpartition(', ')[0] or title[1:]} by {about}",
        f"how it is spread within each {about}",
        f"results that have it: {title}",
    )
    without = _spreads_without(snapshot, query, figure)
    notes = [f"{counted(without, 'configuration')} without it."] if without else []
    return spread_picture(label, title, groups, notes)


def summaries(snapshot: Snapshot, query: PageQuery) -> list[tuple[str, str, Picture]]:
    """What is shown of thousands: each with the names of its figure and its field."""
    by = _narrowest(snapshot, query)
    made = ((name, spread_of(snapshot, query, FIGURES[name], by)) for name in SUMMARIES)
    return [(name, by, picture) for name, picture in made if picture is not None]


def _narrowest(snapshot: Snapshot, query: PageQuery) -> str:
    """The field that says most and whose groups all find room in a picture."""
    where, values = query.where()
    counted_ = ", ".join(f'count(DISTINCT {FIELDS[name][1]}) AS "{name}"' for name in _BY)
    (row,) = snapshot.ask(f"SELECT {counted_} FROM cell WHERE {where} AND {COUNTS}", values)  # noqa: S608
    return next((name for name in _BY if (number(row, name) or 0) <= MOST_GROUPS), _BY[-1])


def _spreads_groups(
    snapshot: Snapshot, query: PageQuery, figure: ExploreFigure, field: str
) -> Sequence[SpreadGroup]:
    where, values = query.where()
    rows = snapshot.ask(
        f"SELECT {field} AS name, count(*) AS cells, count(DISTINCT model) AS models,"  # noqa: S608
        f" quantile_cont({figure.sql}, [0.05, 0.25, 0.5, 0.75, 0.95]) AS quantiles,"
        " min(hardware) AS hardware, count(DISTINCT hardware) AS platforms,"
        " bool_and(kind = 'imported') AS imported, min(moment)::VARCHAR AS first,"
        " max(moment)::VARCHAR AS last"
        f" FROM cell WHERE {where} AND {COUNTS} AND {usable_sql(figure)}"
        " GROUP BY 1 ORDER BY models DESC, cells DESC, name",
        values,
    )
    return [_group(row) for row in rows]


def _group(row: Row) -> SpreadGroup:
    quantiles = row["quantiles"]
    assert isinstance(quantiles, list)
    return SpreadGroup(
        str(row["name"] or NO_DATA),
        text(row, "hardware") if row["platforms"] == 1 else "",
        int(number(row, "cells") or 0),
        int(number(row, "models") or 0),
        [float(value) for value in quantiles],
        bool(row["imported"]),
        str(row["first"] or "")[:10],
        str(row["last"] or "")[:10],
    )


def _spreads_without(snapshot: Snapshot, query: PageQuery, figure: ExploreFigure) -> int:
    where, values = query.where()
    (row,) = snapshot.ask(
        f"SELECT count(*) AS n FROM cell WHERE {where}"  # noqa: S608
        f" AND NOT coalesce({COUNTS} AND {usable_sql(figure)}, false)",
        values,
    )
    return int(number(row, "n") or 0)


#: More points than this are drawn as how many there are at each place.
MOST_POINTS = 2500
#: More are not sent to a script either: it says what is at a place.
MOST_SENT = 20_000
#: More of what is looked for is not drawn singly.
_MOST_FOUND = 500
#: Places along and up.
ACROSS, UP = 96, 54
#: More of a front are in no table.
MOST_OF_FRONT = 40
_TOLD = (
    *("key", "model", "hardware", "device_name", "runtime", "precision", "batch_size", "mode"),
    *("kind", "moment", "latency_of", "throughput_unit", "quality"),
)


@dataclass(frozen=True)
class ExploredPoints:
    """What is to be drawn.

    Attributes:
        count: configurations that have both figures.
        without: how many of those that were asked for have not.
        x: the axis along, and `y` the one up.
        groups: of the colours, each with how many it has, the largest first.
        points: each configuration, where there are few enough.
        bins: else how many there are at each place: column, row, count.
        front: what nothing beats in both; none where it is not known what is better.
        matches: those that have the letters that are looked for.
    """

    count: int
    without: int
    x: ChartAxis
    y: ChartAxis
    groups: Sequence[tuple[str, int]]
    points: Sequence[Row]
    bins: Sequence[tuple[int, int, int]]
    front: Sequence[Row]
    matches: Sequence[Row]


def points_of(snapshot: Snapshot, query: PageQuery, chosen: ExploreQuery) -> ExploredPoints | None:
    """What is to be drawn; None where no configuration has both figures."""
    where, values = _where(query, chosen)
    x, y = chosen.x.sql, chosen.y.sql
    (about,) = snapshot.ask(
        f"SELECT count(*) AS n, min({x}) AS x0, max({x}) AS x1, min({y}) AS y0, max({y}) AS y1"  # noqa: S608
        f" FROM cell WHERE {where}",
        values,
    )
    count = int(number(about, "n") or 0)
    if not count:
        return None
    across, up = (_axis(chosen, side, figure, about) for side, figure in _sides(chosen))
    few = count <= MOST_POINTS
    found_where, found_values = _found(chosen)
    return ExploredPoints(
        count,
        _without(snapshot, query, count) if not chosen.zoomed else 0,
        across,
        up,
        _groups(snapshot, where, values, chosen),
        rows_of(snapshot, query, chosen, MOST_POINTS) if few else [],
        [] if few else _bins(snapshot, where, values, chosen, across, up),
        _front(snapshot, where, values, chosen),
        _rows(snapshot, f"{where} AND {found_where}", [*values, *found_values], chosen, _MOST_FOUND)
        if chosen.find
        else [],
    )


def rows_of(snapshot: Snapshot, query: PageQuery, chosen: ExploreQuery, most: int) -> Sequence[Row]:
    """Each configuration with both figures, at most so many."""
    where, values = _where(query, chosen)
    return _rows(snapshot, where, values, chosen, most)


def figures_there(
    snapshot: Snapshot, query: PageQuery, figures: Mapping[str, ExploreFigure]
) -> dict[str, int]:
    """Of each figure, how many configurations have it."""
    where, values = query.where()
    counted = ", ".join(
        f'count(*) FILTER ({COUNTS} AND {usable_sql(figure)}) AS "{name}"'
        for name, figure in figures.items()
    )
    (row,) = snapshot.ask(f"SELECT {counted} FROM cell WHERE {where}", values)  # noqa: S608
    return {name: int(number(row, name) or 0) for name in figures}


def _where(query: PageQuery, chosen: ExploreQuery) -> tuple[str, list[object]]:
    where, values = query.where()
    within, ends = chosen.where()
    has = f"{COUNTS} AND {usable_sql(chosen.x)} AND {usable_sql(chosen.y)}"
    return f"{where} AND {has} AND {within}", [*values, *ends]


def _found(chosen: ExploreQuery) -> tuple[str, list[object]]:
    """That each of the words that are looked for is in what a point is called."""
    words = chosen.find.lower().split()
    text = "lower(concat_ws(' ', model, hardware, device_name, runtime, precision))"
    return " AND ".join([f"contains({text}, ?)"] * len(words)) or "true", list(words)


def _sides(chosen: ExploreQuery) -> tuple[tuple[str, ExploreFigure], tuple[str, ExploreFigure]]:
    return ("x", chosen.x), ("y", chosen.y)


def _axis(chosen: ExploreQuery, side: str, figure: ExploreFigure, about: Row) -> ChartAxis:
    ends = [number(about, f"{side}0"), number(about, f"{side}1")]
    ranges = chosen.ranges or {}
    low, high = ranges.get(f"{side}-from"), ranges.get(f"{side}-to")
    usual = axis(figure.title, ends, zero=not chosen.zoomed)
    low, high = low or usual.low, high or usual.high
    return ChartAxis(figure.title, low, high, log=low > 0 and far([low, high]))


def _without(snapshot: Snapshot, query: PageQuery, count: int) -> int:
    where, values = query.where()
    (row,) = snapshot.ask(f"SELECT count(*) AS n FROM cell WHERE {where}", values)  # noqa: S608
    return int(number(row, "n") or 0) - count


def _groups(
    snapshot: Snapshot, where: str, values: Sequence[object], chosen: ExploreQuery
) -> list[tuple[str, int]]:
    rows = snapshot.ask(
        f"SELECT coalesce({FIELDS[chosen.colour][1]}, '{NO_DATA}') AS name, count(*) AS n"  # noqa: S608
        f" FROM cell WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1",
        values,
    )
    return [(str(row["name"]), int(number(row, "n") or 0)) for row in rows]


def _rows(
    snapshot: Snapshot, where: str, values: Sequence[object], chosen: ExploreQuery, most: int
) -> list[Row]:
    return list(
        snapshot.ask(
            f"SELECT {_columns(chosen)} FROM cell WHERE {where}"  # noqa: S608
            f" ORDER BY lower(model), key LIMIT {most}",
            values,
        )
    )


def _columns(chosen: ExploreQuery) -> str:
    size = chosen.size.sql if chosen.size else "NULL"
    return (
        f"{chosen.x.sql} AS x, {chosen.y.sql} AS y, {size} AS size,"
        f" coalesce({FIELDS[chosen.colour][1]}, '{NO_DATA}') AS colour_by, {', '.join(_TOLD)}"
    )


def _bins(
    snapshot: Snapshot,
    where: str,
    values: Sequence[object],
    chosen: ExploreQuery,
    across: ChartAxis,
    up: ChartAxis,
) -> list[tuple[int, int, int]]:
    column, row = (
        _place(figure, scale, parts)
        for figure, scale, parts in ((chosen.x, across, ACROSS), (chosen.y, up, UP))
    )
    rows = snapshot.ask(
        f"SELECT {column} AS c, {row} AS r, count(*) AS n FROM cell WHERE {where} GROUP BY 1, 2",  # noqa: S608
        values,
    )
    return [tuple(int(number(one, name) or 0) for name in "crn") for one in rows]  # type: ignore[misc]


def _place(figure: ExploreFigure, scale: ChartAxis, parts: int) -> str:
    """In which of so many places along an axis it stands, as SQL."""
    if scale.log:
        low, wide = log10(scale.low), log10(scale.high) - log10(scale.low)
        share = f"(log10({figure.sql}) - {low:.17g}) / {wide:.17g}"
    else:
        share = f"({figure.sql} - {scale.low:.17g}) / {scale.high - scale.low:.17g}"
    return f"least(greatest(floor({parts} * {share})::INTEGER, 0), {parts - 1})"


def _front(
    snapshot: Snapshot, where: str, values: Sequence[object], chosen: ExploreQuery
) -> list[Row]:
    """What nothing beats in both, the best along first; the best up, where only that is known."""
    x, y = chosen.x, chosen.y
    if not y.better:
        return []
    up = f"{'-' * (y.better < 0)}({y.sql})"
    if not x.better:
        return list(
            snapshot.ask(
                f"SELECT {_columns(chosen)} FROM cell WHERE {where}"  # noqa: S608
                f" ORDER BY {up} DESC, key LIMIT {MOST_OF_FRONT // 2}",
                values,
            )
        )
    along = f"{'-' * (x.better > 0)}({x.sql})"
    return list(
        snapshot.ask(
            "WITH front AS (SELECT place, along FROM ("  # noqa: S608
            f" SELECT rowid AS place, {along} AS along, {up} AS up, max({up}) OVER ("
            f" ORDER BY {along}, {up} DESC, key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
            f" AS best FROM cell WHERE {where}) WHERE best IS NULL OR up > best"
            f" ORDER BY along LIMIT {MOST_OF_FRONT})"
            f" SELECT {_columns(chosen)} FROM cell JOIN front ON cell.rowid = front.place"
            " ORDER BY along",
            values,
        )
    )


def share_along(scale: ChartAxis, value: float) -> float:
    """How far along its axis a value stands, from 0 to 1."""
    if scale.log:
        return (log10(value) - log10(scale.low)) / (log10(scale.high) - log10(scale.low))
    return (value - scale.low) / (scale.high - scale.low)


def ticks_of(scale: ChartAxis, most: int = 6) -> list[float]:
    """Round numbers along an axis."""
    if scale.log:
        return decades(scale.low, scale.high)
    rough = (scale.high - scale.low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough)
    first, last = ceil(scale.low / step - 1e-9), floor(scale.high / step + 1e-9)
    return [float(f"{place * step:.10g}") for place in range(first, last + 1)]
