"""Stopping: does the interval at which a measurement ends still cover, and what did it cost?

Series whose median is known are sampled as a case would be, by the rule that cases are measured by:
independent ones, AR(1), two modes that take turns, drift, outliers. Of each kind: how many of the
intervals at the stop cover the truth, how wide they are, how long it took, and how long the best
fixed number of samples takes: the smallest whose intervals cover 92 % and are as narrow (in the
geometric mean). Beside it stands the rule that ends at the first interval that hardly narrowed, and
how long one look at the interval takes.

    python benchmarks/stopping.py [--series 300]
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelbench.measure.intervals import Interval, median_estimate
from accelbench.measure.stopping import Decision, StoppingRule
from keeping import keep, verdict

COVERED = 0.92
TIME_RATIO = 1.3
LIMIT_NS = StoppingRule().time_limit_ns
#: The longest series that is drawn: 10 s of steps of 0.6 ms.
LONGEST = 16_384
MS = 1e6
#: Steps that a fast mode lasts: of longer spells ten seconds may hold a handful, or one.
SHORT_SPELL = 20

Row = NDArray[np.float64]
Random = np.random.Generator
#: The rule with the first stall as its end, as it was.
FIRST_STALL = StoppingRule(stalls=1, least_ns=0, known=0.0, noise_known=0.0)


@dataclass(frozen=True)
class Process:
    """A kind of series: how one is drawn, and the median of its first n samples in truth."""

    name: str
    group: str
    draw: Callable[[Random, int], Row]
    truth: Callable[[int], float]


def independent(noise: float, step: float = 1.5) -> Process:
    def draw(random: Random, n: int) -> Row:
        return np.asarray(step * MS * np.exp(noise * random.normal(size=n)))

    return Process(f"noise {noise:.1%}", "independent", draw, lambda n: step * MS)


def autoregressive(lag1: float, noise: float, step: float = 1.5) -> Process:
    def draw(random: Random, n: int) -> Row:
        shocks = random.normal(size=n) * math.sqrt(1 - lag1**2)
        row = np.empty(n)
        state = float(random.normal())
        for i, shock in enumerate(shocks):
            state = lag1 * state + shock
            row[i] = state
        return np.asarray(step * MS * np.exp(noise * row))

    return Process(f"lag-1 {lag1}, noise {noise:.0%}", "AR(1)", draw, lambda n: step * MS)


def two_modes(
    spell: float, share: float, factor: float = 10.0, noise: float = 0.05, step: float = 1.0
) -> Process:
    """A fast mode that lasts `spell` steps in the mean and has `share` of all, and a slower one."""
    other = max(spell * (1 - share) / share, 1.0)
    fast = spell / (spell + other)

    def draw(random: Random, n: int) -> Row:
        row = np.empty(n, dtype=bool)
        i, now = 0, random.random() < fast
        while i < n:
            length = int(random.geometric(1.0 / (spell if now else other)))
            row[i : i + length] = now
            i, now = i + length, not now
        levels = np.where(row, 1.0, factor)
        return np.asarray(step * MS * levels * np.exp(noise * random.normal(size=n)))

    middle = _quantile_of_two(fast, math.log(factor), noise)
    name = f"{factor:g} × slower, {share:.0%} fast, spells of {spell:g}, noise {noise:.0%}"
    group = "two modes, short spells" if spell <= SHORT_SPELL else "two modes, long spells"
    return Process(name, group, draw, lambda n: step * MS * math.exp(middle))


def _quantile_of_two(share: float, apart: float, noise: float) -> float:
    """The median of the logarithms: at 0 with `share`, else at `apart`."""
    normal = NormalDist()
    low, high = -1.0, apart + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = share * normal.cdf(middle / noise)
        below += (1 - share) * normal.cdf((middle - apart) / noise)
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return (low + high) / 2


def drifting(change: float, noise: float = 0.05, step: float = 1.5) -> Process:
    """Slower by `change` over ten seconds; the truth is the middle of what was measured."""
    steps = LIMIT_NS / (step * MS)

    def draw(random: Random, n: int) -> Row:
        trend = 1 + change * np.arange(n) / steps
        return np.asarray(step * MS * trend * np.exp(noise * random.normal(size=n)))

    return Process(
        f"{change:.0%} slower in 10 s",
        "drift",
        draw,
        lambda n: step * MS * (1 + change * n / 2 / steps),
    )


def outlying(share: float, burst: int = 1, noise: float = 0.03, step: float = 1.5) -> Process:
    """Some steps take five to fifteen times as long, `burst` of them in a row."""

    def draw(random: Random, n: int) -> Row:
        row = step * MS * np.exp(noise * random.normal(size=n))
        hit = np.convolve(random.random(n + burst) < share / burst, np.ones(burst))[
            burst : n + burst
        ]
        return np.asarray(np.where(hit > 0, row * 10 * (0.5 + random.random(n)), row))

    hit = 1 - (1 - share / burst) ** burst
    middle = NormalDist().inv_cdf(0.5 / (1 - hit)) * noise
    name = f"{share:.0%} of steps" + (f", {burst} in a row" if burst > 1 else "")
    return Process(name, "outliers", draw, lambda n: step * MS * math.exp(middle))


PROCESSES = (
    *(independent(noise) for noise in (0.005, 0.03, 0.1, 0.3)),
    *(
        autoregressive(lag1, noise)
        for lag1 in (0.5, 0.75, 0.9, 0.95)
        for noise in (0.01, 0.03, 0.1)
    ),
    *(two_modes(spell, share) for spell in (5, 20, 50, 150) for share in (0.4, 0.55, 0.7, 0.9)),
    two_modes(20, 0.7, factor=1.3),
    two_modes(50, 0.4, factor=1.3),
    two_modes(20, 0.7, noise=0.01),
    two_modes(50, 0.9, noise=0.01),
    *(drifting(change) for change in (0.05, 0.2, 0.5)),
    outlying(0.02),
    outlying(0.1),
    outlying(0.05, burst=20),
)


@dataclass(frozen=True)
class Stop:
    """Where a rule ended a series."""

    seconds: float
    quality: str
    covered: bool
    width: float  # half of it, as a share of the median
    off: float  # the median found, as a multiple of the truth


def stopped(rule: StoppingRule, process: Process, row: Row) -> Stop:
    """Sample a series until the rule stops; time passes as its steps take."""
    passed = np.cumsum(row)
    decision: Decision | None = None
    n = 0
    while True:
        elapsed = int(passed[n - 1]) if n else 0
        step = float(np.median(row[:n])) if n else float(row[0])
        n = min(n + rule.next_block(n, elapsed, step), row.size)
        decision = rule.decide(row[:n], int(passed[n - 1]), decision)
        if decision.stop or n == row.size:
            break
    assert decision.interval is not None
    middle, truth = float(np.median(row[:n])), process.truth(n)
    return Stop(
        seconds=float(passed[n - 1]) / 1e9,
        quality=str(decision.quality or "too long for this simulation"),
        covered=_covers(decision.interval, truth),
        width=decision.interval.relative_half_width(middle),
        off=middle / truth,
    )


def _covers(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def best_fixed(process: Process, rows: list[Row], width: float) -> tuple[float, int] | None:
    """Mean seconds and size of the smallest fixed number that covers, and is as narrow."""
    n = 30.0
    while n <= LONGEST:
        size = round(n)
        known = [(row[:size], median_estimate(row[:size])) for row in rows]
        fits = [(row, one.interval) for row, one in known if one is not None]
        covered = sum(_covers(one, process.truth(size)) for _, one in fits) / len(fits)
        narrow = _geometric([i.relative_half_width(float(np.median(r))) for r, i in fits])
        seconds = float(np.mean([row.sum() for row, _ in fits])) / 1e9
        if seconds > LIMIT_NS / 1e9:
            return None
        if covered >= COVERED and narrow <= width:
            return seconds, size
        n *= 2**0.25
    return None


def _geometric(values: list[float]) -> float:
    return math.exp(float(np.mean([math.log(max(value, 1e-9)) for value in values])))


def looked_at(process: Process, series: int) -> dict[str, Any]:
    """All figures of one kind of series."""
    rows = [process.draw(np.random.default_rng(seed), LONGEST) for seed in range(series)]
    told: dict[str, Any] = {"group": process.group, "name": process.name}
    for name, rule in (("rule", StoppingRule()), ("first_stall", FIRST_STALL)):
        stops = [stopped(rule, process, row) for row in rows]
        qualities = Counter(one.quality for one in stops)
        told[name] = {
            "covered": sum(one.covered for one in stops) / series,
            "seconds": float(np.mean([one.seconds for one in stops])),
            "width": _geometric([one.width for one in stops]),
            "median_off": [min(one.off for one in stops), max(one.off for one in stops)],
            "qualities": {key: count / series for key, count in sorted(qualities.items())},
        }
    rule_told = told["rule"]
    # Fixed numbers are judged by fewer series: each size is looked at anew.
    best = best_fixed(process, rows[: max(series // 2, 1)], rule_told["width"])
    told["best_fixed"] = best and {"seconds": best[0], "samples": best[1]}
    told["time_ratio"] = best and rule_told["seconds"] / best[0]
    return told


def cost_of_a_look() -> Mapping[int, float]:
    """Milliseconds that one look at the interval takes, by the number of samples."""
    found = {}
    for n in (30, 120, 480, 1920, 7680, 30720, 122880):
        row = np.random.default_rng(1).normal(1e6, 1e4, n)
        times = []
        for _ in range(9):
            start = time.perf_counter_ns()
            median_estimate(row)
            times.append(time.perf_counter_ns() - start)
        found[n] = float(np.median(times)) / 1e6
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=300, help="of each kind")
    asked = parser.parse_args()
    found = []
    for process in PROCESSES:
        told = looked_at(process, asked.series)
        found.append(told)
        rule, first, ratio = told["rule"], told["first_stall"], told["time_ratio"]
        print(
            f"  {told['group']}, {told['name']}: covered {rule['covered']:.1%} "
            f"in {rule['seconds']:.2f} s at ±{rule['width']:.1%}, "
            + (f"{ratio:.2f} × the best fixed number" if ratio else "no fixed number does")
            + f"; first stall: {first['covered']:.1%} in {first['seconds']:.2f} s",
            flush=True,
        )
    for group in dict.fromkeys(one["group"] for one in found):
        alike = [one for one in found if one["group"] == group]
        print(group)
        verdict(
            "lowest share of intervals that cover",
            min(one["rule"]["covered"] for one in alike),
            COVERED,
            at_most=False,
        )
        ratios = [one["time_ratio"] for one in alike if one["time_ratio"]]
        if ratios:
            verdict("longest time, of the best fixed number's", max(ratios), TIME_RATIO)
    costs = cost_of_a_look()
    for n, milliseconds in costs.items():
        print(f"  one look at {n} samples: {milliseconds:.2f} ms")
    keep(
        "stopping",
        {
            "series_of_each": asked.series,
            "processes": found,
            "look_ms": costs,
            "covered": sum(one["rule"]["covered"] >= COVERED for one in found),
            "in_time": sum((one["time_ratio"] or math.inf) <= TIME_RATIO for one in found),
            "no_fixed_number": sum(one["time_ratio"] is None for one in found),
        },
    )


if __name__ == "__main__":
    main()
