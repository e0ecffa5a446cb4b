"""Arms of one run on this machine: nothing changed, then something did.

A tiny model against the very same environment, so that each difference between its arms is noise;
its launches are judged whole and in pieces of 5, 10 and 20 pairs, as they are and with 5 % put in.
Then the same model against one thread and against a graph that is not optimised.

    python benchmarks/arms.py --launches 40
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.judge.arms import judged_pairs
from accelbench.judge.verdicts import METRICS, Judged
from keeping import keep, verdict

_HOW = (
    *("bert-tiny", "--framework", "onnxruntime", "--hardware", "cpu", "--batch-sizes", "8"),
    *("--iterations", "200", "--warmup", "30", "--benchmark-only", "--quiet", "--json"),
)
_CHANGES = ("threads=1", "onnxruntime.optimization=disabled")
_SLOWER = 1.05


def measured(folder: Path, against: str, launches: int) -> dict[str, list[float]]:
    """The medians of both arms' launches, in the order of launches."""
    program = [sys.executable, "-m", "accelbench", "run", *_HOW, "--db", str(folder / "a.duckdb")]
    done = subprocess.run(
        [*program, "--launches", str(launches), "--against", against],
        check=True, stdout=subprocess.PIPE, cwd=folder,
    )  # fmt: skip
    found: dict[str, dict[int, float]] = {}
    for row in json.loads(done.stdout)["results"]:
        arm = "this" if row["arm"] == "this" else "other"
        found.setdefault(arm, {})[row["launch"]] = row["latency_p50_ms"]
    return {arm: [of[n] for n in sorted(of)] for arm, of in found.items()}


def in_pieces(arms: dict[str, list[float]], pairs: int, factor: float) -> dict[str, float]:
    """How often pieces of so many pairs come to which answer, with this arm slower by a factor."""
    found: Counter[str] = Counter()
    for at in range(0, len(arms["this"]) - pairs + 1, pairs):
        here = [one * factor for one in arms["this"][at : at + pairs]]
        there = arms["other"][at : at + pairs]
        found[judged_pairs(METRICS[0], there, here).answer.value] += 1
    return {answer: count / found.total() for answer, count in found.items()}


def told(found: Judged) -> dict[str, Any]:
    """What it came to."""
    return {
        "answer": found.answer.value,
        "worse_by": found.worse_by,
        "low": found.low,
        "high": found.high,
        "noise": None if found.noise is None else found.noise.value,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, default=40)
    launches = parser.parse_args().launches
    figures: dict[str, Any] = {"how": " ".join(_HOW), "launches": launches}
    reached: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        same = measured(folder, sys.prefix, launches)
        whole = judged_pairs(METRICS[0], same["other"], same["this"])
        figures["nothing changed"] = {**told(whole), "medians_ms": same}
        print(
            f"nothing changed: {whole.answer}, {whole.worse_by:+.2%}, noise {told(whole)['noise']}"
        )
        sizes = [k for k in (FEWEST_LAUNCHES, 10, 20, 40) if k <= launches]
        for factor in (1.0, _SLOWER):
            pieces = {k: in_pieces(same, k, factor) for k in sizes}
            figures[f"in pieces, {factor - 1.0:.0%} slower"] = pieces
            print(f"  {factor - 1.0:.0%} slower, by pairs: {pieces}")
        alarms = max(one.get("worse", 0.0) for one in figures["in pieces, 0% slower"].values())
        reached["false alarms"] = verdict("false alarms", alarms, 0.01)
        for change in _CHANGES:
            arms = measured(folder, change, launches // 4)
            found = judged_pairs(METRICS[0], arms["other"], arms["this"])
            figures[change] = {**told(found), "medians_ms": arms}
            print(f"against {change}: {found.answer}, {found.worse_by:+.1%}")
    keep("arms", {**figures, "reached": reached})


if __name__ == "__main__":
    main()
