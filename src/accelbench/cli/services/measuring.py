"""Measuring for an answer's sake: runs that a command makes of its own, into its database."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from accelbench.cli.display.watch import watch_for
from accelbench.run.execute import Planner, RunRequest, StoredResults, execute
from accelbench.run.plan import estimates

if TYPE_CHECKING:
    from accelbench.core.protocols import Inventory
    from accelbench.run.conduct.lifecycle import RunSpec
    from accelbench.run.process.observer import Observer
    from accelbench.store.database import Database


def measured(database: Database, planner: Planner) -> list[str]:
    """Run what is planned, shown on standard error; the runs' ids, results being stored."""
    shown = cache(lambda: watch_for(sys.stderr, quiet=False))  # one for all of them

    def observe(spec: RunSpec, inventory: Inventory, here: Mapping[str, Any]) -> Observer:
        del inventory, here
        plan, settings = spec.plan, spec.settings
        watch, total = shown(), plan.measurements(settings.launches)
        watch.started(settings.run_id, total, estimates.seconds(plan, settings))
        return watch

    made = execute(RunRequest(planner, StoredResults(database)), observe)
    return [executed_run.spec.settings.run_id for executed_run in made]
