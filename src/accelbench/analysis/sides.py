"""What a question came to at one place of an axis: launches, from rows of results. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from accelbench.analysis.questions import Axis, Key, Row
from accelbench.core.columns import step_ms
from accelbench.core.words import Status
from accelbench.core.worth import rough_column, usable_launches
from accelbench.measure.launches import typical


class Basis(StrEnum):
    """Which figure a time is, the one that says most first."""

    MEDIAN = "p50"
    MEAN = "mean"
    RATE = "throughput"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"


#: The columns that hold a time, in the order in which one stands for a result.
_MIDDLE = (("latency_p50_ms", Basis.MEDIAN), ("latency_mean_ms", Basis.MEAN))
#: Where there is nothing else, as in much of MLPerf, a tail is held against the same tail.
_TAILS = (
    ("latency_p90_ms", Basis.P90),
    ("latency_p95_ms", Basis.P95),
    ("latency_p99_ms", Basis.P99),
)
TAILS = frozenset(basis for _, basis in _TAILS)
#: What a row has to have for its time to be found.
TIMES = (
    *(name for name, _ in (*_MIDDLE, *_TAILS)),
    *(rough_column(name) for name, _ in _TAILS),
    *("throughput", "quality"),
)
_BASES = tuple(Basis)
#: What a row is told of its cost where prices are known (`costs`): no columns of the store.
PER_MILLION, PER_STEP = "cost_per_million", "cost_per_step"
#: An import's run is everything that came with it, perhaps of years.
_IMPORT = "import-"
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
    def usable(self) -> bool:
        """Whether anything may be judged by its times."""
        return bool(usable_launches(self.rows))

    @property
    def latencies(self) -> list[float]:
        """Milliseconds of a step, one a launch; of a throughput alone, what it comes to."""
        return [found[0] for row in self.rows if (found := time_of(row)) is not None]

    @property
    def basis(self) -> Basis:
        """Which figure its times are: of several, the one that says least."""
        found = {time[1] for row in self.rows if (time := time_of(row)) is not None}
        return max(found, key=_BASES.index)

    @property
    def times(self) -> list[float]:
        """Milliseconds an item, one a launch: what is compared, whatever the batch."""
        return [found / items(self.row) for found in self.latencies]

    @property
    def latency_ms(self) -> float:
        """The middle of its launches: what an interval of them is of."""
        return typical(self.latencies)

    @property
    def time_ms(self) -> float:
        """The same of an item."""
        return typical(self.times)

    @property
    def throughput(self) -> float | None:
        """Items a second in the middle of launches; a tail says nothing of it."""
        known = [float(r["throughput"]) for r in self.rows if r.get("throughput")]
        if known:
            return typical(known)
        return None if self.basis in TAILS else 1e3 / self.time_ms

    @property
    def memory_mb(self) -> float | None:
        known = [r["memory_peak_mb"] for r in self.rows if r.get("memory_peak_mb") is not None]
        return median(known) if known else None

    @property
    def cost(self) -> float | None:
        """What a million items cost, in the middle of launches; None without a price."""
        return self._middle(PER_MILLION)

    @property
    def step_cost(self) -> float | None:
        """What a training step costs."""
        return self._middle(PER_STEP)

    def _middle(self, name: str) -> float | None:
        known = [float(row[name]) for row in self.rows if row.get(name)]
        return typical(known) if known else None


def latency(row: Row) -> float | None:
    """What a step took; of a throughput alone, what it comes to."""
    known, rate = step_ms(row), row.get("throughput")
    return 1e3 * items(row) / float(rate) if known is None and rate else known


def time_of(row: Row) -> tuple[float, Basis] | None:
    """What a step took and which figure that is; nothing takes no time at all."""
    for name, basis in _MIDDLE:
        if row.get(name):
            return float(row[name]), basis
    if row.get("throughput"):
        return 1e3 * items(row) / float(row["throughput"]), Basis.RATE
    for name, basis in _TAILS:
        if row.get(name) and not row.get(rough_column(name)):
            return float(row[name]), basis
    return None


def items(row: Row) -> int:
    """Items of a step, where that is known."""
    return int(row.get("batch_size") or 1)


def sides(rows: Iterable[Row], axis: Axis) -> list[dict[Key, Side]]:
    """Of each question, its side at each place; what has no figure, or failed, answers nothing."""
    found: dict[tuple[Key, str], dict[Key, dict[Key, list[Row]]]] = {}
    for row, tail in _answers(rows, axis):
        places = found.setdefault((axis.question(row), tail), {})
        places.setdefault(axis.value(row), {}).setdefault(axis.way(row), []).append(row)
    only_newest = axis.name not in _OLD_ONES_COUNT
    return [
        {value: _fastest(value, ways, only_newest) for value, ways in places.items()}
        for places in found.values()
    ]


def meet(rows: Iterable[Row], axis: Axis) -> bool:
    """Whether any question was answered at two places of an axis."""
    first: dict[tuple[Key, str], Key] = {}
    for row, tail in _answers(rows, axis):
        place = axis.value(row)
        if first.setdefault((axis.question(row), tail), place) != place:
            return True
    return False


def _answers(rows: Iterable[Row], axis: Axis) -> Iterator[tuple[Row, str]]:
    """Rows with a figure and a place that is known, each with the tail that it is; else ""."""
    for row in rows:
        time = time_of(row) if row.get("status") == Status.OK else None
        if time is not None and any(part not in (None, "") for part in axis.value(row)):
            yield row, str(time[1]) if time[1] in TAILS else ""


def _fastest(value: Key, ways: Mapping[Key, Sequence[Row]], only_newest: bool) -> Side:
    made = [Side(value, newest(rows) if only_newest else list(rows)) for rows in ways.values()]
    # What is known too badly is fastest only where there is nothing else.
    best, *rest = sorted(made, key=lambda side: (not side.usable, side.time_ms))
    names = {str(side.row.get("runtime")) for side in rest} - {str(best.row.get("runtime"))}
    return Side(value, best.rows, tuple(sorted(names)))


def newest(rows: Sequence[Row]) -> list[Row]:
    """The launches of the newest run alone: older ones are history.

    Of what names no run, as a table of somebody else's, and of an import the newest day is one.
    """
    last: Any = max(rows, key=lambda row: str(row.get("started_at") or ""))
    return [row for row in rows if _run(row) == _run(last)]


def _run(row: Row) -> tuple[Any, str]:
    run = row.get("run_id")
    one = run and not str(run).startswith(_IMPORT)
    return run, "" if one else str(row.get("started_at") or "")[:10]
