"""Choosing: is the measured best chosen, and how long does an answer take?

A public table in the tidy schema is imported as anybody would. *Matched* cases are those that were
measured on several cards: one model, batch, precision, size of image, framework and mode. Different
batches of one model on two cards are no case of this kind, since cards differ in which batch suits
them; versions of the framework and layouts of memory are ways of one case, and a card stands there
with its best. The best is found by SQL of this file, the choice by `HardwareSelector`.

Last, how long one recommendation takes over so many results, made from the same table by repeating
it under other names and runs: warm in one process, a model that was not asked about before each
time, and cold, `accelbench recommend` as a process of its own.

    python benchmarks/choosing.py --tidy timm.parquet
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import duckdb

from accelbench import HardwareSelector
from accelbench.core.facts import new_run_id
from accelbench.exchange.imports import tidy as tidy_tables
from accelbench.exchange.imports.result_row import Source
from accelbench.store.database import Database
from keeping import keep, verdict

WARM_MS, COLD_S = 50.0, 1.0
_TIMES, _WARMING = 100, 10

_CASES = """
SELECT model, batch_size, precision, image_size, mode, map_from_entries(list((device_name, rate)))
FROM (
    SELECT model, batch_size, precision, image_size, mode, runtime, device_name, max(rate) AS rate
    FROM (
        SELECT *, exp(avg(ln(throughput)) OVER (PARTITION BY series_key, conditions->>'engine'))
            AS rate
        FROM benchmark_results WHERE status = 'ok' AND hardware = ?
    ) GROUP BY ALL
) GROUP BY model, batch_size, precision, image_size, mode, runtime
HAVING count(*) > 1
ORDER BY ALL
"""
#: The same figures of other models: a copy of each under another name.
_MANY = """
SELECT base.* REPLACE (
    substr(md5(result_id || '/' || n), 1, 24) AS result_id,
    series_key || n AS series_key,
    model || CASE n WHEN 0 THEN '' ELSE '-' || n END AS model)
FROM ({query}) AS base, range({times}) t(n) LIMIT {most}
"""


def brought(path: Path, query: str) -> Database:
    """A database with the results of a query."""
    database = Database(path)
    database.bring_in(new_run_id(), [], queries=[query])
    return database


def cases(database: Database, hardware: str) -> list[dict[str, Any]]:
    """What was measured on several cards."""
    names = ("model", "batch", "precision", "image", "mode", "rates")
    _, rows = database.query(_CASES, [hardware])
    return [dict(zip(names, row, strict=True)) for row in rows]


def asked(case: dict[str, Any], hardware: str) -> dict[str, Any]:
    """A case in the words of the selector."""
    return {
        "model_family": "vision",
        "model_name": case["model"],
        "batch_size": case["batch"],
        "mode": case["mode"],
        "available_hardware": [f"{hardware}:{name}" for name in sorted(case["rates"])],
        "precision": case["precision"],
        "shapes": {} if case["image"] is None else {"image_size": case["image"]},
    }


def chosen(answer: dict[str, Any]) -> str:
    return str(answer["primary_recommendation"]).partition(":")[2]


def regret(case: dict[str, Any], card: str) -> float:
    """How much slower a card is than the best one."""
    return max(case["rates"].values()) / case["rates"][card] - 1.0


def timed(database: Database) -> dict[str, float]:
    """Milliseconds of one recommendation, each of another model; and seconds of a process."""
    _, rows = database.query(
        "SELECT model, max(batch_size) FROM benchmark_results GROUP BY model ORDER BY md5(model)"
        f" LIMIT {_TIMES + _WARMING}"
    )
    selector = HardwareSelector(database.path)
    begun = time.perf_counter()
    for model, batch in rows[:_WARMING]:  # one of them reads everything
        selector.select_hardware("vision", model, batch)
    first = time.perf_counter() - begun
    warm = []
    for model, batch in rows[_WARMING:]:
        begun = time.perf_counter()
        selector.select_hardware("vision", model, batch)
        warm.append((time.perf_counter() - begun) * 1e3)
    cold, program = [], Path(sys.executable).with_name("accelbench")
    for model, batch in rows[:5]:
        begun = time.perf_counter()
        line = [str(program), "recommend", model, "--batch-size", str(batch), "--db"]
        subprocess.run([*line, str(database.path)], check=True, stdout=subprocess.PIPE)
        cold.append(time.perf_counter() - begun)
    return {
        "warming_up_s": first,
        "warm_median_ms": median(warm),
        "warm_p95_ms": quantiles(warm, n=20, method="inclusive")[-1],
        "warm_worst_ms": max(warm),
        "cold_median_s": median(cold),
        "cold_worst_s": max(cold),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy", type=Path, required=True)
    parser.add_argument("--hardware", default="cuda", help="the platform whose cards compete")
    parser.add_argument("--results", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="accelbench-choosing-") as name:
        query = tidy_tables.table_sql(options.tidy.resolve(), Source("tidy"))
        database = brought(Path(name) / "tidy.duckdb", query)
        known = cases(database, options.hardware)
        selector = HardwareSelector(database.path)
        wrong = [
            case
            for case in known
            if regret(case, chosen(selector.select_hardware(**asked(case, options.hardware))))
        ]
        share = 1.0 - len(wrong) / len(known)
        print(f"measured on several cards: {len(known)} cases, the best chosen in {share:.2%}")
        for case in wrong[:5]:
            print(f"  not: {case}")
        reached = {"measured best is chosen": verdict("measured best chosen", share, 1.0, False)}
        ((rows,),) = duckdb.execute(
            "SELECT count(*) FROM read_parquet(?)", [str(options.tidy)]
        ).fetchall()
        many = _MANY.format(query=query, times=-(-options.results // rows), most=options.results)
        large = brought(Path(name) / "large.duckdb", many)
        ((results,),) = large.query("SELECT count(*) FROM benchmark_results")[1]
        speed = timed(large)
        print(f"\none recommendation over {results:,} results: {speed}")
        reached["warm"] = verdict("warm, 95th, ms", speed["warm_p95_ms"], WARM_MS)
        reached["cold"] = verdict("cold process, s", speed["cold_median_s"], COLD_S)
        figures = {
            "matched": {"cases": len(known), "best_chosen": share},
            "speed": {"results": results, **speed},
            "reached": reached,
        }
    keep("choosing", figures)


if __name__ == "__main__":
    main()
