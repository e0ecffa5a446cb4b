"""Scale: ten million results, made of public ones, imported and asked.

Public tables in one tidy schema are repeated with other latencies, days and runs until there are so
many, written as Parquet as `db export` writes it, and imported. Then `compare`, `check` and
`history` are asked of them, each a process of its own, the second time counted; beside each
stands a bare DuckDB that reads the same rows by one query, in a process of its own too. Then the
database becomes a lake, and the same is asked of the lake.

    python benchmarks/scale.py --tidy timm.parquet aihub.parquet …  [--results 10000000]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from accelbench.core.facts import FACT_VERSION, RUN_STARTED
from accelbench.core.precision import PRECISIONS
from accelbench.exchange.imports import tidy as tidy_tables
from accelbench.exchange.imports.result_row import Source
from accelbench.store.database import Database
from keeping import keep, verdict

#: Run a command from a process that holds nothing: what a parent held at its largest would count
#: as its child's. Prints seconds and KiB, after what the command printed.
_WATCHED = """
import os, sys, time
start = time.monotonic()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(f"\\n{time.monotonic() - start} {usage.ru_maxrss}")
sys.exit(os.waitstatus_to_exitcode(status))
"""
_QUERY = (
    "import duckdb, sys; con = duckdb.connect(sys.argv[1], read_only=True);"
    "print(len(con.execute(sys.argv[2]).fetchall()))"
)
_ACCELBENCH = (sys.executable, "-m", "accelbench")

RATE = 300_000  # results a second
EXPORTED = 1_000_000
SECONDS = 0.9
TIMES = 3.0  # those of a bare query
GIB = 2.0
_RUNS = 2000
_LAUNCHES = 5

#: Each figure again and again: launches of runs on other days, a little apart; a tenth of the
#: series became slower half-way. A rate goes with its latency. Results of our own have precisions
#: that we measure in.
_APART = """exp(0.01 * (hash(base.result_id, n) % 1000 / 500.0 - 1.0))
                * if(hash(base.series_key) % 10 = 0
                     AND (n // {launches}) % {runs} >= {runs} // 2, 1.1, 1)"""
_SYNTHESIS = f"""
COPY (
    SELECT base.* REPLACE (
            substr(md5(base.result_id || '/' || n), 1, 24) AS result_id,
            'measured' AS provenance,
            '{{{{}}}}' AS conditions,
            n % {{launches}} AS launch,
            latency_mean_ms * {_APART} AS latency_mean_ms,
            throughput / ({_APART}) AS throughput,
            TIMESTAMP '2020-01-01'
                + to_days(((n // {{launches}}) % {{runs}})::INTEGER) AS started_at
        ),
        'r' || lpad(((n // {{launches}}) % {{runs}})::VARCHAR, 5, '0') AS run_id
    FROM (
            SELECT DISTINCT ON (series_key) * FROM ({{queries}}) WHERE precision IN {PRECISIONS}
            ORDER BY hash(model), result_id LIMIT {{most}}
        ) base,
        range({{times}}) t(n)
) TO '{{path}}' (FORMAT parquet)
"""


@dataclass(frozen=True)
class Asked:
    """What is asked, and the bare query that reads the same."""

    name: str
    words: Sequence[str]
    bare: str


def synthesised(
    tidy: Sequence[Path],
    results: int,
    folder: Path,
    runs: int = _RUNS,
    launches: int = _LAUNCHES,
) -> Path:
    """A file of so many results."""
    path = folder / "results.parquet"
    queries = " UNION ALL BY NAME ".join(
        tidy_tables.table_sql(one, Source("scale")) for one in tidy
    )
    times = runs * launches
    con = duckdb.connect()
    con.execute(
        _SYNTHESIS.format(
            queries=queries,
            launches=launches,
            runs=runs,
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
    """Seconds and GiB of a process, and what it printed."""
    environment = {**os.environ, "ACCELBENCH_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", _WATCHED, *line],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 4):  # answers
        raise SystemExit(f"{' '.join(line)} ended with {done.returncode}")
    out, _, figures = done.stdout.rstrip().rpartition("\n")
    seconds, kib = figures.split()
    return float(seconds), int(kib) / 2**20, out


def warm(line: Sequence[str], folder: Path) -> tuple[float, float, str]:
    """The second time."""
    timed(line, folder)
    return timed(line, folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy", type=Path, nargs="+", required=True)
    parser.add_argument("--results", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where there is room for some 20 GB")
    asked = parser.parse_args()
    figures: dict[str, Any] = {}
    reached: dict[str, bool] = {}
    with tempfile.TemporaryDirectory(prefix="accelbench-scale-", dir=asked.folder) as name:
        folder = Path(name)
        path = synthesised([one.resolve() for one in asked.tidy], asked.results, folder)
        file = folder / "scale.duckdb"
        asking = [*_ACCELBENCH, "db", "import", "parquet", str(path), "--json", "--db", str(file)]
        seconds, gib, out = timed(asking, folder)
        count = json.loads(out)["results"]
        print(f"{count:,} results of {path.stat().st_size / 2**20:.0f} MB in {seconds:.1f} s")
        figures["import"] = {"results": count, "seconds": seconds, "gib": gib}
        reached["import"] = verdict("import, results a second", count / seconds, RATE, False)
        path.unlink()
        begin_runs(file)
        known = questions(Database(file))
        for one in known:
            figures[one.name] = answered(one, file, file, folder, reached)
        figures["export"] = exported(file, folder, reached)
        lake = folder / "lake"
        lake.mkdir()
        seconds, gib, _ = timed([*_ACCELBENCH, "db", "merge", str(file), "--db", str(lake)], folder)
        print(f"a lake of it after {seconds:.1f} s, {gib:.2f} GiB")
        figures["lake"] = {"seconds": seconds, "gib": gib}
        reached["lake, GiB"] = verdict("lake, GiB", gib, GIB)
        for one in known:
            figures[f"{one.name}, lake"] = answered(one, lake, file, folder, reached)
        keep("scale", {"results": count, "figures": figures, "reached": reached})


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


def exported(database: Path, folder: Path, reached: dict[str, bool]) -> dict[str, Any]:
    """All of it as Parquet."""
    path = folder / "exported.parquet"
    asking = [*_ACCELBENCH, "db", "export", str(path), "--json", "--db", str(database)]
    seconds, gib, out = timed(asking, folder)
    path.unlink()
    rate = json.loads(out)["results"] / seconds
    reached["export"] = verdict("export as Parquet, results a second", rate, EXPORTED, False)
    reached["export, GiB"] = verdict("export, GiB", gib, GIB)
    return {"seconds": seconds, "gib": gib, "rate": rate}


def answered(
    one: Asked, store: Path, database: Path, folder: Path, reached: dict[str, bool]
) -> dict[str, Any]:
    """Ask it of a store, and the bare query beside it of the database."""
    seconds, gib, out = warm([*_ACCELBENCH, *one.words, "--db", str(store)], folder)
    bare, _, rows = warm([sys.executable, "-c", _QUERY, str(database), one.bare], folder)
    said = json.loads(out)
    count = len(said.get("comparisons") or said.get("questions") or said.get("series") or ())
    name = one.name + (", lake" if store.is_dir() else "")
    print(
        f"{name}: {seconds:.2f} s, {gib:.2f} GiB, {count} answers; a bare query of"
        f" {rows.strip()} groups {bare:.2f} s, ratio {seconds / bare:.2f}"
    )
    reached[f"{name}, seconds"] = verdict(f"{name}, seconds", seconds, SECONDS)
    reached[f"{name}, times"] = verdict(f"{name}, bare queries", seconds / bare, TIMES)
    reached[f"{name}, GiB"] = verdict(f"{name}, GiB", gib, GIB)
    return {"seconds": seconds, "gib": gib, "answers": count, "bare_seconds": bare}


if __name__ == "__main__":
    main()
