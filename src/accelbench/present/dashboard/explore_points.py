"""Exploring: figures and fields, the query of an address, points, and distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10

from accelbench.core.errors import UsageError
from accelbench.core.formatting import NO_DATA, format_count
from accelbench.core.rows import Row, number
from accelbench.core.safe_text import in_quotes
from accelbench.present.charts.axes import ChartAxis, axis, decades, far
from accelbench.present.charts.chart import ChartLabel, Picture
from accelbench.present.charts.spread import MOST_GROUPS, SpreadGroup, spread_picture
from accelbench.present.charts.words import safe
from accelbench.present.dashboard.cells import Cell
from accelbench.present.dashboard.page_query import (
    COUNTED_SQL,
    PageQuery,
    address_of_pairs,
    one_of,
)
from accelbench.present.dashboard.snapshot import Snapshot
from accelbench.present.texts import catalogue


@dataclass(frozen=True)
class ExploreFigure:
    """A figure of a cell, over its launches."""

    name: str  # in an address
    title: str  # with its unit and its statistic
    sql: str  # only values above zero are drawn
    timed: bool = True  # whether it comes from a time: unusable launches have none
    better: int = 0  # -1 if less is better, 1 if more is, else 0


_LABELS = catalogue("explore_labels")
FIGURES = {name: ExploreFigure(name, **about) for name, about in _LABELS["figures"].items()}
#: Fields of colours and distributions: the name in an address → label and SQL.
FIELDS: Mapping[str, Sequence[str]] = _LABELS["fields"]
#: Usual questions: title, figure along, figure up. The first with figures is shown.
PRESETS: Sequence[Sequence[str]] = _LABELS["presets"]["every"]


def figure_named(name: str) -> ExploreFigure:
    """Return a figure by its name."""
    return FIGURES[one_of("figure", name, FIGURES)]


#: The ends of a range along and up, by their names in an address.
RANGES = ("x-from", "x-to", "y-from", "y-to")
USUAL_COLOUR = "hardware"


@dataclass(frozen=True)
class ExploreQuery:
    """The axes, colours, sizes and search of an address."""

    x: ExploreFigure  # the figure along, and `y` the one up
    y: ExploreFigure
    colour: str = USUAL_COLOUR  # one of FIELDS
    size: ExploreFigure | None = None
    find: str = ""  # words of a search, whose matches are highlighted
    ranges: Mapping[str, float] | None = None  # ends of the axes by name

    @property
    def zoomed(self) -> bool:
        """Whether an axis shows a part of the data."""
        return bool(self.ranges)

    @property
    def field_name(self) -> str:
        """The label of the colours' field."""
        return FIELDS[self.colour][0]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the names and values of the address."""
        said = [("x", self.x.name), ("y", self.y.name)]
        said += [("colour", self.colour)] if self.colour != USUAL_COLOUR else []
        said += [("size", self.size.name)] if self.size else []
        said += [("find", self.find)] if self.find else []
        return said + [(name, f"{value:.6g}") for name, value in (self.ranges or {}).items()]

    def query(self, filters: PageQuery) -> str:
        """Return the query of the address, with the filters."""
        return address_of_pairs([*self.pairs(), *filters.pairs(order=False, picked=False)])

    def whole(self) -> ExploreQuery:
        """Return the query without ranges."""
        return replace(self, ranges={})

    def along(self, x: str, y: str) -> ExploreQuery:
        """Return the query with other axes."""
        return replace(self, x=figure_named(x), y=figure_named(y), ranges={})

    def where(self) -> tuple[str, list[float]]:
        """Return the ranges as SQL over cells, and its parameters."""
        figures = {"x": self.x.sql, "y": self.y.sql}
        compared = {"from": ">=", "to": "<="}
        parts, values = ["true"], list[float]()
        for name, value in (self.ranges or {}).items():
            side, end = name.split("-")
            parts.append(f"{figures[side]} {compared[end]} ?")
            values.append(value)
        return " AND ".join(parts), values


def explored(parameters: Mapping[str, str], usual: Sequence[str]) -> ExploreQuery:
    """Return the query of an address; unknown figures, fields and ends are refused."""
    size = parameters.get("size", "")
    colour = one_of("field", parameters.get("colour") or USUAL_COLOUR, FIELDS)
    ends = {name: _end(name, parameters[name]) for name in RANGES if parameters.get(name)}
    for side in ("x", "y"):
        low, high = ends.get(f"{side}-from"), ends.get(f"{side}-to")
        if low is not None and high is not None and low >= high:
            raise UsageError(
                f"{side}-from is {low:g} and {side}-to is {high:g}.", "Give the smaller one first."
            )
    return ExploreQuery(
        figure_named(parameters.get("x") or usual[0]),
        figure_named(parameters.get("y") or usual[1]),
        colour,
        figure_named(size) if size else None,
        parameters.get("find", "")[:200],
        ends,
    )


def _end(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or number < 0:
        raise UsageError(f"{name} is {in_quotes(safe(value))}.", "Give a number from 0.")
    return number


#: The figures of a summary, and the fields that it may be by, the finest first.
SUMMARIES = ("latency", "throughput", "memory")
_BY = ("place", "device", "runtime", "hardware")


def usable_sql(figure: ExploreFigure) -> str:
    """Return the SQL condition that a cell has a usable figure that was measured."""
    timed = " AND quality IS DISTINCT FROM 'unusable'" if figure.timed else ""
    return f"{COUNTED_SQL} AND {figure.sql} > 0{timed}"


def spread_of(
    snapshot: Snapshot, query: PageQuery, figure: ExploreFigure, by: str = _BY[0]
) -> Picture | None:
    """Return the picture of a figure's distribution in groups, or None if no cell has it."""
    about, sql = FIELDS[one_of("field", by, FIELDS)]
    title = figure.title
    where, values = query.where()
    rows = snapshot.ask(
        f"SELECT {sql} AS name, count(*) AS cells, count(DISTINCT model) AS models,"  # noqa: S608
        f" quantile_cont({figure.sql}, [0.05, 0.25, 0.5, 0.75, 0.95]) AS quantiles,"
        " min(hardware) AS hardware, count(DISTINCT hardware) AS platforms,"
        " bool_and(kind = 'imported') AS imported, min(moment)::VARCHAR AS first,"
        " max(moment)::VARCHAR AS last"
        f" FROM cell WHERE {where} AND {usable_sql(figure)}"
        " GROUP BY 1 ORDER BY models DESC, cells DESC, name",
        values,
    )
    without = snapshot.count(
        f"SELECT count(*) FROM cell WHERE {where}"  # noqa: S608
        f" AND NOT coalesce({usable_sql(figure)}, false)",
        values,
    )
    label = ChartLabel(
        f"{figure.name}-by-{by}",
        f"{title[:1].upper()}{title[1:].rpartition(', ')[0] or title[1:]} by {about}",
        f"how it is spread within each {about}",
        f"results that have it: {title}",
    )
    notes = [f"{format_count(without, 'configuration')} without it."] if without else []
    return spread_picture(label, title, [_group(row) for row in rows], notes)


def _group(row: Cell) -> SpreadGroup:
    return SpreadGroup(
        str(row["name"] or NO_DATA),
        str(row["hardware"] or "") if row["platforms"] == 1 else "",
        row["cells"],
        row["models"],
        row["quantiles"],
        row["imported"],
        str(row["first"] or "")[:10],
        str(row["last"] or "")[:10],
    )


def summaries(snapshot: Snapshot, query: PageQuery) -> list[tuple[str, str, Picture]]:
    """Return the pictures of thousands of cells, each with the names of its figure and field."""
    where, values = query.where()
    counts = ", ".join(f'count(DISTINCT {FIELDS[name][1]}) AS "{name}"' for name in _BY)
    (row,) = snapshot.ask(f"SELECT {counts} FROM cell WHERE {where} AND {COUNTED_SQL}", values)  # noqa: S608
    by = next((name for name in _BY if row[name] <= MOST_GROUPS), _BY[-1])
    made = ((name, spread_of(snapshot, query, FIGURES[name], by)) for name in SUMMARIES)
    return [(name, by, picture) for name, picture in made if picture is not None]


#: More points than this are drawn as counts of places.
MOST_POINTS = 2500
#: More are not sent to a script.
MOST_SENT = 20_000
#: Matches of a search that are drawn.
_MOST_FOUND = 500
#: Places along and up.
ACROSS, UP = 96, 54
#: Rows of the table of a front.
MOST_OF_FRONT = 40
_COLUMNS = (
    *("key", "model", "hardware", "device_name", "runtime", "precision", "batch_size", "mode"),
    *("kind", "moment", "latency_of", "throughput_unit", "quality"),
)


@dataclass(frozen=True)
class ExploredPoints:
    """The points of a drawing."""

    count: int  # configurations that have both figures
    without: int  # those that have not
    x: ChartAxis  # the axis along, and `y` the one up
    y: ChartAxis
    groups: Sequence[tuple[str, int]]  # colours and their counts, the largest first
    points: Sequence[Row]  # each configuration, if there are few enough
    bins: Sequence[tuple[int, int, int]]  # else column, row and count of each place
    front: Sequence[Row]  # configurations that no other beats in both figures
    matches: Sequence[Row]  # those that a search finds


def points_of(snapshot: Snapshot, query: PageQuery, chosen: ExploreQuery) -> ExploredPoints | None:
    """Return the points of a drawing, or None if no configuration has both figures."""
    them = _Selection(snapshot, query, chosen)
    x, y = chosen.x.sql, chosen.y.sql
    (about,) = them.ask(
        f"SELECT count(*) AS n, min({x}) AS x0, max({x}) AS x1, min({y}) AS y0, max({y}) AS y1"  # noqa: S608
        " FROM {cells}"
    )
    count = about["n"]
    if not count:
        return None
    across, up = _axis(chosen, "x", chosen.x, about), _axis(chosen, "y", chosen.y, about)
    few = count <= MOST_POINTS
    asked, words = query.where()
    every = snapshot.count(f"SELECT count(*) FROM cell WHERE {asked}", words)  # noqa: S608
    return ExploredPoints(
        count,
        0 if chosen.zoomed else every - count,
        across,
        up,
        them.groups(),
        them.rows(MOST_POINTS) if few else [],
        [] if few else them.bins(across, up),
        them.front(),
        them.matches() if chosen.find else [],
    )


def rows_of(snapshot: Snapshot, query: PageQuery, chosen: ExploreQuery, most: int) -> Sequence[Row]:
    """Return configurations with both figures, at most so many."""
    return _Selection(snapshot, query, chosen).rows(most)


def figures_there(snapshot: Snapshot, query: PageQuery) -> dict[str, int]:
    """Return how many configurations have each figure."""
    where, values = query.where()
    counts = ", ".join(
        f'count(*) FILTER ({usable_sql(figure)}) AS "{name}"' for name, figure in FIGURES.items()
    )
    (row,) = snapshot.ask(f"SELECT {counts} FROM cell WHERE {where}", values)  # noqa: S608
    return {name: row[name] for name in FIGURES}


class _Selection:
    """The configurations that have both figures, and questions about them."""

    def __init__(self, snapshot: Snapshot, query: PageQuery, chosen: ExploreQuery) -> None:
        self._snapshot, self._chosen = snapshot, chosen
        where, values = query.where()
        within, ends = chosen.where()
        has = f"{usable_sql(chosen.x)} AND {usable_sql(chosen.y)}"
        self._where, self._values = f"{where} AND {has} AND {within}", [*values, *ends]
        size = chosen.size.sql if chosen.size else "NULL"
        self._colour = f"coalesce({FIELDS[chosen.colour][1]}, '{NO_DATA}')"
        self._columns = (
            f"{chosen.x.sql} AS x, {chosen.y.sql} AS y, {size} AS size,"
            f" {self._colour} AS colour_by, {', '.join(_COLUMNS)}"
        )

    def ask(self, sql: str, more: str = "", values: Sequence[object] = ()) -> list[Cell]:
        """Return the rows of a question in which `{cells}` stands for the configurations."""
        cells = f"cell WHERE {self._where}{more}"
        return self._snapshot.ask(sql.format(cells=cells), [*self._values, *values])

    def groups(self) -> list[tuple[str, int]]:
        """Return the colours with their counts, the largest first."""
        rows = self.ask(
            f"SELECT {self._colour} AS name, count(*) AS n"  # noqa: S608
            " FROM {cells} GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        return [(str(row["name"]), row["n"]) for row in rows]

    def rows(
        self,
        most: int,
        order: str = "lower(model)",
        more: str = "",
        values: Sequence[object] = (),
    ) -> list[Cell]:
        """Return the configurations in an order, at most so many."""
        sql = f"SELECT {self._columns} FROM {{cells}} ORDER BY {order}, key LIMIT {most}"  # noqa: S608
        return self.ask(sql, more, values)

    def matches(self) -> list[Cell]:
        """Return the configurations whose names have each word of the search."""
        words = self._chosen.find.lower().split()
        text = "lower(concat_ws(' ', model, hardware, device_name, runtime, precision))"
        more = f" AND contains({text}, ?)" * len(words)
        return self.rows(_MOST_FOUND, more=more, values=words)

    def bins(self, across: ChartAxis, up: ChartAxis) -> list[tuple[int, int, int]]:
        """Return column, row and count of each place."""
        column = _place(self._chosen.x, across, ACROSS)
        row = _place(self._chosen.y, up, UP)
        rows = self.ask(
            f"SELECT {column} AS c, {row} AS r, count(*) AS n FROM {{cells}} GROUP BY 1, 2"  # noqa: S608
        )
        return [(one["c"], one["r"], one["n"]) for one in rows]

    def front(self) -> list[Cell]:
        """Return the configurations that none beats in both, or the best of the figure up."""
        x, y = self._chosen.x, self._chosen.y
        if not y.better:
            return []
        up = f"{'-' * (y.better < 0)}({y.sql})"
        if not x.better:
            return self.rows(MOST_OF_FRONT // 2, f"{up} DESC")
        along = f"{'-' * (x.better > 0)}({x.sql})"
        return self.ask(
            "WITH front AS (SELECT place, along FROM ("  # noqa: S608
            f" SELECT rowid AS place, {along} AS along, {up} AS up, max({up}) OVER ("
            f" ORDER BY {along}, {up} DESC, key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
            f" AS best FROM {{cells}}) WHERE best IS NULL OR up > best"
            f" ORDER BY along LIMIT {MOST_OF_FRONT})"
            f" SELECT {self._columns} FROM cell JOIN front ON cell.rowid = front.place"
            " ORDER BY along"
        )


def _axis(chosen: ExploreQuery, side: str, figure: ExploreFigure, about: Row) -> ChartAxis:
    ends = [number(about, f"{side}0"), number(about, f"{side}1")]
    ranges = chosen.ranges or {}
    usual = axis(figure.title, ends, zero=not chosen.zoomed)
    low, high = ranges.get(f"{side}-from") or usual.low, ranges.get(f"{side}-to") or usual.high
    return ChartAxis(figure.title, low, high, log=low > 0 and far([low, high]))


def _place(figure: ExploreFigure, scale: ChartAxis, parts: int) -> str:
    if scale.log:
        low, wide = log10(scale.low), log10(scale.high) - log10(scale.low)
        share = f"(log10({figure.sql}) - {low:.17g}) / {wide:.17g}"
    else:
        share = f"({figure.sql} - {scale.low:.17g}) / {scale.high - scale.low:.17g}"
    return f"least(greatest(floor({parts} * {share})::INTEGER, 0), {parts - 1})"


def share_along(scale: ChartAxis, value: float) -> float:
    """Return the place of a value on its axis, from 0 to 1."""
    if scale.log:
        return (log10(value) - log10(scale.low)) / (log10(scale.high) - log10(scale.low))
    return (value - scale.low) / (scale.high - scale.low)


def ticks_of(scale: ChartAxis) -> list[float]:
    """Return round numbers along an axis."""
    if scale.log:
        return decades(scale.low, scale.high)
    rough = (scale.high - scale.low) / 6
    power = 10.0 ** floor(log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough)
    first, last = ceil(scale.low / step - 1e-9), floor(scale.high / step + 1e-9)
    return [float(f"{place * step:.10g}") for place in range(first, last + 1)]
