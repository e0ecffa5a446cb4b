"""Profiles of a run: after everything is measured, each case in a worker of its own.

The session is opened as the measured one was — the same artefact, workarounds, seed,
threads and inputs — and a profiler costs time in it alone. What cannot be profiled says
why; no result changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.core.facts import PROFILE, Fact
from accelbench.core.identity import digest
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Status
from accelbench.exchange.profile_schema import CASE_COLUMNS
from accelbench.run.conduct.conductor import asked_of, turn_of
from accelbench.run.conduct.launch_context import LaunchContext
from accelbench.run.conduct.results import identity_of, launch_numbers
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.process.observer import Progress
from accelbench.run.process.worker_client import WorkerClient, WorkerTroubleError

Row = Mapping[str, Any]

#: Takes a profile's body and the engine's own record of it, if there is one; the record's
#: file is gone afterwards.
Keep = Callable[[Row, Path | None], None]


def profile_all(
    context: LaunchContext,
    plan: Plan,
    rows: Sequence[Row],
    done: Collection[str],
    keep: Keep | None,
) -> None:
    """Profile every case that has a good result and no profile yet.

    Args:
        context: the run's.
        plan: what was measured.
        rows: its results.
        done: ids of the profiles that are there, from before a resume.
        keep: who takes what is found; None where only the facts are wanted.
    """
    measured = {row["result_id"]: row for row in rows if row["status"] == Status.OK}
    for planned in plan.cases:
        if planned.roofline is not None:
            continue  # nothing ran whose time could be looked into
        row = _row_of(context, planned, measured)
        if row is None or profile_id(row) in done:
            continue
        context.observer.note(f"Profiling {planned.case}, apart from what was measured.")
        with turn_of(context, [planned]):
            profile, record = _profiled(context, planned, row, traces=keep is not None)
        body = {**{name: row.get(name) for name in CASE_COLUMNS}, **profile}
        context.append(Fact(PROFILE, profile_id(row), body))
        if keep is not None:
            keep(body, record)


def profile_id(row: Row) -> str:
    """Stable across a resume, so that a case has one profile."""
    return digest(["profile", row["result_id"]])


def _row_of(context: LaunchContext, planned: Planned, measured: Mapping[str, Row]) -> Row | None:
    """The result of the first launch that has a good one."""
    for launch in launch_numbers(context.settings.launches):
        row = measured.get(identity_of(asked_of(context.settings, launch), planned))
        if row is not None:
            return row
    return None


def _profiled(
    context: LaunchContext, planned: Planned, row: Row, traces: bool
) -> tuple[dict[str, Any], Path | None]:
    """What a profile's body says beside its case, and the engine's own record."""
    if context.budget.exhausted:
        return _no("the run's budget was used up"), None
    talk = WorkerClient(replace(context, settings=context.settings.of(planned.case)))
    folder = context.worker_pool.new_folder("profile")
    try:
        artefact = context.artefacts.get(context, planned, tuple(row.get("workarounds") or ()))
        talk.open(planned, artefact.folder if artefact else None)
        context.observer.progress(Progress("profiling"))
        answer = talk.ask(
            {
                "do": "profile",
                "case": case_to_json(planned.case),
                "folder": str(folder) if traces else None,
            },
            "profiling",
        )
    except WorkerTroubleError as trouble:
        return _no(trouble.outcome.message), None
    finally:
        talk.drop()
    trace = answer["profile"] and answer["profile"].pop("trace")
    profile = {**_no(answer["why_not"]), **(answer["profile"] or {})}
    return profile, folder / trace if trace else None


def _no(why: str | None) -> dict[str, Any]:
    """A profile of which nothing is known, and why."""
    nothing = dict.fromkeys(("engine", "profiler", "steps", "wall_ms", "explained", "remark"))
    return {"why_not": why, **nothing, "walls_ms": [], "kinds": [], "operators": []}
