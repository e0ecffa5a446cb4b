"""What the API's calls have in common: where results go, and who watches."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.api.progress import Printed
from accelbench.core.errors import SurroundingsError
from accelbench.core.protocols import Absent, Device
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.process.observer import Observer, SilentObserver
from accelbench.store.database import Database
from accelbench.store.lake import store_at


def database_at(path: str | os.PathLike[str] | None) -> Database:
    """The database that is named, else the usual one; made where it is missing."""
    database = store_at(None if path is None else os.fspath(path))
    database.ensure()
    return database


def observer_of(plan: Plan, names: Mapping[str, str], verbose: bool) -> Observer:
    """Who watches a run: what the guide prints, or nobody.

    Args:
        plan: What will be run; its notes are said at once.
        names: Models as they were asked for, by case_id.
        verbose: Whether anything is printed.
    """
    if not verbose:
        return SilentObserver()
    places = {case.case.case_id: _place(case) for case in plan.cases}
    printed = Printed(sys.stdout, names, places)
    for note in plan.notes:
        printed.note(note)
    return printed


def _place(planned: Planned) -> Device | Absent:
    """The device; of a case that will not be tried for want of one, the reason."""
    if planned.device is not None:
        return planned.device
    refusal = planned.refusal
    hardware = planned.case.target.place
    return (
        Absent(hardware, refusal.message, refusal.advice) if refusal else Absent(hardware, "", "")
    )


def try_writing(folder: Path, parameter: str) -> None:
    """See that a file can be made in a folder, before anything is measured."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SurroundingsError(
            f"Results cannot be written to {folder}: {error.strerror}.",
            f"Set {parameter} to a folder that can be written.",
        ) from error


def ended_lines(observer: Observer, results: Sequence[Any], where: str, interrupted: bool) -> None:
    """The last block of what is printed, where anything is."""
    if isinstance(observer, Printed):
        observer.ended(len(results), where, interrupted)
