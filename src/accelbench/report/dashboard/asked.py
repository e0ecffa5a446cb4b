"""What an address asks for: which cells, in which order, which page, which columns. Pure.

Everything that a page shows is in its address, so an address can be sent to somebody. What was
chosen never becomes part of SQL: columns are ours, values are parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Self
from urllib.parse import urlencode

from accelbench.core.axes import AS_TOLD, axes_of
from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.report.charts.words import safe


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table of results."""

    name: str  # in an address
    label: str  # its heading
    column: str  # of a cell of the snapshot
    order: str = ""  # what a table is ordered by, in SQL; the column itself where nothing is said
    unit: str = ""  # what a number of it is in, beside a field to filter by it
    number: bool = False  # it holds numbers, and can be filtered by the least and the most
    group: bool = False  # rows can be grouped by it
    usual: bool = False  # shown unasked where rows differ in it
    field: bool = False  # a form offers to filter by it

    @property
    def sql(self) -> str:
        """What it is ordered by."""
        return self.order or self.column


def _told(name: str, label: str, column: str = "", *, usual: bool = False) -> ResultColumn:
    """A column of words, of which several results have the same."""
    return ResultColumn(name, label, column or name, group=True, usual=usual)


def _count(
    name: str, label: str, column: str = "", *, usual: bool = False, field: bool = False
) -> ResultColumn:
    """A column of whole numbers that was asked for, of which several results have the same."""
    column = column or name
    return ResultColumn(name, label, column, number=True, group=True, usual=usual, field=field)


def _figure(name: str, label: str, column: str = "", unit: str = "") -> ResultColumn:
    return ResultColumn(name, label, column or name, unit=unit, number=True, field=True)


_SIZES = tuple(
    ResultColumn(
        axis.column,
        axis.column.replace("_", " ").capitalize(),
        axis.column,
        number=not axis.text,
        group=True,
    )
    for axis in axes_of(*AS_TOLD)
)
MODEL = ResultColumn("model", "Model", "model", order="lower(model)", group=True)
SIZE = ResultColumn("size", "Size", "", order=", ".join(size.column for size in _SIZES), usual=True)
#: What is measured: its interval and its quality stand beside it.
FIGURES = (
    _figure("latency", "Median latency, ms", unit="ms"),
    _figure("throughput", "Items/s"),
    _figure("memory", "Peak memory, MB", unit="MB"),
    _figure("cost", "Cost of a million", "cost_per_million"),
)
_ALL = (
    MODEL,
    ResultColumn(
        "hardware", "Hardware", "hardware", "hardware, device_name", group=True, usual=True
    ),
    _told("device", "Device", "device_name", usual=True),
    _told("runtime", "Runtime", usual=True),
    _told("precision", "Precision", usual=True),
    _count("batch", "Batch", "batch_size", usual=True, field=True),
    SIZE,
    *_SIZES,
    _told("mode", "Mode", usual=True),
    # What was measured comes before what is alike in most rows: a narrow screen shows it.
    *FIGURES,
    _told("scenario", "Scenario", usual=True),
    _told("compiled", "Compiled", usual=True),
    _count("threads", "Threads", usual=True, field=True),
    _count("devices", "Processes", "world_size", usual=True),
    _told("machine", "Machine", usual=True),
    _told("provenance", "Provenance", "kind"),
    _told("family", "Family"),
    _told("architecture", "Architecture"),
    _told("model_size", "Size of model"),
    _count("parameters", "Parameters", field=True),
    _told("weights", "Weights", usual=True),
    _told("optimizer", "Optimizer", usual=True),
    _told("data", "Data", "data_source", usual=True),
    _told("options", "Options"),
    _told("versions", "Versions"),
    ResultColumn("tail", "Tail latency, ms", "tail", unit="ms", number=True),
    _told("unit", "Unit of rate", "throughput_unit"),
    _told("quality", "Quality"),
    _told("verification", "Verification"),
    _told("status", "Status"),
    _told("reason", "Reason"),
    ResultColumn("launches", "Launches", "launches", number=True),
    ResultColumn("samples", "Samples", "samples", number=True),
    ResultColumn("runs", "Runs", "runs", number=True),
    ResultColumn("warnings", "Warnings", "warnings", number=True),
    ResultColumn("workarounds", "Workarounds", "workarounds", number=True),
    _told("run", "Run", "run_id"),
    ResultColumn("date", "Newest", "moment"),
)
COLUMNS: Mapping[str, ResultColumn] = {column.name: column for column in _ALL}
#: What is shown of every row whatever rows differ in, where any has a value.
OF_EVERY_ROW = (*(figure.name for figure in FIGURES), "launches", "date")
#: What can be filtered by its least and its most.
NUMBERS: Mapping[str, ResultColumn] = {
    name: column for name, column in COLUMNS.items() if column.number
}
#: Of these what a form has fields for.
NUMBER_FIELDS = tuple(column for column in _ALL if column.field)
GROUPS: Mapping[str, ResultColumn] = {
    name: column for name, column in COLUMNS.items() if column.group
}


#: What is chosen from a list: the name in an address → the column of a cell.
FACETS: Mapping[str, str] = {
    "family": "family",
    "hardware": "hardware",
    "device": "device_name",
    "runtime": "runtime",
    "precision": "precision",
    "mode": "mode",
    "machine": "machine",
    "provenance": "kind",
    "status": "status",
}
#: What a table can be ordered by: its name in an address → SQL over a cell's columns.
ORDERS: Mapping[str, str] = {name: column.sql for name, column in COLUMNS.items()}
#: The order in which a snapshot's cells lie, and that of ties, so that a page is always the same.
AS_THEY_LIE = "lower(model), hardware, runtime, precision, batch_size, key"
PAGE = 100
_MOST_VALUES = 50
_LONGEST_NAME = 1000
MOST_CHOSEN = 12
_LISTED = 12
#: Behind the name of a number: the least and the most that a filter leaves.
LEAST, MOST = "-min", "-max"

Pairs = Iterable[tuple[str, str]]
#: What a table is ordered by, and whether the largest or the newest is first.
Order = tuple[str, bool]
BY_MODEL: Order = ("model", False)
NEWEST_FIRST: Order = ("date", True)
#: The least and the most of a number; None where there is no end.
Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class PageQuery:
    """What was asked for."""

    model: str = ""  # letters that a model's name has in it; between double quotes, the name itself
    #: of each facet, the values that count; any do where it is left out
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    since: str = ""  # the first day, and `until` the last
    until: str = ""
    #: of numbers the least and the most, by the name of their column
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    sort: str = "model"  # one of ORDERS
    falling: bool = False  # the largest or the newest first
    page: int = 1  # from 1
    cells: tuple[str, ...] = ()  # those that were picked for comparison
    usual: Order = BY_MODEL  # the order of a page whose address names none

    @property
    def narrowed(self) -> bool:
        """Whether anything is left out."""
        return bool(self.model or self.chosen or self.since or self.until or self.bounds)

    def pairs(self, *, order: bool = True, picked: bool = True) -> list[tuple[str, str]]:
        """The same as an address says it; what is as it is anyway is left out."""
        parameters = [("model", self.model)] if self.model else []
        parameters += [(name, choice) for name in FACETS for choice in self.chosen.get(name, ())]
        days = (("from", self.since), ("to", self.until))
        parameters += [(name, day) for name, day in days if day]
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
        """What stands behind an address, with its question mark; empty where it says nothing."""
        text = urlencode(self.pairs(order=order, picked=picked))
        return f"?{text}" if text else ""

    def beside_filters(self) -> list[tuple[str, str]]:
        """What a form with the filters sends along that is none of them."""
        ends = (f"{field.name}{end}" for field in NUMBER_FIELDS for end in (LEAST, MOST))
        own = {"model", "from", "to", "page", *FACETS, *ends}
        return [pair for pair in self.pairs() if pair[0] not in own]

    def ordered(self, sort: str) -> Self:
        """By another column; by the same one, the other way round."""
        return replace(self, sort=sort, falling=sort == self.sort and not self.falling, page=1)

    def turned(self, page: int) -> Self:
        """Another page of the same."""
        return replace(self, page=page)

    def without(self, name: str) -> Self:
        """Without one of its filters."""
        query = replace(self, page=1)
        if name in FACETS:
            return replace(query, chosen={k: v for k, v in self.chosen.items() if k != name})
        if name in NUMBERS:
            return replace(query, bounds={k: v for k, v in self.bounds.items() if k != name})
        if name == "model":
            return replace(query, model="")
        if name == "from":
            return replace(query, since="")
        return replace(query, until="") if name == "to" else query

    def where(self, but: str = "") -> tuple[str, list[object]]:
        """As SQL over cells and its parameters; one facet may be left out, to count its values."""
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
        """As SQL over the table of cells: what is not known comes last, whichever way round.

        Cells lie in order (`AS_THEY_LIE`): where each lies stands for six columns of texts.
        """
        if self.sort == "model" and not self.falling:
            return "cell.rowid"
        way = "DESC" if self.falling else "ASC"
        first = ", ".join(f"{column} {way} NULLS LAST" for column in ORDERS[self.sort].split(", "))
        return f"{first}, cell.rowid"


def exactly_named(model: str) -> str:
    """What asks for one model, and for none whose name has its name in it."""
    return f'"{model}"'


def named_exactly(words: str) -> str | None:
    """The one model that is asked for; None where letters are."""
    quoted = len(words) > 2 and words.startswith('"') and words.endswith('"')
    return words[1:-1] if quoted else None


def asked(pairs: Pairs, known: Mapping[str, Sequence[str]], usual: Order = BY_MODEL) -> PageQuery:
    """What an address says; names that are not ours are passed over.

    Raises:
        UsageError: A value is none that there is.
    """
    parameters: dict[str, list[str]] = {}
    for name, value in pairs:
        if value:
            parameters.setdefault(name, []).append(value)
    chosen = {
        name: _known(name, parameters[name], known) for name in FACETS if parameters.get(name)
    }
    since, until = (_day(name, parameters) for name in ("from", "to"))
    if since and until and since > until:
        raise UsageError(f"{since} is after {until}.", "Give the earlier day first.")
    sort = _last(parameters, "sort") or f"{'-' * usual[1]}{usual[0]}"
    if sort.removeprefix("-") not in ORDERS:
        raise UsageError(
            f"There is no order {in_quotes(safe(sort))}.", f"Orders: {', '.join(ORDERS)}."
        )
    return PageQuery(
        model=_last(parameters, "model")[:_LONGEST_NAME],
        chosen=chosen,
        since=since,
        until=until,
        bounds=_bounds(parameters),
        sort=sort.removeprefix("-"),
        falling=sort.startswith("-"),
        page=page_of(_last(parameters, "page")),
        cells=tuple(dict.fromkeys(parameters.get("cell", ())))[:MOST_CHOSEN],
        usual=usual,
    )


def _last(parameters: Mapping[str, Sequence[str]], name: str) -> str:
    return parameters[name][-1] if parameters.get(name) else ""


def _known(name: str, values: Sequence[str], known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    choices = known.get(name, ())
    for value in values[:_MOST_VALUES]:
        if value not in choices:
            listed = ", ".join(safe(choice) for choice in choices[:_LISTED]) or "none"
            more = f" and {len(choices) - _LISTED} more" if len(choices) > _LISTED else ""
            raise UsageError(
                f"No result has {name} {in_quotes(safe(value))}.", f"There are: {listed}{more}."
            )
    return tuple(dict.fromkeys(values[:_MOST_VALUES]))


def exactly(limit: float) -> str:
    """A number as an address has it: as short as it can be without being another."""
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
        raise UsageError(f"{in_quotes(safe(text))} is no number for {name}.", "Write one as 12.5.")
    return limit


def _day(name: str, parameters: Mapping[str, Sequence[str]]) -> str:
    value = _last(parameters, name)
    if not value:
        return ""
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise UsageError(
            f"{in_quotes(safe(value))} is no day.", "Write one as 2026-01-31."
        ) from None


def page_of(value: str | None) -> int:
    """The page that an address asks for, the first where it names none.

    Raises:
        UsageError: That is no page.
    """
    value = value or "1"
    if not (value.isascii() and value.isdecimal()) or not 0 < int(value[:9]) < 10**8:
        raise UsageError(f"{in_quotes(safe(value))} is no page.", "Pages are counted from 1.")
    return int(value)
