"""`--compile`: compiling is timed apart from the steps, and nothing is compiled anew among them."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_day.part import NotHereError, Recorder
from gpu_day.rows import Row, measured, name_of, recorded

ANEW = "compiled again"  # begins so in accelbench's own warning


def compiling(at: Recorder) -> None:
    if at.day.dry:
        raise NotHereError("compiling for a CPU takes longer than the dry form may")
    common = ["bert-base", "--framework", "pytorch", "--batch-sizes", "8"]
    common += ["--iterations", "200", "--warmup", "30"]
    rows = measured(at, [*common, "--compile"]) + measured(at, [*common, "--benchmark-only"])
    judged(at, rows)


def judged(at: Recorder, rows: Sequence[Row]) -> None:
    """A compiled case against the same one that is not."""
    compiled = [row for row in rows if row["compiled"]]
    eager = [row for row in rows if not row["compiled"]]
    recorded(at, eager, verified=False)
    for row in recorded(at, compiled):
        name = name_of(row)
        at.check(f"{name}: compile time", row["compile_ms"], "> 0", bool(row["compile_ms"]))
        first, compiling_ms = row["first_inference_ms"], row["compile_ms"]
        share = first / compiling_ms if first and compiling_ms else None
        at.at_most(f"{name}: first step, without compiling, ÷ compile time", share, 1.0)
        again = [said for said in row["warnings"] if ANEW in said]
        at.same(f"{name}: compiled anew in steady state", again, [])
        beside = [one for one in eager if one["model"] == row["model"] and one["status"] == "ok"]
        if beside:
            at.figure(f"{name} ÷ eager", row["latency_p50_ms"] / beside[0]["latency_p50_ms"])
