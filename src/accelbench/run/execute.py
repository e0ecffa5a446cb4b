"""A run from devices to rows of a database: the service of the command line and the API.

detect → plan → start → fill. The caller decides how to plan, where results go, and who observes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from accelbench.core.errors import StoreError
from accelbench.core.protocols import Inventory, Runtime
from accelbench.hardware.detect import LazyInventory
from accelbench.hardware.environment import describe_environment
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.conductor import Keep
from accelbench.run.conduct.lifecycle import PlannedRun, RunResult
from accelbench.run.plan import expand
from accelbench.run.plan.targets import Simulate
from accelbench.run.process.worker_client import Observer
from accelbench.store.database import Database
from accelbench.store.journal import journal_path

#: What is run, one after the other, by the devices and the runtimes that are here.
Planner = Callable[[Inventory, Mapping[str, Runtime]], Iterable[PlannedRun]]

#: Who watches a run, by what is planned, the devices and the machine's environment.
Observe = Callable[[PlannedRun, Inventory, Mapping[str, Any]], Observer]


class ResultPlaces(Protocol):
    """Where results go."""

    def check(self) -> None:
        """Refuse what could not be written afterwards, and have the database there."""

    def journals(self) -> Path:
        """Return the folder of journals."""

    def open_database(self) -> Database | None:
        """Return the database that is filled from them, None if none is wanted."""

    def keep_profiles(self) -> Keep | None:
        """Who takes profiles, if anybody."""

    def resume_hint(self, run_id: str) -> str:
        """Return the command that goes on with a run that an error ended; "" if there is none."""


@dataclass(frozen=True)
class StoredResults:
    """Results that go into a database, or leave their journals in a folder."""

    database: Database | None
    folder: Path | None = None  # of journals, where it is not the database's

    def check(self) -> None:
        if self.database is not None:
            self.database.ensure()

    def journals(self) -> Path:
        folder = self.folder or (self.database.journals if self.database else None)
        assert folder is not None
        return folder

    def open_database(self) -> Database | None:
        return self.database

    def keep_profiles(self) -> Keep | None:
        return None

    def resume_hint(self, run_id: str) -> str:
        del run_id
        return ""


@dataclass(frozen=True)
class ExecutedRun:
    """A run that has ended, with what was planned and who watched it."""

    spec: PlannedRun
    result: RunResult
    observer: Observer


def here() -> tuple[Inventory, Mapping[str, Runtime]]:
    """Return the devices and the engines of this machine."""
    # A platform is detected when it is looked up, so all that a plan needs is detected while
    # planning and nothing is detected beside a step.
    return LazyInventory(), expand.installed_runtimes()


def execute(planner: Planner, places: ResultPlaces, observe: Observe) -> list[ExecutedRun]:
    """Detect, plan, run and store; everything is in the database when this returns, even after
    Ctrl-C."""
    inventory, runtimes = here()
    specs = iter(planner(inventory, runtimes))
    first = next(specs, None)
    if first is None:
        return []
    places.check()
    executed: list[ExecutedRun] = []
    for spec in chain((first,), specs):
        surroundings = describe_environment()
        observer = observe(spec, inventory, surroundings)
        folder, keep = places.journals(), places.keep_profiles()
        with resumable(spec.settings.run_id, places):
            ended = lifecycle.start(spec, folder, observer, surroundings, keep)
        executed.append(ExecutedRun(spec, ended, observer))
    fill(places, executed[-1].observer.note)
    return executed


def go_on(
    run_id: str,
    places: ResultPlaces,
    observe: Callable[[Mapping[str, Any]], Observer],
    simulate: Simulate | None = None,
) -> RunResult:
    """Detect, go on with a run that was cut off, and store what it comes to."""
    with resumable(run_id, places):
        inventory, surroundings, keep = (
            LazyInventory(),
            describe_environment(),
            places.keep_profiles(),
        )
        observer = observe(surroundings)
        ended = lifecycle.resume(
            run_id, places.journals(), observer, surroundings, inventory, keep, simulate
        )
        fill(places, observer.note)
        return ended


def fill(places: ResultPlaces, note: Callable[[str], None]) -> None:
    """Put what is in the journals into the database, if there is one; problems are noted."""
    database = places.open_database()
    if database is not None:
        for problem in database.fill().problems:
            note(problem)


@contextmanager
def resumable(run_id: str, places: ResultPlaces) -> Iterator[None]:
    """Return an error that ends a run half-way says how to go on with it."""
    try:
        yield
    except StoreError as error:
        if journal_path(places.journals(), run_id).exists():
            error.advice = f"{error.advice} {places.resume_hint(run_id)}".strip()
        raise
