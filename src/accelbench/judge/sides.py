"""What a question came to at one place of an axis: launches, from rows of results. Pure.

Like with like: of several ways to each place of an axis, those that ran alike. Pure.

A way is how something ran beside what was asked: by which engine and version of it, compiled or
not, in which layout, with how many threads. Where one place knows torch 2.4 eager alone and another
compiled 2.9 as well, the first two are compared with each other; the third is faster, and is said
to be.

The engine is no such trait where it goes along with the axis: a device is known by the engine that
is fastest on it, and to be alike with a CPU's is no reason to stand by one a hundred times slower.
Threads are one where all places have a number in common; else each stands by its fastest number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from accelbench.core.result_statistics import (
    TAILS,
    Statistic,
    Times,
    best_statistic,
    common_times,
    rate_of,
    step_of,
)
from accelbench.core.rows import Row, number, record
from accelbench.core.unusable_reasons import reasons_unusable
from accelbench.evidence.launches import latest_start, launches_of
from accelbench.evidence.measurements import RunMeasurement, group_measurements, merge_groups
from accelbench.judge.questions import DESCRIBING, SHAPES, ComparisonAxis, Key, flat, plain
from accelbench.judge.ratios import is_faster, quickest
from accelbench.judge.versions import counted_once, software
from accelbench.measure.launch_verdicts import geometric_mean

#: What has to be alike of how it ran, beside versions; the engine is the platform's own choice.
#: Sizes are where models are compared, each of which has its own: the same, where both have it.
_TRAITS = ("compiled", "threads", "workarounds", *SHAPES)
#: Runs that are looked at for one in which most places were measured, the newest.
_MOST_RUNS = 20

Place = TypeVar("Place", bound=Key)


@dataclass(frozen=True)
class MatchedConfiguration:
    """One way in which a place answered a question, in one run or several."""

    value: Key
    rows: Sequence[Row]
    measurements: Sequence[RunMeasurement]
    superseded: bool = False  # it is of a run of ours, and newer software was measured since

    @cached_property
    def traits(self) -> Mapping[str, str]:
        """How it ran, by name."""
        row = self.rows[0]
        cells = {name: _said(row.get(name)) for name in _TRAITS if row.get(name) not in (None, [])}
        ran = {name: value for name, value in software(row) if name not in DESCRIBING}
        return cells | flat(record(row, "options")) | ran

    @property
    def runtime(self) -> str:
        """The engine that ran it."""
        return str(self.rows[0].get("runtime") or "")

    @cached_property
    def current(self) -> RunMeasurement:
        """The measurement that represents it."""
        return next(one for one in self.measurements if one.is_current)

    @cached_property
    def rank(self) -> tuple[bool, bool]:
        """What comes first of ways that ran alike, before the fastest.

        That is the newest software; what is of no use only where there is nothing else.
        """
        return self.superseded, not self.current.is_usable

    def unlike(self, other: MatchedConfiguration) -> list[str]:
        """The names of what both say, and say otherwise."""
        ours, theirs = self.traits, other.traits
        return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def ways_of(
    places: Sequence[Sequence[Row]], axis: ComparisonAxis
) -> list[list[MatchedConfiguration]]:
    """Return the ways of each of some places: what went along with the axis, and the software."""
    ways: list[tuple[int, Sequence[Row], bool]] = []
    for place, rows in enumerate(places):
        rows_by_way: dict[Key, dict[Key, list[Row]]] = {}
        for row in rows:
            rows_by_way.setdefault(axis.way(row), {}).setdefault(software(row), []).append(row)
        for versions in rows_by_way.values():
            every = list(versions.values())
            ways += [(place, several, _superseded(several, every)) for several in every]
    made: list[list[MatchedConfiguration]] = [[] for _ in places]
    found = group_measurements([rows for _, rows, _ in ways])
    for (place, rows, old), several in zip(ways, found, strict=True):
        made[place].append(MatchedConfiguration(axis.value(rows[0]), rows, several, old))
    return made


def _superseded(rows: Sequence[Row], versions: Sequence[Sequence[Row]]) -> bool:
    """An import brings many versions of an engine at once, none of which takes another's place."""
    ours = not rows[0]["of_import"]
    return ours and any(_when(others) > _when(rows) for others in versions)


def _when(rows: Sequence[Row]) -> tuple[str, str]:
    return latest_start(rows), str(rows[0].get("run_id") or "")


def matched(
    places: Mapping[Place, Sequence[MatchedConfiguration]], base: Place, axis: ComparisonAxis
) -> dict[Place, MatchedConfiguration]:
    """Of each place the way that ran as the others did, and of those the fastest.

    Args:
        places: of each its ways.
        base: the place that the others are compared with.
        axis: along which the places lie.
    """
    if all(len(ways) == 1 for ways in places.values()):
        return {value: ways[0] for value, ways in places.items()}
    if "runtime" in axis.along:
        places = {value: _of_fastest_engine(ways) for value, ways in places.items()}
    passed_over = set() if _threads_in_common(places.values()) else {"threads"}

    def distance(way: MatchedConfiguration, other: MatchedConfiguration) -> int:
        return sum(name not in passed_over for name in way.unlike(other))

    def apart(way: MatchedConfiguration) -> int:
        others = (ways for value, ways in places.items() if value != base)
        return sum(min(distance(way, other) for other in ways) for ways in others)

    chosen = _first(places[base], apart)
    matches = {
        value: _first(ways, lambda way: distance(way, chosen))
        for value, ways in places.items()
        if value != base
    }
    return {base: chosen, **matches}


def _of_fastest_engine(ways: Sequence[MatchedConfiguration]) -> Sequence[MatchedConfiguration]:
    """The ways of the engine that is fastest at a place; what does not count stands last."""
    if len({way.runtime for way in ways}) < 2:
        return ways
    best = min(way.rank for way in ways)
    counting = [way for way in ways if way.rank == best]
    fastest = counting[quickest([way.current.rows for way in counting])]
    return [way for way in ways if way.runtime == fastest.runtime]


def _threads_in_common(places: Iterable[Sequence[MatchedConfiguration]]) -> bool:
    """Whether there is a number of threads at which every place was measured that says one."""
    known = [{way.traits.get("threads") for way in ways} for ways in places]
    thread_sets = [numbers for numbers in known if None not in numbers]
    return not thread_sets or bool(set.intersection(*thread_sets))


def _first(
    ways: Sequence[MatchedConfiguration], apart: Callable[[MatchedConfiguration], int]
) -> MatchedConfiguration:
    """Of ways that ran most alike the newest software, and of that the fastest."""
    ranks = [(apart(way), *way.rank) for way in ways]
    best = min(ranks)
    first = [way for way, rank in zip(ways, ranks, strict=True) if rank == best]
    return first[quickest([way.current.rows for way in first])] if len(first) > 1 else first[0]


def of_one_run(ways: Mapping[Key, MatchedConfiguration], base: Key) -> dict[Key, RunMeasurement]:
    """Return a measurement of each way, of one run if that shows as much as their current ones.

    A pair of one run has in common whatever that run differs from others by.
    """
    best = {value: way.current for value, way in ways.items()}
    if all(not entry.older + entry.newer for entry in best.values()):
        return best
    runs = {value: {one.run: one for one in way.measurements} for value, way in ways.items()}

    def serves(value: Key, run: object) -> bool:
        # Samples that did not settle have wider intervals, and no other partner.
        known = runs[value].get(run)
        return known is not None and known.evidence >= best[value].evidence

    candidates = sorted(
        (
            run
            for run, one in runs[base].items()
            if one.launches[0].get("run_id") is not None and serves(base, run)
        ),
        key=lambda run: latest_start(runs[base][run].launches),
    )[-_MOST_RUNS:]
    many = [(sum(serves(value, run) for value in ways), run) for run in candidates]
    if not many:
        return best
    # Of as many places the newest run, which is the last.
    most, run = max(reversed(many), key=lambda pair: pair[0])
    if most < 2:
        return best
    return {
        value: runs[value][run] if serves(value, run) else entry for value, entry in best.items()
    }


def _said(value: object) -> str:
    return str(plain(value))


#: What a row is told of its cost where prices are known (`costs`): no columns of the store.
PER_MILLION, PER_STEP = "cost_per_million", "cost_per_step"
#: Of a run and its date, older ones are what is compared; else the newest run speaks alone.
_OLD_ONES_COUNT = ("run", "date")


@dataclass(frozen=True)
class Side:
    """The launches of one question at one place, by the way that stands for it."""

    value: Key
    rows: Sequence[Row]
    others: tuple[str, ...] = ()  # runtimes that got there more slowly
    faster: tuple[str, ...] = ()  # what is faster there, and did not run alike
    older: int = 0  # launches of other runs, which do not count
    newer: int = 0  # of these newer ones, which say less
    unusable: int = 0  # launches of the same run, whose times do not count
    why_unusable: str = ""  # these, as the end of a sentence
    alike: tuple[Sequence[Row], ...] = ()  # others that ran alike, of which this is the fastest
    usable: bool = True  # whether its times may decide anything
    quality: str | None = None

    @property
    def fastest_of(self) -> int:
        """How many results there are that ran alike, as eight submissions of one system; or 1."""
        return 1 + len(self.alike)

    @cached_property
    def range_alike(self) -> tuple[float, float, Statistic] | None:
        """The lowest and highest of all that ran alike, and of which figure: rates where known."""
        if not self.alike:
            return None
        every = [Side(self.value, rows) for rows in (self.rows, *self.alike)]
        rates = [side.throughput for side in every]
        known = [rate for rate in rates if rate is not None]
        if len(known) == len(every):
            return min(known), max(known), Statistic.RATE
        times = [side.time_ms for side in every if side.statistic is self.statistic]
        return min(times), max(times), self.statistic

    @property
    def row(self) -> Row:
        """What all its launches have in common, and the first of what they have not."""
        return self.rows[0]

    @cached_property
    def statistic(self) -> Statistic:
        """Which figure its times are."""
        return self._known[0]

    @property
    def times(self) -> Times:
        """Milliseconds an item, one a launch: what is compared, whatever the batch."""
        return self._known[1]

    @cached_property
    def _known(self) -> tuple[Statistic, Times]:
        known = common_times(self.rows)
        if known is not None:
            return known
        # Launches with no figure in common: those with the one that says most.
        best = min(
            (statistic for row in self.rows if (statistic := best_statistic(row))),
            key=list(Statistic).index,
        )
        alike = common_times([row for row in self.rows if best_statistic(row) is best])
        assert alike is not None  # else it would be no side
        return alike

    @cached_property
    def step(self) -> tuple[float, Statistic] | None:
        """Milliseconds of a step in the middle of launches, and which figure that is."""
        for statistic in (Statistic.MEDIAN, Statistic.MEAN, *sorted(TAILS)):
            times = [ms for row in self.rows if (ms := step_of(row, statistic)) is not None]
            if len(times) == len(self.rows):
                return geometric_mean(times), statistic
        return None

    @property
    def time_ms(self) -> float:
        """An item's time in the middle of launches."""
        return geometric_mean(self.times)

    @property
    def throughput(self) -> float | None:
        """Items a second in the middle of launches; a median or a tail says nothing of it.

        Of all launches or of none, as a step is: beside each other both are of the same ones.
        """
        known = [rate for row in self.rows if (rate := rate_of(row)) is not None]
        return geometric_mean(known) if len(known) == len(self.rows) else None

    @property
    def memory_mb(self) -> float | None:
        """The peak in the middle of launches, as charts and pages have it."""
        return self._middle("memory_peak_mb")

    @property
    def energy_per_item(self) -> float | None:
        """Joules of an item in the middle of launches; None where no meter counted them."""
        return self._middle("energy_per_item_joules")

    @property
    def power_watts(self) -> float | None:
        """Power while stepping, likewise."""
        return self._middle("power_watts")

    @property
    def cost(self) -> float | None:
        """What a million items cost, in the middle of launches; None without a price."""
        return self._middle(PER_MILLION)

    @property
    def step_cost(self) -> float | None:
        """What a training step costs."""
        return self._middle(PER_STEP)

    def _middle(self, name: str) -> float | None:
        known = [float(value) for row in self.rows if (value := number(row, name))]
        return geometric_mean(known) if known else None


def sides(
    rows: Iterable[Row],
    axis: ComparisonAxis,
    baseline: Callable[[Iterable[Key]], Key | None],
    fewest: int = 1,
) -> list[dict[Key, Side]]:
    """Of each question its side at each place; what has no figure, or failed, answers nothing.

    Args:
        rows: of one machine.
        axis: along which places lie.
        baseline: chooses of some places the one that others are compared with.
        fewest: questions with an answer at fewer places are left out.
    """
    cases: dict[tuple[Key, str], dict[Key, list[Row]]] = {}
    if (
        axis.name == "date"
    ):  # days on which a source published a measurement again are no days of it
        rows = counted_once(rows)
    for row, tail in _answers(rows, axis):
        places = cases.setdefault((axis.question(row), tail), {})
        places.setdefault(axis.value(row), []).append(row)
    questions = [places for places in cases.values() if len(places) >= fewest]
    ways = iter(ways_of([rows for places in questions for rows in places.values()], axis))
    every = [{value: next(ways) for value in places} for places in questions]
    bases = [_or_first(baseline(places), places) for places in every]
    chosen = [matched(places, base, axis) for places, base in zip(every, bases, strict=True)]
    if axis.name in _OLD_ONES_COUNT:
        return _of_all(every, chosen, axis)
    return [
        {
            value: _side(way, places[value], launches[value], axis)
            for launches in (of_one_run(matches, base),)
            for value, way in matches.items()
        }
        for places, base, matches in zip(every, bases, chosen, strict=True)
    ]


def _or_first(base: Key | None, places: Iterable[Key]) -> Key:
    return next(iter(places)) if base is None else base


def _of_all(
    every: Sequence[Mapping[Key, Sequence[MatchedConfiguration]]],
    chosen: Sequence[Mapping[Key, MatchedConfiguration]],
    axis: ComparisonAxis,
) -> list[dict[Key, Side]]:
    """Return sides of all launches that ran alike: an import has versions of years in one run."""
    ways = [way for matches in chosen for way in matches.values()]
    by_run = axis.name == "run"
    found = (way.current for way in ways) if by_run else merge_groups([w.rows for w in ways])
    together = iter(found)
    return [
        {
            value: side_of(value, next(together), faster=_faster(way, places[value]), runs=by_run)
            for value, way in matches.items()
        }
        for places, matches in zip(every, chosen, strict=True)
    ]


def meet(rows: Iterable[Row], axis: ComparisonAxis) -> bool:
    """Whether any question was answered at two places of an axis."""
    first: dict[tuple[Key, str], Key] = {}
    for row, tail in _answers(rows, axis):
        place = axis.value(row)
        if first.setdefault((axis.question(row), tail), place) != place:
            return True
    return False


def _answers(rows: Iterable[Row], axis: ComparisonAxis) -> Iterator[tuple[Row, str]]:
    """Rows with a figure and a place that is known, each with the tail that it is; else ""."""
    for row in launches_of(rows):
        statistic = best_statistic(row) if row["answered"] else None
        if statistic is not None and any(part not in (None, "") for part in axis.value(row)):
            yield row, str(statistic) if statistic in TAILS else ""


def side_of(
    value: Key,
    current: RunMeasurement,
    others: tuple[str, ...] = (),
    faster: tuple[str, ...] = (),
    *,
    runs: bool = True,
) -> Side:
    """Return the side of a measurement.

    Args:
        value: its place.
        current: the measurement.
        others: runtimes that are slower there.
        faster: what is faster there, and did not run alike.
        runs: whether it is of one run.
    """
    left_out = current.unusable_rows
    return Side(
        value,
        current.rows,
        others,
        faster,
        current.older + current.newer,
        current.newer,
        len(left_out),
        reasons_unusable(left_out) if runs else "",
        usable=current.is_usable,
        quality=current.quality,
    )


def _side(
    way: MatchedConfiguration,
    ways: Sequence[MatchedConfiguration],
    current: RunMeasurement,
    axis: ComparisonAxis,
) -> Side:
    others = {str(other.rows[0].get("runtime")) for other in ways} - {
        str(way.rows[0].get("runtime"))
    }
    quick = {str(other.rows[0].get("runtime")) for other in _quicker(way, ways)}
    side = side_of(way.value, current, tuple(sorted(others - quick)), _faster(way, ways))
    return replace(side, alike=tuple(other.current.rows for other in _alike(way, ways, axis)))


def _alike(
    way: MatchedConfiguration, ways: Sequence[MatchedConfiguration], axis: ComparisonAxis
) -> list[MatchedConfiguration]:
    """The ways that ran alike in all that is known, and count: other submissions of one thing."""
    return [
        other
        for other in ways
        if other is not way
        and axis.way(other.rows[0]) == axis.way(way.rows[0])
        and other.traits == way.traits
        and other.rank == (False, False)
    ]


def _quicker(
    way: MatchedConfiguration, ways: Sequence[MatchedConfiguration]
) -> list[MatchedConfiguration]:
    """The ways that can be compared with this one and are faster, the fastest first."""
    left = [
        other
        for other in ways
        if other is not way
        and other.rank <= (False, way.rank[1])
        and is_faster(other.current.rows, way.current.rows)
    ]
    ranking = []
    while left:
        ranking.append(left.pop(quickest([other.current.rows for other in left])))
    return ranking


def _faster(way: MatchedConfiguration, ways: Sequence[MatchedConfiguration]) -> tuple[str, ...]:
    """What is faster at the same place, and did not run alike."""
    return tuple(_otherwise(other, way) for other in _quicker(way, ways))


def _otherwise(other: MatchedConfiguration, way: MatchedConfiguration) -> str:
    """A faster way, by what it has otherwise than the one that stands."""
    runtime = str(other.rows[0].get("runtime") or "")
    differences = [f"{name} {other.traits[name]}" for name in other.unlike(way)]
    if runtime != str(way.rows[0].get("runtime") or ""):
        differences = [runtime, *differences]
    return ", ".join(differences) or str(dict(software(other.rows[0])).get("System") or runtime)
