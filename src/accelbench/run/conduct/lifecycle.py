"""A run from its first fact to its last; `run/execute.py` is the way in to it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelbench import __version__
from accelbench.core.errors import StoreError, SurroundingsError, UsageError
from accelbench.core.facts import (
    HARDWARE_MEASURED,
    PROFILE,
    RESULT,
    RUN_STARTED,
    Fact,
    new_run_id,
    utc_now,
)
from accelbench.core.identity import digest
from accelbench.core.protocols import Device, Inventory, Runtime
from accelbench.core.run_options import RunSettings
from accelbench.core.serial import device_to_json
from accelbench.core.unusable_reasons import THIS_ARM
from accelbench.run.conduct.artifacts import ArtifactExports
from accelbench.run.conduct.conductor import Keep, MeasuredArm, asked_of, conduct, profile_all
from accelbench.run.conduct.launch_context import (
    LaunchContext,
    LaunchTally,
    OneProcessTimes,
    Repeats,
    RunMeans,
    Surroundings,
)
from accelbench.run.conduct.results import identities_of, launch_numbers
from accelbench.run.conduct.run_record import (
    arm_settled,
    arm_to_json,
    finished_fact,
    last_status,
    planned_to_json,
    resumed_fact,
    settled,
)
from accelbench.run.messages import NO_WORKER
from accelbench.run.plan import expand, run_forecast
from accelbench.run.plan.request import OtherArm, Plan, Planned
from accelbench.run.plan.run_forecast import Budget
from accelbench.run.plan.targets import Simulate, measured_of
from accelbench.run.process.other_interpreter import Arm, opened
from accelbench.run.process.worker_client import Observer
from accelbench.run.process.worker_pool import WorkerPool
from accelbench.run.verify.convergence import Curves
from accelbench.run.verify.verification import Verifications
from accelbench.store.journal import SUFFIX, Journal, is_being_written, list_journals, read

#: Of run_started: what is said of the fleet; of a node's part of its run, the fleet's id.
FLEET = "fleet"


@dataclass(frozen=True)
class PlannedRun:
    """Everything decided before the first case: what `--dry-run` shows."""

    plan: Plan
    settings: RunSettings
    runtimes: Mapping[str, Runtime]
    about: Mapping[str, Any] = field(default_factory=dict)  # command line, label
    simulate: Simulate | None = None  # how what is not here is calculated
    other: OtherArm | None = None  # the arm that this one is compared with

    @property
    def arms(self) -> list[tuple[str, Plan, RunSettings]]:
        """What results are called by, and what is measured for them."""
        if self.other is None:
            return [("", self.plan, self.settings)]
        against = self.other.against.name
        this = (THIS_ARM, self.plan, self.settings)
        return [this, (against, self.other.plan, self.other.settings)]

    @property
    def measurements(self) -> int:
        """How many results are measured; others are only calculated."""
        return sum(plan.measurements(how.launches) for _, plan, how in self.arms)


@dataclass(frozen=True)
class RunResult:
    """How a run ended."""

    run_id: str
    tally: LaunchTally
    rows: Sequence[Mapping[str, Any]]  # every result of the run, also those of before a resume
    interrupted: bool = False
    profiles: Sequence[Mapping[str, Any]] = ()  # where they were asked for

    @property
    def nothing_could_start(self) -> bool:
        rows = measured_of(self.rows)
        return bool(rows) and all(row.get("reason") == NO_WORKER for row in rows)


def start(
    journey: PlannedRun,
    folder: Path,
    observer: Observer,
    environment: Mapping[str, Any],
    keep: Keep | None = None,
    means: RunMeans | None = None,
) -> RunResult:
    """Run a plan from its beginning; the journal is kept in `folder`, profiles by `keep`."""
    settings = journey.settings
    with (
        opened(journey.other, environment, observer.note) as arm,
        Journal.create(folder, settings.run_id) as journal,
    ):
        other = None
        if arm is not None:
            other = {**arm_to_json(arm.other), "environment": dict(arm.environment)}
        plan = [planned_to_json(p) for p in journey.plan.cases]
        journal.append(started_fact(journey, environment, plan, other))
        _append_hardware(journal, journey, environment)
        return _go(journey, journal, observer, environment, [], keep, arm, means)


def started_fact(
    journey: PlannedRun,
    environment: Mapping[str, Any],
    plan: Sequence[Mapping[str, Any]],
    against: Mapping[str, Any] | None,
    **more: Any,
) -> Fact:
    """Return the first fact of a run: its settings, its plan and the machine."""
    run_id, git = journey.settings.run_id, environment.get("git") or {}
    body = {
        "run_id": run_id,
        "started_at": utc_now(),
        "accelbench": __version__,
        "settings": journey.settings.to_dict(),
        "plan": plan,
        **({} if against is None else {"against": against}),
        "notes": list(journey.plan.notes),
        "environment": dict(environment),
        "git_commit": git.get("commit"),
        "git_branch": git.get("branch"),
        **more,
        **journey.about,
    }
    return Fact(RUN_STARTED, run_id, body)


def resume(
    run_id: str,
    folder: Path,
    observer: Observer,
    environment: Mapping[str, Any],
    inventory: Inventory | None = None,
    keep: Keep | None = None,
    simulate: Simulate | None = None,
) -> RunResult:
    """Continue a run that was cut off: what is durable is not measured again.

    Raises SurroundingsError if it has no journal, or if its devices are not on this machine.
    """
    with Journal.resume(folder, run_id) as journal:
        facts = journal.facts()
        journey = _begun(run_id, facts, simulate)
        results = {f.id: f.body for f in facts if f.kind == RESULT}
        _refuse_other_identities(run_id, journey, results)
        left = _left_of(journey, results)
        if not left and last_status(facts) == "finished":
            observer.note(f"Run {run_id} is complete: nothing is left to measure.")
            rows = list(results.values())
            return RunResult(run_id, LaunchTally.of(rows), rows, profiles=_profiles(facts))
        _refuse_other_machine(run_id, left, inventory)
        observer.note(f"{len(results)} of {len(results) + len(left)} results are there.")
        with opened(journey.other, environment, observer.note) as arm:
            journal.append(resumed_fact(run_id, environment))
            return _go(journey, journal, observer, environment, list(results.values()), keep, arm)


def again(
    begun: Mapping[str, Any],
    cases: Container[str],
    launches: int,
    about: Mapping[str, Any],
    inventory: Inventory,
) -> PlannedRun:
    """Return what a run was asked to do and has not done; StoreError if it is another version's."""
    earlier = str(begun["run_id"])
    settings, plan = settled(earlier, begun)
    wanted = tuple(case for case in plan.cases if case.case.case_id in cases)
    _refuse_other_machine(earlier, wanted, inventory)
    settings = settings.with_values(
        run_id=new_run_id(), launches=launches, budget=None, profile=False
    )
    names = {"names": begun.get("names") or {}}
    return PlannedRun(Plan(wanted), settings, expand.installed_runtimes(), {**names, **about})


def last_unfinished(folder: Path) -> str | None:
    """Return the newest run in a folder of journals that was cut off; None if there is none."""
    for path in reversed(list_journals(folder)):
        facts = read(path)
        begun = any(f.kind == RUN_STARTED and FLEET not in f.body for f in facts)
        if begun and last_status(facts) != "finished" and not is_being_written(path):
            return path.name.removesuffix(SUFFIX)
    return None


def _begun(run_id: str, facts: Sequence[Fact], simulate: Simulate | None) -> PlannedRun:
    begun = next((f.body for f in facts if f.kind == RUN_STARTED), None)
    if begun is None:
        raise StoreError(
            f"The journal of run {run_id} does not say what was planned.", "Start a new run."
        )
    if FLEET in begun:
        fleet = run_id if isinstance(begun[FLEET], Mapping) else begun[FLEET]
        raise UsageError(
            f"Run {run_id} is of a fleet.", f"Go on with: accelbench fleet run --resume {fleet}"
        )
    settings, plan = settled(run_id, begun)
    other = arm_settled(run_id, begun)
    return PlannedRun(plan, settings, expand.installed_runtimes(), simulate=simulate, other=other)


def _left_of(journey: PlannedRun, results: Container[str]) -> list[Planned]:
    """What has no result yet, once a launch."""
    return [
        planned
        for identities, planned in _ids_of(journey)
        if not any(identity in results for identity in identities)
    ]


def _refuse_other_identities(run_id: str, journey: PlannedRun, results: Mapping[str, Any]) -> None:
    """Results that the plan does not know would be measured again, and counted twice."""
    known = {identity for identities, _ in _ids_of(journey) for identity in identities}
    if not known.issuperset(results):
        raise StoreError(
            f"Run {run_id} was begun by a version of accelbench that tells cases apart in"
            " another way.",
            "Resume it with that version, or start a new run.",
        )


def _ids_of(journey: PlannedRun) -> Iterable[tuple[tuple[str, ...], Planned]]:
    for arm, plan, settings in journey.arms:
        for launch in launch_numbers(settings.launches):
            for planned in plan.cases:
                if launch <= planned.launches(settings.launches):
                    yield identities_of(asked_of(settings, launch, arm), planned), planned


def _refuse_other_machine(
    run_id: str, left: Iterable[Planned], inventory: Inventory | None
) -> None:
    if inventory is None:
        return
    here = {
        entry.fingerprint
        for entries in inventory.values()
        for entry in entries
        if isinstance(entry, Device)
    }
    for planned in left:
        if planned.device is not None and planned.device.fingerprint not in here:
            raise SurroundingsError(
                f"Run {run_id} was begun on {planned.device.name} ({planned.device}),"
                " which is not here now.",
                "Resume it where it was begun, or start a new run.",
            )


def _go(
    journey: PlannedRun,
    journal: Journal,
    observer: Observer,
    environment: Mapping[str, Any],
    before: list[Mapping[str, Any]],
    keep: Keep | None,
    arm: Arm | None,
    means: RunMeans | None = None,
) -> RunResult:
    settings, means = journey.settings, means or RunMeans()
    rows: list[Mapping[str, Any]] = list(before)
    tally = LaunchTally.of(before)

    def append(fact: Fact) -> None:
        journal.append(fact)
        if fact.kind == RESULT:
            rows.append(fact.body)

    measurements = journey.measurements - len(measured_of(before))
    context = LaunchContext(
        settings=settings,
        worker_pool=means.pool or WorkerPool(),
        runtimes=journey.runtimes,
        append=append,
        observer=observer,
        budget=means.budget or Budget(settings.budget, measurements),
        surroundings=Surroundings(),
        estimate=run_forecast.memory,
        free=run_forecast.free,
        cost=lambda planned: run_forecast.cost(planned.case),
        conditions=run_forecast.conditions(environment),
        tally=tally,
        one_process=OneProcessTimes.of(before),
        simulate=journey.simulate,
    )
    sides = _sides(journey, context, environment, arm)
    interrupted = False
    try:
        conduct(sides, done={row["result_id"] for row in before})
        if settings.profile:
            profile_ids = {fact.id for fact in journal.facts() if fact.kind == PROFILE}
            profile_all(context, journey.plan, rows, profile_ids, keep)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        for side in sides:
            side.context.worker_pool.close()
    status = "interrupted" if interrupted else "finished"
    journal.append(finished_fact(settings.run_id, status, counts=tally.counts))
    profiles = _profiles(journal.facts()) if settings.profile else ()
    return RunResult(settings.run_id, tally, rows, interrupted, profiles)


def _sides(
    journey: PlannedRun, context: LaunchContext, environment: Mapping[str, Any], arm: Arm | None
) -> list[MeasuredArm]:
    """One, or two that share what is the run's and have references and artefacts of their own."""
    if arm is None:
        return [MeasuredArm(context, journey.plan)]
    (this, *_), (against, _, settings) = journey.arms
    for note in arm.notes:
        context.observer.note(note)
    ours, theirs = arm.conditions(environment), arm.conditions(arm.environment)
    first = replace(context, conditions={**context.conditions, **ours})
    second = replace(
        context,
        settings=settings,
        worker_pool=WorkerPool(arm.interpreter),
        conditions={**run_forecast.conditions(arm.environment), **theirs},
        repeats=Repeats(),
        one_process=OneProcessTimes(),
        curves=Curves(),
        artefacts=ArtifactExports(),
        verifications=Verifications(),
    )
    return [MeasuredArm(first, journey.plan, this), MeasuredArm(second, arm.plan, against)]


def _profiles(facts: Iterable[Fact]) -> list[Mapping[str, Any]]:
    return [fact.body for fact in facts if fact.kind == PROFILE]


def _append_hardware(journal: Journal, journey: PlannedRun, environment: Mapping[str, Any]) -> None:
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
