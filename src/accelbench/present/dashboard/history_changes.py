"""The judgement of all lines of a snapshot, which orders them by their changes.

12,000 lines of 110,000 results take seven seconds of a processor. So a page does not wait, a store
that always changes is judged a tenth of the time at most, and the work is done in pieces between
which pages are read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from accelbench.core.rows import Row
from accelbench.judge.history import Series, answer_counts
from accelbench.present.dashboard import details
from accelbench.present.dashboard.details import EVERY_LINE, LineOrder, lines_of
from accelbench.present.dashboard.page_query import PageQuery

if TYPE_CHECKING:
    from accelbench.present.dashboard.cells import Cell
    from accelbench.present.dashboard.snapshot import Snapshot
    from accelbench.store.database import Database

#: The newest lines are judged.
MOST_JUDGED = 20_000
#: Lines of a piece; between pieces a run can write, and an ending program can end.
_AT_A_TIME = 2000
#: Runs of a piece; they take a third of a second of a processor.
_RUNS_AT_A_TIME = 24_000
#: A page with less patience waits only for a judgement of one piece.
_SOON = 1.0
#: The longest wait of a piece for pages that read.
_PAGES_FIRST = 2.0
#: The pause before the next judgement, as a multiple of the time of the last.
_REST = 10.0


#: A series and a machine.
LineKey = tuple[str, str]
#: Called before each piece with the number of pieces.
Turn = Callable[[int], object]


class LineRank(NamedTuple):
    """The place of a line among others, and its length."""

    place: tuple[bool, float]  # of `details.foremost`
    points: int


@dataclass(frozen=True)
class JudgedLines:
    """The lines that changed, in their order."""

    at: str = ""  # the snapshot
    changed: Sequence[LineKey] = ()
    judged: int = 0  # how many lines were judged
    ranks: Mapping[LineKey, LineRank | None] = field(default_factory=dict)  # None without a result
    counts: Mapping[str, int] = field(default_factory=dict)  # lines by answer
    trouble: str = ""  # why nothing was judged

    @property
    def order(self) -> LineOrder:
        """The order of a table."""
        return LineOrder(changed=self.changed)


def judged_lines(
    database: Database, snapshot: Snapshot, metric: str, turn: Turn = lambda _: None
) -> JudgedLines:
    """Judge the lines of a snapshot by a metric."""
    lines, _ = lines_of(snapshot, PageQuery(), MOST_JUDGED, EVERY_LINE)
    found: list[Series] = []
    ranks: dict[LineKey, LineRank | None] = {}
    pieces = _pieces(lines, _runs_of_lines(snapshot))
    for piece in pieces:
        if not threading.main_thread().is_alive():
            break
        turn(len(pieces))
        with database.keep_open():
            made = details.history_of(database, snapshot, piece, details.BY_METRIC[metric])
        ranks |= dict.fromkeys(map(line_key, piece))
        ranks |= {
            line_key(one.row): LineRank(details.foremost(one), len(one.points)) for one in made
        }
        found += made
    counts = answer_counts(one for one in found if one.is_line)
    return JudgedLines(snapshot.at, list(_told(found)), len(lines), ranks, counts)


def _runs_of_lines(snapshot: Snapshot) -> dict[LineKey, int]:
    rows = snapshot.ask("SELECT series_key, machine, sum(runs) AS runs FROM cell GROUP BY ALL")
    return {line_key(row): int(row["runs"] or 0) for row in rows}


def _pieces(lines: Sequence[Cell], runs: Mapping[LineKey, int]) -> list[list[Cell]]:
    pieces: list[list[Cell]] = []
    room = 0
    for line in lines:
        many = runs.get(line_key(line), 1)
        if not pieces or len(pieces[-1]) == _AT_A_TIME or room < many:
            pieces.append([])
            room = _RUNS_AT_A_TIME
        pieces[-1].append(line)
        room -= many
    return pieces


def _told(series: Sequence[Series]) -> Iterator[LineKey]:
    # Worse ones first, the most at the top; then those without results, better ones, and drift.
    steps = [one for one in series if one.newest_step is not None]
    steps.sort(key=lambda one: (-(one.newest_step or 0.0), line_key(one.row)))
    gone = [one for one in series if one.newest_step is None and one.gap is not None]
    drifts = [
        one
        for one in series
        if one.newest_step is None and one.gap is None and one.course and one.course.drift
    ]
    yield from (line_key(one.row) for one in steps if (one.newest_step or 0.0) > 0.0)
    yield from sorted(line_key(one.row) for one in gone)
    yield from (line_key(one.row) for one in reversed(steps) if (one.newest_step or 0.0) <= 0.0)
    yield from sorted(line_key(one.row) for one in drifts)


def line_key(row: Row) -> LineKey:
    """Return the line of a cell."""
    return str(row["series_key"]), str(row["machine"] or "")


class _Work(NamedTuple):
    """A judgement that is not done yet."""

    there: threading.Event  # set when it is done
    told: threading.Event  # set when it is done, or takes several pieces


class ChangesKeeper:
    """The newest judgement of each metric, made in a thread of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: dict[str, JudgedLines] = {}
        self._working: dict[str, _Work] = {}
        self._next: dict[str, float] = {}
        self._pages = threading.Condition()
        self._reading = 0

    def known(self, snapshot: Snapshot, metric: str) -> JudgedLines | None:
        """Return the judgement of this snapshot, or None."""
        with self._lock:
            known = self._known.get(metric)
        return known if known is not None and known.at == snapshot.at else None

    @contextmanager
    def before_others(
        self, snapshot: Snapshot, metric: str, patience: float
    ) -> Iterator[JudgedLines | None]:
        """Yield the result of `of`; the next piece of a judgement waits for the block."""
        with self._pages:
            self._reading += patience <= _SOON
        try:
            yield self.of(snapshot, metric, patience)
        finally:
            with self._pages:
                self._reading -= patience <= _SOON
                self._pages.notify_all()

    def of(self, snapshot: Snapshot, metric: str, patience: float) -> JudgedLines | None:
        """Return the judgement of a snapshot, or of an earlier one until it is there, or None.

        Wait `patience` seconds at most, and with little patience not for several pieces.
        """
        with self._lock:
            known = self._known.get(metric)
            if known is not None and known.at == snapshot.at:
                return known
            work = self._working.get(metric)
            if work is None and time.monotonic() >= self._next.get(metric, 0.0):
                work = self._working[metric] = _Work(threading.Event(), threading.Event())
                # No daemon: an interpreter that ends under a reader of DuckDB aborts.
                threading.Thread(target=self._work, args=(snapshot, metric, work)).start()
        if work is not None:
            (work.told if patience <= _SOON else work.there).wait(patience)
        with self._lock:
            return self._known.get(metric)

    def _work(self, snapshot: Snapshot, metric: str, work: _Work) -> None:
        begun = time.monotonic()

        def turn(pieces: int) -> None:
            if pieces > 1:
                work.told.set()
                with self._pages:
                    self._pages.wait_for(lambda: not self._reading, _PAGES_FIRST)

        try:
            made = judged_lines(self._database, snapshot, metric, turn)
        except Exception as error:  # the page shows it, and its lines in another order
            made = JudgedLines(snapshot.at, trouble=str(error))
        ended = time.monotonic()
        with self._lock:
            self._known[metric] = made
            self._next[metric] = ended + _REST * (ended - begun)
            del self._working[metric]
        work.there.set()
        work.told.set()
