"""Exploring: figures and fields, what an address asks for, points, and distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10
from typing import TypeVar
from urllib.parse import urlencode

from accelbench.core.errors import UsageError
from accelbench.core.nouns import NO_DATA, counted
from accelbench.core.rows import Row, number, text
from accelbench.core.visible import in_quotes
from accelbench.report.charts.axes import ChartAxis, axis, decades, far
from accelbench.report.charts.chart import ChartLabel, Picture
from accelbench.report.charts.spread import MOST_GROUPS, SpreadGroup, spread_picture
from accelbench.report.charts.words import safe
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

_Known = TypeVar("_Known")


@dataclass(frozen=True)
class ExploreFigure:
    """A figure of a cell, in the middle of its launches."""

    name: str  # in an address
    title: str  # with its unit and its statistic
    sql: str  # of it; only what is above zero is drawn
    #: whether it is a time or made of one: a stand-in's and an unusable one are none
    timed: bool = True
    better: int = 0  # -1 where less is better, 1 where more is, 0 where neither


FIGURES: Mapping[str, ExploreFigure] = {
    figure.name: figure
    for figure in (
        ExploreFigure("latency", "latency of a step (median, else mean), ms", "latency", better=-1),
        ExploreFigure("throughput", "throughput, items/s", "throughput", better=1),
        ExploreFigure("tail", "latency that 90 % to 99 % keep, ms", "tail", better=-1),
        ExploreFigure("memory", "peak memory, MB", "memory", timed=False, better=-1),
        ExploreFigure("cost", "cost of a million items", "cost_per_million", better=-1),
        ExploreFigure("energy", "energy of an item, J", "energy_per_item", better=-1),
        ExploreFigure(
            "error", "largest error of the outputs, parts of one", "error", timed=False, better=-1
        ),
        ExploreFigure("ttft", "time to first token (mean), ms", "ttft", better=-1),
        ExploreFigure("token-rate", "tokens a second for a user", "token_rate", better=1),
        ExploreFigure("parameters", "parameters, millions", "parameters / 1e6", timed=False),
        ExploreFigure("flops", "operations of a step, GFLOP", "flops / 1e9", timed=False),
        ExploreFigure("batch", "batch size", "batch_size", timed=False),
    )
}
#: What marks are coloured by, and distributions are of: the name in an address → SQL.
FIELDS: Mapping[str, tuple[str, str]] = {
    "hardware": ("platform", "hardware"),
    "device": ("device", "concat_ws(' ', hardware, device_name)"),
    "runtime": ("engine", "runtime"),
    "place": (
        "device and engine",
        "concat_ws(' · ', concat_ws(' ', hardware, device_name), runtime)",
    ),
    "precision": ("precision", "precision"),
    "family": ("family", "family"),
    "mode": ("mode", "mode"),
    "batch": ("batch size", "batch_size::VARCHAR"),
    "provenance": ("provenance", "kind"),
}

#: What people ask most: a title, and what stands along and up. The first that has figures is shown.
PRESETS = (
    ("Latency against throughput", "latency", "throughput"),
    ("First token against tokens a second for a user", "ttft", "token-rate"),
    ("Latency against parameters", "parameters", "latency"),
    ("Latency against operations", "flops", "latency"),
    ("Throughput against cost", "cost", "throughput"),
    ("Latency against error", "error", "latency"),
    ("Latency against energy", "energy", "latency"),
    ("Throughput against batch size", "batch", "throughput"),
    ("Latency against memory", "memory", "latency"),
)


def figure_named(name: str) -> ExploreFigure:
    """A figure by its name.

    Raises:
        UsageError: There is none.
    """
    return _named(FIGURES, name, "figure")


def field_named(name: str) -> tuple[str, str]:
    """What a field is called and its SQL, by its name.

    Raises:
        UsageError: There is none.
    """
    return _named(FIELDS, name, "field")


def _named(known: Mapping[str, _Known], name: str, noun: str) -> _Known:
    if name not in known:
        raise UsageError(
            f"There is no {noun} {in_quotes(safe(name))} to explore by.",
            f"{noun.capitalize()}s: {', '.join(known)}.",
        )
    return known[name]


#: The ends of a range along and up, by their names in an address.
RANGES = ("x-from", "x-to", "y-from", "y-to")
USUAL_COLOUR = "hardware"


@dataclass(frozen=True)
class ExploreQuery:
    """What was asked for."""

    x: ExploreFigure  # the figure along, and `y` the one up
    y: ExploreFigure
    colour: str = USUAL_COLOUR  # the field that marks are coloured by
    size: ExploreFigure | None = None  # the figure that their size is of; None where all are alike
    find: str = ""  # letters that are looked for: what has them stands out
    #: ends of the axes, by their names; those that are not there are the data's
    ranges: Mapping[str, float] | None = None

    @property
    def zoomed(self) -> bool:
        """Whether a part of what there is was chosen."""
        return bool(self.ranges)

    @property
    def field_name(self) -> str:
        """What the field of the colours is called."""
        return FIELDS[self.colour][0]

    def pairs(self) -> list[tuple[str, str]]:
        """As an address says it."""
        said = [("x", self.x.name), ("y", self.y.name)]
        said += [("colour", self.colour)] if self.colour != USUAL_COLOUR else []
        said += [("size", self.size.name)] if self.size else []
        said += [("find", self.find)] if self.find else []
        return said + [(name, f"{value:.6g}") for name, value in (self.ranges or {}).items()]

    def query(self, filters: PageQuery) -> str:
        """What stands behind an address, with the filters."""
        return "?" + urlencode([*self.pairs(), *filters.pairs(order=False, picked=False)])

    def whole(self) -> ExploreQuery:
        """The same of everything."""
        return replace(self, ranges={})

    def along(self, x: str, y: str) -> ExploreQuery:
        """The same with other axes."""
        return replace(self, x=figure_named(x), y=figure_named(y), ranges={})

    def where(self) -> tuple[str, list[float]]:
        """The ranges as SQL over cells, and its parameters."""
        figures = {"x": self.x.sql, "y": self.y.sql}
        compared = {"from": ">=", "to": "<="}
        parts, values = ["true"], list[float]()
        for name, value in (self.ranges or {}).items():
            side, end = name.split("-")
            parts.append(f"{figures[side]} {compared[end]} ?")
            values.append(value)
        return " AND ".join(parts), values


def explored(parameters: Mapping[str, str], usual: Sequence[str]) -> ExploreQuery:
    """What an address says.

    Raises:
        UsageError: A figure, a field or an end of a range is none.
    """
    size = parameters.get("size", "")
    colour = parameters.get("colour") or USUAL_COLOUR
    field_named(colour)
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
    has = f"coalesce({COUNTS} AND {usable_sql(figure)}, false)"
    return snapshot.count(f"SELECT count(*) FROM cell WHERE {where} AND NOT {has}", values)  # noqa: S608


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
    """What is to be drawn."""

    count: int  # configurations that have both figures
    without: int  # how many of those that were asked for have not
    x: ChartAxis  # the axis along, and `y` the one up
    y: ChartAxis
    #: of the colours, each with how many it has, the largest first
    groups: Sequence[tuple[str, int]]
    points: Sequence[Row]  # each configuration, where there are few enough
    #: else how many there are at each place: column, row, count
    bins: Sequence[tuple[int, int, int]]
    front: Sequence[Row]  # what nothing beats in both; none where it is not known what is better
    matches: Sequence[Row]  # those that have the letters that are looked for


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
    across, up = _axis(chosen, "x", chosen.x, about), _axis(chosen, "y", chosen.y, about)
    few = count <= MOST_POINTS
    asked, words = query.where()
    every = snapshot.count(f"SELECT count(*) FROM cell WHERE {asked}", words)  # noqa: S608
    found_where, found_values = _found(chosen)
    return ExploredPoints(
        count,
        0 if chosen.zoomed else every - count,
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


def _axis(chosen: ExploreQuery, side: str, figure: ExploreFigure, about: Row) -> ChartAxis:
    ends = [number(about, f"{side}0"), number(about, f"{side}1")]
    ranges = chosen.ranges or {}
    low, high = ranges.get(f"{side}-from"), ranges.get(f"{side}-to")
    usual = axis(figure.title, ends, zero=not chosen.zoomed)
    low, high = low or usual.low, high or usual.high
    return ChartAxis(figure.title, low, high, log=low > 0 and far([low, high]))


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
    snapshot: Snapshot,
    where: str,
    values: Sequence[object],
    chosen: ExploreQuery,
    most: int,
    order: str = "lower(model)",
) -> list[Row]:
    sql = f"SELECT {_columns(chosen)} FROM cell WHERE {where} ORDER BY {order}, key LIMIT {most}"  # noqa: S608
    return [*snapshot.ask(sql, values)]


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
        return _rows(snapshot, where, values, chosen, MOST_OF_FRONT // 2, f"{up} DESC")
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
