"""Do predictions keep the order of what vendors document, on a grid of models and batches?

A store with results of two cards of one line is asked about both in every precision, eager and
compiled. Counted are cases in which the greater card is slower, a narrow type is slower than fp32,
and a larger batch is quicker.

    python benchmarks/prediction/limits_order.py results.duckdb
        [--cards "NVIDIA GeForce RTX 3090" "NVIDIA GeForce RTX 4090"] [--models NAME …]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from accelbench.core.case import Shapes
from accelbench.models.find import every_model
from accelbench.models.inputs import settle
from accelbench.predict.answers import answer
from accelbench.predict.cases import CaseConfiguration, PredictedCase, family_of
from accelbench.predict.stored_predictors import predictors_of
from accelbench.predict.traces import Traces
from accelbench.store.database import Database

_BATCHES = tuple(2**power for power in range(9))
_NARROW = ("amp-fp16", "bf16", "fp16")
_CATALOGUED = 25
#: By so much a time may exceed another, as figures are shown.
_ROUNDING = 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument(
        "--cards", nargs=2, default=["NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4090"]
    )
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--options", default='{"layout":"nchw"}')
    given = parser.parse_args()
    traces = Traces(trace=False)
    predictors = predictors_of(Database(given.database), traces)
    usual = [spec.id for spec in every_model() if "tiny" not in spec.id][:_CATALOGUED]
    specs = [traces.spec(name) for name in given.models or usual]
    shapes = [(spec, settle(spec, Shapes(batch))) for spec in specs for batch in _BATCHES]
    places = {
        (card, precision, compiled): CaseConfiguration(
            "cuda", card, "pytorch", precision, "inference", compiled, None, given.options
        )
        for card in given.cards
        for precision in ("fp32", *_NARROW)
        for compiled in (False, True)
    }
    times = {}
    for key, place in places.items():
        cases = [PredictedCase(spec.id, family_of(spec), size, place) for spec, size in shapes]
        figures = answer(
            cases, predictors.of, predictors.stored.learnable, traces, predictors.calibrated
        ).figures
        times[key] = np.array([figure["latency_ms"] for figure in figures])

    def exceeded(some: np.ndarray, other: np.ndarray) -> dict[str, float]:
        ratio = some / other
        count = int((ratio > 1.0 + _ROUNDING).sum())
        return {"cases": len(ratio), "wrong": count, "worst": round(float(ratio.max()), 3)}

    lesser, greater = given.cards
    report = {
        f"{precision}{' compiled' * compiled}": {
            "greater card slower": exceeded(
                times[greater, precision, compiled], times[lesser, precision, compiled]
            ),
            **(
                {
                    f"slower than fp32 on {card}": exceeded(
                        times[card, precision, compiled], times[card, "fp32", compiled]
                    )
                    for card in given.cards
                }
                if precision in _NARROW
                else {}
            ),
        }
        for precision in ("fp32", *_NARROW)
        for compiled in (False, True)
    }
    by_batch = np.concatenate([time.reshape(-1, len(_BATCHES)) for time in times.values()])
    falling = by_batch[:, :-1] / by_batch[:, 1:] > 1.0 + _ROUNDING
    print(json.dumps({**report, "larger batch quicker": int(falling.sum())}, indent=2))


if __name__ == "__main__":
    main()
