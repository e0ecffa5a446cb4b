"""What a fleet's run says of itself in its own journal: its plan, and what no node measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench import __version__
from accelbench.core.errors import StoreError
from accelbench.core.facts import (
    PART,
    PROFILE,
    RESULT,
    RUN_EXTENDED,
    RUN_FINISHED,
    RUN_RESUMED,
    RUN_STARTED,
    Fact,
    utc_now,
)
from accelbench.core.identity import digest
from accelbench.core.outcome import Outcome
from accelbench.core.provenance import THIS_ARM
from accelbench.core.vocabulary import Provenance
from accelbench.run.conduct.lifecycle import FLEET, RunSpec
from accelbench.run.conduct.results import LaunchFacts, compose, launch_numbers
from accelbench.run.conduct.run_record import arm_to_json, planned_to_json
from accelbench.run.fleet.fleet_nodes import FleetNode, differences
from accelbench.run.fleet.fleet_record import parts_in
from accelbench.run.fleet.work_units import is_tried
from accelbench.run.plan.request import Plan, Planned
from accelbench.store.journal import SUFFIX, Journal, being_written, journal_path, read

#: Cases of a plan that one line of a journal has.
_CHUNK = 1000
#: Of more results, samples are left where they are, in the journals and in the store.
_WITH_SAMPLES = 20_000


def begin(
    journal: Journal,
    spec: RunSpec,
    nodes: Sequence[FleetNode],
    surroundings: Mapping[str, Any],
    *,
    each: bool,
) -> None:
    """Say what is planned, a thousand cases a line: of many, one line would be all of memory."""
    fleet, git = spec.settings.run_id, surroundings.get("git") or {}
    plans = _chunks([_anywhere(planned) for planned in spec.plan.cases])
    other = {}
    if spec.other is not None:
        anywhere = Plan(tuple(_anywhere(planned) for planned in spec.other.plan.cases))
        other["against"] = arm_to_json(replace(spec.other, plan=anywhere))
    body = {
        "run_id": fleet,
        "started_at": utc_now(),
        "accelbench": __version__,
        "settings": spec.settings.to_dict(),
        "plan": next(plans, []),
        **other,
        "notes": list(spec.plan.notes),
        "environment": dict(surroundings),
        "git_commit": git.get("commit"),
        "git_branch": git.get("branch"),
        FLEET: {
            "each": each,
            "nodes": {node.name: _told(node) for node in nodes},
            "differences": [str(difference) for difference in differences(nodes)],
        },
        **spec.about,
    }
    journal.append(Fact(RUN_STARTED, fleet, body))
    for number, plan in enumerate(plans):
        more = {"run_id": fleet, "extended_at": utc_now(), "plan": plan}
        journal.append(Fact(RUN_EXTENDED, digest([fleet, number]), more))


def _chunks(cases: Sequence[Planned]) -> Iterator[list[dict[str, Any]]]:
    for first in range(0, len(cases), _CHUNK):
        yield [planned_to_json(planned) for planned in cases[first : first + _CHUNK]]


def _anywhere(planned: Planned) -> Planned:
    """A case without the device that stood for its kind."""
    return replace(planned, device=None)


def _told(node: FleetNode) -> dict[str, Any]:
    devices = [f"{d}: {d.name}" for found in node.devices.values() for d in found]
    return {"id": node.id, "accelbench": node.version, "devices": devices}


def last_unfinished(folder: Path) -> str | None:
    """The newest fleet's run in a folder of journals that was cut off; None where there is none."""
    for path in sorted(folder.glob(f"*{SUFFIX}"), reverse=True):
        run_id = path.name.removesuffix(SUFFIX)
        if PART in run_id or being_written(path):
            continue
        facts = read(path)
        begun = any(f.kind == RUN_STARTED and isinstance(f.body.get(FLEET), Mapping) for f in facts)
        milestones = [f for f in facts if f.kind in (RUN_STARTED, RUN_RESUMED, RUN_FINISHED)]
        if begun and milestones[-1].body.get("status") != "finished":
            return run_id
    return None


def begun_of(fleet: str, facts: Iterable[Fact]) -> dict[str, Any]:
    """What a fleet's run began with, its whole plan in one.

    Raises:
        StoreError: it is no fleet's run.
    """
    begun: dict[str, Any] | None = None
    for fact in facts:
        if fact.kind == RUN_STARTED and isinstance(fact.body.get(FLEET), Mapping):
            begun = {**fact.body, "plan": list(fact.body["plan"])}
        elif fact.kind == RUN_EXTENDED and begun is not None:
            begun["plan"] += fact.body["plan"]
    if begun is None:
        raise StoreError(
            f"Run {fleet} is not a fleet's.", "Go on with it by accelbench run --resume."
        )
    return begun


def refused_bodies(spec: RunSpec) -> Iterator[dict[str, Any]]:
    """Results of cases that the plan refuses wherever they were to run."""
    this = THIS_ARM if spec.other else ""
    for planned in spec.plan.cases:
        refusal = planned.refusal
        if refusal is None or is_tried(planned):
            continue
        outcome = Outcome(refusal.status, refusal.reason, refusal.message, refusal.advice)
        for launch in launch_numbers(spec.settings.launches):
            facts = LaunchFacts(spec.settings.run_id, launch, this, spec.settings.job)
            moment = utc_now()
            entry = _anywhere(planned)
            yield compose(facts, entry, outcome, Provenance.MEASURED, None, moment, moment)


def rows_of(folder: Path, fleet: str) -> list[Mapping[str, Any]]:
    """Every result of a fleet's run, of all its parts."""
    rows: list[Mapping[str, Any]] = []
    for path in (journal_path(folder, fleet), *parts_in(folder, fleet)):
        for fact in read(path):
            if fact.kind == RESULT:
                kept = dict(fact.body)
                if len(rows) >= _WITH_SAMPLES:
                    kept.pop("samples", None)
                rows.append(kept)
    return rows


def profiles_of(folder: Path, fleet: str) -> list[Mapping[str, Any]]:
    """Every profile of a fleet's run: of a case that was profiled twice the first."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in parts_in(folder, fleet):
        for fact in read(path):
            if fact.kind == PROFILE:
                found.setdefault(fact.id, fact.body)
    return list(found.values())
