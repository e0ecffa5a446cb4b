"""A run from its first fact to its last: the one way in for the command line and the API.

detect → plan → run_started │ launch, launch, … (each durable) │ run_finished
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from accelbench import __version__
from accelbench.core.errors import StoreError, SurroundingsError, UsageError
from accelbench.core.facts import (
    HARDWARE_MEASURED,
    PROFILE,
    RESULT,
    RUN_FINISHED,
    RUN_RESUMED,
    RUN_STARTED,
    Fact,
    new_run_id,
    utc_now,
)
from accelbench.core.identity import digest, plain
from accelbench.core.plugins import RUNTIMES, load_all
from accelbench.core.protocols import Absent, Device, Runtime
from accelbench.core.serial import (
    case_from_json,
    case_to_json,
    device_from_json,
    device_to_json,
)
from accelbench.core.words import Status
from accelbench.hardware.rooflines import Roofline
from accelbench.run import estimates
from accelbench.run.budget import Budget
from accelbench.run.conductor import asked_of, conduct
from accelbench.run.context import Context, Settings, Tally
from accelbench.run.conversation import NO_WORKER
from accelbench.run.expand import expand
from accelbench.run.observer import Observer
from accelbench.run.plan import Plan, Planned, Refusal, Request
from accelbench.run.profiling import Keep, profile_all
from accelbench.run.results import identity_of
from accelbench.run.simulating import Simulate, counted_as, measured_of
from accelbench.run.surroundings import Surroundings
from accelbench.run.workshop import Workshop
from accelbench.store.ingest import journals_in
from accelbench.store.journal import SUFFIX, Journal, being_written, read

_log = logging.getLogger(__name__)

Found = Mapping[str, Sequence[Device | Absent]]


@dataclass(frozen=True)
class Journey:
    """Everything decided before the first case: what `--dry-run` shows."""

    plan: Plan
    settings: Settings
    runtimes: Mapping[str, Runtime]
    about: Mapping[str, Any] = field(default_factory=dict)  # command line, label
    simulate: Simulate | None = None  # how what is not here is calculated


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    run_id: str
    tally: Tally
    rows: Sequence[Mapping[str, Any]]  # every result of the run, also those of before a resume
    interrupted: bool = False
    profiles: Sequence[Mapping[str, Any]] = ()  # where they were asked for

    @property
    def nothing_could_start(self) -> bool:
        """Whether not one case got as far as a worker."""
        rows = measured_of(self.rows)
        return bool(rows) and all(row.get("reason") == NO_WORKER for row in rows)


def installed_runtimes() -> dict[str, Runtime]:
    """Every runtime that can be imported, by name."""
    found: dict[str, Runtime] = {}
    for name, made in load_all(RUNTIMES):
        if isinstance(made, Exception):
            _log.debug("runtime %s cannot be imported", name, exc_info=made)
        else:
            found[name] = made
    return found


def plan_for(request: Request, found: Found, runtimes: Mapping[str, Runtime]) -> Plan:
    """The plan of a request on this machine as it is now."""
    unknown = [name for name in request.runtimes if name not in runtimes]
    if unknown:
        raise UsageError(
            f"There is no runtime named {unknown[0]!r}.",
            f"Runtimes installed here: {', '.join(sorted(runtimes))}.",
        )
    return expand(request, found, runtimes, estimates.memory, estimates.free)


def start(
    journey: Journey,
    folder: Path,
    observer: Observer,
    environment: Mapping[str, Any],
    keep: Keep | None = None,
) -> Ended:
    """Run a plan from its beginning; the journal is kept in `folder`, profiles by `keep`."""
    settings = journey.settings
    with Journal.create(folder, settings.run_id) as journal:
        started = {
            "run_id": settings.run_id,
            "started_at": utc_now(),
            "accelbench": __version__,
            "settings": asdict(settings),
            "plan": [_planned_to_json(p) for p in journey.plan.cases],
            "notes": list(journey.plan.notes),
            "environment": dict(environment),
            "git_commit": (environment.get("git") or {}).get("commit"),
            "git_branch": (environment.get("git") or {}).get("branch"),
            **journey.about,
        }
        journal.append(Fact(RUN_STARTED, settings.run_id, started))
        _append_hardware(journal, journey, environment)
        return _go(journey, journal, observer, environment, [], keep)


def resume(
    run_id: str,
    folder: Path,
    observer: Observer,
    environment: Mapping[str, Any],
    found: Found | None = None,
    keep: Keep | None = None,
    simulate: Simulate | None = None,
) -> Ended:
    """Go on with a run that was cut off: what has a result is not measured again.

    Args:
        run_id: The run.
        folder: Where its journal is.
        observer: Who watches.
        environment: The machine's, as it is now.
        found: What is present now: a device that the rest of the plan needs and
            that is not there is refused. None leaves that to the launches.
        keep: Who takes profiles, where the run makes any.
        simulate: How what was not there when the run began is calculated.
    """
    with Journal.resume(folder, run_id) as journal:
        facts = journal.facts()
        settings, plan = _begun(run_id, facts)
        results = {f.id: f.body for f in facts if f.kind == RESULT}
        _refuse_other_identities(run_id, plan, settings, results)
        left = _left_of(plan, settings, results)
        if not left and _is_finished(facts):
            observer.note(f"Run {run_id} is complete: nothing is left to measure.")
            tally = Tally()
            for body in results.values():
                tally.add(counted_as(body))
            return Ended(run_id, tally, list(results.values()), profiles=_profiles(facts))
        _refuse_other_machine(run_id, left, found)
        observer.note(f"{len(results)} of {len(results) + len(left)} results are there.")
        moment = utc_now()
        journal.append(
            Fact(
                RUN_RESUMED,
                digest([run_id, moment]),
                {"run_id": run_id, "resumed_at": moment, "environment": dict(environment)},
            )
        )
        journey = Journey(plan, settings, installed_runtimes(), simulate=simulate)
        return _go(journey, journal, observer, environment, list(results.values()), keep)


def again(
    begun: Mapping[str, Any],
    cases: Container[str],
    launches: int,
    about: Mapping[str, Any],
    found: Found,
) -> Journey:
    """Some cases of an earlier run once more, as they were planned then.

    Args:
        begun: The body of that run's run_started.
        cases: By case_id.
        launches: Of each.
        about: What the new run says of itself.
        found: What is present now; a device that is not is refused.
    """
    earlier = str(begun["run_id"])
    settings, plan = _settled(earlier, begun)
    wanted = tuple(one for one in plan.cases if one.case.case_id in cases)
    _refuse_other_machine(earlier, wanted, found)
    settings = replace(settings, run_id=new_run_id(), launches=launches, budget=None, profile=False)
    names = {"names": begun.get("names") or {}}
    return Journey(Plan(wanted), settings, installed_runtimes(), {**names, **about})


def last_unfinished(folder: Path) -> str | None:
    """The newest run in a journal folder that was cut off, None where there is none.

    One that a process is writing at this moment is going on, not cut off.
    """
    for path in reversed(journals_in(folder)):
        facts = read(path)
        begun = any(f.kind == RUN_STARTED for f in facts)
        if begun and not _is_finished(facts) and not being_written(path):
            return path.name.removesuffix(SUFFIX)
    return None


def _is_finished(facts: Sequence[Fact]) -> bool:
    """Whether the last thing said of the run is that it came to its end."""
    said = [f for f in facts if f.kind in (RUN_STARTED, RUN_RESUMED, RUN_FINISHED)]
    return bool(said) and said[-1].body.get("status") == "finished"


def _begun(run_id: str, facts: Sequence[Fact]) -> tuple[Settings, Plan]:
    """The settings and the plan a run began with."""
    begun = next((f.body for f in facts if f.kind == RUN_STARTED), None)
    if begun is None:
        raise StoreError(
            f"The journal of run {run_id} does not say what was planned.", "Start a new run."
        )
    return _settled(run_id, begun)


def _settled(run_id: str, begun: Mapping[str, Any]) -> tuple[Settings, Plan]:
    try:
        plan = Plan(tuple(_planned_from_json(p) for p in begun["plan"]))
        return Settings(**begun["settings"]), plan
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"Run {run_id} was begun by accelbench {begun.get('accelbench')}, whose plan this"
            f" version ({__version__}) cannot read.",
            "Use that version, or start a new run.",
        ) from error


def _left_of(plan: Plan, settings: Settings, results: Container[str]) -> list[Planned]:
    """What has no result yet, once a launch."""
    return [
        planned
        for launch in range(settings.launches)
        for planned in plan.cases
        if launch < planned.launches(settings.launches)
        and identity_of(asked_of(settings, launch), planned) not in results
    ]


def _refuse_other_identities(
    run_id: str, plan: Plan, settings: Settings, results: Mapping[str, Any]
) -> None:
    """Results that the plan does not know would be measured again, and counted twice."""
    known = set(_ids_of(plan, settings))
    if not known.issuperset(results):
        raise StoreError(
            f"Run {run_id} was begun by a version of accelbench that tells cases apart in"
            " another way.",
            "Resume it with that version, or start a new run.",
        )


def _ids_of(plan: Plan, settings: Settings) -> Iterable[str]:
    for launch in range(settings.launches):
        for planned in plan.cases:
            yield identity_of(asked_of(settings, launch), planned)


def _refuse_other_machine(run_id: str, left: Iterable[Planned], found: Found | None) -> None:
    """One run's results are of one machine."""
    if found is None:
        return
    here = {
        one.fingerprint for entries in found.values() for one in entries if isinstance(one, Device)
    }
    for planned in left:
        if planned.device is not None and planned.device.fingerprint not in here:
            raise SurroundingsError(
                f"Run {run_id} was begun on {planned.device.name} ({planned.device}),"
                " which is not here now.",
                "Resume it where it was begun, or start a new run.",
            )


def _go(
    journey: Journey,
    journal: Journal,
    observer: Observer,
    environment: Mapping[str, Any],
    before: list[Mapping[str, Any]],
    keep: Keep | None,
) -> Ended:
    settings = journey.settings
    rows: list[Mapping[str, Any]] = list(before)
    tally = Tally()
    for row in before:
        tally.add(counted_as(row))

    def append(fact: Fact) -> None:
        journal.append(fact)
        if fact.kind == RESULT:
            rows.append(fact.body)

    to_measure = journey.plan.measurements(settings.launches) - len(measured_of(before))
    workshop = Workshop()
    context = Context(
        settings=settings,
        workshop=workshop,
        runtimes=journey.runtimes,
        append=append,
        observer=observer,
        budget=Budget(settings.budget, to_measure),
        surroundings=Surroundings(),
        estimate=estimates.memory,
        free=estimates.free,
        cost=lambda planned: estimates.cost(planned.case),
        conditions=estimates.conditions(environment),
        tally=tally,
        simulate=journey.simulate,
    )
    interrupted = False
    try:
        conduct(context, journey.plan, done={row["result_id"] for row in before})
        if settings.profile:
            there = {fact.id for fact in journal.facts() if fact.kind == PROFILE}
            profile_all(context, journey.plan, rows, there, keep)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        workshop.close()
    moment = utc_now()
    finished = {
        "run_id": settings.run_id,
        "finished_at": moment,
        "status": "interrupted" if interrupted else "finished",
        "counts": tally.counts,
    }
    journal.append(Fact(RUN_FINISHED, digest([settings.run_id, moment]), finished))
    profiles = _profiles(journal.facts()) if settings.profile else ()
    return Ended(settings.run_id, tally, rows, interrupted, profiles)


def _profiles(facts: Iterable[Fact]) -> list[Mapping[str, Any]]:
    return [fact.body for fact in facts if fact.kind == PROFILE]


def _append_hardware(journal: Journal, journey: Journey, environment: Mapping[str, Any]) -> None:
    used = {p.device.fingerprint: p for p in journey.plan.cases if p.device is not None}
    for fingerprint, planned in used.items():
        device = planned.device
        assert device is not None
        runtime = journey.runtimes.get(planned.case.target.runtime)
        package = runtime.info.package if runtime else ""
        moment = utc_now()
        body = {
            **device_to_json(device),
            "measured_at": moment,
            "run_id": journal.run_id,
            "runtime_version": (environment.get("packages") or {}).get(package),
        }
        journal.append(Fact(HARDWARE_MEASURED, digest([fingerprint, moment]), body))


def _planned_to_json(planned: Planned) -> dict[str, Any]:
    return {
        "case": case_to_json(planned.case),
        "device": device_to_json(planned.device) if planned.device else None,
        "refusal": asdict(planned.refusal) if planned.refusal else None,
        "roofline": plain(planned.roofline) if planned.roofline else None,
    }


def _planned_from_json(body: Mapping[str, Any]) -> Planned:
    refusal, roofline = body["refusal"], body.get("roofline")
    return Planned(
        case=case_from_json(body["case"]),
        device=device_from_json(body["device"]) if body["device"] else None,
        refusal=Refusal(**{**refusal, "status": Status(refusal["status"])}) if refusal else None,
        roofline=Roofline(**{**roofline, "platforms": tuple(roofline["platforms"])})
        if roofline
        else None,
    )
