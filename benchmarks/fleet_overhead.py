"""Overhead: what a node of a fleet takes beside what `accelbench run` takes for the same cases.

Both measure one plan, in turn: A B B A …. The time of either is from the beginning of its run to
the end of its last case, engines imported and processes started within it; of a fleet with several
nodes it is the sum over nodes. The nodes are started by `accelbench fleet`, on this machine. Cases
are of the scripted runtime, whose steps sleep, so that nodes do not share out its CPUs; with
--framework pytorch they compute, and one node is right.

    python benchmarks/fleet_overhead.py
    python benchmarks/fleet_overhead.py --framework pytorch --lengths 3 --nodes 1
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.models.find import every_model
from keeping import interleaved, keep, verdict

OVERHEAD = 0.05
#: Of cases as long as this the bound is asked; shorter ones are told.
_ASKED_SECONDS = 3.0
_BATCHES = (1, 2, 3)
_STEP_SECONDS = 0.005
_WARM_UP_STEPS = 5


@dataclass
class Sides:
    """A fleet on this machine, and this machine alone; each measures a plan when asked."""

    folder: Path
    port: int
    nodes: int
    seconds: list[dict[str, Any]] = field(default_factory=list)
    _count: int = 0

    def accelbench(self, *words: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        environment = kept | {
            "XDG_STATE_HOME": str(self.folder / "state"),
            "ACCELBENCH_SCRIPT": str(self.folder / "script.json"),
        }
        command = [sys.executable, "-m", "accelbench", *words]
        ended = subprocess.run(
            command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise SystemExit(f"{' '.join(command)}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def measured(self, words: Sequence[str], plan: Sequence[str]) -> float:
        """Seconds that nodes were busy with a plan."""
        self._count += 1
        path = self.folder / f"{self._count}.duckdb"
        self.accelbench(*words, "run", *plan, "--db", str(path), "--quiet")
        return self._busy(path)

    def _busy(self, path: Path) -> float:
        import duckdb

        with duckdb.connect(str(path), read_only=True) as con:
            runs = con.execute("SELECT run_id, started_at FROM benchmark_runs").fetchall()
            rows = con.execute(
                "SELECT run_id, max(finished_at), count(*), bool_and(status = 'ok'),"
                " sum(epoch(finished_at - started_at)) FROM benchmark_results GROUP BY run_id"
            ).fetchall()
        begun = min(moment for _, moment in runs)  # the whole run's: its parts begin later
        if not all(fine for _, _, _, fine, _ in rows):
            raise SystemExit(f"not every case of {path} was measured")
        busy = sum((ended - begun).total_seconds() for _, ended, *_ in rows)
        cases = sum(each[2] for each in rows)
        self.seconds.append(
            {"nodes": len(rows), "cases": cases, "busy": busy, "cases_s": sum(r[4] for r in rows)}
        )
        return float(busy)


@contextmanager
def sides(nodes: int) -> Iterator[Sides]:
    """A fleet of so many nodes."""
    with tempfile.TemporaryDirectory(prefix="accelbench-overhead-") as name:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        made = Sides(Path(name), port, nodes)
        script = {"step_ns": int(_STEP_SECONDS * 1e9), "real": True}
        (made.folder / "script.json").write_text(json.dumps(script))
        try:
            made.accelbench("fleet", "start", "--port", str(port))
            for _ in range(nodes - 1):
                made.accelbench("fleet", "join", f"127.0.0.1:{port}")
            yield made
        finally:
            made.accelbench("fleet", "stop")


def plan_of(framework: str, models: int, seconds: float) -> list[str]:
    """A plan whose cases are that long, as words of a command."""
    if framework == "scripted":
        small = sorted(every_model(), key=lambda spec: spec.parameters)
        names = [spec.id for spec in small[:models]]
        steps = round(seconds / _STEP_SECONDS) - _WARM_UP_STEPS
        rules = ["--iterations", str(steps), "--warmup", str(_WARM_UP_STEPS)]
    else:
        names = ["bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny"][:models]
        rules = []
    return [
        *(*names, "--hardware", "cpu", "--framework", framework, "--benchmark-only"),
        *("--batch-sizes", ",".join(map(str, _BATCHES)), *rules),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", default="scripted")
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--lengths", default="3,0.5", help="seconds of a case")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=2)
    asked = parser.parse_args()
    figures: dict[str, Any] = {"framework": asked.framework, "nodes": asked.nodes}
    reached = {}
    with sides(asked.nodes) as there:
        for seconds in map(float, asked.lengths.split(",")):
            plan = plan_of(asked.framework, asked.models, seconds)
            print(f"{asked.models * len(_BATCHES)} cases of {seconds:g} s", flush=True)
            there.seconds.clear()
            found = interleaved(
                lambda plan=plan: there.measured(("fleet",), plan),  # type: ignore[misc]
                lambda plan=plan: there.measured((), plan),  # type: ignore[misc]
                asked.pairs,
            )
            figures[f"cases_of_{seconds:g}_s"] = {**found, "runs": list(there.seconds)}
            what = f"a fleet's nodes, beside the plain run, cases of {seconds:g} s"
            fine = verdict(what, found["ratio"] - 1, OVERHEAD)
            if seconds >= _ASKED_SECONDS:
                reached[f"{seconds:g} s"] = fine
    name = "fleet_overhead" + ("" if asked.framework == "scripted" else f"-{asked.framework}")
    keep(name, {**figures, "reached": reached})


if __name__ == "__main__":
    main()
