"""A visitor beside plain SQL: each cell by the key of its page, as a store's tables have it."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from plain_cells import Cell, PlainStore, key_of
from shown_figures import ShownRow, is_shown, tables_of
from starlette.testclient import TestClient

SEED, MANY = 2026, 500
#: Of a cell's file, the name there and SQL's.
IN_FILES = {
    **{name: name for name in ("latency", "latency_low", "latency_high", "throughput", "tail")},
    **{name: name for name in ("memory", "launches", "answered", "left_out", "samples")},
    "failed": "failing",
    "cost_per_million": "cost",
}
IN_CSV = IN_FILES | {
    "energy_per_item": "energy",
    "ttft": "ttft",
    "token_rate": "token_rate",
    "flops": "flops",
    "error": "error",
    "runs": "runs",
}
_RUN = "SELECT run_id, coalesce(environment->>'machine', run_id) AS place FROM benchmark_runs"


@dataclass
class Held:
    """Figures that were compared with SQL's, and those that are not the same."""

    count: int = 0
    wrong: list[str] = field(default_factory=list)

    def figure(self, where: str, text: str, value: float | None, *, whole: bool = False) -> None:
        """A text of a page against an exact figure."""
        self.count += 1
        if not is_shown(text, value, whole=whole):
            self.wrong.append(f"{where}: {text!r}, and it is {value!r}")

    def exact(self, where: str, shown: object, value: object) -> None:
        """A value of a file against one of SQL's."""
        self.count += 1
        same = shown == value
        if isinstance(value, float) and isinstance(shown, (int, float)):
            same = abs(float(shown) - value) <= 1e-9 * abs(value)
        if not same:
            self.wrong.append(f"{where}: {shown!r}, and it is {value!r}")

    def past(self, at_least: int) -> None:
        """Ends a walk: enough was looked at, and all of it is right."""
        told = "\n".join([f"{len(self.wrong)} of {self.count} are wrong", *self.wrong[:20]])
        assert not self.wrong, told
        assert self.count >= at_least


@dataclass
class WalkedStore:
    """A store, whoever looks at it, and what SQL says of each of its cells.

    Attributes:
        cells: SQL's, by the key that pages have.
        chosen: the keys of those that chance picked.
    """

    site: TestClient
    plain: PlainStore
    cells: Mapping[str, Cell]
    chosen: frozenset[str]

    def page(self, address: str) -> str:
        answer = self.site.get(address)
        assert answer.status_code == 200, f"{address}: {answer.text[:300]}"
        return answer.text

    def pages(self, address: str) -> Iterator[list[ShownRow]]:
        """The first table of each page of a long one."""
        more, number = True, 1
        while more:
            page = self.page(f"{address}{'&' if '?' in address else '?'}page={number}")
            yield next(tables_of(page), [])
            more, number = 'rel="next"' in page, number + 1

    def among(self, keys: Iterable[str]) -> list[str]:
        """Those that chance picked."""
        return [key for key in keys if key in self.chosen]


def walked(site: TestClient, plain: PlainStore, many: int, seed: int) -> WalkedStore:
    """What is looked at of a store: so many of its cells, or all.

    The key of a page leads to the cell of SQL that is told apart by the same words.
    """
    rows = list(csv.DictReader(io.StringIO(site.get("/cells.csv").text)))
    places = {row["run_id"]: row["place"] for row in plain.ask(_RUN)}
    known = plain.cells()
    cells = {row["key"]: known[_told(row, places)] for row in rows}
    assert len(cells) == len(rows) == len(known), "each cell of the one is one of the other"
    assert len({cell["number"] for cell in cells.values()}) == len(known)
    by = random.Random(seed)
    return WalkedStore(
        site, plain, cells, frozenset(by.sample(sorted(cells), min(many, len(cells))))
    )


def _told(row: Mapping[str, str], places: Mapping[str, str]) -> tuple[object, ...]:
    theirs = row["run_id"].startswith("import-")
    told: dict[str, Any] = {
        **row,
        "batch_size": int(row["batch_size"]) if row["batch_size"] else None,
        "place": places[row["run_id"]],
        "version": _engine(row["versions"]) if theirs else None,
        "had_device": theirs or bool(row["series_key"]),
    }
    return key_of(told)


def _engine(versions: str) -> str:
    return versions.partition('"engine":"')[2].partition('"')[0]
