"""Distributions of all cells that were asked for: quantiles by group, in one question each."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.absent import NO_DATA
from accelbench.core.nouns import counted
from accelbench.core.rows import Row, number, text
from accelbench.report.charts.chart import ChartLabel, Picture
from accelbench.report.charts.spread import MOST_GROUPS, SpreadGroup, spread_picture
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.explore.fields import FIELDS, FIGURES, ExploreFigure, field_named
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
    groups = _groups(snapshot, query, figure, field)
    label = ChartLabel(
        f"{figure.name}-by-{by}",
        f"{title[:1].upper()}{title[1:].rpartition(', ')[0] or title[1:]} by {about}",
        f"how it is spread within each {about}",
        f"results that have it: {title}",
    )
    without = _without(snapshot, query, figure)
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


def _groups(
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


def _without(snapshot: Snapshot, query: PageQuery, figure: ExploreFigure) -> int:
    where, values = query.where()
    (row,) = snapshot.ask(
        f"SELECT count(*) AS n FROM cell WHERE {where}"  # noqa: S608
        f" AND NOT coalesce({COUNTS} AND {usable_sql(figure)}, false)",
        values,
    )
    return int(number(row, "n") or 0)
