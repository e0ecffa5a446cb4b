"""The newest snapshot: taken in the background, and again when the store has changed.

A page never waits for a new one: it is made from the last, and says of which moment that is. Only
who comes before the first was taken waits, and no longer than people like to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from accelbench.core.errors import AccelbenchError, SurroundingsError
from accelbench.core.facts import utc_now

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot
    from accelbench.store.database import Database

Mark = tuple[tuple[int, int], ...]

#: How long whoever comes first waits, before a page says that the store is being read.
PATIENCE = 5.0
#: How often the file is looked at, at most.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class SnapshotProgress:
    """How far the snapshot is that is being taken.

    Attributes:
        step: what is being done, from 1, of `steps`.
        words: the same in words.
        results: how many the store has; None as long as nobody knows.
        seconds: since it was begun.
    """

    step: int
    steps: int
    words: str
    results: int | None
    seconds: int


class SnapshotKeeper:
    """The snapshot of one store, always there once it was taken."""

    def __init__(
        self,
        database: Database,
        refill: Callable[[], object] | None = None,
        refill_seconds: float = 60.0,
        prices: Prices | None = None,
        at: str = "",
    ) -> None:
        """
        Args:
            database: the store.
            refill: what brings in what others gave to a lake; a database's own runs fill it.
            refill_seconds: how long to wait from one such to the next.
            prices: by which cells are told what they cost.
            at: the moment that a snapshot is of; "" for that at which it is taken.
        """
        self.database = database
        self.prices = prices
        self._at = at
        self._refill, self._refill_seconds = refill, refill_seconds
        self._lock = threading.Lock()
        self._there = threading.Event()
        self._newest: Snapshot | None = None
        self._mark: Mark | None = None
        self._trouble: AccelbenchError | None = None
        self._working: threading.Thread | None = None
        self._looked = self._refilled = float("-inf")
        self._begun = 0.0
        self._step: tuple[int, str, int | None] = (0, "looking at the store", None)

    def begin(self) -> None:
        """Start to take one, if nobody does and the store has changed since the last."""
        now = time.monotonic()
        with self._lock:
            if self._working is not None and self._working.is_alive():
                return
            if now - self._looked < _LOOK_SECONDS:
                return
            self._looked = now
            due = self._refill is not None and now - self._refilled > self._refill_seconds
            if not due and self._mark is not None and self._mark == self._looks():
                return
            self._begun = now
            # No daemon: an interpreter that ends under a reader of DuckDB aborts.
            self._working = threading.Thread(target=self._take, args=(due,))
            self._working.start()

    def newest(self, patience: float = PATIENCE) -> Snapshot | None:
        """The last one; None as long as the first is being taken.

        Raises:
            AccelbenchError: The store cannot be read, and never could.
        """
        self.begin()
        self._there.wait(patience)
        if self._newest is None and self._trouble is not None:
            raise self._trouble
        return self._newest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until nobody reads: an interpreter that ends under a reader of DuckDB aborts."""
        if self._working is not None:
            self._working.join()

    @property
    def trouble(self) -> str:
        """Why the last snapshot is not the newest; empty where it is."""
        return "" if self._trouble is None else str(self._trouble)

    @property
    def progress(self) -> SnapshotProgress:
        """How far the one is that is being taken."""
        from accelbench.report.dashboard.snapshots.snapshot import SnapshotStep

        step, words, results = self._step
        seconds = int(time.monotonic() - self._begun)
        return SnapshotProgress(step, len(SnapshotStep), words, results, seconds)

    def _looks(self) -> Mark:
        path = self.database.path
        marks = []
        for file in (path, path.with_name(f"{path.name}.wal")):
            try:
                seen = file.stat()
            except OSError:
                marks.append((0, 0))
            else:
                marks.append((seen.st_size, seen.st_mtime_ns))
        return tuple(marks)

    def _take(self, refill: bool) -> None:
        from accelbench.report.dashboard.snapshots.snapshot import SnapshotStep, taken

        def tell(step: SnapshotStep, results: int | None) -> None:
            self._step = list(SnapshotStep).index(step) + 1, step.value, results

        try:
            if refill and self._refill is not None:
                self._refilled = time.monotonic()
                self._refill()
            mark = self._looks()  # before: what changes meanwhile is seen the next time
            if mark != self._mark or self._newest is None:
                self._newest = taken(self.database, self._at or utc_now(), self.prices, tell)
                self._mark = mark
            self._trouble = None
        except AccelbenchError as error:
            self._trouble = error
        except Exception as error:
            self._trouble = SurroundingsError(f"The store cannot be read: {error}.")
        finally:
            self._there.set()
