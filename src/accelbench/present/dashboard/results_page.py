"""The table of results, groups as a list or a pivot, one configuration, and the matrix.

Best and median are of usable measured and imported results. A group has one mode and one unit of
rates, and in a list of latencies one batch size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.axes import TITLE_ORDER, size_columns
from accelbench.core.precision import summarise_inexact
from accelbench.core.result_statistics import unit_kind_sql
from accelbench.core.rows import number, text, texts
from accelbench.core.vocabulary import Quality
from accelbench.evidence.launches import with_reported_outputs
from accelbench.judge.machine_matrix import matrix_on
from accelbench.judge.matrix import RULE
from accelbench.judge.process_spread import ranks_of
from accelbench.judge.questions import AXES, ComparisonAxis
from accelbench.judge.warned import warned
from accelbench.present.charts import CHARTS
from accelbench.present.charts.spread import MOST_LAUNCHES
from accelbench.present.dashboard import cells, details, page_query, table_query
from accelbench.present.dashboard import table_query as result_rows
from accelbench.present.dashboard.cells import (
    Cell,
    LaunchInterval,
    cell_accuracy,
    interval,
)
from accelbench.present.dashboard.page_base import NotThereError, SitePages
from accelbench.present.dashboard.pictures import MOST_CELLS
from accelbench.present.dashboard.snapshot import Snapshot, spent_of
from accelbench.present.matrix import plain_mark, tells
from accelbench.present.terminal.history import document

#: Columns of a pivot, and launches of a matrix.
MOST_ACROSS, _MOST_OF_MATRIX = 24, 1500
#: Figures of which the largest is best.
_RISING = ("throughput",)
#: Figures of items, which may have several units.
_COUNTED = ("throughput", "cost")
#: Columns that a group never mixes; a list of latencies does not mix batch sizes either.
MODE, BATCH = "mode", "batch"
#: The axis of comparison by the column across a pivot, if its name differs.
_AXES = {"device": "hardware", "machine": "hardware"}


@dataclass(frozen=True)
class ResultGroup:
    """Configurations with the same values in the columns of a group."""

    values: Mapping[str, object]  # by the name of the column
    count: int  # configurations, and those with a result
    known: int
    key: str  # of the best one
    best: float | None
    median: float | None
    low: float | None
    high: float | None
    units: Sequence[str] = ()  # the units of rates if they differ: there is no common value then
    statistics: Sequence[str] = ()  # the statistics of latencies if they differ
    cell: Cell | None = None  # the best one
    interval: LaunchInterval | None = None  # of the best value


@dataclass(frozen=True)
class PivotRow:
    """A row of a pivot."""

    value: object
    groups: Mapping[str, ResultGroup]  # by the text of the value across
    best: str = ""  # the value across whose interval is better than the second's
    unlike: Sequence[str] = ()  # other differences, for which none is marked as best
    mode: str = ""  # if rows of several modes have the same value

    def values(self, down: str) -> dict[str, object]:
        """Return what its configurations have in common."""
        return {down: self.value, **({MODE: self.mode} if self.mode else {})}


@dataclass(frozen=True)
class GroupPage:
    """A page of groups."""

    count: int  # groups of a list, or rows of a pivot
    groups: Sequence[ResultGroup] = ()  # of a list
    rows: Sequence[PivotRow] = ()  # of a pivot
    across: Sequence[object] = ()  # the values across a pivot
    left_out: int = 0  # more values across
    names: Sequence[str] = ()  # the columns of a group
    modes_apart: bool = False  # whether the mode is one of them unasked

    @property
    def pages(self) -> int:
        """The number of pages."""
        return page_query.pages_in(self.count)


def grouped(snapshot: Snapshot, query: table_query.TableQuery) -> GroupPage:
    """Return a page of groups, as a list or as a pivot."""
    apart = _several(snapshot, query, MODE)
    names = (*query.groups, MODE) if apart else query.groups
    if query.figure == "latency" and not query.crossed and _several(snapshot, query, BATCH):
        names = (*names, BATCH)
    made = _pivot(snapshot, query, names) if query.crossed else _list(snapshot, query, names)
    return replace(made, names=names, modes_apart=apart)


def _several(snapshot: Snapshot, query: table_query.TableQuery, name: str) -> bool:
    """Return whether groups would mix several values of a column."""
    if name in query.groups:
        return False
    where, values = query.where()
    distinct = f"count(DISTINCT coalesce({page_query.GROUPS[name].column}::VARCHAR, ''))"
    return snapshot.count(f"SELECT {distinct} FROM cell WHERE {where}", values) > 1  # noqa: S608


def _list(snapshot: Snapshot, query: table_query.TableQuery, groups: Sequence[str]) -> GroupPage:
    sql, values = _sql(query, groups)
    names = [f"value_{n}" for n in range(len(groups))]
    order = query.group_order.removeprefix("-")
    way = "DESC" if query.group_order.startswith("-") else "ASC"
    columns = {"count": "n", table_query.BEST: "best", table_query.MEDIAN: "middle"}
    by = [columns[order]] if order in columns else names
    ordered = ", ".join(f"{column} {way} NULLS LAST" for column in by)
    then = ", ".join(f"{name} NULLS LAST" for name in names)
    rows = snapshot.ask(
        f"SELECT *, count(*) OVER () AS all_groups FROM ({sql}) ORDER BY {ordered}, {then}"  # noqa: S608
        f" LIMIT {page_query.PAGE} OFFSET {(query.page - 1) * page_query.PAGE}",
        values,
    )
    count = rows[0]["all_groups"] if rows else 0
    if not rows:  # beyond the last page
        count = snapshot.count(f"SELECT count(*) FROM ({sql})", values)  # noqa: S608
    of_rows = [_group(query, row, groups) for row in rows]
    return GroupPage(count, _with_cells(snapshot, query, of_rows))


def _pivot(snapshot: Snapshot, query: table_query.TableQuery, names: Sequence[str]) -> GroupPage:
    where, values = query.where()
    down, across = (page_query.GROUPS[name] for name in query.groups)
    of_each = snapshot.ask(
        f"SELECT {across.column} AS value, count(*) AS cells FROM cell WHERE {where} GROUP BY 1",  # noqa: S608
        values,
    )
    sizes: dict[str, int] = {}
    for one in of_each:
        name = str(one["value"])
        sizes[name] = sizes.get(name, 0) + one["cells"]
    kept = sorted(sizes, key=lambda value: (-sizes[value], value))[:MOST_ACROSS]
    columns = sorted(
        (one["value"] for one in of_each if str(one["value"]) in kept), key=_place_across
    )
    apart = MODE in names and MODE not in query.groups
    lines, count = _lines(snapshot, query, down, apart=apart)
    shown = {down.column: list(dict.fromkeys(value for value, _ in lines)), across.column: columns}
    of_lines: dict[tuple[str, str], list[ResultGroup]] = {
        (str(value), mode): [] for value, mode in lines
    }
    for group in _with_cells(snapshot, query, _figures(snapshot, query, names, shown)):
        line = (str(group.values[down.name]), str(group.values[MODE] or "") if apart else "")
        if line in of_lines:  # the other mode of a value may be on the next page
            of_lines[line].append(group)
    rows = [_row(query, value, of_lines[str(value), mode], mode) for value, mode in lines]
    return GroupPage(count, rows=rows, across=columns, left_out=max(0, len(sizes) - MOST_ACROSS))


def _lines(
    snapshot: Snapshot, query: table_query.TableQuery, down: page_query.ResultColumn, *, apart: bool
) -> tuple[list[tuple[object, str]], int]:
    # The values down a page, each with its mode if modes are apart, and their count.
    where, values = query.where()
    mode = "coalesce(mode, '')" if apart else "''"
    distinct = f"SELECT DISTINCT {down.column} AS value, {mode} AS mode FROM cell WHERE {where}"  # noqa: S608
    order = "value" if down.number else "lower(value::VARCHAR)"
    rows = snapshot.ask(
        f"SELECT value, mode, count(*) OVER () AS every FROM ({distinct})"  # noqa: S608
        f" ORDER BY {order} NULLS LAST, value, mode"
        f" LIMIT {page_query.PAGE} OFFSET {(query.page - 1) * page_query.PAGE}",
        values,
    )
    if not rows:  # beyond the last page
        return [], snapshot.count(f"SELECT count(*) FROM ({distinct})", values)  # noqa: S608
    return [(row["value"], row["mode"]) for row in rows], rows[0]["every"]


def _figures(
    snapshot: Snapshot,
    query: table_query.TableQuery,
    names: Sequence[str],
    shown: Mapping[str, Sequence[object]],
) -> list[ResultGroup]:
    # Only those of the page: medians of forty thousand models would take seconds.
    if not all(shown.values()):
        return []
    parts, more = [], list[object]()
    for column, wanted in shown.items():
        known = [value for value in wanted if value is not None]
        among = [f"{column} IN ({', '.join('?' * len(known))})"] if known else []
        among += [f"{column} IS NULL"] if len(known) < len(wanted) else []
        parts.append(f"({' OR '.join(among)})")
        more += known
    sql, values = _sql(query, names, parts, more)
    return [_group(query, row, names) for row in snapshot.ask(sql, values)]


def _place_across(value: object) -> tuple[object, ...]:
    if isinstance(value, int | float):
        return (0, float(value), "")
    return (2, 0.0, "") if value is None else (1, 0.0, str(value).lower())


def _sql(
    query: table_query.TableQuery,
    names: Sequence[str],
    narrowed: Sequence[str] = (),
    more: Sequence[object] = (),
) -> tuple[str, list[object]]:
    where, values = query.where()
    where, values = " AND ".join([where, *narrowed]), [*values, *more]
    told = query.told
    usable = (
        "" if told.name == "memory" else f" AND coalesce(quality, '') <> '{Quality.UNUSABLE.value}'"
    )
    counts = f"{page_query.COUNTED_SQL}{usable} AND {told.column} > 0"
    best = "max" if told.name in _RISING else "min"
    several = f"list(DISTINCT {unit_kind_sql('throughput_unit')}) FILTER ({counts})"
    groups = [page_query.GROUPS[name].column for name in names]
    named = ", ".join(f"{column} AS value_{n}" for n, column in enumerate(groups))
    figure = f"CASE WHEN {counts} THEN {told.column} END"
    sql = (
        f"SELECT {named}, count(*) AS n, count(figure) AS known, {best}(figure) AS best,"  # noqa: S608
        # Of equals the first by its key: a page is always the same.
        f" arg_min(key, row({'-' * (best == 'max')}figure, key)) FILTER (figure IS NOT NULL)"
        " AS best_key, median(figure) AS middle, min(figure) AS low,"
        f" max(figure) AS high, {several} AS units,"
        f" list(DISTINCT latency_of) FILTER ({counts}) AS statistics"
        f" FROM (SELECT *, {figure} AS figure FROM cell WHERE {where}) GROUP BY ALL"
    )
    return sql, values


def _group(query: table_query.TableQuery, row: Cell, names: Sequence[str]) -> ResultGroup:
    units = sorted(texts(row, "units")) if query.figure in _COUNTED else []
    several = len(units) > 1
    figures = {
        name: None if several or row[name] is None else row[name]
        for name in ("best", "middle", "low", "high")
    }
    statistics = sorted(texts(row, "statistics")) if query.figure == "latency" else []
    return ResultGroup(
        {name: row[f"value_{n}"] for n, name in enumerate(names)},
        row["n"],
        row["known"],
        "" if several else text(row, "best_key"),
        figures["best"],
        figures["middle"],
        figures["low"],
        figures["high"],
        [unit or "items" for unit in units] if several else (),
        statistics if len(statistics) > 1 else (),
    )


def _with_cells(
    snapshot: Snapshot, query: table_query.TableQuery, groups: Sequence[ResultGroup]
) -> list[ResultGroup]:
    keys = [group.key for group in groups if group.key]
    by_key = {cell["key"]: cell for cell in cells.named(snapshot, keys)}
    return [
        replace(group, cell=cell, interval=interval(cell, query.figure) if cell else None)
        for group in groups
        for cell in (by_key.get(group.key),)
    ]


def _row(
    query: table_query.TableQuery, value: object, groups: Sequence[ResultGroup], mode: str
) -> PivotRow:
    across = page_query.GROUPS[query.groups[1]]
    by_value = {str(group.values[across.name]): group for group in groups}
    ranked = sorted(
        (group for group in groups if group.best is not None),
        key=lambda group: group.best or 0.0,
        reverse=query.figure in _RISING,
    )
    if query.by != table_query.BEST or len(ranked) < 2:
        return PivotRow(value, by_value, mode=mode)
    apart = unlike([group.cell for group in ranked if group.cell], across)
    apart += _doubt([group.cell for group in ranked if group.cell])
    first, second = ranked[0].interval, ranked[1].interval
    is_best = not apart and first is not None and second is not None and first.is_apart_from(second)
    best = str(ranked[0].values[across.name]) if is_best else ""
    return PivotRow(value, by_value, best, apart, mode)


def _doubt(ranked: Sequence[Cell]) -> list[str]:
    """Return why the first of several precisions is not marked: its outputs may be wrong."""
    if len({str(cell.get("precision")) for cell in ranked}) < 2:
        return []
    why = summarise_inexact([{**ranked[0], "verification_error": ranked[0].get("error")}])
    return [why] if why else []


def unlike(several: Sequence[Cell], across: page_query.ResultColumn) -> list[str]:
    """Return what the configurations of a row differ in, except the column across."""
    name = _AXES.get(across.name, across.name)
    axis = AXES.get(name, ComparisonAxis("", (across.column,)))
    places = () if axis.name == "hardware" else ("machine",)
    names = [*axis.alike, *places, "kind"]
    return [
        name.replace("_", " ")
        for name in names
        if len({str(cell.get(name)) for cell in several}) > 1
    ]


#: The charts of the table.
_BESIDE = ("hardware-latency", "throughput-by-batch")


class ResultPages(SitePages):
    """The table, one configuration, and the matrix."""

    def page(self, request: Request) -> Response:
        """Show the results, or groups of them."""
        snapshot, asked = self._requested(request)
        query = table_query.table_query(request.query_params.multi_items(), asked)
        groups = grouped(snapshot, query) if query.groups else None
        found = cells.found(snapshot, query, 0 if groups else page_query.PAGE)
        last = groups.pages if groups else found.pages
        if query.page > last:
            query = replace(query, page=last)
            groups = grouped(snapshot, query) if groups else None
            found = found if groups else cells.found(snapshot, query)
        shown = result_rows.shown(found.cells, query.columns, costed=snapshot.costed)
        cells.told_apart(list(found.cells), result_rows.told_by(shown))
        chosen = request.query_params.getlist("cell")
        return self.site.filtered(
            request,
            "results.html",
            query,
            snapshot,
            found=found,
            groups=groups,
            shown=shown,
            alike=[]
            if query.columns
            else result_rows.in_common(found.cells, shown, snapshot.machines),
            picked_cells=cells.named(snapshot, query.cells),
            left_out=len({key for key in chosen if key}) - len(query.cells),
            all_columns=[
                column
                for name, column in page_query.COLUMNS.items()
                if name != "cost" or snapshot.costed
            ],
            group_columns=list(page_query.GROUPS.values()),
            figures=[
                column for column in page_query.FIGURES if column.name != "cost" or snapshot.costed
            ],
            group_orders=table_query.GROUP_ORDERS,
            charts=[CHARTS[name] for name in _BESIDE if name in CHARTS],
            most=MOST_CELLS,
            most_chosen=page_query.MOST_CHOSEN,
            sizes=size_columns(*TITLE_ORDER),
        )

    def cell(self, request: Request) -> Response:
        """Show a configuration with its launches."""
        snapshot = self.site.snapshot()
        cell = cell_named(snapshot, request.path_params["key"])
        database = self.site.database
        with database.keep_open():
            ids = cell["results"][: details.MOST_LAUNCHES]
            rows = with_reported_outputs(details.launches_in(database, ids))
            run = details.run_of(database, str(cell["run_id"]))
            accuracy = cell_accuracy(database, snapshot, cell, rows)
            metric = details.BY_METRIC["latency"]
            series = details.history_of(database, snapshot, [cell], metric, fewest=2)
        machine = snapshot.machines.get(str(cell["machine"]))
        return self.site.page(
            request,
            "cell.html",
            snapshot=snapshot,
            cell=cell,
            rows=rows,
            run=run,
            accuracy=accuracy,
            machine=machine,
            spent=spent_of(rows, snapshot.prices, machine),
            empty=details.why_empty(rows),
            warned=[warning.text for warning in warned(rows)],
            drawn=min(MOST_LAUNCHES, sum((number(row, "sample_count") or 0) > 1 for row in rows)),
            ranked=any(sum(rank.known for rank in ranks_of(row)) > 1 for row in rows),
            beside=cells.beside(snapshot, cell),
            series=[document(history) for history in series],
            of_it=page_query.PageQuery(cells=(cell["key"],)),
            of_model=page_query.PageQuery(model=page_query.exactly_named(str(cell["model"]))),
        )

    def matrix(self, request: Request) -> Response:
        """Show the rating of each platform for each model, on one machine."""
        snapshot, query = self._requested(request)
        query = self._of_one(snapshot, query)
        chosen = cells.of_matrix(snapshot, query, _MOST_OF_MATRIX)
        ids = [key for cell in chosen for key in cell["results"]]
        rows = details.launches_in(self.site.database, ids[:_MOST_OF_MATRIX])
        machine = snapshot.machines.get(next(iter(query.chosen.get("machine", ())), ""))
        best = not query.chosen.get("precision")
        made = matrix_on(rows, machine, self.site.local, best_precision=best)
        lines = (line.cells.items() for line in made.models)
        tried = {name for line in lines for name, rated in line if rated.has_result}
        return self.site.filtered(
            request,
            "matrix.html",
            query,
            snapshot,
            matrix=made,
            looked_at=[one for one in made.hardware if one in tried] or list(made.hardware),
            rule=RULE,
            plain_mark=plain_mark,
            tells=tells,
            found=cells.found(snapshot, replace(query, page=1)),
            left_out=max(0, len(ids) - _MOST_OF_MATRIX),
        )

    def _of_one(self, snapshot: Snapshot, query: page_query.PageQuery) -> page_query.PageQuery:
        # One machine and mode, by default those of `accelbench matrix`.
        modes = snapshot.known["mode"]
        usual = ["inference"] if "inference" in modes else modes
        wanted = {
            "machine": query.chosen.get("machine") or cells.newest_machine(snapshot),
            "mode": query.chosen.get("mode") or tuple(usual),
        }
        picks = {name: values[:1] for name, values in wanted.items() if values}
        return replace(query, chosen={**query.chosen, **picks})


def cell_named(snapshot: Snapshot, key: str) -> Cell:
    """Return a cell by its key; NotThereError if there is none any longer."""
    matches = cells.named(snapshot, [key])
    if not matches:
        raise NotThereError("There is no such configuration, or a later run has taken its place.")
    return matches[0]
