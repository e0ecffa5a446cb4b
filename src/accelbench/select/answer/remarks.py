"""Remarks on the figures of an answer: what decided, what is not known of them, what came since.

Each is a sentence, the same in the short answer, in the explanation and in JSON. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from accelbench.measure.launches import LEAST_EFFECT

if TYPE_CHECKING:
    from accelbench.select.estimate.figures import Figure
    from accelbench.select.rank.choosing import Choice
    from accelbench.select.rank.scoring import ScoredCandidate

#: What became of something that was measured for an answer, where it rests on it.
IN_THE_ANSWER = "in the answer"
#: What a time decides by itself.
_OF_TIME = ("latency", "throughput")


def remarks(chosen: Choice) -> list[str]:
    """The sentences."""
    return [*_decided(chosen), *_ruled_out(chosen), *_unsaid(chosen), *_failed_since(chosen)]


def _decided(chosen: Choice) -> Iterator[str]:
    """By what the first is first, where it is not by its time."""
    figured = [candidate for candidate in chosen.ranked if candidate.figure is not None]
    if len(figured) < 2:
        return
    first, second = figured[:2]
    assert first.figure is not None
    assert second.figure is not None
    if second.figure.latency > first.figure.latency * (1 + LEAST_EFFECT):
        return
    is_faster = _ends(second.figure)[1] < _ends(first.figure)[0]
    time = "takes less time" if is_faster else "takes as long, as far as is known"
    if not (by := _criterion(first, second, chosen.scored.weights)):
        return
    yield f"{second.name} {time}; {first.name} is first by {by}."


def _ends(figure: Figure) -> tuple[float, float]:
    """The interval of what was measured, else the bounds that it is judged by."""
    return (figure.cell.interval if figure.measured else None) or (figure.low, figure.high)


def _criterion(
    first: ScoredCandidate, second: ScoredCandidate, weights: Mapping[str, float]
) -> str:
    """What speaks most for the first against the second, time aside; "" where nothing does."""
    mine, other = first.criteria or {}, second.criteria or {}
    apart = {
        name: weights.get(name, 1.0) * (mine[name] - other[name])
        for name in mine
        if name in other and name not in _OF_TIME
    }
    most = max(apart, key=lambda name: apart[name], default="")
    if most and apart[most] > 0.0:
        weight = f", weight {weights[most]:.2g}" if most in weights else ""
        return f"{most} ({mine[most]:.2g} against {other[most]:.2g} of the best{weight})"
    if first.factors != second.factors:
        return "the preferences of the configuration"
    return ""


def _ruled_out(chosen: Choice) -> Iterator[str]:
    """Name the engines that failed on a platform that others of its engines may serve."""
    for candidate in chosen.ranked:
        if failures := "; ".join(failure.explanation() for failure in candidate.ruled_out):
            yield f"Ruled out on {candidate.name} by its newest run: {failures}."


def _unsaid(chosen: Choice) -> Iterator[str]:
    """What an import has not said of how it was asked, and is taken to be as with the others."""
    settings = [*chosen.shapes, *(n for n, v in chosen.circumstances.items() if v is not None)]
    for candidate in chosen.ranked:
        row = (
            candidate.figure.cell.row
            if candidate.figure is not None and candidate.figure.measured
            else {}
        )
        unsaid = [name.replace("_", " ") for name in settings if row and row.get(name) is None]
        if unsaid:
            yield f"Of {candidate.name} it is not said: {', '.join(unsaid)}."


def _failed_since(chosen: Choice) -> Iterator[str]:
    """A newer run that came to nothing, by what lies with a machine or with what was asked."""
    for candidate in chosen.ranked:
        if candidate.failed_since:
            yield (
                f"{candidate.name}: a newer run came to nothing ({candidate.failed_since}); its"
                " figure is of an older one."
            )
