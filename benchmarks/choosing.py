"""Choosing: is the measured best chosen, and what is chosen where a family was never measured?

A public table in the tidy schema is imported as anybody would. *Matched* cases are those that were
measured on several cards: one model, batch, precision, size of image, framework and mode. Different
batches of one model on two cards are no case of this kind, since cards differ in which batch suits
them; versions of the framework and layouts of memory are ways of one case, and a card stands there
with its best. The best is found by SQL of this file, the choice by `HardwareSelector`.

Then every family is hidden in turn: none of its figures is read, but how many operations and
weights its models have. The regret of a choice is how much slower the chosen card is than the best
one. Beside it stands the constant rule, always the card that is the fastest most often.

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
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

import duckdb

from accelbench import HardwareSelector
from accelbench.core.facts import new_run_id
from accelbench.exchange.imports import tidy as tidy_tables
from accelbench.exchange.imports.result_row import Source
from accelbench.select.evidence.cells import EvidenceCell, EvidencePlace, ModelKnowledge
from accelbench.select.evidence.reader import EvidenceStore
from accelbench.store.database import Database
from keeping import keep, verdict

WARM_MS, COLD_S = 50.0, 1.0
_TIMES, _WARMING = 100, 10

_CASES = """
SELECT model, batch_size, precision, image_size, mode, any_value(kin), any_value(parameters),
    max(flops / batch_size), map_from_entries(list((device_name, rate)))
FROM (
    SELECT model, batch_size, precision, image_size, mode, runtime, device_name,
        any_value(conditions->>'kin') AS kin, any_value(parameters) AS parameters,
        max(flops) AS flops, max(rate) AS rate
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


class Hidden(EvidenceStore):
    """A store without the figures of one kind of model."""

    kin = ""

    def cells(self, models: Sequence[str]) -> list[EvidenceCell]:
        return [cell for cell in super().cells(models) if cell.row.get("kin") != self.kin]

    def peers(self, place: EvidencePlace, known: ModelKnowledge) -> list[EvidenceCell]:
        found = super().peers(place, known)
        return [cell for cell in found if cell.row.get("kin") != self.kin]


def brought(path: Path, query: str) -> Database:
    """A database with the results of a query."""
    database = Database(path)
    database.bring_in(new_run_id(), [], queries=[query])
    return database


def cases(database: Database, hardware: str) -> list[dict[str, Any]]:
    """What was measured on several cards."""
    names = ("model", "batch", "precision", "image", "mode", "kin", "parameters", "flops", "rates")
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


def summary(regrets: Sequence[float], right: int) -> dict[str, float]:
    return {
        "best_chosen": right / len(regrets),
        "mean_regret": fmean(regrets),
        "p95_regret": quantiles(regrets, n=20, method="inclusive")[-1],
    }


def hidden(database: Database, known: Sequence[dict[str, Any]], hardware: str) -> dict[str, Any]:
    """Choices and estimates with each case's family out of sight, beside the constant rule."""
    store, selector = Hidden(database), HardwareSelector(database.path)
    selector._store = store
    store.cells(["nobody"])
    constant = Counter(max(c["rates"], key=c["rates"].__getitem__) for c in known).most_common(1)
    biggest = constant[0][0]
    ours, theirs, errors, right, fallen, sure = [], [], [], 0, 0, 0
    inside = 0
    bases: Counter[str] = Counter()
    for case in known:
        store.kin = case["kin"]
        answer = selector.select_hardware(
            **asked(case, hardware), parameters=case["parameters"], flops=case["flops"]
        )
        card = chosen(answer)
        ours.append(regret(case, card))
        theirs.append(regret(case, biggest))
        right += not ours[-1]
        sure += bool(answer["clear_winner"])
        fallen += bool(answer["clear_winner"] and ours[-1])
        for name, scores in answer["all_scores"].items():
            bases[scores["basis"]] += 1
            if "predictions" in scores:
                true = case["batch"] / case["rates"][name.partition(":")[2]] * 1e3
                said = scores["predictions"]
                errors.append(abs(said["latency"] / true - 1.0))
                inside += said["latency_low"] <= true <= said["latency_high"]
    return {
        "cases": len(known),
        "families": len({case["kin"] for case in known}),
        "choice": summary(ours, right),
        "constant_rule": {"card": biggest, **summary(theirs, sum(not one for one in theirs))},
        "called_clear": sure,
        "called_clear_and_wrong": fallen,
        "median_error_of_latency": median(errors) if errors else None,
        "inside_bounds": inside / len(errors) if errors else None,
        "bases": dict(bases),
    }


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


def show(found: dict[str, Any]) -> None:
    """The regrets as a table."""
    print(f"\n{found['cases']} cases of {found['families']} families, each family hidden in turn")
    print(f"  {'rule':44} {'best chosen':>11} {'mean regret':>11} {'95th':>7}")
    lines = {
        "accelbench": found["choice"],
        f"always {found['constant_rule']['card']}": found["constant_rule"],
    }
    for name, one in lines.items():
        print(
            f"  {name:44} {one['best_chosen']:11.1%} {one['mean_regret']:11.2%}"
            f" {one['p95_regret']:7.2%}"
        )
    print(
        f"  called clear: {found['called_clear']}, wrong: {found['called_clear_and_wrong']};"
        f" estimates off by {found['median_error_of_latency']:.1%} in the median,"
        f" {found['inside_bounds']:.0%} within their bounds; {found['bases']}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy", type=Path, required=True)
    parser.add_argument("--hardware", default="cuda", help="the platform whose cards compete")
    parser.add_argument("--results", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="accelbench-choosing-") as name:
        query = tidy_tables.query(options.tidy.resolve(), Source("tidy"))
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
        unseen = hidden(database, known, options.hardware)
        show(unseen)
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
            "family_hidden": unseen,
            "speed": {"results": results, **speed},
            "reached": reached,
        }
    keep("choosing", figures)


if __name__ == "__main__":
    main()
