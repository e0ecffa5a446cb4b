"""Regression on work and sizes: slopes where others show them, and honest intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from accelbench.predict.work_regression import WorkFigure, from_work


def made(count: int, slope: float = 0.0, spread: float = 0.0, kinds: int = 10) -> list[WorkFigure]:
    rng = np.random.default_rng(0)
    quirks = rng.normal(0.0, spread, kinds)
    return [
        WorkFigure(
            math.log(10.0) + slope * apart + quirks[number % kinds],
            (apart,),
            f"kind-{number % kinds}",
        )
        for number, apart in enumerate(rng.normal(0.0, 1.0, count))
    ]


def test_times_that_grow_as_operations_do_are_the_time_of_all() -> None:
    estimate = from_work(made(30))
    assert estimate.middle == pytest.approx(10.0)
    assert (estimate.low, estimate.high) == pytest.approx((10.0, 10.0))


def test_a_slope_that_the_others_show_is_taken_into_account() -> None:
    far = [
        WorkFigure(entry.log_ms + 0.6, (entry.apart[0] + 1.5,), entry.kind)
        for entry in made(60, slope=0.4)
    ]
    estimate = from_work(far)  # all of them are larger than what is asked
    assert estimate.middle == pytest.approx(10.0, rel=0.1)


def test_the_interval_is_of_kinds_that_were_left_out() -> None:
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(200):
        quirks = rng.normal(0.0, 0.3, 11)
        figures = [
            WorkFigure(math.log(10.0) + quirks[n % 10], (float(rng.normal(0, 0.5)),), str(n % 10))
            for n in range(60)
        ]
        estimate, true = from_work(figures), 10.0 * math.exp(quirks[10])
        inside.append(estimate.low <= true <= estimate.high)
    assert 0.83 <= np.mean(inside) <= 0.97


def test_one_figure_is_an_estimate_without_a_width() -> None:
    estimate = from_work([WorkFigure(math.log(5.0), (0.0, 1.0), "alone")])
    assert estimate.middle == pytest.approx(5.0, rel=0.01)
