"""One value a question, of the newest run that has it: what is watched over time.

Launches are the unit of replication: the value is their median, its range the lowest and highest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from accelbench.core.columns import STEP_MS
from accelbench.core.provenance import comparable
from accelbench.core.words import Status
from accelbench.exchange.titles import title

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """A figure that is watched: its columns, the first that is known, and its unit."""

    name: str
    columns: tuple[str, ...]
    unit: str


LATENCY = Measure("latency", STEP_MS, "ms")
THROUGHPUT = Measure("throughput", ("throughput",), "items/s")
MEMORY = Measure("memory", ("memory_peak_mb",), "MB")
MEASURES = (LATENCY, THROUGHPUT, MEMORY)


@dataclass(frozen=True)
class Value:
    """What launches came to."""

    median: float
    low: float
    high: float
    launches: int


def newest(rows: Iterable[Row]) -> Iterator[tuple[str, Sequence[Row]]]:
    """Each question with the launches of the newest run that asked it.

    What nobody measured is left out, and so is what was emulated: its times are nobody's.
    """
    asked: dict[str, list[Row]] = {}
    for row in rows:
        if comparable(row) and not row.get("emulated"):
            asked.setdefault(title(row), []).append(row)
    for name, found in sorted(asked.items()):
        last = max(found, key=lambda row: str(row.get("started_at") or ""))
        yield name, [row for row in found if row.get("run_id") == last.get("run_id")]


def value(rows: Sequence[Row], measure: Measure) -> Value | None:
    """The figure of the launches that ended well; None where none has it."""
    found = [_first(row, measure.columns) for row in rows if row.get("status") == Status.OK]
    known = [one for one in found if one is not None]
    if not known:
        return None
    return Value(median(known), min(known), max(known), len(known))


def _first(row: Row, columns: Sequence[str]) -> float | None:
    return next((float(row[name]) for name in columns if row.get(name) is not None), None)
