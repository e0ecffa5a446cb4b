"""What an address asks of the table, and which columns a page of it shows. Pure.

What all rows of a page have alike is said once above them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Self

from accelbench.analysis.questions import SHAPES
from accelbench.core.errors import UsageError
from accelbench.core.nouns import counted
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.report.charts.words import safe
from accelbench.report.dashboard import words
from accelbench.report.dashboard.asked import (
    COLUMNS,
    FACETS,
    FIGURES,
    GROUPS,
    MODEL,
    OF_EVERY_ROW,
    SIZE,
    PageQuery,
    Pairs,
    ResultColumn,
    exactly_named,
)

if TYPE_CHECKING:
    from accelbench.analysis.machines import Machine
    from accelbench.report.dashboard.snapshots.cells import Cell


#: What a group's figure is.
BEST, MEDIAN = "best", "median"
#: How groups are laid out: one below another, or the second across.
LIST, PIVOT = "list", "pivot"
#: What groups are ordered by.
GROUP_ORDERS = ("group", "count", BEST, MEDIAN)
_MOST_GROUPS = 2
_LONGEST_NAME = 80
_OF_FIGURES = {figure.name: figure for figure in FIGURES}


@dataclass(frozen=True)
class TableQuery(PageQuery):
    """What was asked for of the table."""

    columns: tuple[str, ...] = ()  # that are shown; empty where what differs is shown
    groups: tuple[str, ...] = ()  # by which rows are put together, two at most
    layout: str = LIST  # of groups, LIST or PIVOT
    figure: str = "latency"  # that is told of groups
    by: str = BEST  # which figure of a field of a pivot
    group_order: str = "group"  # of groups, with a dash where the largest is first
    view: str = ""  # the name of the view, chosen by whoever keeps it

    @property
    def crossed(self) -> bool:
        """Whether groups are a pivot."""
        return self.layout == PIVOT and len(self.groups) == _MOST_GROUPS

    @property
    def told(self) -> ResultColumn:
        """The figure of groups."""
        return _OF_FIGURES[self.figure]

    def pairs(self, *, order: bool = True, picked: bool = True) -> list[tuple[str, str]]:
        """The same as an address says it; between pages neither order nor arrangement go."""
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
        """What a form sends along that has fields of its own for these names."""
        return [pair for pair in self.pairs() if pair[0] not in (*left_out, "page")]

    def grouped_order(self, name: str) -> Self:
        """Groups by another order; by the same one, the other way round."""
        falling = name == self.group_order
        return replace(self, group_order=f"{'-' * falling}{name}", page=1)

    def ungrouped(self) -> Self:
        """The rows themselves."""
        return replace(self, groups=(), layout=LIST, group_order="group", page=1)

    def automatic(self) -> Self:
        """With the columns that differ."""
        return replace(self, columns=())

    def with_cells(self, keys: Sequence[str]) -> Self:
        """With these chosen."""
        return replace(self, cells=tuple(keys))

    def unpicked(self, key: str) -> Self:
        """Without one of what was chosen."""
        return self.with_cells([other for other in self.cells if other != key])

    def narrowed_to(self, values: Mapping[str, object]) -> TableQuery | None:
        """The rows of one group; None where no filter says that."""
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
    if name in FACETS:
        return replace(query, chosen={**query.chosen, name: (str(value),)})
    if COLUMNS[name].number and isinstance(value, int | float):
        return replace(query, bounds={**query.bounds, name: (float(value), float(value))})
    return replace(query, model=exactly_named(str(value))) if name == "model" else None


def table_query(pairs: Pairs, page: PageQuery) -> TableQuery:
    """What an address says of the table; names that are not ours are passed over.

    Raises:
        UsageError: There is no such column, group, figure or order.
    """
    parameters: dict[str, list[str]] = {}
    for name, value in pairs:
        if value:
            parameters.setdefault(name, []).append(value)

    def last(name: str, usual: str, known: Iterable[str]) -> str:
        value = parameters.get(name, [usual])[-1]
        return _known(name, [value], known)[0]

    asked_for = _known("col", parameters.get("col", ()), COLUMNS)
    falling = "-" * parameters.get("order", [""])[-1].startswith("-")
    order = [word.removeprefix("-") for word in parameters.get("order", ["group"])]
    of_cells = {known.name: getattr(page, known.name) for known in fields(PageQuery)}
    return TableQuery(
        **of_cells,
        columns=tuple(name for name in COLUMNS if name in asked_for),
        groups=_known("group", parameters.get("group", ()), GROUPS)[:_MOST_GROUPS],
        layout=last("as", LIST, (LIST, PIVOT)),
        figure=last("figure", "latency", _OF_FIGURES),
        by=last("by", BEST, (BEST, MEDIAN)),
        group_order=f"{falling}{_known('order', order, GROUP_ORDERS)[-1]}",
        view=parameters.get("view", [""])[-1].strip()[:_LONGEST_NAME],
    )


_NOUNS = {"col": "column", "group": "column to group by", "as": "layout", "by": "choice"}


def _known(name: str, values: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    names = list(known)
    for value in values:
        if value not in names:
            raise UsageError(
                f"There is no {_NOUNS.get(name, name)} {in_quotes(safe(value))}.",
                f"Known: {', '.join(names)}.",
            )
    return tuple(dict.fromkeys(values))


#: What nobody has to be told: it is so where nothing else was asked for.
_UNREMARKABLE = {"scenario": SINGLE_STREAM, "devices": 1, "data": "synthetic", "weights": "random"}
#: What came of it: two lines of different figures may still say the same of what was asked for.
_OUTCOMES = tuple(
    COLUMNS[name]
    for name in (
        *OF_EVERY_ROW,
        *("tail", "quality", "verification", "status", "reason"),
        *("samples", "runs", "run", "warnings", "workarounds"),
    )
)
_USUAL = tuple(column for column in COLUMNS.values() if column.usual)
#: What no line of a table says in words of its own, beside the columns that are shown.
_ALWAYS_TOLD = ("model", "kind")


def value_of(row: Cell, column: ResultColumn) -> object:
    """What a row has in a column."""
    return words.size(row) or None if column is SIZE else row.get(column.column)


#: Where each column stands in a table that nobody arranged.
_PLACES = {column: place for place, column in enumerate(COLUMNS.values())}


def shown(
    rows: Sequence[Cell], chosen: Sequence[str] = (), *, costed: bool = False
) -> list[ResultColumn]:
    """The columns of a table: those that were chosen, else those in which rows differ.

    The model is the heading of each row, and always there.
    """
    if chosen:
        return [MODEL, *(COLUMNS[name] for name in chosen if name != MODEL.name)]
    figures = [
        COLUMNS[name]
        for name in OF_EVERY_ROW
        if (name != "cost" or costed) and any(_figure_of(row, name) for row in rows)
    ]
    # Without a latency or a rate there is still a place for why there is none.
    if not any(column in FIGURES for column in figures):
        figures = [COLUMNS["latency"], *figures]
    differing = [column for column in _USUAL if len(_values(rows, column)) > 1]
    return [MODEL, *sorted([*differing, *figures], key=_PLACES.__getitem__)]


def _figure_of(row: Cell, name: str) -> object:
    """What a row has in a column of every row; of rates alone a tail stands in latency's place."""
    held = value_of(row, COLUMNS[name])
    return held or row.get("tail") if name == "latency" else held


def in_common(
    rows: Sequence[Cell], columns: Sequence[ResultColumn], machines: Mapping[str, Machine]
) -> list[str]:
    """What all rows have alike, each as words; what a column shows is left out."""
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


def told_by(columns: Sequence[ResultColumn]) -> tuple[str, ...]:
    """The columns of a cell that say in a line of the table what was asked for."""
    shapes = SHAPES if SIZE in columns else ()
    asked = (column.column for column in columns if column.column and column not in _OUTCOMES)
    return (*_ALWAYS_TOLD, *asked, *shapes)


def _values(rows: Sequence[Cell], column: ResultColumn) -> set[str]:
    return {str(value_of(row, column)) for row in rows}


def _in_words(name: str, value: object, machines: Mapping[str, Machine]) -> str:
    if name == "batch":
        return f"batch {value}"
    if name in ("threads", "devices") and isinstance(value, int):
        return (
            counted(value, "thread")
            if name == "threads"
            else counted(value, "process", "processes")
        )
    if name == "compiled":
        return "compiled" if value else "not compiled"
    if name == "machine":
        return f"on {machines[str(value)].name}" if str(value) in machines else ""
    if name in ("weights", "data", "optimizer"):
        return f"{name} {value}"
    return words.device(value) if name == "device" else str(value).replace("_", " ")
