"""Runs of one series that are figures of one thing: where a line has to be parted. Pure.

What a check refuses to compare with each other is no step of a line either. A stretch is what lies
between two such places; each is looked through by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from accelbench.analysis.comparability import parted
from accelbench.analysis.judging import Metric
from accelbench.core.rows import Row

if TYPE_CHECKING:
    from accelbench.measure.changes import Course

#: What the launches of a run are figures of: a row of each kind.
Kinds = tuple[Row, ...]


class Parting(NamedTuple):
    """Where a line is no longer of what it was of."""

    at: int  # the first point that is of something else
    what: tuple[str, ...]  # in the words of `check`

    @property
    def said(self) -> str:
        """In words."""
        return f"not alike: {', '.join(self.what)}"


def partings(metric: Metric, points: Sequence[Kinds]) -> tuple[Parting, ...]:
    """Where neighbours of a line cannot be compared with each other.

    Args:
        metric: of which figure the line is.
        points: what each is of, in order of time.
    """
    if not points or (len(points[0]) < 2 and all(kinds is points[0] for kinds in points)):
        return ()
    breaks = []
    known = points[0]
    for at, kinds in enumerate(points[1:], start=1):
        if what := parted(metric, known, kinds):
            breaks.append(Parting(at, tuple(what)))
            known = kinds
        elif kinds is not known:
            known = _filled(known, kinds)
    return tuple(breaks)


def _filled(known: Kinds, kinds: Kinds) -> Kinds:
    """The newer, with what only the older said: who says nothing in between joins nothing."""
    if len(known) != 1 or len(kinds) != 1:
        return kinds
    fields = {name: value for name, value in kinds[0].items() if value}
    return ({**known[0], **fields},)


def stretches(count: int, where: Sequence[Parting]) -> list[range]:
    """The pieces of a line of so many points."""
    edges = [0, *(parting.at for parting in where), count]
    return [range(a, b) for a, b in pairwise(edges)]


def joined(courses: Iterable[tuple[range, Course | None]]) -> Course | None:
    """What happened in the stretches of a line, by the places of the line itself.

    Only the newest tells of what is open. A line of which no stretch is long enough has none.
    """
    whole: Course | None = None
    for where, course in courses:
        if course is None:
            whole = whole and replace(whole, drift=None, unconfirmed=None)
            continue
        at = where.start
        steps = tuple(replace(step, at=step.at + at) for step in course.steps)
        spikes = tuple(replace(spike, at=spike.at + at) for spike in course.spikes)
        whole = replace(
            course,
            steps=(*(whole.steps if whole else ()), *steps),
            spikes=(*(whole.spikes if whole else ()), *spikes),
            drift=course.drift and replace(course.drift, since=course.drift.since + at),
            unconfirmed=course.unconfirmed
            and replace(course.unconfirmed, at=course.unconfirmed.at + at),
        )
    return whole
