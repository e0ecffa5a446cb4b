"""How far a run is that goes on, and about how long it still takes. Pure.

Nobody knows what launches to come take: the mean of those that are done stands for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from accelbench.core.nouns import counted
from accelbench.exchange.titles import title

if TYPE_CHECKING:
    from accelbench.report.dashboard.runs.live import LiveRun

#: Launches that a mean is of, the newest.
_MOST = 200
#: Of fewer nothing is said.
_FEWEST = 2
_MINUTE, _HOUR = 60.0, 3600.0


@dataclass(frozen=True)
class RunProgress:
    """A run that goes on.

    Attributes:
        last: the configuration that was measured last; "" before the first.
        remaining: in words, with “about”; "" where nobody can say.
    """

    run_id: str
    started_at: str
    done: int
    planned: int
    last: str
    remaining: str


def progress_of(run: LiveRun) -> RunProgress:
    """How far a run is, by its journal."""
    results = run.results
    left = max(0, run.planned - len(results))
    seconds = _mean_seconds([str(row.get("finished_at") or "") for row in results])
    known = bool(left) and seconds is not None
    return RunProgress(
        run.run_id,
        str(run.started.get("started_at") or ""),
        len(results),
        run.planned,
        title(results[-1]) if results else "",
        f"about {duration(left * (seconds or 0.0))} left" if known else "",
    )


def _mean_seconds(moments: Sequence[str]) -> float | None:
    """From one result to the next; None where too few tell."""
    known = sorted(moment for moment in moments if moment)[-_MOST:]
    if len(known) < _FEWEST:
        return None
    times = [datetime.fromisoformat(moment) for moment in known]
    return fmean((after - before).total_seconds() for before, after in pairwise(times))


def duration(seconds: float) -> str:
    """As people say it: 40 seconds, 12 minutes, 3 hours."""
    if seconds < 2 * _MINUTE:
        return counted(max(1, round(seconds)), "second")
    if seconds < 2 * _HOUR:
        return counted(round(seconds / _MINUTE), "minute")
    return counted(round(seconds / _HOUR), "hour")
