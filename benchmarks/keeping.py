"""What every benchmark here shares: ratios from interleaved launches, and kept figures."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accelbench.engines.artifacts.cache import Cache
from accelbench.hardware.environment import describe_environment
from accelbench.measure.launch_verdicts import abba_order, paired_interval

HERE = Path(__file__).parent
#: What a median of ours may be of the other's, at the upper end of the interval.
LIMIT = 1.02


def interleaved(
    ours: Callable[[], float], theirs: Callable[[], float], pairs: int
) -> dict[str, Any]:
    """Run both sides A B B A …; the ratio ours ÷ theirs with its 95 % interval."""
    figures: dict[str, list[float]] = {"a": [], "b": []}
    for number, arm in enumerate(abba_order(pairs)):
        figures[arm].append((theirs if arm == "a" else ours)())
        print(f"  {number + 1}/{2 * pairs} {arm}: {figures[arm][-1]:.4f}", flush=True)
    interval = paired_interval(figures["a"], figures["b"])
    assert interval is not None
    return {
        "pairs": pairs,
        "ratio": interval.ratio,
        "low_95": interval.low,
        "high_95": interval.high,
        "theirs": figures["a"],
        "ours": figures["b"],
    }


def accelbench_median(arguments: list[str], cpu: int | None = None) -> float:
    """The latency that a whole `accelbench run` of one case reports."""
    with tempfile.TemporaryDirectory(prefix="accelbench-benchmark-") as folder:
        command = [sys.executable, "-m", "accelbench", "run", *arguments, "--json", "--quiet"]
        command += ["--db", str(Path(folder) / "store.duckdb")]
        done = subprocess.run(
            pinned(command, cpu), capture_output=True, text=True, check=True, cwd=folder
        )
    (row,) = json.loads(done.stdout)["results"]
    return float(row["latency_p50_ms"])


def artefact(arguments: list[str]) -> Path:
    """The folder of what a case opens; exported now, so that no measurement is beside it."""
    command = [sys.executable, "-m", "accelbench", "run", *arguments]
    command += ["--iterations", "1", "--warmup", "0", "--json", "--quiet", "--no-database"]
    with tempfile.TemporaryDirectory(prefix="accelbench-benchmark-") as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    (row,) = json.loads(done.stdout)["results"]
    key: str = row["evidence"]["details"]["artefact"]["key"]
    return Cache().folder / key


def bare_median(arguments: list[str], cpu: int | None = None, program: str = "bare.py") -> float:
    """The median that a program beside this one prints, in a process of its own."""
    command = [sys.executable, str(HERE / program), *arguments]
    done = subprocess.run(pinned(command, cpu), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()[-2000:]}")
    return float(done.stdout.strip().splitlines()[-1])


def pinned(command: list[str], cpu: int | None) -> list[str]:
    """The same command on one core alone, with everything it starts."""
    if cpu is None:
        return command
    code = "import os, sys; os.sched_setaffinity(0, {%d}); os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code % cpu, *command]


def keep(name: str, figures: dict[str, Any]) -> None:
    """Write the figures beside a description of the machine, and print what they come to."""
    about = describe_environment()
    described = {
        key: about.get(key)
        for key in (
            "cpu",
            "cpus_logical",
            "memory_total",
            "os_release",
            "kernel",
            "python",
            "virtualisation",
            "governor",
            "packages",
            "git",
        )
    }
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "benchmark": name,
        "when": moment,
        "machine": described,
        "load_after": os.getloadavg(),
        **figures,
    }
    kind = re.sub(r"[^a-z0-9]+", "-", f"{about.get('cpu') or platform.machine()}".lower())
    suffix = figures.get("device") or f"{kind.strip('-')}-{about.get('cpus_logical')}cpu"
    path = HERE / "results" / f"{name}-{suffix}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"kept: {path.relative_to(HERE.parent)}")


def verdict(what: str, figure: float, limit: float, at_most: bool = True) -> bool:
    """Say whether a target was reached."""
    reached = figure <= limit if at_most else figure >= limit
    sign = "≤" if at_most else "≥"
    print(f"{what}: {figure:.4f} (target {sign} {limit}) {'reached' if reached else 'NOT REACHED'}")
    return reached


def bounded(what: str, found: dict[str, Any], limit: float = LIMIT) -> bool:
    """Whether the whole interval of an interleaved comparison is below what we may take."""
    print(f"ratio {found['ratio']:.4f} [{found['low_95']:.4f}, {found['high_95']:.4f}]")
    return verdict(f"{what}, upper bound", found["high_95"], limit)
