"""The conductor: takes a plan through isolated launches.

It imports no ML library, holds no database, and sleeps in the kernel while a
worker measures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace

from accelbench.core.vocabulary import Provenance
from accelbench.run.conduct.launch import GroupLaunch
from accelbench.run.conduct.launch_context import LaunchContext
from accelbench.run.conduct.results import LaunchFacts, identity_of, launch_numbers
from accelbench.run.conduct.simulation import simulate_group
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.plan.run_settings import RunSettings
from accelbench.run.process.machine_turns import (
    WAIT_VARIABLE,
    TurnHolder,
    condition_of,
    machine_turn,
)
from accelbench.run.verify.peak_rates import is_processor


@dataclass(frozen=True)
class MeasuredArm:
    """What is measured, and how: the whole of a run, or one of its two arms."""

    context: LaunchContext
    plan: Plan
    arm: str = ""  # empty where there is one alone


def conduct(sides: Sequence[MeasuredArm], done: AbstractSet[str]) -> None:
    """Measure every case in every launch whose result_id is not among those done.

    Launches are the outer loop, and every second one goes through the plan backwards:
    whatever drifts on the machine then falls on all cases alike (ABBA). So do two arms: of each
    group of cases first one and then the other, the other way round in every second launch, so
    that the i-th launches of both are neighbours.
    """
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
    """One launch of one group, but for what is done; how many results it is of."""
    # One worker measures a group: its cases differ in their batch alone, not in their options.
    context = replace(side.context, settings=side.context.settings.of(group[0].case))
    launch_facts = asked_of(context.settings, launch, side.arm)
    group = [p for p in group if launch <= p.launches(context.settings.launches)]
    pending = [p for p in group if identity_of(launch_facts, p) not in done]
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
    """Have the machine to oneself for a group of cases; yield who else measures, if anyone.

    What runs nothing, or only a script, needs no turn. Waiting does not use up the run's budget.
    """
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
    """What is the same for every result of one launch of one arm."""
    return LaunchFacts(settings.run_id, launch, arm, settings.job)


def _note_waiting(context: LaunchContext, holder: TurnHolder) -> None:
    """Name the run that this one waits for, once for each."""
    if holder.run_id not in context.waits:
        context.waits[holder.run_id] = []
        context.observer.note(
            f"Waiting for run {holder}: both would slow each other down. They take turns from now"
            f" on. {WAIT_VARIABLE}=0 measures at the same time and marks the results."
        )


def _note_waited(context: LaunchContext, holder: TurnHolder, seconds: float) -> None:
    """Report how long the first wait for a run took."""
    waits = context.waits.setdefault(holder.run_id, [])
    waits.append(seconds)
    if len(waits) == 1:
        context.observer.note(f"Waited {seconds:.1f} s for run {holder.run_id}.")


def _note_repeated_waits(context: LaunchContext) -> None:
    """Report how long all waits for each run took, if there were several."""
    for run_id, waits in context.waits.items():
        if len(waits) > 1:
            context.observer.note(
                f"Waited {len(waits)} times for run {run_id}, {sum(waits):.1f} s in all."
            )
