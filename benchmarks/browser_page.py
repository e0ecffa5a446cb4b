"""The browser runtime: is the reported median what a page written by hand finds?

`accelbench run` of one case against `bare_page.py`, a fresh browser each, interleaved; and what a
case costs beyond what is measured of it, with one browser for a model's cases.

    python benchmarks/browser_page.py [--models resnet-tiny,bert-tiny] [--pairs 24]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from accelbench.artifacts.cache import Cache
from keeping import HERE, accelbench_median, bounded, interleaved, keep

PROVIDERS = ("wasm", "webnn")
THREADS = "1"
LIMIT = 1.03
STEPS, WARMUP = "400", "100"


def case(model: str, provider: str) -> list[str]:
    """What is asked of accelbench, but for the number of steps."""
    return [
        model, "--framework", "browser", "--hardware", provider, "--batch-sizes", "1",
        "--new-tokens", "0", "--threads", THREADS, "--benchmark-only",
    ]  # fmt: skip


def artefact(model: str, provider: str) -> Path:
    """The folder of what the page opens; exported now, so that no measurement is beside it."""
    command = [sys.executable, "-m", "accelbench", "run", *case(model, provider)]
    command += ["--iterations", "1", "--warmup", "0", "--json", "--quiet", "--no-database"]
    with tempfile.TemporaryDirectory(prefix="accelbench-benchmark-") as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    (row,) = json.loads(done.stdout)["results"]
    key: str = row["evidence"]["details"]["artefact"]["key"]
    return Cache().folder / key


def by_hand(provider: str, folder: Path) -> float:
    """The median that the page finds."""
    command = [sys.executable, str(HERE / "bare_page.py"), provider, str(folder)]
    command += [THREADS, STEPS, WARMUP]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()[-2000:]}")
    return float(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="resnet-tiny,bert-tiny")
    parser.add_argument("--pairs", type=int, default=24)
    asked = parser.parse_args()
    for model in asked.models.split(","):
        figures: dict[str, Any] = {"model": model, "threads": int(THREADS)}
        reached = []
        for provider in PROVIDERS:
            folder = artefact(model, provider)
            ours = [*case(model, provider), "--iterations", STEPS, "--warmup", WARMUP]
            print(f"{model}, {provider}: a by hand, b ours")
            figures[provider] = interleaved(
                partial(accelbench_median, ours), partial(by_hand, provider, folder), asked.pairs
            )
            reached.append(bounded(f"{model}, {provider}", figures[provider], LIMIT))
        keep(f"browser-page-{model}", {**figures, "reached": all(reached)})


if __name__ == "__main__":
    main()
