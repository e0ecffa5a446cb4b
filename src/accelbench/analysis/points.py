"""What stands at one place of a picture: a question on one machine, by its newest run. Pure.

Launches are the unit of replication: where there are two and more, the interval is of them, else it
is what the samples of the only launch say, which knows nothing of how launches differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from accelbench.analysis.judging import METRICS
from accelbench.analysis.questions import Key, Row, flat, plain, values
from accelbench.analysis.sides import PER_MILLION, PER_STEP, latency, newest
from accelbench.core.columns import ASKED
from accelbench.core.provenance import of_this_arm
from accelbench.core.words import Provenance, Status
from accelbench.core.worth import usable_launches
from accelbench.measure.launches import interval_of, typical

_FIGURES = {metric.name: metric for metric in METRICS}
#: Measured on a stand-in for the device: right outputs, times that mean nothing.
EMULATED = "emulated"
#: What a figure may be, in the order of legends.
KINDS = ("measured", "imported", "predicted", "simulated", EMULATED)


@dataclass(frozen=True)
class Span:
    """A figure in the middle of launches with its 95 % interval, where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Point:
    """The launches of one question on one machine, in its newest run."""

    rows: Sequence[Row]
    machine: str

    @property
    def row(self) -> Row:
        """What all of them have in common."""
        return self.rows[0]

    @cached_property
    def kind(self) -> str:
        """Where its figures are from."""
        said = str(self.row.get("provenance") or Provenance.MEASURED)
        return EMULATED if said == Provenance.MEASURED and self.row.get("emulated") else said

    @property
    def timed(self) -> bool:
        """Whether its times may be shown beside others'."""
        return self.kind != EMULATED

    @cached_property
    def usable(self) -> bool:
        """Whether anything may be chosen or judged by its times."""
        return bool(usable_launches(self.rows))

    @property
    def samples(self) -> int | None:
        """Of all launches together; None where nobody says."""
        known = [row["sample_count"] for row in self.rows if row.get("sample_count") is not None]
        return sum(known) if known else None

    @cached_property
    def latency(self) -> Span | None:
        """Milliseconds of a step."""
        found = _span(self.rows, latency)
        low, high = (self.row.get(f"latency_ci_{end}_ms") for end in ("low", "high"))
        if found is None or found.low is not None or low is None or high is None:
            return found
        return Span(found.value, float(low), float(high))

    @cached_property
    def throughput(self) -> Span | None:
        """Items a second."""
        return _span(self.rows, _FIGURES["throughput"].of)

    @cached_property
    def memory(self) -> Span | None:
        """Peak, in MB of 2^20 bytes."""
        return self.metric("memory_peak_mb")

    @cached_property
    def cost(self) -> Span | None:
        """What a million items cost; None without a price."""
        return self.metric(PER_MILLION)

    @cached_property
    def step_cost(self) -> Span | None:
        """What a training step costs."""
        return self.metric(PER_STEP)

    def metric(self, name: str) -> Span | None:
        """Any other figure, by its column."""
        return _span(self.rows, lambda row: row.get(name))


def points(rows: Iterable[Row], machines: Mapping[str, str] | None = None) -> list[Point]:
    """One for each question that was answered, on each machine, in the order of its rows.

    Args:
        rows: results of any status and provenance.
        machines: the machine of each run, where there may be several.
    """
    known = machines or {}
    found: dict[Key, list[Row]] = {}
    for row in rows:
        if row.get("status") == Status.OK and latency(row) is not None and of_this_arm(row):
            found.setdefault((known.get(str(row.get("run_id")), ""), *_question(row)), []).append(
                row
            )
    return [Point(newest(several), str(key[0])) for key, several in found.items()]


def fastest_of_each(found: Iterable[Point]) -> list[Point]:
    """One for each question, machine and kind: the fastest, in the order of their firsts.

    An import brings figures of many versions of an engine at once; side by side they would have
    one name and one place, as nobody asked for a version.
    """
    best: dict[Key, Point] = {}
    for one in found:
        key = (one.machine, one.kind, *values(one.row, ASKED))
        known = best.get(key)
        if known is None or _time(one) < _time(known):
            best[key] = one
    return list(best.values())


def _time(point: Point) -> tuple[bool, float]:
    """What is of no use stands for others only where there is nothing else."""
    return not point.usable, point.latency.value if point.latency else float("inf")


def _question(row: Row) -> Key:
    said = str(row.get("provenance"))
    # An import brings figures of many versions of an engine at once.
    versions = flat(row.get("conditions") or {}) if said == Provenance.IMPORTED else {}
    return (said, bool(row.get("emulated")), plain(versions), *values(row, ASKED))


def _span(rows: Sequence[Row], figure: Callable[[Row], float | None]) -> Span | None:
    found = [float(value) for row in rows if (value := figure(row)) is not None and value > 0]
    if not found:
        return None
    known = interval_of(found)
    return Span(typical(found)) if known is None else Span(typical(found), *known)
