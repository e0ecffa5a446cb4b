"""The report of five thousand results: how long does it take, and how large is the file?

Rows of public tables, imported into a database: once as a thousand cells of five launches each,
once as five thousand cells of one. The command is timed as a whole process, again and again, and
the slowest counts; what of that its processor worked is told beside it, since other work on the
machine lengthens the one and hardly the other. Modules are compiled before, as an installation has
them. With the sources of another version both are timed in turns, and their pages held together.

    python benchmarks/whole_report.py --tidy timm.parquet ncnn.parquet …  [--results 5000]
        [--against OTHER/src] [--times 5]
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scale
from keeping import HERE, keep, verdict

SECONDS = 5.0
MEGABYTES = 5.0
_LAUNCHES = (5, 1)
#: When a page was made, which no two of them have alike.
_MADE = re.compile(r"Made [\d: -]+ UTC\.")


@dataclass(frozen=True)
class Version:
    """Sources of accelbench, and how long their reports took: on the clock, and of a processor."""

    source: Path
    seconds: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)


def made(folder: Path, tidy: Sequence[Path], results: int, launches: int) -> Path:
    """A database of one run with so many results."""
    rows = scale.synthesised(tidy, results, folder, runs=1, launches=launches)
    file = folder / f"launches-{launches}.duckdb"
    line = [sys.executable, "-m", "accelbench", "db", "import", "parquet", str(rows)]
    subprocess.run([*line, "--db", str(file)], check=True, capture_output=True)
    rows.unlink()
    return file


def reported(file: Path, version: Version) -> str:
    """The page, of which the times are kept."""
    page = file.with_suffix(".html")
    page.unlink(missing_ok=True)
    line = [sys.executable, "-m", "accelbench", "report", "--db", str(file), "--output", str(page)]
    before, begun = _worked(), time.monotonic()
    subprocess.run(line, check=True, capture_output=True, env=_environment(file.parent, version))
    version.seconds.append(time.monotonic() - begun)
    version.worked.append(_worked() - before)
    return page.read_text(encoding="utf-8")


def _worked() -> float:
    """What a processor worked for processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment(folder: Path, version: Version) -> dict[str, str]:
    """One in which modules are compiled once."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(version.source), "PYTHONPYCACHEPREFIX": str(folder / "pyc")}


def timed(file: Path, versions: Sequence[Version], times: int) -> dict[str, Any]:
    """Figures of one database, the versions in turns."""
    pages = [reported(file, version) for version in versions]
    for version in versions:  # its modules were compiled
        version.seconds.clear()
        version.worked.clear()
    for turn in range(times):
        for version in versions if turn % 2 == 0 else reversed(versions):
            reported(file, version)
    ours, *others = versions
    figures: dict[str, Any] = {
        "seconds": ours.seconds,
        "processor_seconds": ours.worked,
        "mb": len(pages[0].encode()) / 1e6,
    }
    for other in others:
        figures["other"] = {"seconds": other.seconds, "processor_seconds": other.worked}
        figures["alike"] = len({_MADE.sub("", page) for page in pages}) == 1
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy", type=Path, nargs="+", required=True)
    parser.add_argument("--results", type=int, default=5000)
    parser.add_argument("--against", type=Path, help="sources of another version: its src")
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    sources = [HERE.parent / "src", *([asked.against.resolve()] if asked.against else [])]
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="accelbench-report-") as name:
        tidy = [one.resolve() for one in asked.tidy]
        for launches in _LAUNCHES:
            file = made(Path(name), tidy, asked.results, launches)
            found = timed(file, [Version(source) for source in sources], asked.times)
            print(f"{asked.results} results, {launches} of each cell: {_said(found)}")
            figures[f"launches_{launches}"] = found
    slowest = max(max(one["seconds"]) for one in figures.values())
    largest = max(one["mb"] for one in figures.values())
    reached = {
        "seconds": verdict("slowest report, seconds", slowest, SECONDS),
        "mb": verdict("largest report, MB", largest, MEGABYTES),
    }
    keep("whole_report", {"results": asked.results, "figures": figures, "reached": reached})


def _said(found: dict[str, Any]) -> str:
    words = f"{_slowest(found)}, {found['mb']:.2f} MB"
    if "other" not in found:
        return words
    pages = "the same page" if found["alike"] else "another page"
    return f"{words}; the other version {_slowest(found['other'])}, {pages}"


def _slowest(found: dict[str, Any]) -> str:
    return f"{max(found['seconds']):.2f} s ({max(found['processor_seconds']):.2f} s of a processor)"


if __name__ == "__main__":
    main()
