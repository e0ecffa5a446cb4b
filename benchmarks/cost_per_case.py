"""Cost per case: what a case costs beyond the work it asks for.

A matrix of ten cases runs through the real conductor with a warm template. What
is left of the wall time after building, loading, compiling, warming up and
sampling is ours: forking, planning, memory passes, evidence, the journal. In a
browser so is the first visit, which is measured beside the visit of the case; how
much of it that is, is told.

    python benchmarks/cost_per_case.py
    python benchmarks/cost_per_case.py --hardware wasm,webnn,webgpu
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keeping import keep, verdict

#: Seconds a case. In a browser, a first visit is measured beside the case itself.
LIMITS = {"cpu": 0.25, "wasm": 3.0, "webnn": 3.0, "webgpu": 3.0}
MODELS = {"cpu": "bert-tiny,vit-tiny,resnet-tiny,gpt2-tiny,bert-base"}
TINY = "bert-tiny,vit-tiny,resnet-tiny,gpt2-tiny,whisper-mini"
ASKED_FOR = ("build_ms", "load_ms", "compile_ms", "first_inference_ms", "warmup_ms", "sampling_ms")


def run_matrix(hardware: str, models: str, batches: tuple[int, ...]) -> list[dict[str, Any]]:
    """Every case's wall time in the conductor, beside its phases."""

    from accelbench.core.facts import new_run_id
    from accelbench.core.run_options import RunSettings
    from accelbench.hardware.detect import detect_all
    from accelbench.models.find import find
    from accelbench.run.conduct import lifecycle
    from accelbench.run.plan import expand
    from accelbench.run.plan.request import Request
    from accelbench.run.process.worker_client import Progress, SilentObserver

    class Stopwatch(SilentObserver):
        """Reads a clock as each case ends; nothing else happens in between."""

        def __init__(self) -> None:
            self.rows: list[dict[str, Any]] = []
            self._from = 0.0
            self._starts = 0

        def progress(self, progress: Progress) -> None:
            if progress.phase == "starting":
                self._starts += 1
                if self._starts == 2:  # the first is the template's; from here on it is warm
                    self._from = time.monotonic()

        def case_finished(self, row: Mapping[str, Any]) -> None:
            now = time.monotonic()
            self.rows.append({**row, "wall_s": now - self._from})
            self._from = now

    runtimes = expand.installed_runtimes()
    request = Request(
        models=tuple(find(name) for name in models.split(",")),
        hardware=(hardware,),
        batch_sizes=batches,
        options={"threads": 1},
    )
    plan = expand.plan_for(request, detect_all(), runtimes)
    watch = Stopwatch()
    settings = RunSettings(run_id=new_run_id(), threads=1)
    with tempfile.TemporaryDirectory() as folder:
        lifecycle.start(lifecycle.PlannedRun(plan, settings, runtimes), Path(folder), watch, {})
    return watch.rows


def overhead(row: Mapping[str, Any], opened: bool) -> float:
    """Seconds of a case that are none of the phases asked for.

    A model that is built and loaded once for all batches of a worker says so of each: those
    times are taken off the case in which they happened.
    """
    own = [p for p in ASKED_FOR if opened or p not in ("build_ms", "load_ms")]
    return float(row["wall_s"]) - sum((row[p] or 0.0) for p in own) / 1e3


def _opened_anew(before: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a case has a model of its own: another one, or a graph for this size alone."""
    return (before["model"], before["load_ms"]) != (row["model"], row["load_ms"])


def rounds_of(hardware: str, models: str, rounds: int) -> list[dict[str, Any]]:
    """What each round of a platform came to."""
    found = []
    for _ in range(rounds):
        rows = run_matrix(hardware, models, (1, 2))
        assert {row["status"] for row in rows} == {"ok"}, [row["message"] for row in rows]
        costs = [
            overhead(row, opened=i == 0 or _opened_anew(rows[i - 1], row))
            for i, row in enumerate(rows)
        ]
        for row, cost in zip(rows, costs, strict=True):
            name = f"{hardware} {row['model']} batch {row['batch_size']}"
            print(f"  {name}: {row['wall_s']:.3f} s, of which ours {cost:.3f} s")
        firsts = [(row.get("first_visit_ms") or 0.0) / 1e3 for row in rows]
        found.append(
            {
                "overheads_s": costs,
                "mean_s": sum(costs) / len(costs),
                "first_visits_mean_s": sum(firsts) / len(firsts),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hardware", default="cpu")
    parser.add_argument("--models")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    for hardware in asked.hardware.split(","):
        rounds = rounds_of(hardware, asked.models or MODELS.get(hardware, TINY), asked.rounds)
        worst = max(one["mean_s"] for one in rounds)
        reached = verdict(
            f"{hardware}: seconds a case beyond the work, worst round", worst, LIMITS[hardware]
        )
        name = "cost_per_case" if hardware == "cpu" else f"cost_per_case-{hardware}"
        keep(name, {"rounds": rounds, "worst_mean_s": worst, "reached": reached})


if __name__ == "__main__":
    main()
