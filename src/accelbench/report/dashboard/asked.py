"""What an address asks for: which cells, in which order, which page of them. Pure.

Everything that a page shows is said by its address, so an address can be sent to somebody. What
was chosen never becomes part of SQL: columns are ours, values are parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from urllib.parse import urlencode

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.report.charts.phrases import safe

#: What is chosen from a list: the name in an address → the column of a cell.
FACETS: Mapping[str, str] = {
    "family": "family",
    "hardware": "hardware",
    "runtime": "runtime",
    "precision": "precision",
    "mode": "mode",
    "machine": "machine",
    "provenance": "kind",
    "status": "status",
}
#: What a table can be ordered by: its name in an address → SQL over a cell's columns.
ORDERS: Mapping[str, str] = {
    "model": "lower(model)",
    "hardware": "hardware, device_name",
    "runtime": "runtime",
    "precision": "precision",
    "batch": "batch_size",
    "latency": "latency",
    "throughput": "throughput",
    "memory": "memory",
    "cost": "cost_per_million",
    "launches": "launches",
    "date": "moment",
}
#: Ties, so that a page is always the same.
_THEN = "lower(model), hardware, runtime, precision, batch_size, key"
PAGE = 100
_MOST_VALUES = 50
_MOST_CHOSEN = 12
_LISTED = 12

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class PageQuery:
    """What was asked for.

    Attributes:
        model: letters that a model's name has in it.
        chosen: of each facet, the values that count; any do where it is left out.
        since: the first day, and `until` the last.
        sort: one of ORDERS.
        falling: the largest or the newest first.
        page: from 1.
        cells: those that were picked for comparison.
    """

    model: str = ""
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    since: str = ""
    until: str = ""
    sort: str = "model"
    falling: bool = False
    page: int = 1
    cells: tuple[str, ...] = ()

    @property
    def narrowed(self) -> bool:
        """Whether anything is left out."""
        return bool(self.model or self.chosen or self.since or self.until)

    def pairs(self, *, order: bool = True, picked: bool = True) -> list[tuple[str, str]]:
        """The same as an address says it; what is as it is anyway is left out."""
        parameters = [("model", self.model)] if self.model else []
        parameters += [(name, choice) for name in FACETS for choice in self.chosen.get(name, ())]
        parameters += [
            (name, day) for name, day in (("from", self.since), ("to", self.until)) if day
        ]
        if order and (self.sort, self.falling) != ("model", False):
            parameters.append(("sort", f"{'-' * self.falling}{self.sort}"))
        if order and self.page > 1:
            parameters.append(("page", str(self.page)))
        return parameters + ([("cell", key) for key in self.cells] if picked else [])

    def query(self, *, order: bool = True, picked: bool = True) -> str:
        """What stands behind an address, with its question mark; empty where it says nothing."""
        text = urlencode(self.pairs(order=order, picked=picked))
        return f"?{text}" if text else ""

    def ordered(self, sort: str) -> PageQuery:
        """By another column; by the same one, the other way round."""
        return replace(self, sort=sort, falling=sort == self.sort and not self.falling, page=1)

    def turned(self, page: int) -> PageQuery:
        """Another page of the same."""
        return replace(self, page=page)

    def without(self, name: str) -> PageQuery:
        """Without one of its filters."""
        if name in FACETS:
            return replace(self, chosen={k: v for k, v in self.chosen.items() if k != name}, page=1)
        return replace(
            self,
            model="" if name == "model" else self.model,
            since="" if name == "from" else self.since,
            until="" if name == "to" else self.until,
            page=1,
        )

    def where(self, but: str = "") -> tuple[str, list[str]]:
        """As SQL over cells and its parameters; one facet may be left out, to count its values."""
        parts: list[str] = ["true"]
        values: list[str] = []
        if self.model:
            parts.append("contains(lower(model), ?)")
            values.append(self.model.lower())
        for name, wanted in self.chosen.items():
            if name != but:
                parts.append(f"{FACETS[name]} IN ({', '.join('?' * len(wanted))})")
                values += wanted
        if self.since:
            parts.append("moment >= ?::TIMESTAMP")
            values.append(self.since)
        if self.until:
            parts.append("moment < ?::DATE + INTERVAL 1 DAY")
            values.append(self.until)
        return " AND ".join(parts), values

    @property
    def order(self) -> str:
        """As SQL over cells: what is not known comes last, whichever way round."""
        way = "DESC" if self.falling else "ASC"
        first = ", ".join(f"{column} {way} NULLS LAST" for column in ORDERS[self.sort].split(", "))
        return f"{first}, {_THEN}"


def asked(pairs: Pairs, known: Mapping[str, Sequence[str]]) -> PageQuery:
    """What an address says.

    Args:
        pairs: names and values, in their order; those that are not ours are passed over.
        known: the values of each facet that there are.

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
    sort = _last(parameters, "sort") or "model"
    if sort.removeprefix("-") not in ORDERS:
        raise UsageError(
            f"There is no order {in_quotes(safe(sort))}.", f"Orders: {', '.join(ORDERS)}."
        )
    return PageQuery(
        model=_last(parameters, "model")[:200],
        chosen=chosen,
        since=since,
        until=until,
        sort=sort.removeprefix("-"),
        falling=sort.startswith("-"),
        page=_page(_last(parameters, "page") or "1"),
        cells=tuple(dict.fromkeys(parameters.get("cell", ())))[:_MOST_CHOSEN],
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


def _page(value: str) -> int:
    if not (value.isascii() and value.isdecimal()) or not 0 < int(value[:9]) < 10**8:
        raise UsageError(f"{in_quotes(safe(value))} is no page.", "Pages are counted from 1.")
    return int(value)
