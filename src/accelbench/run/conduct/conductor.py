"""The conductor: takes a plan through isolated launches.

It imports no ML library, holds no database, and sleeps in the kernel while a
worker measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from accelbench.run.conduct.launch import GroupLaunch
from accelbench.run.conduct.launch_context import LaunchContext
from accelbench.run.conduct.results import LaunchFacts, identity_of
from accelbench.run.conduct.simulation import simulate_group
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.plan.run_settings import RunSettings


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
    for launch in range(max(side.context.settings.launches for side in sides)):
        for side in sides:
            side.context.worker_pool.begin_launch(launch)
        turns = [
            (side, of_side[at])
            for at in range(max(map(len, groups)))
            for side, of_side in zip(sides, groups, strict=True)
            if at < len(of_side)
        ]
        for side, group in turns if launch % 2 == 0 else reversed(turns):
            number += _launched(side, group, launch, done, (number, total))


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
    group = [p for p in group if launch < p.launches(context.settings.launches)]
    pending = [p for p in group if identity_of(launch_facts, p) not in done]
    number, total = at
    first = number + len(group) - len(pending) + 1
    if pending and pending[0].roofline is not None:
        simulate_group(context, launch_facts, pending, first, total)
    elif pending:
        GroupLaunch(context, launch_facts, pending, first, total).run()
    return len(group)


def asked_of(settings: RunSettings, launch: int, arm: str = "") -> LaunchFacts:
    """What is the same for every result of one launch of one arm."""
    return LaunchFacts(settings.run_id, launch, arm, settings.job)
