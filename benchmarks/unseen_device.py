"""How far predictions are off on a device that none of them has seen, from its own measurements.

    python benchmarks/unseen_device.py MEASURED.duckdb --device "NVIDIA H200" \
        [--learn-from OTHERS.duckdb] MODEL…

Cases of MEASURED on the device are predicted three times: from its vendor's peaks, from the peaks
that its calibration measured, and by what OTHERS has measured elsewhere. Nothing is learned from
MEASURED, and a store that has the device is refused. Prints a line for each way, target and group.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from accelbench.judge.calibrations import stored_limits
from accelbench.predict.answers import PredictedFigures, answer
from accelbench.predict.cases import MeasuredCase
from accelbench.predict.stored_cases import stored_cases
from accelbench.predict.stored_predictors import Predictors, predictors_of
from accelbench.predict.terms import NOT_CALIBRATED, Calibrated
from accelbench.predict.traces import Traces
from accelbench.store.database import Database


def main() -> None:
    """Predict, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--device", required=True)
    parser.add_argument("--learn-from", type=Path)
    given = parser.parse_args()
    store = Database(given.measured)
    cases = [
        entry
        for entry in stored_cases(store).cases
        if entry.case.configuration.device == given.device
        and entry.case.model in given.models
        and entry.case.configuration.mode == "inference"
        and not entry.case.configuration.compiled
        and not entry.case.shapes.new_tokens
    ]
    print(f"{len(cases)} cases of {len({entry.case.model for entry in cases})} models")
    traces = Traces()
    nothing = predictors_of(None, traces)
    _told("its vendor's peaks", cases, nothing, NOT_CALIBRATED, traces)
    _told("its measured peaks", cases, nothing, stored_limits(store), traces)
    if given.learn_from is not None:
        others = predictors_of(Database(given.learn_from), traces, keep=False)
        if any(entry.case.configuration.device == given.device for entry in others.stored.cases):
            parser.error(f"{given.learn_from} has results of {given.device}")
        print(f"learned from {others.stored.said}")
        _told("others' devices", cases, others, others.calibrated, traces)


def _told(
    way: str,
    cases: Sequence[MeasuredCase],
    known: Predictors,
    calibrated: Calibrated,
    traces: Traces,
) -> None:
    asked = [entry.case for entry in cases]
    made = answer(asked, known.of, known.stored.learnable, traces, calibrated)
    pairs = list(zip(cases, made.figures, strict=True))
    print(f"{way}: {', '.join(sorted({figure['basis'] for figure in made.figures}))}")
    for target in ("latency", "memory"):
        _scored(f"  {target}, all", target, pairs)
        for precision in sorted({entry.case.configuration.precision for entry in cases}):
            for batch in sorted({entry.case.shapes.batch for entry in cases}):
                some = [
                    pair
                    for pair in pairs
                    if pair[0].case.configuration.precision == precision
                    and pair[0].case.shapes.batch == batch
                ]
                _scored(f"  {target}, {precision}, batch {batch}", target, some)


def _scored(name: str, target: str, pairs: Sequence[tuple[MeasuredCase, PredictedFigures]]) -> None:
    errors, inside, above = [], 0, 0
    for entry, figure in pairs:
        measured = entry.latency_ms if target == "latency" else entry.memory_mb
        if measured is None:
            continue
        unit = "ms" if target == "latency" else "mb"
        value, low, high = (
            float(figure[f"{target}_{end}{unit}"])  # type: ignore[literal-required]
            for end in ("", "low_", "high_")
        )
        errors.append(abs(value / measured - 1))
        inside += low <= measured <= high
        above += value > measured
    if errors:
        print(
            f"{name}: off by {statistics.median(errors):.0%} in the median, {inside} of"
            f" {len(errors)} inside, {above} predicted above"
        )


if __name__ == "__main__":
    main()
