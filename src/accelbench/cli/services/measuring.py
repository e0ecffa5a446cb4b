"""Measuring for an answer's sake: runs that a command makes of its own, into its database."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from accelbench.cli.display.watch import watch_for
from accelbench.hardware.environment import environment
from accelbench.run.conduct import lifecycle
from accelbench.run.plan import estimates

if TYPE_CHECKING:
    from accelbench.store.database import Database


def measured(database: Database, journeys: Iterable[lifecycle.RunSpec]) -> list[str]:
    """Run them one after the other, shown on standard error; their ids, results being stored."""
    database.ensure()
    watch = watch_for(sys.stderr, quiet=False)
    made = []
    for planned in journeys:
        run, plan = planned.settings.run_id, planned.plan
        total = plan.measurements(planned.settings.launches)
        watch.started(run, total, estimates.seconds(plan, planned.settings))
        lifecycle.start(planned, database.journals, watch, environment())
        made.append(run)
    for problem in database.fill().problems:
        watch.note(problem)
    return made
