"""Which lines changed: judged beside the pages, once for a snapshot and a figure.

A store has ten thousand lines and a page a dozen: which ones those are is known only when all are
judged. 12,000 lines of 110,000 results take seven seconds of a processor, so that a page does not
wait for it, and a store that changes all the time is judged a tenth of the time at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.analysis.history import Series
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.snapshots import details
from accelbench.report.dashboard.snapshots.lines import EVERY_LINE, LineOrder, lines_of

if TYPE_CHECKING:
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot
    from accelbench.store.database import Database

#: Lines that are judged: the newest.
MOST_JUDGED = 20_000
#: Of these at a time; between, a run can write, and a program that ends can end.
_AT_A_TIME = 2000
#: So many times as long as it took is waited before the next is begun.
_REST = 10.0


@dataclass(frozen=True)
class JudgedLines:
    """What changed, in the order in which it is told.

    Attributes:
        at: of which snapshot.
        changed: the series and the machine of each line that changed.
        judged: how many were looked at.
        trouble: why there are none; "" where they were judged.
    """

    at: str = ""
    changed: Sequence[tuple[str, str]] = ()
    judged: int = 0
    trouble: str = ""

    @property
    def order(self) -> LineOrder:
        """As a table's order."""
        return LineOrder(changed=self.changed)


def judged_lines(database: Database, snapshot: Snapshot, metric: str) -> JudgedLines:
    """Judge the lines of a snapshot by a figure."""
    lines, _ = lines_of(snapshot, PageQuery(), MOST_JUDGED, EVERY_LINE)
    found: list[Series] = []
    for first in range(0, len(lines), _AT_A_TIME):
        if not threading.main_thread().is_alive():
            break
        some = lines[first : first + _AT_A_TIME]
        with database.asking():
            found += details.history_of(
                database, snapshot, some, details.BY_METRIC[metric], fewest=2
            )
    return JudgedLines(snapshot.at, list(_told(found)), len(lines))


def _told(series: Sequence[Series]) -> Iterator[tuple[str, str]]:
    """What became worse, the most first; what came to no figure; what became better; drift."""
    steps = [one for one in series if one.newest_step is not None]
    steps.sort(key=lambda one: (-(one.newest_step or 0.0), _key(one)))
    gone = [one for one in series if one.newest_step is None and one.gap is not None]
    drifts = [
        one
        for one in series
        if one.newest_step is None and one.gap is None and one.course and one.course.drift
    ]
    yield from (_key(one) for one in steps if (one.newest_step or 0.0) > 0.0)
    yield from sorted(map(_key, gone))
    yield from (_key(one) for one in reversed(steps) if (one.newest_step or 0.0) <= 0.0)
    yield from sorted(map(_key, drifts))


def _key(one: Series) -> tuple[str, str]:
    return str(one.row["series_key"]), str(one.row["machine"] or "")


class ChangesKeeper:
    """The newest judgement of each figure, worked out in a thread of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: dict[str, JudgedLines] = {}
        self._working: dict[str, threading.Event] = {}
        self._next: dict[str, float] = {}

    def of(self, snapshot: Snapshot, metric: str, patience: float) -> JudgedLines | None:
        """The judgement of a snapshot, or of an earlier one as long as this is judged; None before.

        Args:
            snapshot: which.
            metric: by which figure.
            patience: how many seconds to wait for it.
        """
        with self._lock:
            known = self._known.get(metric)
            if known is not None and known.at == snapshot.at:
                return known
            there = self._working.get(metric)
            if there is None and time.monotonic() >= self._next.get(metric, 0.0):
                there = self._working[metric] = threading.Event()
                # No daemon: an interpreter that ends under a reader of DuckDB aborts.
                threading.Thread(target=self._work, args=(snapshot, metric, there)).start()
        if there is not None:
            there.wait(patience)
        with self._lock:
            return self._known.get(metric)

    def _work(self, snapshot: Snapshot, metric: str, there: threading.Event) -> None:
        begun = time.monotonic()
        try:
            made = judged_lines(self._database, snapshot, metric)
        except Exception as error:  # the page says so, and has its lines in another order
            made = JudgedLines(snapshot.at, trouble=str(error))
        ended = time.monotonic()
        with self._lock:
            self._known[metric] = made
            self._next[metric] = ended + _REST * (ended - begun)
            del self._working[metric]
        there.set()
