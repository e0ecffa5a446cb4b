"""The conductor takes a plan through isolated launches.

It imports no ML library, holds no database, and sleeps in the kernel while a worker measures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelbench.core.case import Case
from accelbench.core.columns import COLUMNS
from accelbench.core.facts import PROFILE, RESULT, Fact, utc_now
from accelbench.core.identity import digest
from accelbench.core.run_options import RunSettings
from accelbench.core.serial import case_to_json
from accelbench.core.unusable_reasons import SIMULATION
from accelbench.core.vocabulary import Mode, Outcome, Provenance, Status
from accelbench.exchange.profile_schema import CASE_COLUMNS
from accelbench.hardware.common import is_processor
from accelbench.run.conduct.launch import GroupLaunch
from accelbench.run.conduct.launch_context import LaunchContext
from accelbench.run.conduct.results import (
    RETRIEVES,
    TRAINS,
    LaunchFacts,
    compose,
    identities_of,
    launch_numbers,
)
from accelbench.run.messages import NOT_CALCULATED
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.plan.targets import counted_as
from accelbench.run.process import process_control
from accelbench.run.process.machine_turns import (
    WAIT_VARIABLE,
    TurnHolder,
    condition_of,
    machine_turn,
)
from accelbench.run.process.memory_guard import MemoryGuard
from accelbench.run.process.worker_client import Progress, WorkerClient, WorkerTroubleError

_NOTHING_RAN = "simulated: nothing was run"

#: Empty for a reason of the case or of the catalogue, whether it runs or not.
_OF_THE_CASE = {
    "reason", "message", "advice", "flops", "bytes_moved", "memory_estimate_mb", "extra",
    "tokens_per_second", "ttft_ms", "tpot_ms", "prefill_ms", "decode_ms", "data_load_ms",
    "data_digest", "cost_usd",
}  # fmt: skip


def simulate_group(
    context: LaunchContext,
    launch_facts: LaunchFacts,
    cases: Sequence[Planned],
    first: int,
    total: int,
) -> None:
    """Record what each case of an absent device comes to; nothing is started for it."""
    room = MemoryGuard(context)
    for number, planned in enumerate(cases, first):
        context.observer.case_started(planned.case, launch_facts.launch, number, total)
        started_at = utc_now()
        body = compose(
            launch_facts,
            planned,
            _told(planned, _outcome(context, planned, room)),
            Provenance.SIMULATED,
            context.cost(planned),
            started_at,
            utc_now(),
            context.estimate(planned.case),
        )
        with process_control.undisturbed():
            context.append(Fact(RESULT, body["result_id"], body))
            context.tally.add(counted_as(body))
            context.observer.case_finished(body)


def _outcome(context: LaunchContext, planned: Planned, room: MemoryGuard) -> Outcome:
    if planned.refusal is not None:
        return planned.refusal.outcome
    room.look(planned)
    refused = room.refused(planned)
    if refused is not None:
        advice = f"{refused.advice} {room.advice(planned)}".strip()
        return replace(refused, advice=advice)
    assert planned.roofline is not None
    if context.simulate is None:
        place = planned.case.target.hardware_label
        return NOT_CALCULATED.outcome(Status.UNSUPPORTED, place=place)
    return context.simulate(planned.case, planned.roofline)


def _told(planned: Planned, outcome: Outcome) -> Outcome:
    """Return an outcome with its device, and why everything else is empty."""
    roofline = planned.roofline
    assert roofline is not None
    metrics = outcome.measurement.get("metrics", {})
    about = {
        "device": roofline.name,
        "source": roofline.source,
        "bytes_per_second": roofline.bytes_per_second,
        "memory_bytes": roofline.memory_bytes,
        **outcome.conditions,
    }
    return replace(
        outcome,
        measurement={"metrics": {"device_name": roofline.name, **metrics}},
        conditions={SIMULATION: about},
        null_reasons=_not_run(planned.case) if outcome.status is Status.OK else {},
    )


def _not_run(case: Case) -> dict[str, str]:
    """Return why columns that can only be measured are empty."""
    kind = set() if case.mode is Mode.TRAINING else set(TRAINS)
    if not (case.procedure == "rag" and case.generates):
        kind |= RETRIEVES
    names = {col.name for col in COLUMNS if col.role != "case"} | {"threads", "device_fingerprint"}
    return dict.fromkeys(names - kind - _OF_THE_CASE, _NOTHING_RAN)


@dataclass(frozen=True)
class MeasuredArm:
    """The plan and the context of a run, or of one of its two arms."""

    context: LaunchContext
    plan: Plan
    arm: str = ""  # empty where there is one alone


def conduct(sides: Sequence[MeasuredArm], done: AbstractSet[str]) -> None:
    """Measure every case in every launch whose result_id is not among those done."""
    # Launches are the outer loop, and every second one goes through the plan backwards: drift of
    # the machine then affects all cases equally (ABBA). Two arms alternate by groups of cases, in
    # the other order in every second launch, so that the i-th launches of both are neighbours.
    total = sum(side.plan.results(side.context.settings.launches) for side in sides)
    groups = [list(side.plan.groups()) for side in sides]
    number = 0
    for launch in launch_numbers(max(side.context.settings.launches for side in sides)):
        for side in sides:
            side.context.worker_pool.begin_launch(launch)
        turns = [
            (side, of_side[at])
            for at in range(max(map(len, groups)))
            for side, of_side in zip(sides, groups, strict=True)
            if at < len(of_side)
        ]
        for side, group in turns if launch % 2 else reversed(turns):
            number += _launched(side, group, launch, done, (number, total))
    for side in sides:
        _note_repeated_waits(side.context)


def _launched(
    side: MeasuredArm,
    group: Sequence[Planned],
    launch: int,
    done: AbstractSet[str],
    at: tuple[int, int],
) -> int:
    """Measure one launch of one group, except what is done; return how many results it has."""
    # One worker measures a group: its cases differ in their batch alone, not in their options.
    context = replace(
        side.context, settings=side.context.settings.for_options(group[0].case.options)
    )
    launch_facts = asked_of(context.settings, launch, side.arm)
    group = [p for p in group if launch <= p.launches(context.settings.launches)]
    pending = [p for p in group if done.isdisjoint(identities_of(launch_facts, p))]
    number, total = at
    first = number + len(group) - len(pending) + 1
    if pending and pending[0].roofline is not None:
        simulate_group(context, launch_facts, pending, first, total)
    elif pending:
        with turn_of(context, pending) as beside:
            marked = replace(context, conditions={**context.conditions, **condition_of(beside)})
            GroupLaunch(marked, launch_facts, pending, first, total).run()
    return len(group)


@contextmanager
def turn_of(context: LaunchContext, group: Sequence[Planned]) -> Iterator[TurnHolder | None]:
    """Reserve the machine for a group of cases; yield the run that measures meanwhile, if any."""
    # Scripts and simulated cases need no turn. Waiting does not use up the run's budget.
    runtime = context.runtimes.get(group[0].case.target.runtime)
    measured = runtime is not None and runtime.info.provenance is Provenance.MEASURED
    if not measured or all(planned.refusal is not None for planned in group):
        yield None
        return
    device = group[0].device
    start = time.monotonic()
    with machine_turn(
        context.settings.run_id,
        shared=device is not None and not is_processor(device) and not device.emulated,
        on_wait=lambda holder: _note_waiting(context, holder),
        on_turn=lambda holder, seconds: _note_waited(context, holder, seconds),
    ) as beside:
        context.budget.add(time.monotonic() - start)
        yield beside


def asked_of(settings: RunSettings, launch: int, arm: str = "") -> LaunchFacts:
    """Return the facts that all results of one launch of one arm share."""
    return LaunchFacts(settings.run_id, launch, arm, settings)


def _note_waiting(context: LaunchContext, holder: TurnHolder) -> None:
    if holder.name not in context.waits:
        context.waits[holder.name] = []
        context.observer.note(
            f"Waiting for {holder}: both would slow each other down. They take turns from now"
            f" on. {WAIT_VARIABLE}=0 measures at the same time and marks the results."
        )


def _note_waited(context: LaunchContext, holder: TurnHolder, seconds: float) -> None:
    waits = context.waits.setdefault(holder.name, [])
    waits.append(seconds)
    if len(waits) == 1:
        context.observer.note(f"Waited {seconds:.1f} s for {holder.name}.")


def _note_repeated_waits(context: LaunchContext) -> None:
    for name, waits in context.waits.items():
        if len(waits) > 1:
            context.observer.note(
                f"Waited {len(waits)} times for {name}, {sum(waits):.1f} s in all."
            )


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

    `keep` takes each profile; without it no records of engines are made.
    """
    # Each case is profiled in a worker of its own, opened as the measured one was. What cannot be
    # profiled has a reason; no result changes.
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
    """Return the id of a case's profile, the same after a resume."""
    return digest(["profile", row["result_id"]])


def _row_of(context: LaunchContext, planned: Planned, measured: Mapping[str, Row]) -> Row | None:
    """Return the result of the first launch that has a good one."""
    for launch in launch_numbers(context.settings.launches):
        for identity in identities_of(asked_of(context.settings, launch), planned):
            if identity in measured:
                return measured[identity]
    return None


def _profiled(
    context: LaunchContext, planned: Planned, row: Row, traces: bool
) -> tuple[dict[str, Any], Path | None]:
    if context.budget.exhausted:
        return _no("the run's budget was used up"), None
    talk = WorkerClient(
        replace(context, settings=context.settings.for_options(planned.case.options))
    )
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
    nothing = dict.fromkeys(("engine", "profiler", "steps", "wall_ms", "explained", "remark"))
    return {"why_not": why, **nothing, "walls_ms": [], "kinds": [], "operators": []}
