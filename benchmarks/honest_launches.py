"""Honest sessions under load: of many launches, how many the checks of the measuring core refuse.

Every launch is a fresh worker with everything that is checked: blocks, clocks, steps against
outputs, the model against itself and its reference. Beside them other processes keep every core
busy several times over. A check that cries wolf shows here.

    python benchmarks/honest_launches.py
    python benchmarks/honest_launches.py --launches 5 --hardware cpu
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keeping import keep, verdict

#: Platform, runtimes, models, precision: what runs on a machine without accelerators.
CELLS = (
    ("cpu", ("pytorch", "onnxruntime", "jax"), "bert-tiny,resnet-tiny,vit-tiny", "fp32"),
    ("openvino", ("openvino",), "bert-tiny,resnet-tiny,vit-tiny", "fp32"),
    ("qnn", ("qnn",), "resnet-tiny", "fp16"),
    ("wasm", ("browser",), "bert-tiny,resnet-tiny", "fp32"),
    ("webnn", ("browser",), "bert-tiny,resnet-tiny", "fp32"),
    ("webgpu", ("browser",), "resnet-tiny", "fp32"),
)
PROCESSES_A_CORE = 4
BUSY = "while True: sum(range(100_000))"


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Other processes that compute all the time."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def launched(cell: tuple[str, tuple[str, ...], str, str], launches: int) -> list[dict[str, Any]]:
    """The results of a cell's launches."""
    from accelbench.core.facts import new_run_id
    from accelbench.core.run_options import RunSettings
    from accelbench.hardware.detect import detect_all
    from accelbench.models.find import find
    from accelbench.run.conduct import lifecycle
    from accelbench.run.plan import expand
    from accelbench.run.plan.request import Request
    from accelbench.run.process.worker_client import SilentObserver

    hardware, frameworks, models, precision = cell
    runtimes = expand.installed_runtimes()
    request = Request(
        models=tuple(find(name) for name in models.split(",")),
        hardware=(hardware,),
        runtimes=frameworks,
        precisions=(precision,),
        batch_sizes=(1, 8),
        options={"threads": 1},
    )
    plan = expand.plan_for(request, detect_all(), runtimes)
    settings = RunSettings(
        run_id=new_run_id(), threads=1, iterations=20, warmup=3, launches=launches
    )
    with tempfile.TemporaryDirectory() as folder:
        ended = lifecycle.start(
            lifecycle.PlannedRun(plan, settings, runtimes), Path(folder), SilentObserver(), {}
        )
    return [dict(row) for row in ended.rows]


def told(rows: list[dict[str, Any]]) -> Mapping[str, Any]:
    """How the launches ended, and the largest share of a question's time that was in no step."""
    ends = Counter(f"{row['status']} {row.get('reason') or ''}".strip() for row in rows)
    shares = [row["unexplained_share"] for row in rows if row.get("unexplained_share") is not None]
    steps = Counter(row.get("steps_verified") for row in rows)
    return {
        "ends": dict(ends),
        "steps_verified": dict(steps),
        "largest_unexplained_share": max(shares, default=None),
        "messages": sorted({row["message"] for row in rows if row["status"] != "ok"}),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, default=14)
    parser.add_argument("--hardware")
    parser.add_argument("--beside", type=int, default=PROCESSES_A_CORE, help="a core")
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    refused = total = 0
    with busy(asked.beside * (os.cpu_count() or 1)):
        for cell in CELLS:
            if asked.hardware and cell[0] not in asked.hardware.split(","):
                continue
            rows = launched(cell, asked.launches)
            found[cell[0]] = told(rows)
            total += len(rows)
            refused += sum(row["status"] != "ok" for row in rows)
            print(f"{cell[0]}: {found[cell[0]]}", flush=True)
    reached = verdict(f"refused of {total} honest launches under load", refused, 0)
    keep(
        "honest_launches",
        {"cells": found, "launches": total, "refused": refused, "reached": reached},
    )


if __name__ == "__main__":
    main()
