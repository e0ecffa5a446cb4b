"""By how much runs differ: from history, else by the stated prior."""

import math

import numpy as np
import pytest

from accelbench.measure.launch_verdicts import Noise
from accelbench.measure.run_to_run_noise import (
    MOST_NEIGHBOURS,
    PRIOR,
    UnpairedPower,
    find_gate_noise,
    noise_between,
    unpaired_interval,
)

SIGMA = 0.02


def history(tau, runs, launches=5, seed=0):
    """Runs of one thing, each with an error of its own."""
    rng = np.random.default_rng(seed)
    middles = rng.normal(0.0, tau, runs)
    return [np.exp(rng.normal(middle, SIGMA, launches)).tolist() for middle in middles]


def test_the_prior_stands_without_a_history():
    assert noise_between([]) == PRIOR
    assert noise_between([[10.0, 10.1]]) == PRIOR
    # An interval of 99 % reaches 18 %, however many launches: the prior of a comparison is weak.
    detected = UnpairedPower(0.0, 40, 40, PRIOR).error_at(0.995)
    assert math.expm1(detected) == pytest.approx(0.18, abs=0.01)

    assert find_gate_noise([]) == KNOWN
    assert find_gate_noise([[10.0, 10.1]]) == KNOWN
    # 2.33 · √2 · 2 %, where three degrees of freedom would come to 4.54 · √2 · 2 %.
    assert UnpairedPower(0.0, 40, 40, KNOWN).error_at(0.99) == pytest.approx(
        2.326348 * math.sqrt(2) * 0.02, rel=1e-5
    )


KNOWN = Noise(PRIOR.value, math.inf)


def of_means(*logs):
    """Runs of two launches that agree, so that their means are all that differs."""
    return [[math.exp(one)] * 2 for one in logs]


def spaced(count, deviation):
    """Runs whose means have exactly this standard deviation."""
    signs = [(-1.0) ** n for n in range(count)]
    return of_means(*(sign * deviation * math.sqrt((count - 1) / count) for sign in signs))


@pytest.mark.parametrize(
    ("count", "deviation", "stands"),
    [
        # χ² of 4 degrees at 95 % is 9.49, so that 3.08 % contradict 2 %; of 18 it is 28.9: 2.53 %.
        (5, 0.030, True),
        (5, 0.032, False),
        (19, 0.0250, True),
        (19, 0.0256, False),
        # At 1 % they are 0.30 and 7.01: 0.55 % and 1.25 %. The approximation is lower for few.
        (5, 0.0055, True),
        (5, 0.0049, False),
        (19, 0.0126, True),
        (19, 0.0123, False),
    ],
)
def test_the_prior_stands_until_runs_contradict_it(count, deviation, stands):
    runs = spaced(count + count % 2, deviation)[:count]
    middle = sum(math.log(run[0]) for run in runs) / count
    spread = math.sqrt(sum((math.log(run[0]) - middle) ** 2 for run in runs) / (count - 1))
    runs = of_means(*((math.log(run[0]) - middle) * deviation / spread for run in runs))
    found = find_gate_noise(runs)
    if stands:
        assert found == KNOWN
    else:
        assert found.freedom == PRIOR.freedom + count - 1
        pooled = (3 * 0.02**2 + (count - 1) * deviation**2) / (count + 2)
        assert found.value == pytest.approx(math.sqrt(pooled), rel=1e-6)


def test_from_thirty_runs_on_they_alone_count():
    assert find_gate_noise(spaced(29, 0.02)) == KNOWN
    found = find_gate_noise(spaced(30, 0.02))
    assert (found.value, found.freedom) == (pytest.approx(0.02), 29.0)
    # The run that is judged is not one of them.
    assert find_gate_noise(spaced(30, 0.02), judged=29) == KNOWN
    assert find_gate_noise(spaced(31, 0.02), judged=30).freedom == 29.0
    # Neighbours do not count then, however noisy they are.
    noisy = [spaced(10, 0.1)] * 8
    assert find_gate_noise(spaced(30, 0.02), noisy) == found
    assert find_gate_noise(spaced(29, 0.02), noisy).value > 0.03


def test_what_runs_show_of_a_machine():
    assert find_gate_noise(spaced(2, 0.2)).value > 0.09
    assert find_gate_noise(spaced(3, 0.0001)) == KNOWN
    assert find_gate_noise(spaced(4, 0.0001)).value < 0.015

    # Ten runs that differ by 5 %: two of them differ by more than the limit in 1 % of cases.
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(400):
        means = rng.normal(0.0, 0.05, 12)
        noise = find_gate_noise(of_means(*means[:11]))
        alarms += means[11] - means[10] > UnpairedPower(0.0, 10, 10, noise).error_at(0.99)
    assert alarms <= 10

    found = noise_between(history(0.0, 40))
    assert found.value < SIGMA / math.sqrt(5)

    quiet = history(0.002, 20, launches=20)
    stepped = [run if n < 10 else [1.3 * one for one in run] for n, run in enumerate(quiet)]
    assert noise_between(stepped).value == pytest.approx(noise_between(quiet).value, rel=0.2)
    spiked = [[1.3 * one for one in run] if n in (5, 11) else run for n, run in enumerate(quiet)]
    assert noise_between(spiked).value > 5 * noise_between(quiet).value

    beside = [history(0.002, 30, seed=n) for n in range(3)]
    found = noise_between([], beside)
    assert found.freedom == PRIOR.freedom + 3
    assert found.value < PRIOR.value
    many = noise_between([], [history(0.06, 10, seed=n) for n in range(20)])
    assert many.freedom == PRIOR.freedom + MOST_NEIGHBOURS
    assert many.value > PRIOR.value
    assert noise_between([], [history(0.06, 3)]) == PRIOR  # three runs are no observation

    a, b = history(0.0, 2, launches=8)
    alone = unpaired_interval(a, b)
    apart = unpaired_interval(a, b, runs=Noise(0.02, 3.0))
    assert apart.ratio == alone.ratio
    assert apart.high / apart.low > alone.high / alone.low
    assert apart.p_value > alone.p_value
    # With launches that agree to the last digit only the runs are left.
    only = unpaired_interval([1.0] * 5, [1.1] * 5, 0.99, Noise(0.02, 3.0))
    reach = 5.8409 * 0.02 * math.sqrt(2.0)  # t at 99.5 % with three degrees of freedom
    assert math.log(only.high) - math.log(1.1) == pytest.approx(reach, rel=1e-4)


@pytest.mark.parametrize("tau", [0.005, 0.01, 0.03, 0.06])
def test_a_long_history_tells(tau):
    found = [noise_between(history(tau, 40, seed=seed)) for seed in range(20)]
    assert float(np.median([one.value for one in found])) == pytest.approx(tau, rel=0.35)
    assert all(one.freedom == PRIOR.freedom + 39 for one in found)
