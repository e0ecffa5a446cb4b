"""The sentence of two devices or engines: its counts add up, and what is not counted is told."""

from __future__ import annotations

import math

from accelbench.analysis.comparison import Compared
from accelbench.analysis.ratios import LAUNCHES, SAMPLES, Ratio
from accelbench.analysis.sides import Side
from accelbench.analysis.speed_ups import SpeedUps
from accelbench.core.figures import Statistic
from accelbench.report.dashboard.entities.common_ground import CommonGround, answer, engines_beside


def line(model: str, value: float, low: float, high: float, of: str = LAUNCHES) -> Compared:
    side = Side(("b",), [{"model": model}])
    return Compared(side, side, Ratio(value, Statistic.MEAN, (3, 3), low, high, of))


def said(*lines: Compared) -> str:
    ground = CommonGround(SpeedUps(lines), len(lines), len(lines), {}, ((), ()))
    return answer(engines_beside("a", "b", "", {}), ground)


def test_counts_are_of_the_configurations_of_the_median_and_the_others_are_told() -> None:
    """Two that are faster for certain, by how much nobody knows, are not in the median."""
    side = Side(("b",), [{"model": "z"}])
    lines = [
        *(line(f"m{n}", 1.5, 1.4, 1.6) for n in range(3)),
        line("slow", 0.8, 0.7, 0.9),
        *(line(f"rough{n}", 5.0, 1.1, 20.0) for n in range(2)),
        Compared(side, side, refused="not alike: weights"),
    ]
    assert said(*lines) == (
        "b is 1.50× as fast as a in the median of 4 common configurations of 4 models: faster in 3;"
        " slower in 1. Beside these 2 known too roughly for a ratio and 1 not compared."
    )


def test_single_launches_are_counted_as_such() -> None:
    told = said(line("m", 1.5, 1.4, 1.6), line("n", 1.3, 1.2, 1.4, SAMPLES))
    assert told.endswith(": faster in 2, 1 of them within single launches.")


def test_two_devices_are_not_each_faster_than_the_other() -> None:
    """Of 4 and 0.125 the arithmetic middle is 2.06, and the other way round 4.13."""
    there = SpeedUps([line("m", 4.0, 3.9, 4.1), line("n", 0.125, 0.12, 0.13)]).median
    back = SpeedUps([line("m", 0.25, 0.24, 0.26), line("n", 8.0, 7.9, 8.1)]).median
    assert there is not None
    assert back is not None
    assert math.isclose(there * back, 1.0)
