"""The conductor: takes a plan through isolated launches.

It imports no ML library, holds no database, and sleeps in the kernel while a
worker measures.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from accelbench.run.context import Context, Settings
from accelbench.run.launch import GroupLaunch
from accelbench.run.plan import Plan
from accelbench.run.results import Asked, identity_of
from accelbench.run.simulating import simulate_group


def conduct(context: Context, plan: Plan, done: AbstractSet[str]) -> None:
    """Measure every case in every launch whose result_id is not among those done.

    Launches are the outer loop, and every second one goes through the plan backwards:
    whatever drifts on the machine then falls on all cases alike (ABBA).
    """
    settings = context.settings
    total = plan.results(settings.launches)
    number = 0
    groups = list(plan.groups())
    for launch in range(settings.launches):
        if launch > 0:
            # Forks of one template share an address layout, and with it their luck.
            context.workshop.retire_templates()
        asked = asked_of(settings, launch)
        for group in groups if launch % 2 == 0 else reversed(groups):
            group = [p for p in group if launch < p.launches(settings.launches)]
            pending = [p for p in group if identity_of(asked, p) not in done]
            first = number + len(group) - len(pending) + 1
            if pending and pending[0].roofline is not None:
                simulate_group(context, asked, pending, first, total)
            elif pending:
                GroupLaunch(context, asked, pending, first, total).run()
            number += len(group)


def asked_of(settings: Settings, launch: int) -> Asked:
    """What is the same for every result of one launch."""
    return Asked(
        run_id=settings.run_id,
        launch=launch,
        seed=settings.seed,
        weights=settings.weights,
        threads=settings.threads,
        data_source=settings.data or "synthetic",
    )
