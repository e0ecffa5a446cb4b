"""The query of an address: filters, order, page and columns. Pure.

A page shows nothing that its address does not say. No value of an address becomes a part of SQL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode

from accelbench.core.axes import TITLE_ORDER, axes_of
from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes
from accelbench.present.charts.words import safe
from accelbench.present.texts import catalogue

if TYPE_CHECKING:
    from accelbench.judge.machines import Machine


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table of results."""

    name: str  # in an address
    label: str  # its heading
    column: str  # of a cell of the snapshot
    order: str = ""  # the SQL of its order, if that is not the column
    number: bool = False  # it has numbers, which can be filtered by limits
    group: bool = False  # rows can be grouped by it
    usual: bool = False  # shown by default if rows differ in it
    field: bool = False  # a form offers to filter by it

    @property
    def sql(self) -> str:
        """The SQL of its order."""
        return self.order or self.column


_SIZES = tuple(
    ResultColumn(
        axis.column,
        axis.column.replace("_", " ").capitalize(),
        axis.column,
        number=not axis.text,
        group=True,
    )
    for axis in axes_of(*TITLE_ORDER)
)
_NAMED = {
    name: ResultColumn(name, **{"column": name, **about})
    for name, about in catalogue("column_labels").items()
}
MODEL = _NAMED["model"]
SIZE = replace(_NAMED["size"], column="", order=", ".join(size.column for size in _SIZES))
#: Measured values, shown with their interval and quality.
FIGURES = tuple(_NAMED[name] for name in ("latency", "throughput", "memory", "cost"))
_ALL = tuple(
    each
    for name, column in _NAMED.items()
    for each in ((SIZE, *_SIZES) if name == SIZE.name else (column,))
)
COLUMNS: Mapping[str, ResultColumn] = {column.name: column for column in _ALL}
#: Columns that are always shown if a row has a value.
OF_EVERY_ROW = (*(figure.name for figure in FIGURES), "launches", "date")
#: Columns that can be filtered by limits, and those of them with fields in a form.
NUMBERS: Mapping[str, ResultColumn] = {
    name: column for name, column in COLUMNS.items() if column.number
}
NUMBER_FIELDS = tuple(column for column in _ALL if column.field)
GROUPS: Mapping[str, ResultColumn] = {
    name: column for name, column in COLUMNS.items() if column.group
}


#: Filters with a list of values: the name in an address → the column of a cell.
FACETS: Mapping[str, str] = {
    name: _NAMED[name].column
    for name in (
        *("family", "hardware", "device", "runtime", "precision", "mode", "machine", "provenance"),
        "status",
    )
}
#: Orders of a table: the name in an address → SQL over a cell's columns.
ORDERS: Mapping[str, str] = {name: column.sql for name, column in COLUMNS.items()}
#: The order of a snapshot's cells and of ties: a page is always the same.
AS_THEY_LIE = "lower(model), hardware, runtime, precision, batch_size, key"
#: The counts of a page, a form and a sentence.
PAGE = 100
MOST_CHOSEN = 12
_MOST_VALUES, _LONGEST_NAME, _LISTED = 50, 1000, 12
#: Behind the name of a number: the least and the most that a filter leaves.
LEAST, MOST = "-min", "-max"

#: The SQL condition that somebody measured a cell's results.
COUNTED_SQL = "status = 'ok' AND kind IN ('measured', 'imported')"

Pairs = Iterable[tuple[str, str]]
#: A column, and whether the largest or the newest is first.
Order = tuple[str, bool]
BY_MODEL: Order = ("model", False)
NEWEST_FIRST: Order = ("date", True)
#: The least and the most of a number; None if there is no limit.
Bounds = tuple[float | None, float | None]


def pages_in(count: int, size: int = PAGE) -> int:
    """Return how many pages so many rows take, at least one."""
    return max(1, -(-count // size))


def address_of_pairs(pairs: Sequence[tuple[str, str]], nothing: str = "") -> str:
    """Return the query of an address with its question mark."""
    return f"?{urlencode(pairs)}" if pairs else nothing


@dataclass(frozen=True)
class PageQuery:
    """The filters, the order, the page and the chosen configurations of an address."""

    model: str = ""  # letters of a model's name; between double quotes the whole name
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # values by facet
    since: str = ""  # the first day, and `until` the last
    until: str = ""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)  # limits by column
    sort: str = "model"  # one of ORDERS
    falling: bool = False  # the largest or the newest first
    page: int = 1  # from 1
    cells: tuple[str, ...] = ()  # chosen for comparison
    usual: Order = BY_MODEL  # the order of a page whose address names none

    @property
    def narrowed(self) -> bool:
        """Whether a filter is set."""
        return bool(self.model or self.chosen or self.since or self.until or self.bounds)

    def pairs(self, *, order: bool = True, picked: bool = True) -> list[tuple[str, str]]:
        """Return the names and values of the address; defaults are left out."""
        parameters = [("model", self.model)] if self.model else []
        parameters += [(name, choice) for name in FACETS for choice in self.chosen.get(name, ())]
        parameters += [
            (name, day) for name, day in (("from", self.since), ("to", self.until)) if day
        ]
        parameters += [
            (f"{name}{end}", exactly(limit))
            for name, limits in self.bounds.items()
            for end, limit in zip((LEAST, MOST), limits, strict=True)
            if limit is not None
        ]
        if order and (self.sort, self.falling) != self.usual:
            parameters.append(("sort", f"{'-' * self.falling}{self.sort}"))
        if order and self.page > 1:
            parameters.append(("page", str(self.page)))
        return parameters + ([("cell", key) for key in self.cells] if picked else [])

    def query(self, *, order: bool = True, picked: bool = True) -> str:
        """Return the query of the address with its question mark; "" of the defaults."""
        return address_of_pairs(self.pairs(order=order, picked=picked))

    def beside_filters(self) -> list[tuple[str, str]]:
        """Return what a form of the filters sends along in hidden fields."""
        ends = (f"{field.name}{end}" for field in NUMBER_FIELDS for end in (LEAST, MOST))
        own = {"model", "from", "to", "page", *FACETS, *ends}
        return [pair for pair in self.pairs() if pair[0] not in own]

    def ordered(self, sort: str) -> Self:
        """Return the query with another order, or the reversed one."""
        return replace(self, sort=sort, falling=sort == self.sort and not self.falling, page=1)

    def filters(self, machines: Mapping[str, Machine]) -> Iterator[tuple[str, str, str]]:
        """Yield the name, the label and the value of each filter that is set."""
        if self.model:
            yield "model", "model:", self.model
        for name, values in self.chosen.items():
            texts = [
                machines[value].name if name == "machine" and value in machines else value
                for value in values
            ]
            yield name, f"{name}:", ", ".join(texts).replace("_", " ")
        for name, (least, most) in self.bounds.items():
            low, high = (None if end is None else exactly(end) for end in (least, most))
            text = f"{low} to {high}" if low and high else f"≥ {low}" if low else f"≤ {high}"
            yield name, name.replace("_", " "), text
        for name, day in (("from", self.since), ("to", self.until)):
            if day:
                yield name, name, day

    def turned(self, page: int) -> Self:
        """Return the query of another page."""
        return replace(self, page=page)

    def without(self, name: str) -> Self:
        """Return the query without one of its filters."""
        return replace(
            self,
            page=1,
            model="" if name == "model" else self.model,
            since="" if name == "from" else self.since,
            until="" if name == "to" else self.until,
            chosen={key: values for key, values in self.chosen.items() if key != name},
            bounds={key: limits for key, limits in self.bounds.items() if key != name},
        )

    def where(self, but: str = "") -> tuple[str, list[object]]:
        """Return the filters as SQL over cells, without one facet to count its values."""
        parts: list[str] = ["true"]
        values: list[object] = []
        if self.model:
            name = named_exactly(self.model)
            parts.append("contains(lower(model), ?)" if name is None else "model = ?")
            values.append(self.model.lower() if name is None else name)
        for name, wanted in self.chosen.items():
            if name != but:
                parts.append(f"{FACETS[name]} IN ({', '.join('?' * len(wanted))})")
                values += wanted
        days = {"moment >= ?::TIMESTAMP": self.since}
        days["moment < ?::DATE + INTERVAL 1 DAY"] = self.until
        parts += [part for part, day in days.items() if day]
        values += filter(None, days.values())
        for name, limits in self.bounds.items():
            for comparison, limit in zip((">=", "<="), limits, strict=True):
                if limit is not None:
                    parts.append(f"{NUMBERS[name].column} {comparison} ?")
                    values.append(limit)
        return " AND ".join(parts), values

    @property
    def order(self) -> str:
        """The order as SQL over the table of cells, unknown values last.

        Cells lie in order (`AS_THEY_LIE`): their place replaces six columns of texts.
        """
        if self.sort == "model" and not self.falling:
            return "cell.rowid"
        way = "DESC" if self.falling else "ASC"
        first = ", ".join(f"{column} {way} NULLS LAST" for column in ORDERS[self.sort].split(", "))
        return f"{first}, cell.rowid"


def exactly_named(model: str) -> str:
    """Return the filter that leaves exactly one model."""
    return f'"{model}"'


def named_exactly(words: str) -> str | None:
    """Return the one model that a filter leaves, or None if it is a part of names."""
    quoted = len(words) > 2 and words.startswith('"') and words.endswith('"')
    return words[1:-1] if quoted else None


def parameters_of(pairs: Pairs) -> dict[str, list[str]]:
    """Return the values of an address by their names, without empty ones."""
    parameters: dict[str, list[str]] = {}
    for name, value in pairs:
        if value:
            parameters.setdefault(name, []).append(value)
    return parameters


def one_of(noun: str, value: str, known: Iterable[str]) -> str:
    """Return a value that is known; UsageError names the known ones."""
    names = list(known)
    if value not in names:
        listed = ", ".join(safe(name) for name in names[:_LISTED]) or "none"
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        raise UsageError(f"There is no {noun} {in_quotes(safe(value))}.", f"Known: {listed}{more}.")
    return value


def asked(pairs: Pairs, known: Mapping[str, Sequence[str]], usual: Order = BY_MODEL) -> PageQuery:
    """Return the query of an address; unknown names are ignored, unknown values are refused."""
    parameters = parameters_of(pairs)
    chosen = {
        name: tuple(
            one_of(name, value, known.get(name, ()))
            for value in dict.fromkeys(parameters[name][:_MOST_VALUES])
        )
        for name in FACETS
        if parameters.get(name)
    }
    since, until = (_day(_last(parameters, name)) for name in ("from", "to"))
    if since and until and since > until:
        raise UsageError(f"{since} is after {until}.", "Give the earlier day first.")
    sort = _last(parameters, "sort") or f"{'-' * usual[1]}{usual[0]}"
    return PageQuery(
        model=_last(parameters, "model")[:_LONGEST_NAME],
        chosen=chosen,
        since=since,
        until=until,
        bounds=_bounds(parameters),
        sort=one_of("order", sort.removeprefix("-"), ORDERS),
        falling=sort.startswith("-"),
        page=page_of(_last(parameters, "page")),
        cells=tuple(dict.fromkeys(parameters.get("cell", ())))[:MOST_CHOSEN],
        usual=usual,
    )


def _last(parameters: Mapping[str, Sequence[str]], name: str) -> str:
    return parameters[name][-1] if parameters.get(name) else ""


def exactly(limit: float) -> str:
    """Return a number as an address has it: the shortest text of exactly this number."""
    return str(int(limit)) if limit.is_integer() and abs(limit) < 1e15 else repr(limit)


def _bounds(parameters: Mapping[str, Sequence[str]]) -> dict[str, Bounds]:
    bounds = {}
    for name in NUMBERS:
        least, most = (_limit(name, _last(parameters, f"{name}{end}")) for end in (LEAST, MOST))
        if least is not None and most is not None and least > most:
            raise UsageError(
                f"No {name} is {exactly(least)} or more and {exactly(most)} or less.",
                "Give the smaller number first.",
            )
        if (least, most) != (None, None):
            bounds[name] = (least, most)
    return bounds


def _limit(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        limit = float(text) if text.isascii() and len(text) < 40 else math.nan
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise UsageError(
            f"{in_quotes(safe(text))} is not a number for {name}.", "Write one as 12.5."
        )
    return limit


def _day(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat() if value else ""
    except ValueError:
        raise UsageError(
            f"{in_quotes(safe(value))} is not a day.", "Write one as 2026-01-31."
        ) from None


def page_of(value: str | None) -> int:
    """Return the page that an address asks for, the first by default."""
    value = value or "1"
    if not (value.isascii() and value.isdecimal()) or not 0 < int(value[:9]) < 10**8:
        raise UsageError(f"{in_quotes(safe(value))} is not a page.", "Pages are counted from 1.")
    return int(value)
