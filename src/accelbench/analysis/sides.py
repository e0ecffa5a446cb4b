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

from accelbench.analysis.questions import DESCRIBING, SHAPES, ComparisonAxis, Key, flat, plain
from accelbench.analysis.ratios import is_faster, quickest
from accelbench.analysis.republished import counted_once
from accelbench.analysis.standing import (
    Standing,
    by_run,
    last_moment,
    software,
    standing,
    stands,
    when,
    worth,
)
from accelbench.core.figures import (
    TAILS,
    Statistic,
    Times,
    rate_of,
    statistic_of,
    step_of,
    times_by,
)
from accelbench.core.rows import Row, number, record
from accelbench.core.worth import (
    answered,
    counting_launches,
    reasons_unusable,
    usable_launches,
)
from accelbench.evidence.launches import launches_of
from accelbench.measure.launches import typical

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
    def standing(self) -> Standing:
        """The launches that stand for it."""
        return standing(self.rows)

    @cached_property
    def rank(self) -> tuple[bool, bool]:
        """What comes first of ways that ran alike, before the fastest.

        That is the newest software; what is of no use only where there is nothing else.
        """
        return self.superseded, not usable_launches(self.standing.rows)

    def unlike(self, other: MatchedConfiguration) -> list[str]:
        """The names of what both say, and say otherwise."""
        ours, theirs = self.traits, other.traits
        return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def ways_of(rows: Sequence[Row], axis: ComparisonAxis) -> list[MatchedConfiguration]:
    """The ways of one place: what went along with the axis, and the software."""
    rows_by_way: dict[Key, dict[Key, list[Row]]] = {}
    for row in rows:
        rows_by_way.setdefault(axis.way(row), {}).setdefault(software(row), []).append(row)
    return [
        MatchedConfiguration(
            axis.value(several[0]), several, _superseded(several, list(versions.values()))
        )
        for versions in rows_by_way.values()
        for several in versions.values()
    ]


def _superseded(rows: Sequence[Row], versions: Sequence[Sequence[Row]]) -> bool:
    """An import brings many versions of an engine at once, none of which takes another's place."""
    ours = not rows[0]["of_import"]
    return ours and any(when(others) > when(rows) for others in versions)


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
    fastest = counting[quickest([way.standing.rows for way in counting])]
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
    return first[quickest([way.standing.rows for way in first])] if len(first) > 1 else first[0]


def of_one_run(ways: Mapping[Key, MatchedConfiguration], base: Key) -> dict[Key, Standing]:
    """The launches of each way, of one run where that says as much of them as their best does.

    A pair of one run has in common whatever that run differs from others by.
    """
    best = {value: way.standing for value, way in ways.items()}
    if all(not entry.older + entry.newer for entry in best.values()):
        return best
    runs = {
        value: {launches[0]["run_key"]: launches for launches in by_run(way.rows)}
        for value, way in ways.items()
    }

    def serves(value: Key, run: object) -> bool:
        launches = runs[value].get(run)
        return launches is not None and _says(launches) >= _says(best[value].run)

    candidates = sorted(
        (
            run
            for run, launches in runs[base].items()
            if launches[0].get("run_id") is not None and serves(base, run)
        ),
        key=lambda run: last_moment(runs[base][run]),
    )[-_MOST_RUNS:]
    many = [(sum(serves(value, run) for value in ways), run) for run in candidates]
    if not many:
        return best
    # Of as many places the newest run, which is the last.
    most, run = max(reversed(many), key=lambda pair: pair[0])
    if most < 2:
        return best
    return {
        value: stands(runs[value][run], list(runs[value].values())) if serves(value, run) else entry
        for value, entry in best.items()
    }


def _says(run: Sequence[Row]) -> tuple[bool, int]:
    """Whether its times count, and of how many launches; samples that did not settle have wider
    intervals, and no other partner.
    """
    usable, launches, _ = worth(run)
    return usable, launches


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

    @property
    def usable(self) -> bool:
        """Whether anything may be judged by its times."""
        return bool(usable_launches(self.rows))

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
        known = times_by(self.rows)
        if known is not None:
            return known
        # Launches with no figure in common: those with the one that says most.
        best = min(
            (statistic for row in self.rows if (statistic := statistic_of(row))),
            key=list(Statistic).index,
        )
        alike = times_by([row for row in self.rows if statistic_of(row) is best])
        assert alike is not None  # else it would be no side
        return alike

    @cached_property
    def step(self) -> tuple[float, Statistic] | None:
        """Milliseconds of a step in the middle of launches, and which figure that is."""
        for statistic in (Statistic.MEDIAN, Statistic.MEAN, *sorted(TAILS)):
            times = [ms for row in self.rows if (ms := step_of(row, statistic)) is not None]
            if len(times) == len(self.rows):
                return typical(times), statistic
        return None

    @property
    def time_ms(self) -> float:
        """An item's time in the middle of launches."""
        return typical(self.times)

    @property
    def throughput(self) -> float | None:
        """Items a second in the middle of launches; a median or a tail says nothing of it.

        Of all launches or of none, as a step is: beside each other both are of the same ones.
        """
        known = [rate for row in self.rows if (rate := rate_of(row)) is not None]
        return typical(known) if len(known) == len(self.rows) else None

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
        return typical(known) if known else None


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
    return [
        _of_question(places, axis, baseline) for places in cases.values() if len(places) >= fewest
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
        statistic = statistic_of(row) if answered(row) else None
        if statistic is not None and any(part not in (None, "") for part in axis.value(row)):
            yield row, str(statistic) if statistic in TAILS else ""


def _of_question(
    places: Mapping[Key, Sequence[Row]],
    axis: ComparisonAxis,
    baseline: Callable[[Iterable[Key]], Key | None],
) -> dict[Key, Side]:
    every = {value: ways_of(rows, axis) for value, rows in places.items()}
    base = baseline(every)
    chosen = matched(every, next(iter(every)) if base is None else base, axis)
    if axis.name in _OLD_ONES_COUNT:
        return {value: _spoken(way, every[value], axis) for value, way in chosen.items()}
    launches = of_one_run(chosen, next(iter(every)) if base is None else base)
    return {value: _side(way, every[value], launches[value], axis) for value, way in chosen.items()}


def of_standing(
    value: Key, standing: Standing, others: tuple[str, ...] = (), faster: tuple[str, ...] = ()
) -> Side:
    """The side that some launches stand for."""
    aside = standing.older + standing.newer
    useless = standing.unusable
    return Side(
        value,
        standing.rows,
        others,
        faster,
        aside,
        standing.newer,
        len(useless),
        reasons_unusable(useless),
    )


def _spoken(
    way: MatchedConfiguration, ways: Sequence[MatchedConfiguration], axis: ComparisonAxis
) -> Side:
    """Every launch that ran alike: an import brings versions, and days, of years as one run."""
    faster = _faster(way, ways)
    if axis.name != "run":
        kept = counting_launches(way.rows)
        return Side(way.value, kept, faster=faster, unusable=len(way.rows) - len(kept))
    return of_standing(way.value, way.standing, faster=faster)


def _side(
    way: MatchedConfiguration,
    ways: Sequence[MatchedConfiguration],
    standing: Standing,
    axis: ComparisonAxis,
) -> Side:
    others = {str(other.rows[0].get("runtime")) for other in ways} - {
        str(way.rows[0].get("runtime"))
    }
    quick = {str(other.rows[0].get("runtime")) for other in _quicker(way, ways)}
    side = of_standing(way.value, standing, tuple(sorted(others - quick)), _faster(way, ways))
    return replace(side, alike=tuple(other.standing.rows for other in _alike(way, ways, axis)))


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
        and is_faster(other.standing.rows, way.standing.rows)
    ]
    ranking = []
    while left:
        ranking.append(left.pop(quickest([other.standing.rows for other in left])))
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
