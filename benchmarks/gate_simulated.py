"""Simulate the gate on noise that is known: false alarms, and the changes that it finds.

Launches are independent, correlated with their neighbours, at two levels, or have outliers. Runs
differ by 0 to 4 %. Two runs of 5 to 40 launches a side are compared as `accelbench check` does,
with 0 to 60 older runs. Arms of one run, whose launches are interleaved A B B A, are compared by
their pairs. Sets of 1 to 1,143 configurations with one launch a side are judged as a check judges
them: each one, and all together. One launch in fifty takes 30 % longer there. A false alarm is
"worse" without a change.

    python benchmarks/gate_simulated.py --trials 1000
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from accelbench.judge.arms import judged_pairs
from accelbench.judge.regressions import judge_set
from accelbench.judge.verdicts import METRICS, Judged, Judgement, NoisePrior, judged
from accelbench.measure.launch_verdicts import abba_order, pool_runs
from accelbench.measure.run_to_run_noise import find_gate_noise
from keeping import keep, verdict

LAUNCHES = (5, 10, 20, 40)
OLDER = (0, 5, 20, 30, 60)
#: The deviation from run to run: without a history, and with one.
BETWEEN = (0.0, 0.01, 0.02, 0.03)
BETWEEN_KNOWN = (0.005, 0.01, 0.02, 0.04)
LAUNCHES_KNOWN = (5, 10, 40)
#: What becomes slower by how much. At 0 an alarm is false.
SHIFTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.35)
SHIFTS_OF_ONE = (0.0, 0.105, 0.35, 1.2)
#: The deviation that the gate takes as known without a history.
_KNOWN = 0.02
#: False alarms that have no limit: a single launch is judged by twice the time, without any noise.
_SHOWN_ONLY = (
    "two runs beyond it",
    "two runs with a history, beyond it",
    "one launch a side",
)
#: What a launch differs by, as a share; a pair of launches differs by √2 of it.
_SIGMA = 0.02
#: Configurations of a set, with one launch a side.
SETS = (1, 5, 20, 100, 1143)
#: What launches differ by, and runs: within the prior of 5 % for one launch, and beyond it.
SINGLE_WITHIN = ((0.02, 0.02), (0.045, 0.02), (0.05, 0.0))
SINGLE_BEYOND = ((0.08, 0.02), (0.045, 0.04))
#: One launch in fifty takes 30 % longer.
_OUTLIERS, _OUTLYING = 0.02, math.log(1.3)
_FAMILIES = 5
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
#: By how much launches are correlated with the launch before.
_CORRELATIONS = {"correlated, 0.5": 0.5, "correlated, 0.9": 0.9}


def run_of(rng: np.random.Generator, draw: Draw, between: float, count: int) -> list[float]:
    """The launches of one run."""
    return [float(one) for one in np.exp(rng.normal(0.0, between) + draw(rng, count))]


def judge_two_runs(
    rng: np.random.Generator,
    draw: Draw,
    between: float,
    count: int,
    older: int,
    shifts: Iterable[float],
) -> list[Judged]:
    """Judge one run against another at each shift, with so many older runs known."""
    history = [run_of(rng, draw, between, count) for _ in range(older)]
    before, now = (run_of(rng, draw, between, count) for _ in range(2))
    runs = find_gate_noise([*history, before, now], judged=older + 1)
    known = NoisePrior(pool_runs([before, now, *history]), runs)

    def judge(shift: float) -> Judged:
        return judged(METRICS[0], before, [(1.0 + shift) * one for one in now], known)

    found = [judge(shift) for shift in shifts]
    # The printed detectable change, if it is injected: it should be found in four of five cases.
    printed = found[0].least_shown
    return found if printed is None else [*found, judge(printed)]


def judge_two_arms(
    rng: np.random.Generator, draw: Draw, between: float, count: int, slower: float = 0.0
) -> Judgement:
    """Judge launches in turns within one run."""
    launches = run_of(rng, draw, between, 2 * count)
    arms = abba_order(count)
    sides = {arm: [v for v, of in zip(launches, arms, strict=True) if of == arm] for arm in "ab"}
    return judged_pairs(METRICS[0], sides["a"], [one * (1.0 + slower) for one in sides["b"]]).answer


def count_answers(answers: Sequence[Judgement]) -> dict[str, float]:
    """Return the share of each answer."""
    found = Counter(answers)
    return {answer.value: found[answer] / len(answers) for answer in Judgement}


def simulate_runs(
    name: str, between: float, count: int, older: int, shifts: Sequence[float], trials: int
) -> dict[str, Any]:
    """Return the share of each answer by shift, and the power at the printed change."""
    rng = generator(name, between, count, older)
    found = [
        judge_two_runs(rng, NOISES[name], between, count, older, shifts) for _ in range(trials)
    ]
    answers: dict[str, Any] = {
        f"{shift:.1%}": count_answers([one[at].answer for one in found])
        for at, shift in enumerate(shifts)
    }
    answers["deviation"] = find_deviation(name, between, count)
    printed = [one[len(shifts)].answer for one in found if len(one) > len(shifts)]
    if printed:
        answers["at the printed change"] = count_answers(printed)
        answers["printed change"] = float(np.median([one[0].least_shown for one in found]))
    return answers


def find_deviation(name: str, between: float, count: int) -> float:
    """Return by how much the means of runs differ beyond what independent launches explain."""
    by = _CORRELATIONS.get(name, 0.0)
    pairs = math.fsum((count - lag) * by**lag for lag in range(1, count))
    return math.hypot(between, _SIGMA * math.sqrt(2.0 * pairs) / count)


def generator(*of: object) -> np.random.Generator:
    """Return the random numbers of one row, which do not depend on the other rows."""
    return np.random.default_rng([_SEED, zlib.crc32(repr(of).encode())])


def simulate_arms(trials: int) -> dict[str, Any]:
    """Return the share of each answer for arms of one run without a change."""
    found = {}
    for (name, draw), between, count in product(NOISES.items(), BETWEEN, LAUNCHES):
        rng = generator("arms", name, between, count)
        found[f"{name}; runs {between:.0%}; {count} launches"] = count_answers(
            [judge_two_arms(rng, draw, between, count) for _ in range(trials)]
        )
    return found


def simulate_found_by_arms(trials: int) -> dict[str, Any]:
    """Return the share of each answer for arms that differ by 5 %, if their pairs differ by 1 %."""

    def quiet(rng: np.random.Generator, count: int) -> np.ndarray:
        return independent(rng, count, 0.01 / math.sqrt(2.0))

    found = {}
    for count in LAUNCHES:
        rng = generator("found", count)
        found[f"5 %, pairs differ by 1 %; {count} launches"] = count_answers(
            [judge_two_arms(rng, quiet, 0.03, count, 0.05) for _ in range(trials)]
        )
    return found


def judge_single_launches(
    rng: np.random.Generator, count: int, launch: float, run: float, shifts: Sequence[float]
) -> list[bool]:
    """Return whether a check of so many configurations alarms at each shift."""
    sides = rng.normal(0.0, launch, (2, count)) + rng.normal(0.0, run, (2, 1))
    sides += _OUTLYING * (rng.random(sides.shape) < _OUTLIERS)
    known = NoisePrior(None, find_gate_noise([]), count)
    found = []
    for shift in shifts:
        before, now = np.exp(sides[0]), (1.0 + shift) * np.exp(sides[1])
        figures = [
            judged(METRICS[0], [float(a)], [float(b)], known)
            for a, b in zip(before, now, strict=True)
        ]
        rows = [{"model": f"m{n}", "family": f"f{n % _FAMILIES}"} for n in range(count)]
        whole = judge_set(((row, [one]) for row, one in zip(rows, figures, strict=True)), None)
        together = whole is not None and whole.answer is Judgement.WORSE
        found.append(together or any(one.answer is Judgement.WORSE for one in figures))
    return found


def simulate_single_launches(trials: int) -> dict[str, Any]:
    """Return the share of checks that alarm, by configurations, noise and shift."""
    found: dict[str, Any] = {}
    for count, (launch, run) in product(SETS, (*SINGLE_WITHIN, *SINGLE_BEYOND)):
        shifts = (0.0, 0.1, 0.2, 0.5)
        rng = generator("single", count, launch, run)
        # The largest sets take a second each.
        checks = [
            judge_single_launches(rng, count, launch, run, shifts)
            for _ in range(max(trials if count <= 20 else trials * 20 // count, 100))
        ]
        found[f"{count} configurations; launches {launch:.1%}; runs {run:.0%}"] = {
            "deviation": math.hypot(launch, run),
            "within": (launch, run) in SINGLE_WITHIN,
            "trials": len(checks),
            **{
                f"{shift:.1%}": {"worse": float(np.mean([check[at] for check in checks]))}
                for at, shift in enumerate(shifts)
            },
        }
    show("one launch a side, one in fifty outlying", found)
    return found


def show(what: str, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Print one line a row: the share of alarms by shift."""
    print(f"\n{what}: share of alarms by the injected change")
    for key, answers in found.items():
        shares = " ".join(
            f"{shift.removesuffix('.0%')}: {one['worse']:6.1%}"
            for shift, one in answers.items()
            if isinstance(one, dict) and shift[0].isdigit()
        )
        line = f"  {key:58} {shares}  deviation {answers['deviation']:.1%}"
        if "printed change" in answers:
            power = answers["at the printed change"]["worse"]
            line += f"  printed {answers['printed change']:.1%}: {power:.0%}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    trials = parser.parse_args().trials
    usual = next(iter(NOISES))
    runs = {
        f"{name}; runs {between:.1%}; {count} launches": simulate_runs(
            name, between, count, 0, SHIFTS if name == usual else SHIFTS[:1], trials
        )
        for name, between, count in product(NOISES, BETWEEN, LAUNCHES)
    }
    show("two runs without a history", runs)
    known = {
        f"{older} older; runs {between:.1%}; {count} launches": simulate_runs(
            usual, between, count, older, SHIFTS, trials
        )
        for older, between, count in product(OLDER[1:], BETWEEN_KNOWN, LAUNCHES_KNOWN)
    }
    show("two runs with a history", known)
    other = {
        f"{name}; 30 older; runs {between:.1%}; {count} launches": simulate_runs(
            name, between, count, 30, SHIFTS[:1], trials
        )
        for name, between, count in product(list(NOISES)[1:], (0.0, _KNOWN), LAUNCHES_KNOWN)
    }
    show("two runs with a history, other noise", other)
    one = {
        f"{name}; runs {between:.1%}": simulate_runs(name, between, 1, 0, SHIFTS_OF_ONE, trials)
        for name, between in product(NOISES, BETWEEN)
    }
    show("one launch a side", one)
    arms, found = simulate_arms(trials), simulate_found_by_arms(trials)
    single = simulate_single_launches(trials)
    reached = reach(runs, {**known, **other}, one, arms, found, trials)
    reached |= reach_single_launches(single)
    keep(
        "gate_simulated",
        {
            "trials": trials, "runs": runs, "runs_with_a_history": known,
            "runs_with_a_history_of_other_noise": other, "one_launch": one, "arms": arms,
            "found": found, "single_launches": single, "reached": reached,
        },
    )  # fmt: skip


def reach(
    runs: Mapping[str, Any],
    known: Mapping[str, Any],
    one: Mapping[str, Any],
    arms: Mapping[str, Any],
    found: Mapping[str, Any],
    trials: int,
) -> dict[str, Any]:
    """Return each limit, and whether it was kept."""
    few = 3.0 * math.sqrt(0.01 * 0.99 / trials)
    reached = {}
    groups = {
        "two runs within the deviation that is taken as known": {
            key: row for key, row in runs.items() if row["deviation"] <= _KNOWN
        },
        "two runs beyond it": {key: row for key, row in runs.items() if row["deviation"] > _KNOWN},
        "two runs with a history, within it": {
            key: row for key, row in known.items() if row["deviation"] <= _KNOWN
        },
        "two runs with a history, beyond it": {
            key: row for key, row in known.items() if row["deviation"] > _KNOWN
        },
        "one launch a side": one,
        "arms": {key: {"0.0%": row} for key, row in arms.items()},
    }
    for what, rows in groups.items():
        shares = {key: row["0.0%"]["worse"] for key, row in rows.items()}
        worst = max(shares, key=lambda key: shares[key])
        mean = float(np.mean(list(shares.values())))
        print(f"{what}: {mean:.2%} false alarms, at worst {shares[worst]:.2%} ({worst})")
        if what in _SHOWN_ONLY:
            continue
        name = f"{what}: false alarms at worst, less three standard errors"
        reached[name] = verdict(name, shares[worst] - few, 0.01)
        reached[f"{what}: false alarms"] = verdict(f"{what}: false alarms", mean, 0.01)
    ten = runs[f"{next(iter(NOISES))}; runs {_KNOWN:.1%}; 10 launches"]
    for shift, least in (("10.0%", 0.75), ("15.0%", 0.98)):
        name = f"ten launches a side without a history: {shift} found"
        reached[name] = verdict(name, ten[shift]["worse"], least, at_most=False)
    powers = [
        row["at the printed change"]["worse"]
        for key, row in runs.items()
        if f"runs {_KNOWN:.1%}" in key and key.startswith("independent")
    ]
    name = "power at the printed change"
    reached[f"{name}, least"] = verdict(f"{name}, least", min(powers), 0.75, at_most=False)
    reached[f"{name}, most"] = verdict(f"{name}, most", max(powers), 0.85)
    steady = max(
        row[f"{shift:.1%}"][Judgement.STEADY.value]
        for row in one.values()
        for shift in SHIFTS_OF_ONE
    )
    reached["one launch: no change shown"] = verdict("one launch: no change shown", steady, 0.0)
    least = min(row["worse"] for row in found.values())
    reached["arms: 5 % found"] = verdict("arms: 5 % found", least, 0.95, at_most=False)
    return reached


def reach_single_launches(single: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limit of false alarms of single launches, and whether it was kept."""
    within = {key: row for key, row in single.items() if row["within"]}
    excess = {
        key: row["0.0%"]["worse"] - 3.0 * math.sqrt(0.01 * 0.99 / row["trials"])
        for key, row in within.items()
    }
    mean = float(np.mean([row["0.0%"]["worse"] for row in within.values()]))
    name = "single launches within the prior: false alarms"
    worst = f"{name} at worst, less three standard errors"
    return {
        worst: verdict(worst, max(excess.values()), 0.01),
        name: verdict(name, mean, 0.01),
    }


if __name__ == "__main__":
    main()
