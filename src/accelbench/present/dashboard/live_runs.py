"""Runs that go on, read from their journals.

The database has the results of a run when it has ended. Only lines that were added since the last
look are read, and a journal is never written.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path

from accelbench.core import facts
from accelbench.core.axes import TITLE_ORDER, size_columns
from accelbench.core.errors import AccelbenchError, SurroundingsError
from accelbench.core.rows import Json, Row
from accelbench.store.journal import SUFFIX, is_being_written, journal_path, list_journals, scan

#: The columns of a list of results.
LISTED = (
    *("model", "runtime", "hardware", "precision", "batch_size"),
    *(*size_columns(*TITLE_ORDER), "mode", "launch", "arm"),
    *("status", "reason", "message", "provenance", "emulated", "quality"),
    *("latency_p50_ms", "latency_mean_ms", "throughput", "memory_peak_mb"),
)
#: The columns that are kept: the samples, most of a journal, are not.
_KEPT = (*LISTED, "finished_at")
#: Journals that are followed.
_MOST = 64


@dataclass
class LiveRun:
    """A run by the part of its journal that was read."""

    run_id: str
    path: Path
    end: int = 0
    lines: int = 0
    started: Json = field(default_factory=dict)
    finished: Json | None = None
    own: list[Row] = field(default_factory=list)
    written: bool = False
    extended: int = 0  # cases that were added later
    parts: dict[str, LiveRun] = field(default_factory=dict)  # the nodes of a fleet's run

    @property
    def results(self) -> list[Row]:
        """The results so far, of all nodes."""
        return [*self.own, *(row for part in self.parts.values() for row in part.own)]

    @property
    def planned(self) -> int:
        """The number of planned launches; 0 if it is unknown."""
        fleet = self.started.get("fleet")
        if isinstance(fleet, Mapping) and fleet.get("each"):
            return sum(part.planned for part in self.parts.values())
        settings = self.started.get("settings")
        launches = settings.get("launches") if isinstance(settings, Mapping) else None
        return (_count(self.started.get("plan")) + self.extended) * int(launches or 1)

    @property
    def counts(self) -> dict[str, int]:
        """The number of results by status."""
        return dict(Counter(str(result["status"]) for result in self.results))

    @property
    def state(self) -> str:
        """The state: finished, interrupted, running, or cut off if it neither ended nor goes on."""
        if self.finished is not None:
            return str(self.finished.get("status") or "finished")
        return "running" if self.written else "cut off"

    def read_on(self) -> None:
        """Read the lines that were added; another process may write the journal meanwhile."""
        more = scan(self.path, self.end, self.lines)
        self.end, self.lines = more.end, more.last_number
        for fact in more.facts:
            if fact.kind == facts.RUN_STARTED:
                self.started = fact.body
            elif fact.kind == facts.RUN_EXTENDED:
                self.extended += _count(fact.body.get("plan"))
            elif fact.kind == facts.RUN_RESUMED:
                self.finished = None
            elif fact.kind == facts.RUN_FINISHED:
                self.finished = fact.body
            elif fact.kind == facts.RESULT:
                self.own.append({name: fact.body.get(name) for name in _KEPT})
        if isinstance(self.started.get("fleet"), Mapping):
            for path in self.path.parent.glob(f"{self.run_id}{facts.PART_SEPARATOR}*{SUFFIX}"):
                name = path.name.removesuffix(SUFFIX)
                if name != self.run_id:
                    self.parts.setdefault(name, LiveRun(name, path)).read_on()
        # Asked only if it matters: it takes the journal's lock for a moment.
        self.written = self.finished is None and _written(self.path)


class Journals:
    """The journals of a store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._followed: dict[str, LiveRun] = {}
        self._lock = threading.Lock()

    def of(self, run_id: str) -> LiveRun | None:
        """Return a run by its journal, or None if there is no journal."""
        try:
            path = journal_path(self._folder, run_id)
            exists = path.is_file()
        except (SurroundingsError, OSError):  # not the name of a file
            return None
        if not exists:
            return None
        with self._lock:
            run = self._followed.pop(run_id, None) or LiveRun(run_id, path)
            self._followed[run_id] = run  # in the order of use: the first is forgotten
            while len(self._followed) > _MOST:
                self._followed.pop(next(iter(self._followed)))
            run.read_on()
            return run

    def unfinished(self, known: Sequence[str]) -> list[LiveRun]:
        """Return runs that go on or were cut off and that are not known, the newest first."""
        ended = set(known)
        names = [path.name.removesuffix(SUFFIX) for path in list_journals(self._folder)]
        whole = {name for name in names if facts.PART_SEPARATOR not in name}
        # A node is a part of its fleet's run.
        runs = [
            self.of(name)
            for name in reversed(names)
            if name not in ended and (name in whole or facts.fleet_run_id(name) not in whole)
        ]
        return [run for run in runs if run is not None and run.state in ("running", "cut off")]


def _count(plan: object) -> int:
    return len(plan) if isinstance(plan, Sized) else 0


def _written(path: Path) -> bool:
    try:
        return is_being_written(path)
    except (OSError, AccelbenchError):
        return False  # a read-only folder
