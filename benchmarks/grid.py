"""The grid: of all catalogue models, how many does each runtime get right, and what of the rest?

Every model on every runtime that runs here, in one unattended run; what was refused, failed or
was not verified counts as a miss and is listed with the command that shows it again. Each part
keeps its figures when it ends, beside what was kept of other models, so that a machine may be
given parts and models one after the other; shares are of all models, over what is kept.

    python benchmarks/grid.py                        everything; many hours on two cores
    python benchmarks/grid.py --models bert-tiny,gpt2-tiny
    python benchmarks/grid.py --parts fp32           of fp32, narrow, training, browser, large
    python benchmarks/grid.py --count --db FILE      count what a database holds already

The part `large` is of what memory does not hold: its weights stay on the disk, and it is
verified without being timed. It needs 80 GB of disk for a model of seven billion weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from accelbench.core.plugins import find_entry_points
from accelbench.models.find import every_model
from accelbench.store.database import Database
from keeping import HERE, keep

RUNTIMES = ("pytorch", "onnxruntime", "openvino", "jax")

#: What the narrow precisions are shown on: one small model of each architecture and more.
SMALL = tuple(model.id for model in every_model() if "small" in model.sets)

#: Of all catalogue models, what share a runtime has to get right, or how many.
TARGETS: dict[tuple[str, str], float | int] = {
    ("pytorch", "inference"): 1.0,
    ("onnxruntime", "inference"): 0.95,
    ("openvino", "inference"): 0.95,
    ("jax", "inference"): 0.6,
    ("qnn", "inference"): 5,
    ("pytorch", "training"): 0.9,
    ("jax", "training"): 2,
}


@dataclass(frozen=True)
class Part:
    """One `accelbench run` of the grid."""

    runtimes: Sequence[str]
    precisions: Sequence[str]
    mode: str = "inference"
    small: bool = False  # on the small models alone
    batch: int = 1
    hardware: str = "all"

    def holds(self, cell: Mapping[str, Any]) -> bool:
        """Whether a cell is of this part, whatever its runtime and precision."""
        asked = (self.mode, self.batch)
        there = self.hardware in ("all", cell["hardware"])
        return there and (cell["mode"], cell["batch_size"]) == asked


PARTS = {
    "fp32": (Part(RUNTIMES, ("fp32",)),),
    "narrow": (
        Part(("pytorch", "openvino"), ("bf16", "int8"), small=True),
        Part(("onnxruntime",), ("int8",), small=True),
        Part(("qnn",), ("int8", "fp16"), small=True),
    ),
    # Two items: CLIP's loss tells texts and images of a batch apart, and of one it is always 0.
    "training": (Part(("pytorch", "jax"), ("fp32",), mode="training", batch=2),),
    # Without a GPU, WebGPU is played by the processor: one forward pass of small models.
    "browser": tuple(
        Part(("browser",), ("fp32",), small=True, hardware=one)
        for one in ("wasm", "webnn", "webgpu")
    ),
    # The first makes the graph that the second starts from.
    "large": (
        Part(("onnxruntime",), ("fp32",)),
        Part(("openvino",), ("bf16",)),
        Part(("pytorch",), ("bf16",)),
    ),
}


def command(part: Part, models: Sequence[str], db: Path, *more: str) -> list[str]:
    """The command line of a part."""
    present = find_entry_points("accelbench.engines")
    runtimes = ",".join(r for r in part.runtimes if r in present)
    return [
        sys.executable, "-m", "accelbench", "run", *models,
        "--framework", runtimes, "--hardware", part.hardware,
        "--precision", ",".join(part.precisions), "--mode", part.mode,
        "--batch-sizes", str(part.batch), "--timeout", "60m", "--db", str(db), *more,
    ]  # fmt: skip


def ran(line: Sequence[str], **more: Any) -> None:
    """Run it. 1 is the answer "no" of some case, which is what this program counts."""
    code = subprocess.run(line, check=False, **more).returncode
    if code not in (0, 1):
        raise SystemExit(f"accelbench run ended with {code}")


def measured(name: str, models: Sequence[str], db: Path) -> None:
    """A part whose cells are measured and verified."""
    # How many tokens is left to each runtime: those that do not generate do a forward pass.
    how = ["--iterations", "5", "--warmup", "1", "--denoising-steps", "2"]
    for part in PARTS[name]:
        chosen = [m for m in models if m in SMALL] if part.small else list(models)
        if chosen:
            once = ["--new-tokens", "0"] if name == "browser" else []  # its pages keep no cache
            ran(command(part, chosen, db, *how, *once, "--verify", "require"))


def verified(models: Sequence[str], db: Path) -> None:
    """What memory does not hold: verified alone, a model after the other for the disk's sake."""
    for model in too_large(models, cells(db)):
        with tempfile.TemporaryDirectory(
            prefix="accelbench-grid-", dir=db.resolve().parent
        ) as kept:
            for part in PARTS["large"]:
                line = command(part, [model], db, "--verify-only", "--new-tokens", "0")
                ran(line, env={**os.environ, "ACCELBENCH_CACHE": kept})


def too_large(models: Sequence[str], found: Iterable[dict[str, Any]]) -> list[str]:
    """The models that PyTorch had no room for in fp32."""
    refused = {
        cell["model"]
        for cell in found
        if (cell["runtime"], cell["precision"], cell["mode"]) == ("pytorch", "fp32", "inference")
        and cell["status"] == "out_of_memory"
    }
    return [model for model in models if model in refused]


def cells(db: Path) -> list[dict[str, Any]]:
    """The newest result of each cell; what was tried, before what an estimate refused."""
    sql = """
        select model, runtime, hardware, precision, mode, batch_size, status, reason, message,
               verification, verification_error, provenance, workarounds
        from benchmark_results
        qualify row_number() over (
            partition by model, runtime, hardware, precision, mode, batch_size
            order by coalesce(reason, '') = 'out_of_memory_estimated', started_at desc) = 1
        order by model, runtime, hardware, precision, mode, batch_size"""
    names, rows = Database(db).query(sql)
    return [dict(zip(names, row, strict=True)) for row in rows]


def right(cell: dict[str, Any] | None) -> bool:
    """Whether a cell ran and was shown to compute what it should."""
    return (
        cell is not None and cell["status"] == "ok" and cell["verification"] in ("ok", "reference")
    )


def again(cell: dict[str, Any], part: str) -> str:
    """The command that shows a miss."""
    return (
        f"accelbench run {cell['model']} --framework {cell['runtime']}"
        f" --hardware {cell['hardware']} --precision {cell['precision']}"
        f" --mode {cell['mode']} --batch-sizes {cell['batch_size']}"
        f" {'--verify-only --new-tokens 0' if part == 'large' else '--verify require'}"
    )


def counted(
    name: str, found: Sequence[dict[str, Any]], models: Sequence[str]
) -> list[dict[str, Any]]:
    """For each runtime and precision of a part: how many models are right, and the misses."""
    if name == "large":
        models = too_large(models, found)
    groups = []
    for part in PARTS[name]:
        for runtime, precision in product(part.runtimes, part.precisions):
            best: dict[str, dict[str, Any]] = {}
            for cell in found:
                of = (cell["runtime"], cell["precision"]) == (runtime, precision)
                mine = of and part.holds(cell) and cell["model"] in models
                if mine and not right(best.get(cell["model"])):
                    best[cell["model"]] = cell
            groups.append(
                {
                    "runtime": runtime,
                    "mode": part.mode,
                    "precision": precision,
                    **({} if part.hardware == "all" else {"hardware": part.hardware}),
                    "right": sorted(model for model, cell in best.items() if right(cell)),
                    "misses": [
                        {
                            "model": model,
                            "status": cell["status"],
                            "reason": cell["reason"] or cell["verification"],
                            "message": cell["message"] or "",
                            "again": again(cell, name),
                        }
                        for model, cell in sorted(best.items())
                        if not right(cell)
                    ],
                }
            )
    return groups


def shares(groups: Sequence[dict[str, Any]], models: Sequence[str]) -> list[dict[str, Any]]:
    """Of all models, those that a runtime gets right in fp32, and in any precision at all."""
    found = []
    for (runtime, mode), target in TARGETS.items():
        mine = [one for one in groups if (one["runtime"], one["mode"]) == (runtime, mode)]
        any_ = {name for one in mine for name in one["right"]}
        fp32 = {name for one in mine if one["precision"] == "fp32" for name in one["right"]}
        least = target if isinstance(target, int) else target * len(models)
        found.append(
            {
                "runtime": runtime,
                "mode": mode,
                "fp32": len(fp32),
                "any_precision": len(any_),
                "of": len(models),
                "least": least,
                "reached": len(any_) >= least,
            }
        )
    return found


def files_of(name: str) -> list[Path]:
    """What was kept of a part, whichever machine it was measured on."""
    return sorted((HERE / "results").glob(f"grid-{name}-*.json"))


def groups_in(file: Path) -> list[dict[str, Any]]:
    """The groups that were kept in a file."""
    groups: list[dict[str, Any]] = json.loads(file.read_text())["groups"]
    return groups


def merged(
    before: Iterable[dict[str, Any]], now: Iterable[dict[str, Any]], models: Collection[str]
) -> list[dict[str, Any]]:
    """What is known now; of models that were not asked now, what was known before."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for group in [*map(partial(without, models), before), *now]:
        key = tuple(str(group.get(n)) for n in ("runtime", "mode", "precision", "hardware"))
        other = found.setdefault(key, {**group, "right": [], "misses": []})
        other["right"] = sorted({*other["right"], *group["right"]})
        other["misses"] = sorted(
            [*other["misses"], *group["misses"]], key=lambda miss: str(miss["model"])
        )
    return list(found.values())


def without(models: Collection[str], group: dict[str, Any]) -> dict[str, Any]:
    """A group, these models left out."""
    return {
        **group,
        "right": [name for name in group["right"] if name not in models],
        "misses": [miss for miss in group["misses"] if miss["model"] not in models],
    }


def show(groups: Sequence[dict[str, Any]]) -> None:
    """Print what was found."""
    for one in groups:
        tried = len(one["right"]) + len(one["misses"])
        print(
            f"{one.get('hardware', one['runtime']):12} {one['mode']:9} {one['precision']:5}"
            f" {len(one['right'])} of {tried} right"
        )
        for miss in one["misses"]:
            print(f"    {miss['model']:22} {miss['reason']}: {miss['message'][:100]}")
            print(f"      {miss['again']}")


def show_shares(totals: Sequence[dict[str, Any]]) -> None:
    """Print what it comes to."""
    for one in totals:
        print(
            f"{one['runtime']:12} {one['mode']:9} {one['any_precision']} of {one['of']}"
            f" ({one['any_precision'] / one['of']:.1%}; {one['fp32']} in fp32), at least"
            f" {one['least']:g} {'reached' if one['reached'] else 'NOT REACHED'}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default=",".join(model.id for model in every_model()))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--db", type=Path, default=Path("grid.duckdb"))
    parser.add_argument("--count", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    models = asked.models.split(",")
    for name in asked.parts.split(","):
        if not asked.count:
            verified(models, asked.db) if name == "large" else measured(name, models, asked.db)
        groups = counted(name, cells(asked.db), models)
        show(groups)
        before = [group for file in files_of(name) for group in groups_in(file)]
        keep(f"grid-{name}", {"groups": merged(before, groups, models)})
    everything = [model.id for model in every_model()]
    kept = [group for file in files_of("*") for group in groups_in(file)]
    show_shares(shares(kept, everything))


if __name__ == "__main__":
    main()
