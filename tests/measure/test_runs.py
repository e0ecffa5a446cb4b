"""By how much runs differ: from history, else by the stated prior."""

from __future__ import annotations

import math

import numpy as np
import pytest

from accelbench.measure.launches import Noise
from accelbench.measure.runs import MOST_NEIGHBOURS, PRIOR, noise_between
from accelbench.measure.unpaired import Apart, unpaired_interval

SIGMA = 0.02


def history(tau: float, runs: int, launches: int = 5, seed: int = 0) -> list[list[float]]:
    """Runs of one thing, each with an error of its own."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(0.0, tau, runs)
    return [np.exp(rng.normal(middle, SIGMA, launches)).tolist() for middle in middles]


def test_without_a_history_the_prior_stands() -> None:
    assert noise_between([]) == PRIOR
    assert noise_between([[10.0, 10.1]]) == PRIOR
    # A change counts from 17 % on, however many launches: so the docs say.
    detected = Apart(0.0, 40, 40, PRIOR).reach(0.995)
    assert math.expm1(detected) == pytest.approx(0.18, abs=0.01)


@pytest.mark.parametrize("tau", [0.005, 0.01, 0.03, 0.06])
def test_a_long_history_tells(tau: float) -> None:
    found = [noise_between(history(tau, 40, seed=seed)) for seed in range(20)]
    assert float(np.median([one.value for one in found])) == pytest.approx(tau, rel=0.35)
    assert all(one.freedom == PRIOR.freedom + 39 for one in found)


def test_what_launches_explain_is_no_noise_of_runs() -> None:
    found = noise_between(history(0.0, 40))
    assert found.value < SIGMA / math.sqrt(5)


def test_a_step_that_stayed_is_the_program_and_what_came_back_the_machine() -> None:
    quiet = history(0.002, 20, launches=20)
    stepped = [run if n < 10 else [1.3 * one for one in run] for n, run in enumerate(quiet)]
    assert noise_between(stepped).value == pytest.approx(noise_between(quiet).value, rel=0.2)
    spiked = [[1.3 * one for one in run] if n in (5, 11) else run for n, run in enumerate(quiet)]
    assert noise_between(spiked).value > 5 * noise_between(quiet).value


def test_neighbours_count_once_each_however_long_their_history() -> None:
    beside = [history(0.002, 30, seed=n) for n in range(3)]
    found = noise_between([], beside)
    assert found.freedom == PRIOR.freedom + 3
    assert found.value < PRIOR.value
    many = noise_between([], [history(0.06, 10, seed=n) for n in range(20)])
    assert many.freedom == PRIOR.freedom + MOST_NEIGHBOURS
    assert many.value > PRIOR.value
    assert noise_between([], [history(0.06, 3)]) == PRIOR  # three runs are no observation


def test_the_interval_of_two_runs_has_both_errors() -> None:
    a, b = history(0.0, 2, launches=8)
    alone = unpaired_interval(a, b)
    apart = unpaired_interval(a, b, runs=Noise(0.02, 3.0))
    assert alone is not None
    assert apart is not None
    assert apart.ratio == alone.ratio
    assert apart.high / apart.low > alone.high / alone.low
    assert apart.p_value > alone.p_value
    # With launches that agree to the last digit only the runs are left.
    only = unpaired_interval([1.0] * 5, [1.1] * 5, 0.99, Noise(0.02, 3.0))
    assert only is not None
    reach = 5.8409 * 0.02 * math.sqrt(2.0)  # t at 99.5 % with three degrees of freedom
    assert math.log(only.high) - math.log(1.1) == pytest.approx(reach, rel=1e-4)
