"""Whole runs on the scripted runtime: real templates, real workers, virtual time."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from fixed_machine import FOUND, models

from accelbench.core.case import Case
from accelbench.core.facts import Fact, new_run_id
from accelbench.core.protocols import Runtime
from accelbench.core.run_options import RunSettings
from accelbench.engines.scripted import SCRIPT_VARIABLE, ScriptedRuntime
from accelbench.run.conduct import lifecycle as journey
from accelbench.run.conduct.lifecycle import PlannedRun, RunResult
from accelbench.run.plan import expand
from accelbench.run.plan.request import Request
from accelbench.run.process.worker_client import Progress, SilentObserver
from accelbench.store.journal import read
from warm_start import is_nursery, warm_templates


def children(recursive: bool = False) -> list[psutil.Process]:
    """Every process that runs have started from this one."""
    found = psutil.Process().children(recursive=recursive)
    return [one for one in found if not is_nursery(one) and not is_remover(one)]


def is_remover(process: psutil.Process) -> bool:
    """Whether this process waits for another's death to remove a folder."""
    try:
        return process.name() == "sh" and "rm -rf" in " ".join(process.cmdline())
    except psutil.Error:
        return False


class Watcher(SilentObserver):
    """Remembers what it hears, and every process that was there meanwhile."""

    def __init__(self, on_progress: Callable[[Progress], None] | None = None) -> None:
        self.rows: list[Mapping[str, Any]] = []
        self.notes: list[str] = []
        self.started_cases: list[tuple[str, int]] = []
        self.processes: dict[int, psutil.Process] = {}
        self.templates: list[set[int]] = []  # at each result: children of this process
        self._on_progress = on_progress

    def note(self, text: str) -> None:
        self.notes.append(text)

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        self.started_cases.append((case.model.id, number))

    def progress(self, progress: Progress) -> None:
        self.look()
        if self._on_progress is not None:
            self._on_progress(progress)

    def case_finished(self, row: Mapping[str, Any]) -> None:
        self.rows.append(row)
        self.templates.append({p.pid for p in children()})
        self.look()

    def look(self) -> None:
        for process in children(recursive=True):
            self.processes.setdefault(process.pid, process)

    def alive(self) -> list[psutil.Process]:
        """Those that are still there. `is_running` knows a number that was given again."""
        return [p for p in self.processes.values() if p.is_running()]


@dataclass
class Scripted:
    """A script and a folder for the journals of runs that follow it."""

    folder: Path
    runtimes: dict[str, Runtime] = field(
        default_factory=lambda: {"scripted": ScriptedRuntime(), "second": ScriptedRuntime()}
    )

    @property
    def path(self) -> Path:
        return self.folder / "script.json"

    @property
    def journals(self) -> Path:
        return self.folder / "journals"

    def script(self, *faults: Mapping[str, Any], **script: Any) -> None:
        body = {"step_ns": 1_000_000, **script, "faults": list(faults)}
        self.path.write_text(json.dumps(body))

    def journey(
        self,
        *names: str,
        batches: Sequence[int] = (1, 4, 16),
        runtimes: Sequence[str] = ("scripted",),
        **settings: Any,
    ) -> PlannedRun:
        request = Request(
            models(*(names or ("bert-tiny",))),
            hardware=("cpu",),
            runtimes=tuple(runtimes),
            batch_sizes=tuple(batches),
        )
        plan = expand.plan_for(request, FOUND, self.runtimes)
        return PlannedRun(
            plan, RunSettings.from_dict({"run_id": new_run_id(), **settings}), self.runtimes
        )

    def run(
        self, *names: str, watcher: Watcher | None = None, **how: Any
    ) -> list[Mapping[str, Any]]:
        """Run it and hand back the results' bodies."""
        ended = self.start(self.journey(*names, **how), watcher or Watcher())
        return list(ended.rows)

    def start(self, planned: PlannedRun, watcher: Watcher) -> RunResult:
        return journey.start(planned, self.journals, watcher, {})

    def facts(self, run_id: str) -> list[Fact]:
        return read(self.journals / f"{run_id}.jsonl")


@contextlib.contextmanager
def scripted_in(folder: Path) -> Iterator[Scripted]:
    with pytest.MonkeyPatch.context() as patch, warm_templates():
        made = Scripted(folder)
        made.script()
        patch.setenv(SCRIPT_VARIABLE, str(made.path))
        yield made
