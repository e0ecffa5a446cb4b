"""What an export for pipelines has no entry of, and why: questions by reason, in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.figures import TAILS, Statistic, statistic_of
from accelbench.core.launch_failures import is_wrong, mostly_failed
from accelbench.core.vocabulary import Provenance, Status
from accelbench.core.worth import answered, usable_launches
from accelbench.exchange.titles import title

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Entries:
    """How many entries an export has, and how many questions by each reason are in none."""

    written: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    def told(self) -> str:
        """What was left out, as a sentence; "" where nothing was."""
        if not self.left_out:
            return ""
        return f"Left out: {', '.join(f'{n} {why}' for why, n in self.left_out.items())}."


def entries(written: int, without: Iterable[Sequence[Row]], rows: Iterable[Row]) -> Entries:
    """What is said of an export.

    Args:
        written: how many entries it has.
        without: the launches of each question that has no figure to write.
        rows: all results.
    """
    counts = Counter(map(why_left_out, without)) + nobodys(rows)
    return Entries(written, dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))))


def why_left_out(launches: Sequence[Row]) -> str:
    """Why a question has no time to watch, as the end of "1 …"."""
    ended = [row for row in launches if answered(row)]
    if not ended:
        if any(map(is_wrong, launches)):
            return "with wrong outputs"
        return str(launches[0].get("status") or Status.FAILED)
    if mostly_failed(ended):
        return "of which most launches failed"
    if not usable_launches(ended):
        return "unusable"
    kinds = {statistic_of(row) for row in ended}
    if kinds <= {*TAILS}:
        return "known by a percentile alone"
    return "known by a rate alone" if kinds <= {Statistic.RATE} else "without a figure"


def nobodys(rows: Iterable[Row]) -> Counter[str]:
    """Questions that nobody measured, or a stand-in alone; launches of checks' arms are no such."""
    real: set[str] = set()
    others: dict[str, str] = {}
    for row in rows:
        provenance = str(row.get("provenance"))
        if row.get("emulated"):
            others.setdefault(title(row), "emulated")
        elif provenance in (Provenance.PREDICTED, Provenance.SIMULATED):
            others.setdefault(title(row), provenance)
        else:
            real.add(title(row))
    return Counter(kind for name, kind in others.items() if name not in real)
