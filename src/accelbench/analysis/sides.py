"""What a question came to at one place of an axis: launches, from rows of results. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from accelbench.analysis.matching import MatchedConfiguration, matched, of_one_run, ways_of
from accelbench.analysis.questions import ComparisonAxis, Key
from accelbench.analysis.ratios import is_faster, quickest
from accelbench.analysis.republished import counted_once
from accelbench.analysis.standing import Standing, software
from accelbench.core.figures import (
    TAILS,
    Statistic,
    Times,
    rate_of,
    statistic_of,
    step_of,
    times_by,
)
from accelbench.core.launch_failures import of_whole_runs
from accelbench.core.rows import Row, number
from accelbench.core.worth import (
    answered,
    counting_launches,
    reasons_unusable,
    usable_launches,
)
from accelbench.measure.launches import typical

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
    for row in of_whole_runs(rows):
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
