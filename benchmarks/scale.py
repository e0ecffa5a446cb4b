"""Scale: ten million results, made of public ones, imported and asked.

Public tables in one tidy schema are repeated with other latencies, days and runs until there are so
many, written as Parquet as `db export` writes it, and imported. Then `compare`, `check` and
`history` are asked of them, each a process of its own, the second time counted; beside each
stands a bare DuckDB that reads the same rows by one query, in a process of its own too.

    python benchmarks/scale.py --tidy timm.parquet aihub.parquet …  [--results 10000000]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from accelbench.core.facts import FACT_VERSION, RUN_STARTED
from accelbench.exchange.imports import parquet
from accelbench.exchange.imports.foreign import Source
from accelbench.store.database import Database
from keeping import keep, verdict

RATE = 300_000  # results a second
SECONDS = 1.0
GIB = 2.0
_RUNS = 2000
_LAUNCHES = 5

#: Each figure again and again: launches of runs on other days, a little apart.
_SYNTHESIS = """
COPY (
    SELECT base.* REPLACE (
            substr(md5(base.result_id || '/' || n), 1, 24) AS result_id,
            'measured' AS provenance,
            '{{}}' AS conditions,
            n % {launches} AS launch,
            latency_mean_ms * exp(0.01 * (hash(base.result_id, n) % 1000 / 500.0 - 1.0))
                AS latency_mean_ms,
            TIMESTAMP '2020-01-01' + to_days(((n // {launches}) % {runs})::INTEGER) AS started_at
        ),
        'r' || lpad(((n // {launches}) % {runs})::VARCHAR, 5, '0') AS run_id
    FROM (FROM ({queries}) ORDER BY hash(model), result_id LIMIT {most}) base, range({times}) t(n)
) TO '{path}' (FORMAT parquet)
"""


@dataclass(frozen=True)
class Asked:
    """What is asked, and the bare query that reads the same."""

    name: str
    words: Sequence[str]
    bare: str


def synthesised(tidy: Sequence[Path], results: int, folder: Path) -> Path:
    """A file of so many results."""
    path = folder / "results.parquet"
    queries = " UNION ALL BY NAME ".join(parquet.tidy(one, Source("scale")) for one in tidy)
    times = _RUNS * _LAUNCHES
    con = duckdb.connect()
    con.execute(
        _SYNTHESIS.format(
            queries=queries,
            launches=_LAUNCHES,
            runs=_RUNS,
            most=-(-results // times),
            times=times,
            path=path,
        )
    )
    return path


def begin_runs(path: Path) -> None:
    """Say of the runs that the results are of when they began, on one machine."""
    machine = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 2**34}
    rows = []
    for number in range(_RUNS):
        run = f"r{number:05d}"
        body = {"run_id": run, "environment": machine, "git_commit": f"{number:040x}"}
        rows.append((RUN_STARTED, run, run, 1, FACT_VERSION, json.dumps(body)))
    with duckdb.connect(str(path)) as con:
        con.executemany("INSERT INTO fact VALUES (?, ?, ?, ?, ?, ?)", rows)


def timed(line: Sequence[str], folder: Path) -> tuple[float, float, str]:
    """Seconds and GiB of a process and what it started, the second time; what it printed."""
    found = (0.0, 0.0, "")
    for _ in range(2):
        start = time.monotonic()
        process = subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        spent = time.monotonic() - start
        if status not in (0, 256, 1024):  # 0, 1 and 4 are answers
            raise SystemExit(f"{' '.join(line)} ended with {status}")
        found = (spent, usage.ru_maxrss / 2**20, out)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy", type=Path, nargs="+", required=True)
    parser.add_argument("--results", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where there is room for some GB")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="accelbench-scale-", dir=asked.folder) as name:
        folder = Path(name)
        path = synthesised(asked.tidy, asked.results, folder)
        database = Database(folder / "scale.duckdb")
        database.ensure()
        start = time.monotonic()
        query = parquet.ours(path, Source("scale"))
        filled = database.bring_in("scale", (), queries=[query])
        spent = time.monotonic() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{filled.results:,} results of {path.stat().st_size / 2**20:.0f} MB in {spent:.1f} s"
        )
        begin_runs(database.path)
        reached = {"import": verdict("results a second", filled.results / spent, RATE, False)}
        figures = {"import": {"results": filled.results, "seconds": spent, "gib": peak}}
        for one in questions(database):
            figures[one.name] = answered(one, database.path, folder, reached)
        keep("scale", {"results": filled.results, "figures": figures, "reached": reached})


def questions(database: Database) -> list[Asked]:
    """One of each command, of a model that many have measured."""
    _, ((model,),) = database.query(
        "SELECT model FROM benchmark_results GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
    )
    last, before = f"r{_RUNS - 1:05d}", f"r{_RUNS - 2:05d}"
    figures = "list(latency_mean_ms), list(throughput), list(memory_peak_mb)"
    grouped = "GROUP BY series_key, run_id"
    of = f"FROM benchmark_results WHERE model = '{model}'"
    runs = f"FROM benchmark_results WHERE run_id IN ('{last}', '{before}')"
    return [
        Asked(
            "compare",
            ["compare", "--run", last, "--json"],
            f"SELECT series_key, {figures} {runs} AND run_id = '{last}' {grouped}",
        ),
        Asked(
            "check",
            ["check", "--run", last, "--baseline", before, "--json"],
            f"SELECT series_key, run_id, {figures} {runs} {grouped}",
        ),
        Asked(
            "history",
            ["history", model, "--json"],
            f"SELECT series_key, run_id, min(started_at), median(latency_mean_ms) {of} {grouped}",
        ),
    ]


def answered(one: Asked, path: Path, folder: Path, reached: dict[str, bool]) -> dict[str, Any]:
    """Ask it, and the bare query beside it."""
    line = [sys.executable, "-m", "accelbench", *one.words, "--db", str(path)]
    seconds, gib, out = timed(line, folder)
    code = (
        "import duckdb, sys; con = duckdb.connect(sys.argv[1], read_only=True);"
        "print(len(con.execute(sys.argv[2]).fetchall()))"
    )
    bare, _, rows = timed([sys.executable, "-c", code, str(path), one.bare], folder)
    said = json.loads(out)
    count = len(said.get("comparisons") or said.get("questions") or said.get("series") or ())
    print(
        f"{one.name}: {seconds:.2f} s, {gib:.2f} GiB, {count} answers; a bare query of"
        f" {rows.strip()} groups {bare:.2f} s, ratio {seconds / bare:.2f}"
    )
    reached[f"{one.name}, seconds"] = verdict(f"{one.name}, seconds", seconds, SECONDS)
    reached[f"{one.name}, GiB"] = verdict(f"{one.name}, GiB", gib, GIB)
    return {"seconds": seconds, "gib": gib, "answers": count, "bare_seconds": bare}


if __name__ == "__main__":
    main()
