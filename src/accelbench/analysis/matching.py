"""Like with like: of several ways to each place of an axis, those that ran alike. Pure.

A way is how something ran beside what was asked: by which engine and version of it, compiled or
not, in which layout, with how many threads. Where one place knows torch 2.4 eager alone and another
compiled 2.9 as well, the first two are compared with each other; the third is faster, and is said
to be.

The engine is no such trait where it goes along with the axis: a device is known by the engine that
is fastest on it, and to be alike with a CPU's is no reason to stand by one a hundred times slower.
Threads are one where all places have a number in common; else each stands by its fastest number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from accelbench.analysis.questions import DESCRIBING, SHAPES, ComparisonAxis, Key, flat, plain
from accelbench.analysis.ratios import quickest
from accelbench.analysis.standing import (
    Standing,
    by_run,
    last_moment,
    run_of,
    software,
    standing,
    stands,
    when,
    worth,
)
from accelbench.core.provenance import of_import
from accelbench.core.rows import Row, record
from accelbench.core.worth import usable_launches

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
    ours = not of_import(rows[0])
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
        value: {run_of(launches[0]): launches for launches in by_run(way.rows)}
        for value, way in ways.items()
    }

    def serves(value: Key, run: tuple[object, str]) -> bool:
        launches = runs[value].get(run)
        return launches is not None and _says(launches) >= _says(best[value].run)

    candidates = sorted(
        (run for run in runs[base] if run[0] is not None and serves(base, run)),
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
