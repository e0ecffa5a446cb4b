"""Scores of predicted TTFT and TPOT of servers, on systems and models that are left out.

Run `python benchmarks/prediction/serving.py --tables DIR --measured FILE`. The file is imported
into a store of its own and asked through the functions that `accelbench predict --serving` calls.
A configuration is an engine, system, model, precision and parallelism. Points of a configuration
that has ten or fewer are scored without their own half.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# The folder of this file would put its modules beside everybody's.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from accelbench.exchange.imports.reading import read_import  # noqa: E402
from accelbench.predict.serving.models import (  # noqa: E402
    MeasuredServer,
    architecture_name,
    measured_servers,
)
from accelbench.predict.serving.predictor import (  # noqa: E402
    ServingPredictor,
    ServingTimes,
)
from accelbench.store.database import Database  # noqa: E402

ANCHORS = 10


@dataclass(frozen=True)
class Fold:
    """Points to learn from and points to predict."""

    known: list[MeasuredServer]
    asked: list[MeasuredServer]


def folds(points: Sequence[MeasuredServer], by: str) -> Iterator[Fold]:
    """Yield folds that leave out a system, a model or both."""
    systems = {point.question.system for point in points}
    models = {architecture_name(point.question.model) for point in points}
    pairs = {
        "system": [(system, None) for system in systems],
        "model": [(None, model) for model in models],
        "both": [(system, model) for system in systems for model in models],
    }[by]
    for system, model in sorted(pairs, key=str):

        def hits(point: MeasuredServer, system: str | None, model: str | None) -> list[bool]:
            found = [] if system is None else [point.question.system == system]
            if model is not None:
                found.append(architecture_name(point.question.model) == model)
            return found

        asked = [point for point in points if all(hits(point, system, model))]
        known = [point for point in points if not any(hits(point, system, model))]
        if asked:
            yield Fold(known, asked)


def with_anchors(fold: Fold, seed: int) -> Fold:
    """Move ten points of each configuration, or half of fewer, to those that are known."""
    random = np.random.default_rng(seed)
    groups: dict[object, list[MeasuredServer]] = {}
    for point in fold.asked:
        groups.setdefault(point.question.configuration, []).append(point)
    known, asked = list(fold.known), []
    for points in groups.values():
        order = random.permutation(len(points))
        count = ANCHORS if len(points) > ANCHORS else len(points) // 2
        known += [points[i] for i in order[:count]]
        asked += [points[i] for i in order[count:]]
    return Fold(known, asked)


def score(pairs: list[tuple[float, tuple[float, float, float]]]) -> dict[str, float]:
    """Return the median error in percent, shares within 2× and inside the band, and the number."""
    true = np.array([measured for measured, _ in pairs])
    low, value, high = np.array([band for _, band in pairs]).T
    ratio = value / true
    return {
        "median_error": round(float(np.median(np.abs(ratio - 1))) * 100, 1),
        "within_2x": round(float(np.mean(np.abs(np.log(ratio)) < np.log(2))) * 100, 1),
        "coverage90": round(float(np.mean((low <= true) & (true <= high))) * 100, 1),
        "n": len(pairs),
    }


def evaluate(
    points: Sequence[MeasuredServer], times: ServingTimes, keep: Path, by: str, anchors: bool
) -> dict[str, dict[str, float]]:
    """Return the scores of both targets, all points and each mode."""
    found: dict[str, list[tuple[float, tuple[float, float, float]]]] = {}
    for number, fold in enumerate(folds(points, by)):
        fold = with_anchors(fold, number) if anchors else fold
        if not fold.asked:
            continue
        predictor = ServingPredictor(times, fold.known, keep)
        answers = predictor.predict([point.question for point in fold.asked], keep)
        for point, answer in zip(fold.asked, answers, strict=True):
            for target in ("tpot", "ttft"):
                pair = (getattr(point, target), getattr(answer, target))
                for name in (target, f"{target} {point.question.mode}"):
                    found.setdefault(name, []).append(pair)
    return {name: score(pairs) for name, pairs in sorted(found.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--measured", type=Path, required=True)
    parser.add_argument("--by", nargs="+", default=["system", "model", "both"])
    parser.add_argument("--keep", type=Path, help="file of expected times, kept between calls")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "measured.duckdb")
        content = read_import("aiconfigurator", words.measured)
        database.bring_in(content.run_id, content.facts, content.bodies, content.queries)
        points = measured_servers(database)
        times = ServingTimes(words.tables)
        keep = words.keep or Path(folder) / "expected.json"
        for by in words.by:
            for anchors in (False, True):
                scores = evaluate(points, times, keep, by, anchors)
                print(json.dumps({"left_out": by, "anchors": anchors * ANCHORS, **scores}))


if __name__ == "__main__":
    main()
