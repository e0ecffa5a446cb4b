"""Rows of `accelbench run`: what a user's command line reports of its cases."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from accelbench.run.verify.verdicts import NOT_TELLING
from gpu_day.part import Recorder

Row = dict[str, Any]
#: What is kept of a row; the rest is in no figure of the day.
SHOWN = (
    "status", "message", "latency_p50_ms", "throughput", "throughput_unit", "quality",
    "sample_count",
    "verification", "verification_error", "verification_tolerance", "self_check",
    "first_inference_ms", "compile_ms", "device_time_ms", "device_memory_peak_mb",
    "loss_first", "loss_last", "convergence", "emulated", "warnings",
)  # fmt: skip

#: What a reported peak of memory may be of a bare loop's, either way.
MEMORY_RATIO = 1.05


def measured(at: Recorder, arguments: Sequence[str]) -> list[Row]:
    """Every case of one command line, with the hardware of the day.

    Raises:
        RuntimeError: the command gave no results at all.
    """
    command = [sys.executable, "-m", "accelbench", "run", *arguments]
    command += ["--hardware", at.day.hardware, "--json", "--quiet", "--no-database"]
    with tempfile.TemporaryDirectory(dir=at.day.folder) as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if not done.stdout.strip():
        said = done.stderr.strip()[-800:] or f"exit code {done.returncode}"
        raise RuntimeError(f"accelbench run {' '.join(arguments)}: {said}")
    found: list[Row] = json.loads(done.stdout)["results"]
    return found


def name_of(row: Row) -> str:
    """A case as figures are named by it."""
    compiled = " compiled" if row["compiled"] else ""
    return f"{row['model']} batch {row['batch_size']} {row['mode']} {row['precision']}{compiled}"


def recorded(at: Recorder, rows: Sequence[Row], verified: bool = True) -> list[Row]:
    """Keep every row's figures and check that it is ok and verified; those that are ok."""
    for row in rows:
        name = name_of(row)
        shown = {key: row[key] for key in SHOWN if row.get(key) is not None}
        at.figure(name, {"command_says": row["runtime"], **shown})
        at.same(f"{name}: status", row["status"], "ok")
        if not verified:
            continue
        found, why = row["verification"], row["nulls"].get("verification_error")
        if why == NOT_TELLING:
            at.absent(f"{name}: outputs", why)
        else:
            at.check(f"{name}: outputs", found, "ok", found in ("ok", "reference"))
    return [row for row in rows if row["status"] == "ok"]


def held_against(at: Recorder, row: Row, bare_mb: float) -> None:
    """A row's reported peak beside the bare loop's."""
    reported = row["device_memory_peak_mb"]
    name = f"{name_of(row)}: peak memory"
    if reported is None:
        at.absent(name, row["nulls"].get("device_memory_peak_mb", "not reported"))
        return
    ratio = reported / bare_mb
    at.figure(name, {"reported_mb": reported, "bare_mb": bare_mb, "ratio": ratio})
    reached = 1 / MEMORY_RATIO <= ratio <= MEMORY_RATIO
    at.check(f"{name}, reported ÷ bare", ratio, f"within {MEMORY_RATIO:g}", reached)
