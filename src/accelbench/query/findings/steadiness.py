"""What is unsteady and why, and what rests on a single launch. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelbench.analysis.points import Point
from accelbench.core.launch_failures import mostly_failed
from accelbench.core.nouns import counted
from accelbench.core.quality_words import QUALITY_SAID
from accelbench.core.vocabulary import Provenance, Quality
from accelbench.core.worth import quality_of, reasons_unusable
from accelbench.exchange.titles import title
from accelbench.query.findings.asking import command_of
from accelbench.query.findings.finding import FindingKind, StoreFinding, evidence_of
from accelbench.query.findings.phrases import grouped, titled

_UNSTEADY, _SINGLE = 45.0, 25.0
#: Why a figure is not as steady as it was asked to be, in the words of the field.
WHY = {
    quality: f"{quality.replace('_', ' ')} ({QUALITY_SAID[quality]})"
    for quality in (
        Quality.UNUSABLE,
        Quality.THROTTLED,
        Quality.UNSTEADY,
        Quality.NOISE_LIMITED,
        Quality.TIME_LIMITED,
    )
}
#: The worst first: of a configuration's launches it speaks.
_ORDER = list(WHY)


def why_unsteady(point: Point) -> Quality | None:
    """Return its quality, or None if it is as was asked."""
    quality = quality_of(point.rows)
    return next((known for known in WHY if known == quality), None)


def describe_unsteady(why: Quality, point: Point) -> str:
    """Return a quality in words, of unusable launches with their own reasons."""
    reasons = reasons_unusable(point.rows) if why is Quality.UNUSABLE else ""
    return f"{why} ({reasons})" if reasons else WHY[why]


def steadiness_findings(points: Sequence[Point]) -> Iterator[StoreFinding]:
    """Of what was measured here and has times; what others measured they know themselves."""
    measured = [
        point
        for point in points
        if point.kind == Provenance.MEASURED and not mostly_failed(point.rows)
    ]
    yield from _unsteady(measured)
    yield from _single(measured)


def _unsteady(measured: Sequence[Point]) -> Iterator[StoreFinding]:
    known = [(why, point) for point in measured if (why := why_unsteady(point)) is not None]
    if not known:
        return
    known.sort(key=lambda pair: (_ORDER.index(pair[0]), title(pair[1].row)))
    points = [point for _, point in known]
    verb = "is" if len(known) == 1 else "are"
    many = f"{len(known):,} of {counted(len(measured), 'measured configuration')} {verb} not steady"
    yield StoreFinding(
        FindingKind.UNSTEADY,
        f"{many}: {grouped(describe_unsteady(why, point) for why, point in known)}; first of them"
        f" {titled(point.row for point in points)}.",
        _UNSTEADY + 9.0 * len(known) / len(measured),
        evidence_of(point.rows for point in points),
        {"quality": tuple(dict.fromkeys(why.value for why, _ in known))},
        command=command_of([point.row for point in points], "--launches 5"),
    )


def _single(measured: Sequence[Point]) -> Iterator[StoreFinding]:
    single = [point for point in measured if len(point.rows) == 1]
    if not single:
        return
    are = "rests" if len(single) == 1 else "rest"
    yield StoreFinding(
        FindingKind.LAUNCHES,
        f"{len(single):,} of {counted(len(measured), 'measured configuration')} {are} on a single"
        " launch: how far another would differ is not known.",
        _SINGLE + 5.0 * len(single) / len(measured),
        evidence_of(point.rows for point in single),
        command=command_of([point.row for point in single], "--launches 5"),
    )
