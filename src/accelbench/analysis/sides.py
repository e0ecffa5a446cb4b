"""What a question came to at one place of an axis: launches, from rows of results. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from accelbench.analysis.questions import Axis, Key, Row
from accelbench.core.columns import step_ms
from accelbench.core.words import Status

#: Of a run and its date, older ones are what is compared; else the newest run speaks alone.
_OLD_ONES_COUNT = ("run", "date")


@dataclass(frozen=True)
class Side:
    """The launches of one question at one place, by the way that was fastest there."""

    value: Key
    rows: Sequence[Row]
    others: tuple[str, ...] = ()  # runtimes that got there more slowly

    @property
    def row(self) -> Row:
        """What all its launches have in common, and the first of what they have not."""
        return self.rows[0]

    @property
    def latencies(self) -> list[float]:
        """Milliseconds of a step, one a launch."""
        return [found for row in self.rows if (found := latency(row)) is not None]

    @property
    def times(self) -> list[float]:
        """Milliseconds an item, one a launch: what is compared, whatever the batch."""
        return [found / items(self.row) for found in self.latencies]

    @property
    def latency_ms(self) -> float:
        return median(self.latencies)

    @property
    def time_ms(self) -> float:
        """Of the median launch."""
        return median(self.times)

    @property
    def throughput(self) -> float:
        """Items a second of the median launch."""
        known = [row["throughput"] for row in self.rows if row.get("throughput") is not None]
        return median(known) if known else 1e3 / self.time_ms

    @property
    def memory_mb(self) -> float | None:
        known = [r["memory_peak_mb"] for r in self.rows if r.get("memory_peak_mb") is not None]
        return median(known) if known else None


def latency(row: Row) -> float | None:
    """What a step took; of a throughput alone, what it comes to."""
    known, rate = step_ms(row), row.get("throughput")
    return 1e3 * items(row) / float(rate) if known is None and rate else known


def items(row: Row) -> int:
    """Items of a step, where that is known."""
    return int(row.get("batch_size") or 1)


def sides(rows: Iterable[Row], axis: Axis) -> list[dict[Key, Side]]:
    """Of each question, its side at each place; what has no figure, or failed, answers nothing."""
    found: dict[Key, dict[Key, dict[Key, list[Row]]]] = {}
    for row in rows:
        if row.get("status") == Status.OK and latency(row) is not None:
            places = found.setdefault(axis.question(row), {})
            places.setdefault(axis.value(row), {}).setdefault(axis.way(row), []).append(row)
    only_newest = axis.name not in _OLD_ONES_COUNT
    return [
        {value: _fastest(value, ways, only_newest) for value, ways in places.items()}
        for places in found.values()
    ]


def _fastest(value: Key, ways: Mapping[Key, Sequence[Row]], only_newest: bool) -> Side:
    made = [Side(value, newest(rows) if only_newest else list(rows)) for rows in ways.values()]
    best, *rest = sorted(made, key=lambda side: side.time_ms)
    names = {str(side.row.get("runtime")) for side in rest} - {str(best.row.get("runtime"))}
    return Side(value, best.rows, tuple(sorted(names)))


def newest(rows: Sequence[Row]) -> list[Row]:
    """The launches of the newest run alone: older ones are history.

    Of what names no run, as a table of somebody else's, the newest day is one.
    """
    last: Any = max(rows, key=lambda row: str(row.get("started_at") or ""))
    return [row for row in rows if _run(row) == _run(last)]


def _run(row: Row) -> tuple[Any, str]:
    run = row.get("run_id")
    return run, "" if run else str(row.get("started_at") or "")[:10]
