"""What stands at one place of a picture: a question on one machine, by its best launches. Pure.

Launches are the unit of replication: where there are two and more, the interval is of them, else it
is what the samples of the only launch say, which knows nothing of how launches differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from accelbench.analysis.judging import METRICS
from accelbench.analysis.launch_intervals import interval_within
from accelbench.analysis.questions import ComparisonAxis, Key, physical, values
from accelbench.analysis.sides import PER_MILLION, PER_STEP
from accelbench.analysis.standing import NEWER, Software, Standing, software, standing, version
from accelbench.core.columns import ASKED
from accelbench.core.figures import (
    Statistic,
    statistic_of,
    step_of,
    tail_of,
    times_by,
)
from accelbench.core.launch_failures import of_whole_runs
from accelbench.core.provenance import COMPARABLE, of_this_arm
from accelbench.core.rows import Row, number
from accelbench.core.vocabulary import Provenance
from accelbench.core.worth import answered, usable_launches
from accelbench.measure.launches import interval_of, typical

_FIGURES = {metric.name: metric for metric in METRICS}
#: Measured on a stand-in for the device: right outputs, times that mean nothing.
EMULATED = "emulated"
#: What a figure may be, in the order of legends.
KINDS = ("measured", "imported", "predicted", "simulated", EMULATED)


@dataclass(frozen=True)
class FigureInterval:
    """A figure in the middle of launches with its 95 % interval, where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Point:
    """The launches of one question on one machine, of the run that says most."""

    rows: Sequence[Row]
    machine: str
    aside: Standing | None = None  # what else was measured of it

    @cached_property
    def row(self) -> Row:
        """What all of them have in common: of thousands of points a chart asks a million times."""
        return self.rows[0]

    @cached_property
    def kind(self) -> str:
        """Where its figures are from; of a stand-in's nobody cares who measured them."""
        provenance = str(self.row.get("provenance") or Provenance.MEASURED)
        return EMULATED if provenance in COMPARABLE and self.row.get("emulated") else provenance

    def question(self, axis: ComparisonAxis) -> Key:
        """What has to be alike along an axis, on its machine."""
        known = self._questions.get(axis.name)
        if known is None:
            known = self._questions[axis.name] = (self.machine, *axis.question(self.row))
        return known

    @cached_property
    def _questions(self) -> dict[str, Key]:
        return {}

    @cached_property
    def asked(self) -> Key:
        """The question, where, and of which kind its answer is."""
        return (self.machine, self.kind, *values(self.row, ASKED))

    @cached_property
    def software(self) -> Software:
        """What it ran."""
        return software(self.row)

    @property
    def timed(self) -> bool:
        """Whether its times may be shown beside others'."""
        return self.kind != EMULATED

    @cached_property
    def usable(self) -> bool:
        """Whether anything may be chosen or judged by its times."""
        return bool(usable_launches(self.rows))

    @property
    def newer(self) -> int:
        """Newer launches that were set aside: of the same software, and they say less."""
        return (self.aside.newer if self.aside else 0) + int(number(self.row, NEWER) or 0)

    @property
    def samples(self) -> int | None:
        """Of all launches together; None where nobody says."""
        counts = [number(row, "sample_count") for row in self.rows]
        known = [int(count) for count in counts if count is not None]
        return sum(known) if known else None

    @cached_property
    def latency(self) -> FigureInterval | None:
        """Milliseconds of a step: the mean, of which ratios are; the median where no mean is known.

        Of a single launch the interval is of its samples.
        """
        statistic = self.latency_by
        if statistic is None:
            return None
        interval = _span(self.rows, lambda row: step_of(row, statistic))
        known = interval_within(self.row, statistic) if len(self.rows) == 1 else None
        if interval is None or known is None:
            return interval
        return FigureInterval(interval.value, *known)

    @cached_property
    def latency_by(self) -> Statistic | None:
        """Which figure its latency is, of all its launches."""
        both = (Statistic.MEAN, Statistic.MEDIAN)
        return next((s for s in both if all(step_of(row, s) for row in self.rows)), None)

    @cached_property
    def percentile(self) -> tuple[float, Statistic] | None:
        """A percentile, where it is all that is known of how long something took."""
        tails = [tail for row in self.rows if (tail := tail_of(row)) is not None]
        if len(tails) < len(self.rows) or self.latency or self.throughput:
            return None
        return typical([value for value, _ in tails]), tails[0][1]

    @cached_property
    def item_ms(self) -> float:
        """Milliseconds an item, by the figure that ratios are of."""
        known = times_by(self.rows)
        return typical(known[1]) if known is not None else float("inf")

    @cached_property
    def throughput(self) -> FigureInterval | None:
        """Items a second."""
        return _span(self.rows, _FIGURES["throughput"].of)

    @cached_property
    def memory(self) -> FigureInterval | None:
        """Peak, in MB of 2^20 bytes."""
        return self.metric("memory_peak_mb")

    @cached_property
    def energy_per_item(self) -> FigureInterval | None:
        """Joules of an item, where a meter counted them."""
        return self.metric("energy_per_item_joules")

    @cached_property
    def cost(self) -> FigureInterval | None:
        """What a million items cost; None without a price."""
        return self.metric(PER_MILLION)

    @cached_property
    def step_cost(self) -> FigureInterval | None:
        """What a training step costs."""
        return self.metric(PER_STEP)

    def metric(self, name: str) -> FigureInterval | None:
        """Any other figure, by its column."""
        return _span(self.rows, lambda row: number(row, name))


def points(rows: Iterable[Row], machines: Mapping[str, str] | None = None) -> list[Point]:
    """One for each question that was answered, on each machine, in the order of its rows.

    Args:
        rows: results of any status and provenance.
        machines: the machine of each run, where there may be several.
    """
    known = machines or {}
    cases: dict[Key, list[Row]] = {}
    for row in of_whole_runs(rows):
        if answered(row) and statistic_of(row) is not None and of_this_arm(row):
            cases.setdefault((known.get(str(row.get("run_id")), ""), *_question(row)), []).append(
                row
            )
    made = [(standing(several), str(key[0])) for key, several in cases.items()]
    return [Point(choice.rows, machine, choice) for choice, machine in made]


def alike_of_each(
    candidates: Iterable[Point], together: Callable[[Point], object], *, only: bool = False
) -> list[Point]:
    """One for each question, machine and kind, in the order of their firsts: of like software.

    An import brings figures of many versions of an engine at once; side by side they would have
    one name and one place, as nobody asked for a version. Of what is drawn together the software
    stands that most devices ran, and most of it, and of as common ones the fastest.

    Args:
        candidates: points.
        together: what points are drawn together, as a key.
        only: what ran other software is left out: a line is of one thing.
    """
    every = [(point, together(point)) for point in candidates]
    ran: dict[object, dict[Software, _Ran]] = {}
    for candidate, drawn in every:
        known_by = ran.setdefault(drawn, {}).setdefault(candidate.software, _Ran())
        known_by.devices.add(physical(candidate.row))
        known_by.asked.add(candidate.asked)
    best: dict[Key, tuple[Point, object]] = {}
    for candidate, drawn in every:
        known = best.setdefault(candidate.asked, (candidate, drawn))[0]
        if known is not candidate and _order(candidate, ran[drawn]) < _order(known, ran[drawn]):
            best[candidate.asked] = (candidate, drawn)
    if not only:
        return [point for point, _ in best.values()]
    most = {key: max(usage.many for usage in versions.values()) for key, versions in ran.items()}
    chosen: dict[object, Software] = {}
    for candidate, drawn in best.values():
        if ran[drawn][candidate.software].many == most[drawn]:
            chosen.setdefault(drawn, candidate.software)
    return [point for point, drawn in best.values() if chosen[drawn] == point.software]


@dataclass(frozen=True)
class _Ran:
    """What some software was asked."""

    devices: set[object] = field(default_factory=set)
    asked: set[Key] = field(default_factory=set)

    @property
    def many(self) -> tuple[int, int]:
        """On how many devices, and how often."""
        return len(self.devices), len(self.asked)


def _order(point: Point, ran: Mapping[Software, _Ran]) -> tuple[object, ...]:
    """What is of no use stands for others only where there is nothing else."""
    devices, questions = ran[point.software].many
    return not point.usable, -devices, -questions, point.item_ms, point.software


def _question(row: Row) -> Key:
    of_whom = (str(row.get("provenance")), bool(row.get("emulated")))
    return (*of_whom, version(row), *values(row, ASKED))


def _span(rows: Sequence[Row], figure: Callable[[Row], float | None]) -> FigureInterval | None:
    sample = [float(value) for row in rows if (value := figure(row)) is not None and value > 0]
    if not sample:
        return None
    known = interval_of(sample)
    return (
        FigureInterval(typical(sample))
        if known is None
        else FigureInterval(typical(sample), *known)
    )
