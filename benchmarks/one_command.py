"""One command for one case: what it takes on the clock, beside the work that it asks for.

`accelbench run MODEL --batch-sizes 1 --iterations 10` from start to prompt: interpreter, detection,
the engine's import, the model, every check, the files and the database.

    python benchmarks/one_command.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from keeping import keep, verdict

#: The work half as long again, and three seconds.
TIMES, BESIDE_S = 1.5, 3.0
WORK = ("build_ms", "load_ms", "compile_ms", "first_inference_ms", "warmup_ms", "sampling_ms")


def commanded(model: str, more: list[str]) -> dict[str, float]:
    """Wall seconds of the command, and seconds of the work."""
    program = str(Path(sys.executable).with_name("accelbench"))
    words = ["run", model, "--hardware", "cpu", "--batch-sizes", "1", "--iterations", "10"]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        done = subprocess.run(
            [program, *words, *more, "--json", "--output-dir", folder],
            check=True,
            capture_output=True,
            text=True,
            cwd=folder,
        )
        wall = time.perf_counter() - start
    (row,) = json.loads(done.stdout)["results"]
    assert row["status"] == "ok", row["message"]
    work = sum(row[name] or 0.0 for name in WORK) / 1e3
    return {"wall_s": wall, "work_s": work, "of_limit": wall / (TIMES * work + BESIDE_S)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="bert-base")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    ways = {"as it is": [], "benchmark only": ["--benchmark-only"]}
    rounds: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(asked.rounds):
        for way, more in ways.items():
            rounds[way].append(commanded(asked.model, more))
            print(f"  {way}: {rounds[way][-1]}", flush=True)
    for way, each in rounds.items():
        found[way] = {name: median(one[name] for one in each) for name in each[0]}
    reached = verdict(
        f"{asked.model}: wall time of one command, of {TIMES} × its work + {BESIDE_S:g} s",
        found["as it is"]["of_limit"],
        1.0,
    )
    keep("one_command", {"model": asked.model, "rounds": rounds, **found, "reached": reached})


if __name__ == "__main__":
    main()
