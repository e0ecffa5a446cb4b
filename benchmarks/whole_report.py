"""The report of five thousand results: how long does it take, and how large is the file?

Rows of public tables, imported into a database: once as a thousand cells of five launches each,
once as five thousand cells of one. The command is timed as a whole process, again and again, and
the slowest counts.

    python benchmarks/whole_report.py --tidy timm.parquet ncnn.parquet …  [--results 5000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scale
from keeping import keep, verdict

SECONDS = 5.0
MEGABYTES = 5.0
_TIMES = 5
_LAUNCHES = (5, 1)


def made(folder: Path, tidy: Sequence[Path], results: int, launches: int) -> Path:
    """A database of one run with so many results."""
    rows = scale.synthesised(tidy, results, folder, runs=1, launches=launches)
    file = folder / f"launches-{launches}.duckdb"
    line = [sys.executable, "-m", "accelbench", "db", "import", "parquet", str(rows)]
    subprocess.run([*line, "--db", str(file)], check=True, capture_output=True)
    rows.unlink()
    return file


def reported(file: Path) -> tuple[float, float]:
    """Seconds until the report is there, and its size in MB of 10^6 bytes."""
    page = file.with_suffix(".html")
    page.unlink(missing_ok=True)
    line = [sys.executable, "-m", "accelbench", "report", "--db", str(file), "--output", str(page)]
    begun = time.monotonic()
    subprocess.run(line, check=True, capture_output=True)
    return time.monotonic() - begun, page.stat().st_size / 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy", type=Path, nargs="+", required=True)
    parser.add_argument("--results", type=int, default=5000)
    asked = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="accelbench-report-") as name:
        tidy = [one.resolve() for one in asked.tidy]
        for launches in _LAUNCHES:
            file = made(Path(name), tidy, asked.results, launches)
            found = [reported(file) for _ in range(_TIMES)]
            seconds, size = max(one for one, _ in found), found[-1][1]
            print(
                f"{asked.results} results, {launches} of each cell: {seconds:.2f} s, {size:.2f} MB"
            )
            figures[f"launches_{launches}"] = {"seconds": [one for one, _ in found], "mb": size}
    slowest = max(max(one["seconds"]) for one in figures.values())
    largest = max(one["mb"] for one in figures.values())
    reached = {
        "seconds": verdict("slowest report, seconds", slowest, SECONDS),
        "mb": verdict("largest report, MB", largest, MEGABYTES),
    }
    keep("whole_report", {"results": asked.results, "figures": figures, "reached": reached})


if __name__ == "__main__":
    main()
