"""A conductor in a process of its own, to be killed. Says what it announces on standard output.

python tortured.py begin FOLDER fast|slow     starts a run
python tortured.py resume FOLDER RUN          goes on with it
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fixed_machine import FOUND, models

from accelbench.core.facts import new_run_id
from accelbench.core.plugins import ENGINES, find_entry_points, load
from accelbench.core.run_options import RunSettings
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.plan import expand
from accelbench.run.plan.request import Request
from accelbench.run.process.worker_client import SilentObserver


class Announcer(SilentObserver):
    """Every durable result, flushed at once: what is read here must never be lost."""

    def case_finished(self, row: Mapping[str, Any]) -> None:
        sys.stdout.write(f"{row['result_id']} {row['status']}\n")
        sys.stdout.flush()


def main(what: str, folder: str, more: str) -> None:
    if what == "begin":
        runtimes = {"scripted": load(find_entry_points(ENGINES)["scripted"])}
        request = Request(
            models("bert-tiny", "vit-tiny"), ("cpu",), ("scripted",), batch_sizes=(1, 2, 3)
        )
        plan = expand.plan_for(request, FOUND, runtimes)
        steps = {"fast": (3, 1), "slow": (200, 1)}[more]
        settings = RunSettings(
            run_id=new_run_id(), launches=2, iterations=steps[0], warmup=steps[1]
        )
        ended = lifecycle.start(PlannedRun(plan, settings, runtimes), Path(folder), Announcer(), {})
    else:
        ended = lifecycle.resume(more, Path(folder), Announcer(), {})
    sys.stdout.write(f"ended {len(ended.rows)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
