"""Change points: which of the steps that were put in are found, and how many that were not?

Series are real: latencies of one model on one device over the releases of Qualcomm AI Hub's models,
put in another order, four neighbours at a time, so that most of what really happened in them is
gone and their noise stays, outliers and likeness of neighbours included. Into half of them one
or two steps of 5 to 30 % are put at known places. A step counts as found within two points of
its place. Beside ours stand apache-otava with its defaults and asv's step detection, where
they are installed:

    pip install asv && pip install --no-deps apache-otava
    python benchmarks/history_quality.py --series aihub.parquet
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.measure.changes import find_changes
from keeping import keep, verdict

_FEWEST = 12  # points of a series
_MOST_SERIES = 1500
_NEAR = 2  # points
_TOGETHER = 4  # neighbours that stay so
_SIZES = (0.05, 0.1, 0.2, 0.3)
_SEED = 0


@dataclass(frozen=True)
class Labelled:
    """A series, and where steps were put into it."""

    values: Sequence[float]
    steps: Sequence[int]
    noise: float


Finder = Callable[[Sequence[float]], list[int]]


def ours(values: Sequence[float]) -> list[int]:
    """The steps of `accelbench history`."""
    return [step.at for step in find_changes(values).steps]


def otava() -> Finder | None:
    """apache-otava with the defaults of its own command."""
    try:
        from otava.series import AnalysisOptions, Metric, Series
    except ImportError:
        return None

    def found(values: Sequence[float]) -> list[int]:
        times = list(range(len(values)))
        metrics = {"time": Metric(direction=-1)}
        series = Series("s", None, times, metrics, {"time": list(values)}, {})
        changes = series.analyze(AnalysisOptions()).change_points["time"]
        return [change.index for change in changes]

    return found


def asv() -> Finder | None:
    """asv's step detection, with the rule by which it tells regressions from noise."""
    try:
        from asv.step_detect import detect_steps
    except ImportError:
        return None

    def found(values: Sequence[float]) -> list[int]:
        return [int(left) for left, *_ in detect_steps(list(values))[1:]]

    return found


def real(path: Path) -> Iterator[list[float]]:
    """Series of one thing measured release after release, oldest first."""
    import duckdb

    rows = duckdb.execute(
        """
        SELECT list(latency_ms ORDER BY extra->>'date') FROM read_parquet(?)
        WHERE latency_ms > 0.5
        GROUP BY model, hardware_name, runtime, precision, batch_size, img_size, seq_len, mode,
            extra->>'component'
        HAVING count(*) >= ? ORDER BY hash(model, hardware_name, runtime, precision) LIMIT ?
        """,
        [str(path), _FEWEST, _MOST_SERIES],
    ).fetchall()
    for (values,) in rows:
        yield values


def labelled(series: Sequence[float], rng: np.random.Generator) -> Labelled:
    """The same figures in another order, with steps put in or without."""
    blocks = [series[at : at + _TOGETHER] for at in range(0, len(series), _TOGETHER)]
    values = np.concatenate([blocks[i] for i in rng.permutation(len(blocks))])
    noise = float(np.median(np.abs(np.diff(np.log(values))))) / 0.954
    count = int(rng.choice([0, 0, 1, 2]))
    inside = np.arange(3, len(values) - 3)
    places = sorted(int(at) for at in rng.choice(inside, size=count, replace=False))
    if len(places) == 2 and places[1] - places[0] < 4:
        places = places[:1]
    for at in places:
        size = float(rng.choice(_SIZES))
        values[at:] *= 1.0 + size if rng.random() < 0.5 else 1.0 / (1.0 + size)
    return Labelled([float(one) for one in values], places, noise)


def scored(finder: Finder, series: Sequence[Labelled]) -> dict[str, float]:
    """Precision and recall over all of them."""
    hits = wrong = missed = 0
    for one in series:
        left = list(one.steps)
        for at in finder(one.values):
            near = min(left, key=lambda step: abs(step - at), default=None)
            if near is not None and abs(near - at) <= _NEAR:
                left.remove(near)
                hits += 1
            else:
                wrong += 1
        missed += len(left)
    precision = hits / (hits + wrong) if hits + wrong else 1.0
    recall = hits / (hits + missed) if hits + missed else 1.0
    both = precision + recall
    return {
        "found": hits,
        "invented": wrong,
        "missed": missed,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=Path, required=True)
    asked = parser.parse_args()
    rng = np.random.default_rng(_SEED)
    every = [labelled(one, rng) for one in real(asked.series)]
    sets = {
        "noise up to 2 %": [one for one in every if one.noise <= 0.02],
        "all": every,
    }
    finders: dict[str, Finder | None] = {"accelbench history": ours, "otava": otava(), "asv": asv()}
    figures: dict[str, Any] = {}
    for what, series in sets.items():
        print(f"{what}: {len(series)} series, {sum(len(one.steps) for one in series)} steps")
        figures[what] = {"series": len(series), "steps": sum(len(one.steps) for one in series)}
        for name, finder in finders.items():
            if finder is None:
                print(f"  {name:20} is not installed")
                continue
            found = figures[what][name] = scored(finder, series)
            print(
                f"  {name:20} precision {found['precision']:.3f}, recall {found['recall']:.3f},"
                f" f1 {found['f1']:.3f}"
            )
    reached = {}
    for what, one in figures.items():
        for other in ("otava", "asv"):
            if other in one:
                least = one[other]["f1"]
                name = f"{what}: f1 beside {other}"
                reached[name] = verdict(name, one["accelbench history"]["f1"], least, at_most=False)
    keep("history_quality", {"sets": figures, "reached": reached})


if __name__ == "__main__":
    main()
