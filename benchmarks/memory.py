"""Memory: what was estimated before against what was measured, over the catalogue.

Each model runs in real workers on the CPU, in inference and in training, and the
estimate that a case is refused by is compared with the peak that it really had.

    python benchmarks/memory.py                 the small set and a few key models
    python benchmarks/memory.py --all           everything that fits; an hour and more
    python benchmarks/memory.py bert-base vit-base --modes training
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from accelbench.core.model import ModelSpec
from accelbench.models.find import every_model, find
from keeping import keep, verdict

LIMIT = 0.15
#: Quick to run on two cores, and large enough that the engine's own share hardly counts.
KEY = ("bert-base", "resnet-50", "gpt2", "vit-base")


#: What makes a large model's request short without making its peak another.
BRIEF = ("--new-tokens", "4", "--denoising-steps", "1")


def rows(model: str, mode: str, precision: str, batches: str, brief: bool) -> list[dict[str, Any]]:
    """What `accelbench run` says of a model, two samples a case: a peak needs no more."""
    with tempfile.TemporaryDirectory(prefix="accelbench-benchmark-") as folder:
        done = subprocess.run(
            [
                sys.executable, "-m", "accelbench", "run", model, "--hardware", "cpu",
                "--mode", mode, "--precision", precision, "--batch-sizes", batches,
                "--iterations", "2", "--warmup", "1", "--json", "--quiet",
                "--db", str(Path(folder) / "store.duckdb"), "--timeout", "20m",
                *(BRIEF if brief else ()),
            ],
            capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip
    if not done.stdout.strip():
        raise SystemExit(f"accelbench run said nothing: {done.stderr.strip()[-500:]}")
    found: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return found


def compared(row: dict[str, Any]) -> dict[str, Any] | None:
    """One case's estimate and peak; None where it was not measured or not counted."""
    estimate, peak = row.get("memory_estimate_mb"), row.get("memory_peak_mb")
    if row["status"] != "ok" or not estimate or not peak:
        print(f"  {row['model']} batch {row['batch_size']} {row['mode']}: left out,", end=" ")
        print(row.get("reason") or "no estimate or no peak")
        return None
    return {
        "model": row["model"],
        "mode": row["mode"],
        "precision": row["precision"],
        "batch": row["batch_size"],
        "estimate_mb": round(float(estimate), 2),
        "peak_mb": round(float(peak), 2),
        "error": round(float(estimate) / float(peak) - 1, 4),
    }


def chosen(asked: argparse.Namespace) -> list[ModelSpec]:
    """The models to run, small ones first."""
    if asked.models:
        return [find(name) for name in asked.models]
    by_size = sorted(every_model(), key=lambda spec: spec.parameters)
    return [s for s in by_size if asked.all or "small" in s.sets or s.id in KEY]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--all", action="store_true", help="large models too, at batch 1")
    parser.add_argument("--modes", default="inference,training")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--batch-sizes", default="1,8")
    asked = parser.parse_args()
    figures = []
    for mode in asked.modes.split(","):
        for spec in chosen(asked):
            large = not asked.models and "small" not in spec.sets and spec.id not in KEY
            batches = "1" if large else asked.batch_sizes
            for row in rows(spec.id, mode, asked.precision, batches, brief=large):
                one = compared(row)
                if one is None:
                    continue
                figures.append(one)
                print(
                    f"  {one['model']:22} {mode:9} batch {one['batch']:<3}"
                    f" {one['estimate_mb']:10.1f} MB estimated, {one['peak_mb']:10.1f} measured,"
                    f" {one['error']:+.1%}",
                    flush=True,
                )
    middle = median(abs(one["error"]) for one in figures)
    below = sum(one["error"] < -LIMIT for one in figures)
    reached = verdict("median error of the estimate", middle, LIMIT)
    keep(
        # What a part of the catalogue comes to does not take the place of the whole.
        "memory"
        if asked.all
        else f"memory-{'-'.join(find(m).id for m in asked.models) or 'small'}",
        {
            "cases": figures,
            "median_error": middle,
            "estimated_too_low_by_more_than_the_limit": below,
            "reached": reached,
        },
    )


if __name__ == "__main__":
    main()
