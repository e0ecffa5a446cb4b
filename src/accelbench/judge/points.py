"""What stands at one place of a picture: a question on one machine, by its best launches. Pure.

Launches are the unit of replication: where there are two and more, the interval is of them, else it
is what the samples of the only launch say, which knows nothing of how launches differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.result_statistics import (
    Spread,
    Statistic,
    Times,
    best_statistic,
    common_times,
    find_common_tail,
    step_of,
)
from accelbench.core.rows import Row, number
from accelbench.core.unusable_reasons import COMPARABLE
from accelbench.core.vocabulary import Provenance
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import RunMeasurement, current_measurements, merge_groups
from accelbench.judge.questions import ComparisonAxis, Key, physical, picker, values
from accelbench.judge.ratios import interval_within
from accelbench.judge.sides import PER_MILLION, PER_STEP
from accelbench.judge.verdicts import METRICS
from accelbench.judge.versions import Software, software
from accelbench.measure.launch_verdicts import geometric_mean, interval_of, spread_of

#: Of a row that was read without launches that are not current: how many of them are newer.
NEWER = "newer_launches_set_aside"
_FIGURES = {metric.name: metric for metric in METRICS}
#: Measured on a stand-in for the device: right outputs, times that mean nothing.
EMULATED = "emulated"
#: What a figure may be, in the order of legends.
KINDS = ("measured", "imported", "predicted", "simulated", EMULATED)


@dataclass(frozen=True)
class FigureInterval:
    """A figure in the middle of launches, with the ends that are shown of it if there are any.

    Attributes:
        spread: what the ends are.
        sure: the ends of the 95 % interval, by which it is compared with others.
    """

    value: float
    low: float | None = None
    high: float | None = None
    spread: Spread | None = None
    sure: tuple[float, float] | None = None

    @property
    def interval_of(self) -> str | None:
        """What the ends are of, as records of charts have it: "range of 3 launches"."""
        return None if self.spread is None else self.spread.describe_count()

    def times(self, factor: float) -> FigureInterval:
        """Return the figure in another unit, or of so many parts."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        spread = None if self.spread is None else replace(self.spread, low=low, high=high)
        sure = None if self.sure is None else (self.sure[0] * factor, self.sure[1] * factor)
        return FigureInterval(self.value * factor, low, high, spread, sure)


@dataclass(frozen=True)
class Point:
    """The launches of one question on one machine, of the run that says most."""

    rows: Sequence[Row]
    machine: str
    current: RunMeasurement | None = None  # None if the rows are all that is known of it

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
            known = (self.machine, *axis.question_in(self._answers, self.row))
            self._questions[axis.name] = known
        return known

    def asked_in(self, columns: tuple[str, ...]) -> Key:
        """What was asked in some columns of `ASKED`, two or more, as a key."""
        return picker(columns)(self._answers)

    @cached_property
    def _questions(self) -> dict[str, Key]:
        return {}

    @cached_property
    def _answers(self) -> Key:
        """The values of `ASKED`: every question is a part of them."""
        return values(self.row, CONFIGURATION_COLUMNS)

    @cached_property
    def asked(self) -> Key:
        """The question, where, and of which kind its answer is."""
        return (self.machine, self.kind, *self._answers)

    @cached_property
    def software(self) -> Software:
        """What it ran."""
        return software(self.row)

    @cached_property
    def timed(self) -> bool:
        """Whether its times may be shown beside others'."""
        return self.kind != EMULATED

    @cached_property
    def measurement(self) -> RunMeasurement:
        """The measurement that its rows are of."""
        return self.current or merge_groups([self.rows])[0]

    @property
    def usable(self) -> bool:
        """Whether its times may decide anything."""
        return self.measurement.is_usable

    @property
    def newer(self) -> int:
        """The number of newer launches of the same software, which show less."""
        return self.measurement.newer + int(number(self.row, NEWER) or 0)

    @property
    def samples(self) -> int | None:
        """Of all launches together; None where nobody says."""
        counts = [number(row, "sample_count") for row in self.rows]
        known = [int(count) for count in counts if count is not None]
        return sum(known) if known else None

    @cached_property
    def latency(self) -> FigureInterval | None:
        """Milliseconds of a step: the median, or the mean where no median is known.

        Of a single launch the interval is of its samples.
        """
        statistic = self.latency_by
        if statistic is None:
            return None
        interval = _span(self.rows, lambda row: step_of(row, statistic))
        known = interval_within(self.row, statistic) if len(self.rows) == 1 else None
        if interval is None or known is None:
            return interval
        return _figure(interval.value, spread_of([interval.value], known), known)

    @cached_property
    def latency_by(self) -> Statistic | None:
        """Which figure its latency is, of all its launches."""
        both = (Statistic.MEDIAN, Statistic.MEAN)
        return next((s for s in both if all(step_of(row, s) for row in self.rows)), None)

    @cached_property
    def percentile(self) -> tuple[float, Statistic] | None:
        """A percentile, where it is all that is known of how long something took."""
        known = find_common_tail(self.rows)
        return None if known is None else (geometric_mean(known[1]), known[0])

    @cached_property
    def times(self) -> tuple[Statistic, Times] | None:
        """The figure that ratios are of, and what an item took by it in each launch."""
        return common_times(self.rows)

    @cached_property
    def item_ms(self) -> float:
        """Milliseconds an item, by the figure that ratios are of."""
        known = self.times
        return geometric_mean(known[1]) if known is not None else float("inf")

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
        return _middle([number(row, name) for row in self.rows])


def common_batch(candidates: Iterable[Point]) -> int | None:
    """Return the batch size that most devices ran, the smallest of several; None if unknown.

    At the smallest batch of all, a CPU at batch 1 would be the fastest of GPUs at batch 256.
    """
    devices: dict[int | None, set[Key]] = {}
    for point in candidates:
        row, size = point.row, number(point.row, "batch_size")
        place = (physical(row), row.get("device_name"), point.machine)
        devices.setdefault(int(size) if size else None, set()).add(place)
    return min(
        devices,
        key=lambda batch: (batch is None, -len(devices[batch]), batch or 0),
        default=None,
    )


def points(rows: Iterable[Row], machines: Mapping[str, str] | None = None) -> list[Point]:
    """One for each question that was answered, on each machine, in the order of its rows.

    Args:
        rows: results of any status and provenance.
        machines: the machine of each run, where there may be several.
    """
    known = machines or {}
    cases: dict[Key, list[Row]] = {}
    for row in launches_of(rows):
        if row["answered"] and best_statistic(row) is not None and row["this_arm"]:
            cases.setdefault((known.get(str(row.get("run_id")), ""), *_question(row)), []).append(
                row
            )
    return [
        Point(current.rows, str(key[0]), current)
        for key, current in zip(cases, current_measurements(list(cases.values())), strict=True)
    ]


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
    return [point for point, _ in _alike(candidates, together, only=only)]


def alike_together(
    candidates: Iterable[Point], together: Callable[[Point], object], *, only: bool = False
) -> dict[object, list[Point]]:
    """The points of `alike_of_each`, those that are drawn together under their key."""
    groups: dict[object, list[Point]] = {}
    for point, drawn in _alike(candidates, together, only=only):
        groups.setdefault(drawn, []).append(point)
    return groups


def _alike(
    candidates: Iterable[Point], together: Callable[[Point], object], *, only: bool
) -> list[tuple[Point, object]]:
    """Each with what it is drawn together with."""
    every = [(point, together(point)) for point in candidates]
    rivals: dict[Key, list[tuple[Point, object]]] = {}
    for pair in every:
        rivals.setdefault(pair[0].asked, []).append(pair)
    # How common each software is matters where there are several to choose among: most figures of
    # thousands are the only ones of their question.
    several = {drawn for pairs in rivals.values() if len(pairs) > 1 for _, drawn in pairs}
    if only:
        several |= _of_several_softwares(every)
    ran = _ran(every, several)
    best = [
        pairs[0] if len(pairs) == 1 else min(pairs, key=lambda pair: _order(pair[0], ran[pair[1]]))
        for pairs in rivals.values()
    ]
    if not only or not several:
        return best
    chosen: dict[object, Software] = {}
    for point, drawn in best:
        if drawn in ran:
            known = chosen.setdefault(drawn, point.software)
            if ran[drawn][point.software].many > ran[drawn][known].many:
                chosen[drawn] = point.software
    return [
        (point, drawn)
        for point, drawn in best
        if drawn not in ran or chosen[drawn] == point.software
    ]


def _of_several_softwares(every: Iterable[tuple[Point, object]]) -> set[object]:
    """What is drawn together of which not all ran the same."""
    first: dict[object, Software] = {}
    return {
        drawn for point, drawn in every if first.setdefault(drawn, point.software) != point.software
    }


def _ran(
    every: Iterable[tuple[Point, object]], several: set[object]
) -> dict[object, dict[Software, _Ran]]:
    """What each software was asked, among the points of each of some keys."""
    ran: dict[object, dict[Software, _Ran]] = {}
    for point, drawn in every if several else ():
        if drawn in several:
            usage = ran.setdefault(drawn, {}).setdefault(point.software, _Ran())
            usage.devices.add(physical(point.row))
            usage.asked.add(point.asked)
    return ran


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
    return (*of_whom, row["import_version"], *values(row, CONFIGURATION_COLUMNS))


def _span(rows: Sequence[Row], figure: Callable[[Row], float | None]) -> FigureInterval | None:
    return _middle([figure(row) for row in rows])


def _middle(figures: Iterable[float | None]) -> FigureInterval | None:
    """The middle of what launches say; None where none says anything."""
    sample = [float(value) for value in figures if value is not None and value > 0]
    if len(sample) < 2:  # a single launch says nothing of others
        return FigureInterval(sample[0]) if sample else None
    return _figure(geometric_mean(sample), spread_of(sample), interval_of(sample))


def _figure(
    value: float, spread: Spread | None, sure: tuple[float, float] | None
) -> FigureInterval:
    ends = (None, None) if spread is None else (spread.low, spread.high)
    return FigureInterval(value, *ends, spread, sure)
