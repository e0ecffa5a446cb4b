"""Engines beside PyTorch: is the reported median what a bare loop over the same file finds?

`accelbench run` of one case against a plain loop in a process of its own (`bare_engine.py`),
and against OpenVINO's own `benchmark_app`: each comparison interleaved, one thread.

    python benchmarks/native_loops.py [--models bert-tiny,resnet-50] [--pairs 24]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from accelbench.artifacts.cache import Cache
from keeping import HERE, accelbench_median, bounded, interleaved, keep

THREADS = "1"
#: An engine of ours, and what it is held against.
COMPARED = (
    ("onnxruntime", "onnxruntime"),
    ("openvino", "openvino"),
    ("openvino", "benchmark_app"),
)
PLACES = {"onnxruntime": "cpu", "openvino": "openvino:cpu"}
#: Seconds that benchmark_app measures for.
APP_SECONDS = "3"


def case(model: str, engine: str) -> list[str]:
    """What is asked of accelbench, but for the number of steps."""
    return [
        model, "--framework", engine, "--hardware", PLACES[engine], "--batch-sizes", "1",
        "--new-tokens", "0", "--threads", THREADS, "--benchmark-only",
    ]  # fmt: skip


def artefact(model: str, engine: str) -> Path:
    """The folder of what a runtime opens; exported now, so that no measurement is beside it."""
    command = [sys.executable, "-m", "accelbench", "run", *case(model, engine)]
    command += ["--iterations", "1", "--warmup", "0", "--json", "--quiet", "--no-database"]
    with tempfile.TemporaryDirectory(prefix="accelbench-benchmark-") as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    (row,) = json.loads(done.stdout)["results"]
    return Cache().folder / row["evidence"]["details"]["artefact"]["key"]


def bare(other: str, folder: Path, *how: str) -> float:
    """The median that a process of its own prints."""
    command = [sys.executable, str(HERE / "bare_engine.py"), other, str(folder), THREADS, *how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()[-2000:]}")
    return float(done.stdout.strip().splitlines()[-1])


def compared(model: str, engine: str, other: str, pairs: int) -> dict[str, Any]:
    """One engine's figure by us and by another."""
    steps, warmup = ("400", "100") if model.endswith("tiny") else ("30", "5")
    folder = artefact(model, engine)
    ours = [*case(model, engine), "--iterations", steps, "--warmup", warmup]
    theirs = (APP_SECONDS,) if other == "benchmark_app" else (steps, warmup)
    return interleaved(lambda: accelbench_median(ours), lambda: bare(other, folder, *theirs), pairs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="bert-tiny,resnet-50")
    parser.add_argument("--pairs", type=int, default=24)
    asked = parser.parse_args()
    for model in asked.models.split(","):
        figures: dict[str, Any] = {"model": model, "threads": int(THREADS)}
        reached = []
        for engine, other in COMPARED:
            name = f"{engine} against {'a bare loop' if other == engine else other}"
            print(f"{model}, {name}: a theirs, b ours")
            figures[name] = compared(model, engine, other, asked.pairs)
            reached.append(bounded(f"{model}, {name}", figures[name]))
        keep(f"native-loops-{model}", {**figures, "reached": all(reached)})


if __name__ == "__main__":
    main()
