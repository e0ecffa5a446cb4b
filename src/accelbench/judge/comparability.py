"""What makes two sides of a check figures of different things. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from accelbench.core.rows import Row, texts
from accelbench.core.unusable_reasons import REFUSED_THERE
from accelbench.judge.comparison import refusals
from accelbench.judge.verdicts import Metric, rates_apart

Launches = Sequence[Row]


def unlike(then: Launches, good: Launches, passed: Collection[str]) -> str:
    """What makes launches figures of different things; empty where nothing does.

    Args:
        then: of one side.
        good: of the other.
        passed: what is let pass. Of an owner's code it is what it changed: that is the question.
    """
    reasons = set(_apart(then, good)) - set(passed)
    if _is_code(then, good):
        reasons.discard("weights")
    return f"not alike: {', '.join(sorted(reasons))}" if reasons else ""


def changed_code(then: Launches, good: Launches) -> tuple[str, ...]:
    """That an owner's code, or the weights that it makes, is no longer what it was."""
    before, now = ({str(row.get("weights_digest") or "") for row in side} for side in (then, good))
    if not _is_code(then, good) or before == now:
        return ()
    texts_of = (", ".join(sorted(digest[:8] for digest in side)) for side in (before, now))
    return (f"code {' → '.join(texts_of)}",)


def _is_code(*sides: Launches) -> bool:
    return all(row.get("weights") == "code" for side in sides for row in side)


def parted(metric: Metric, before: Launches, now: Launches) -> list[str]:
    """What keeps a figure of some launches from being compared with that of others, by its words.

    Args:
        metric: which figure.
        before: one row of each kind that there is among the first.
        now: the same of the others.
    """
    units = rates_apart([*before, *now]) if metric.rated else ()
    return [*_apart(before, now), *([f"unit {' → '.join(units)}"] if units else [])]


def _apart(a: Launches, b: Launches) -> list[str]:
    """What `compare` refuses of any two launches, each word once."""
    pairs = ((launch, other) for launch in _kinds(a) for other in _kinds(b))
    return list(dict.fromkeys(word for pair in pairs for word in refusals(*pair)))


def _kinds(launches: Launches) -> list[Row]:
    """One launch of each kind, by what makes figures those of different things."""
    launch_by_kind = {
        str([row.get(n) for n in ("weights_digest", "workarounds", "emulated", "provenance")]): row
        for row in launches
    }
    return list(launch_by_kind.values())


def refused_there(launches: Launches, allow: Collection[str]) -> str:
    """Why a file says that nothing is to be compared with its rows; empty where it may be."""
    words = {word for row in launches for word in texts(row, REFUSED_THERE)}
    left = sorted(words - set(allow))
    return f"not alike: {', '.join(left)}" if left else ""


def rates_of_others(then: Launches, good: Launches) -> str:
    """That rates are of other things, where they are: images are no tokens."""
    units = rates_apart([*then, *good])
    return f"rates are of other things: {' → '.join(units)}" if units else ""
