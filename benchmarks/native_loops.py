"""Engines beside PyTorch: is the reported median what a bare loop over the same file finds?

`accelbench run` of one case against a plain loop in a process of its own, interleaved, and
OpenVINO's own `benchmark_app` as a third.

    python benchmarks/native_loops.py [--models bert-tiny,resnet-50] [--pairs 12]
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
from keeping import HERE, accelbench_median, interleaved, keep, verdict

LIMIT = 1.02
THREADS = "1"
ENGINES = {"onnxruntime": "cpu", "openvino": "openvino:cpu"}
#: Seconds that benchmark_app measures for.
APP_SECONDS = "3"


def artefact(model: str, engine: str) -> Path:
    """The folder of what a runtime opens; exported now, so that no measurement is beside it."""
    with tempfile.TemporaryDirectory(prefix="accelbench-benchmark-") as folder:
        done = subprocess.run(
            [
                sys.executable, "-m", "accelbench", "run", model, "--framework", engine,
                "--hardware", ENGINES[engine], "--batch-sizes", "1", "--iterations", "1",
                "--warmup", "0", "--new-tokens", "0", "--threads", THREADS, "--json", "--quiet",
                "--db", str(Path(folder) / "store.duckdb"),
            ],
            capture_output=True, text=True, check=True, cwd=folder,
        )  # fmt: skip
    (row,) = json.loads(done.stdout)["results"]
    return Cache().folder / row["evidence"]["details"]["artefact"]["key"]


def bare(engine: str, folder: Path, steps: str, warmup: str) -> float:
    """The median of a plain loop in a process of its own."""
    command = [sys.executable, str(HERE / "bare_engine.py"), engine, str(folder)]
    done = subprocess.run(
        [*command, steps, warmup, THREADS], capture_output=True, text=True, check=True
    )
    return float(done.stdout.strip().splitlines()[-1])


def compared(model: str, engine: str, other: str, pairs: int) -> dict[str, Any]:
    """One engine's figure by us and by another."""
    steps, warmup = ("400", "100") if model.endswith("tiny") else ("30", "5")
    folder = artefact(model, engine)
    ours = [model, "--framework", engine, "--hardware", ENGINES[engine], "--batch-sizes", "1"]
    ours += ["--iterations", steps, "--warmup", warmup, "--threads", THREADS]
    ours += ["--new-tokens", "0", "--benchmark-only"]
    length = APP_SECONDS if other == "benchmark_app" else steps
    return interleaved(
        lambda: accelbench_median(ours), lambda: bare(other, folder, length, warmup), pairs
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="bert-tiny,resnet-50")
    parser.add_argument("--pairs", type=int, default=12)
    asked = parser.parse_args()
    for model in asked.models.split(","):
        figures: dict[str, Any] = {"model": model, "threads": int(THREADS)}
        reached = []
        for engine, other in (
            ("onnxruntime", "onnxruntime"),
            ("openvino", "openvino"),
            ("openvino", "benchmark_app"),
        ):
            name = f"{engine} against {'a bare loop' if other == engine else other}"
            print(f"{model}, {name}: a theirs, b ours")
            found = compared(model, engine, other, asked.pairs)
            print(f"ratio {found['ratio']:.4f} [{found['low_95']:.4f}, {found['high_95']:.4f}]")
            reached.append(verdict(f"{model}, {name}", found["ratio"], LIMIT))
            figures[name] = found
        keep(f"native-loops-{model}", {**figures, "reached": all(reached)})


if __name__ == "__main__":
    main()
