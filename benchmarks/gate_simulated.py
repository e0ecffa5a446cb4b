"""The gate on noise that is known: false alarms where nothing changed, and 5 % found where it did.

Launches are drawn: independent, correlated with their neighbours, at two levels, or with outliers;
runs differ by 0, 1, 2 or 3 %. Two runs of 5 to 40 launches a side are compared with each other by
what `accelbench check` knows of older runs, 0 to 20 of them; arms of one run, whose launches are
interleaved A B B A, by their pairs. An alarm is "worse" where nothing changed.

    python benchmarks/gate_simulated.py --trials 1000
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from accelbench.analysis.interleaved import judged_pairs
from accelbench.analysis.judging import METRICS, Judgement, NoisePrior, judged
from accelbench.measure.launches import abba, pooled_noise
from accelbench.measure.runs import noise_between
from keeping import keep, verdict

LAUNCHES = (5, 10, 20, 40)
OLDER = (0, 2, 5, 20)
BETWEEN = (0.0, 0.01, 0.02, 0.03)
#: What a launch differs by, as a share; a pair of launches differs by √2 of it.
_SIGMA = 0.02
_SEED = 0

Draw = Callable[[np.random.Generator, int], np.ndarray]


def independent(rng: np.random.Generator, count: int, sigma: float = _SIGMA) -> np.ndarray:
    """Launches that know nothing of each other."""
    return rng.normal(0.0, sigma, count)


def correlated(by: float) -> Draw:
    """Launches each of which is like the one before."""

    def drawn(rng: np.random.Generator, count: int) -> np.ndarray:
        found = rng.normal(0.0, _SIGMA, count)
        for n in range(1, count):
            found[n] = by * found[n - 1] + math.sqrt(1.0 - by * by) * found[n]
        return found

    return drawn


def bimodal(rng: np.random.Generator, count: int) -> np.ndarray:
    """Three in ten launches are a quarter slower."""
    return rng.normal(0.0, 0.005, count) + math.log(1.25) * (rng.random(count) < 0.3)


def outlying(rng: np.random.Generator, count: int) -> np.ndarray:
    """One in ten launches is slower by half or so."""
    return rng.normal(0.0, 0.01, count) + (rng.random(count) < 0.1) * rng.exponential(0.4, count)


NOISES: dict[str, Draw] = {
    "independent, 2 %": independent,
    "correlated, 0.5": correlated(0.5),
    "correlated, 0.9": correlated(0.9),
    "two levels, 25 % apart": bimodal,
    "outliers, one in ten": outlying,
}


def run_of(rng: np.random.Generator, draw: Draw, between: float, count: int) -> list[float]:
    """The launches of one run."""
    return [float(one) for one in np.exp(rng.normal(0.0, between) + draw(rng, count))]


def two_runs(
    rng: np.random.Generator, draw: Draw, between: float, count: int, older: int
) -> Judgement:
    """One run against another, with so many older ones known."""
    history = [run_of(rng, draw, between, count) for _ in range(older)]
    before, now = (run_of(rng, draw, between, count) for _ in range(2))
    known = NoisePrior(pooled_noise([before, now, *history]), noise_between([*history, before]))
    return judged(METRICS[0], before, now, known).answer


def two_arms(
    rng: np.random.Generator, draw: Draw, between: float, count: int, slower: float = 0.0
) -> Judgement:
    """Launches in turns within one run."""
    launches = run_of(rng, draw, between, 2 * count)
    arms = abba(count)
    sides = {arm: [v for v, of in zip(launches, arms, strict=True) if of == arm] for arm in "ab"}
    return judged_pairs(METRICS[0], sides["a"], [one * (1.0 + slower) for one in sides["b"]]).answer


def counted(trials: int, trial: Callable[[], Judgement]) -> dict[str, float]:
    """Each answer's share."""
    found = Counter(trial() for _ in range(trials))
    return {answer.value: found[answer] / trials for answer in Judgement}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    trials = parser.parse_args().trials
    rng = np.random.default_rng(_SEED)
    figures: dict[str, Any] = {"trials": trials, "runs": {}, "one_launch": {}, "arms": {}}
    for name, draw in NOISES.items():
        for between, older, count in product(BETWEEN, OLDER, LAUNCHES):
            key = f"{name}; runs {between:.0%}; {older} older; {count} launches"
            figures["runs"][key] = counted(
                trials,
                lambda: two_runs(rng, draw, between, count, older),  # noqa: B023
            )
        for between in BETWEEN:
            figures["one_launch"][f"{name}; runs {between:.0%}"] = counted(
                trials,
                lambda: two_runs(rng, draw, between, 1, 0),  # noqa: B023
            )
        for between, count in product(BETWEEN, LAUNCHES):
            figures["arms"][f"{name}; runs {between:.0%}; {count} launches"] = counted(
                trials,
                lambda: two_arms(rng, draw, between, count),  # noqa: B023
            )
        print(f"{name}: done", flush=True)

    def quiet(rng: np.random.Generator, count: int) -> np.ndarray:
        return independent(rng, count, 0.01 / math.sqrt(2.0))

    figures["found"] = {
        f"5 %, pairs differ by 1 %; {count} launches": counted(
            trials,
            lambda: two_arms(rng, quiet, 0.03, count, 0.05),  # noqa: B023
        )
        for count in LAUNCHES
    }
    reached = {}
    for what in ("runs", "arms"):
        worst, one = max(figures[what].items(), key=lambda item: item[1]["worse"])
        mean = float(np.mean([each["worse"] for each in figures[what].values()]))
        print(f"{what}: {mean:.2%} false alarms, at worst {one['worse']:.2%} ({worst})")
        reached[f"{what}: false alarms at worst"] = verdict(
            f"{what}: false alarms at worst, by three standard errors",
            one["worse"] - 3.0 * math.sqrt(0.01 * 0.99 / trials), 0.01,
        )  # fmt: skip
        reached[f"{what}: false alarms"] = verdict(f"{what}: false alarms", mean, 0.01)
    least = min(one["worse"] for one in figures["found"].values())
    reached["found"] = verdict("arms: 5 % found", least, 0.95, at_most=False)
    keep("gate_simulated", {**figures, "reached": reached})


if __name__ == "__main__":
    main()
