"""The table of results that an address asks for, and its columns. Pure.

Values that all rows of a page have in common stand once above them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Self

from accelbench.core.formatting import format_count
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.judge.questions import SHAPES
from accelbench.present.dashboard import page_query, words

if TYPE_CHECKING:
    from accelbench.judge.machines import Machine
    from accelbench.present.dashboard.cells import Cell


#: Values of a group.
BEST, MEDIAN = "best", "median"
#: Layouts of groups: one below another, or the second across.
LIST, PIVOT = "list", "pivot"
GROUP_ORDERS = ("group", "count", BEST, MEDIAN)
_MOST_GROUPS = 2
_LONGEST_NAME = 80
_OF_FIGURES = {figure.name: figure for figure in page_query.FIGURES}


@dataclass(frozen=True)
class TableQuery(page_query.PageQuery):
    """The filters, columns and groups of a table."""

    columns: tuple[str, ...] = ()  # columns to show; empty: those that differ
    groups: tuple[str, ...] = ()  # columns to group by, two at most
    layout: str = LIST  # of groups, LIST or PIVOT
    figure: str = "latency"  # the figure of groups
    by: str = BEST  # the value in a pivot, BEST or MEDIAN
    group_order: str = "group"  # with a dash if the largest is first
    view: str = ""  # the name that a visitor gave the view

    @property
    def crossed(self) -> bool:
        """Whether the groups are a pivot."""
        return self.layout == PIVOT and len(self.groups) == _MOST_GROUPS

    @property
    def told(self) -> page_query.ResultColumn:
        """The column of the groups' figure."""
        return _OF_FIGURES[self.figure]

    def pairs(self, *, order: bool = True, picked: bool = True) -> list[tuple[str, str]]:
        """Return the names and values of the address; without order no arrangement either."""
        parameters = super().pairs(order=order, picked=False)
        if order:
            parameters += [("col", name) for name in self.columns]
            parameters += [("group", name) for name in self.groups]
            parameters += [
                (name, value)
                for name, value, usual in (
                    ("as", self.layout, LIST),
                    ("figure", self.figure, "latency"),
                    ("by", self.by, BEST),
                    ("order", self.group_order, "group"),
                    ("view", self.view, ""),
                )
                if value != usual
            ]
        return parameters + ([("cell", key) for key in self.cells] if picked else [])

    def carried(self, *left_out: str) -> list[tuple[str, str]]:
        """Return what a form with fields of these names sends along."""
        return [pair for pair in self.pairs() if pair[0] not in (*left_out, "page")]

    def grouped_order(self, name: str) -> Self:
        """Return the query with another order of groups, or the reversed one."""
        falling = name == self.group_order
        return replace(self, group_order=f"{'-' * falling}{name}", page=1)

    def ungrouped(self) -> Self:
        """Return the query without groups."""
        return replace(self, groups=(), layout=LIST, group_order="group", page=1)

    def automatic(self) -> Self:
        """Return the query with the columns that differ."""
        return replace(self, columns=())

    def unpicked(self, key: str) -> Self:
        """Return the query without one of the chosen configurations."""
        return replace(self, cells=tuple(other for other in self.cells if other != key))

    def narrowed_to(self, values: Mapping[str, object]) -> TableQuery | None:
        """Return the query of a group's rows, or None if no filter leaves exactly these."""
        query: TableQuery = self.ungrouped()
        for name, value in values.items():
            filtered = _filtered(query, name, value)
            if filtered is None:
                return None
            query = filtered
        return query


def _filtered(query: TableQuery, name: str, value: object) -> TableQuery | None:
    if value is None:
        return None
    if name in page_query.FACETS:
        return replace(query, chosen={**query.chosen, name: (str(value),)})
    if page_query.COLUMNS[name].number and isinstance(value, int | float):
        return replace(query, bounds={**query.bounds, name: (float(value), float(value))})
    return replace(query, model=page_query.exactly_named(str(value))) if name == "model" else None


def table_query(pairs: page_query.Pairs, page: page_query.PageQuery) -> TableQuery:
    """Return the table that an address asks for; unknown names are ignored, values refused."""
    parameters = page_query.parameters_of(pairs)

    def last(name: str, usual: str, known: Iterable[str], noun: str = "") -> str:
        return page_query.one_of(noun or name, parameters.get(name, [usual])[-1], known)

    def several(name: str, known: Iterable[str], noun: str) -> list[str]:
        values = dict.fromkeys(parameters.get(name, ()))
        return [page_query.one_of(noun, value, known) for value in values]

    columns = several("col", page_query.COLUMNS, "column")
    order = parameters.get("order", ["group"])[-1]
    page_query.one_of("order", order.removeprefix("-"), GROUP_ORDERS)
    return TableQuery(
        **{known.name: getattr(page, known.name) for known in fields(page_query.PageQuery)},
        columns=tuple(name for name in page_query.COLUMNS if name in columns),
        groups=tuple(several("group", page_query.GROUPS, "column to group by")[:_MOST_GROUPS]),
        layout=last("as", LIST, (LIST, PIVOT), "layout"),
        figure=last("figure", "latency", _OF_FIGURES),
        by=last("by", BEST, (BEST, MEDIAN), "choice"),
        group_order=order,
        view=parameters.get("view", [""])[-1].strip()[:_LONGEST_NAME],
    )


#: Defaults that need no mention.
_UNREMARKABLE = {"scenario": SINGLE_STREAM, "devices": 1, "data": "synthetic", "weights": "random"}
#: Columns of results: rows that differ in these only may still be of the same configuration.
_OUTCOMES = tuple(
    page_query.COLUMNS[name]
    for name in (
        *page_query.OF_EVERY_ROW,
        *("tail", "quality", "verification", "status", "reason"),
        *("samples", "runs", "run", "warnings", "workarounds"),
    )
)
_USUAL = tuple(column for column in page_query.COLUMNS.values() if column.usual)
#: Columns that each row shows without a column of its own.
_ALWAYS_TOLD = ("model", "kind")


def value_of(row: Cell, column: page_query.ResultColumn) -> object:
    """Return the value of a row in a column."""
    return words.size(row) or None if column is page_query.SIZE else row.get(column.column)


#: The order of columns by default.
_PLACES = {column: place for place, column in enumerate(page_query.COLUMNS.values())}


def shown(
    rows: Sequence[Cell], chosen: Sequence[str] = (), *, costed: bool = False
) -> list[page_query.ResultColumn]:
    """Return the chosen columns, or else those in which rows differ; the model is always first."""
    if chosen:
        return [
            page_query.MODEL,
            *(page_query.COLUMNS[name] for name in chosen if name != page_query.MODEL.name),
        ]
    figures = [
        page_query.COLUMNS[name]
        for name in page_query.OF_EVERY_ROW
        if (name != "cost" or costed) and any(_figure_of(row, name) for row in rows)
    ]
    # A row without results shows the reason in this column.
    if not any(column in page_query.FIGURES for column in figures):
        figures = [page_query.COLUMNS["latency"], *figures]
    differing = [column for column in _USUAL if len(_values(rows, column)) > 1]
    return [page_query.MODEL, *sorted([*differing, *figures], key=_PLACES.__getitem__)]


def _figure_of(row: Cell, name: str) -> object:
    # A row without a latency may have a tail latency in its place.
    held = value_of(row, page_query.COLUMNS[name])
    return held or row.get("tail") if name == "latency" else held


def in_common(
    rows: Sequence[Cell],
    columns: Sequence[page_query.ResultColumn],
    machines: Mapping[str, Machine],
) -> list[str]:
    """Return what all rows have in common and no column shows, as words."""
    if not rows:
        return []
    alike = [
        (column.name, value_of(rows[0], column))
        for column in _USUAL
        if column not in columns and len(_values(rows, column)) == 1
    ]
    known = [
        _in_words(name, value, machines)
        for name, value in alike
        if value is not None and value != _UNREMARKABLE.get(name)
    ]
    kinds = {row["kind"] for row in rows}
    return [*known, *kinds] if len(kinds) == 1 else known


def told_by(columns: Sequence[page_query.ResultColumn]) -> tuple[str, ...]:
    """Return the columns of a cell by which a row tells its configuration."""
    shapes = SHAPES if page_query.SIZE in columns else ()
    asked = (column.column for column in columns if column.column and column not in _OUTCOMES)
    return (*_ALWAYS_TOLD, *asked, *shapes)


def _values(rows: Sequence[Cell], column: page_query.ResultColumn) -> set[str]:
    return {str(value_of(row, column)) for row in rows}


def _in_words(name: str, value: object, machines: Mapping[str, Machine]) -> str:
    if name == "batch":
        return f"batch {value}"
    if name in ("threads", "devices") and isinstance(value, int):
        return (
            format_count(value, "thread")
            if name == "threads"
            else format_count(value, "process", "processes")
        )
    if name == "compiled":
        return "compiled" if value else "not compiled"
    if name == "machine":
        return f"on {machines[str(value)].name}" if str(value) in machines else ""
    if name in ("weights", "data", "optimizer"):
        return f"{name} {value}"
    return words.device(value) if name == "device" else str(value).replace("_", " ")
