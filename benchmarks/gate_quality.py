"""The gate: how often does it cry where nothing changed, and how often is it silent where not?

Sequences are real: iterations of 2,024 public series (ryujaehun/pytorch-gpu-benchmark), a few at a
time as a launch's samples, the first half of a series compared with its second; and our own
launches of one and the same thing, as `intervals.py` kept them. Where nothing was injected an
alarm is false; slower by 3, 5 and 10 %, silence is a miss. Beside the gate stand the guide's
flat threshold of 10 % on one launch, a rank test of raw samples, and asv's rule: a rank test at
0.2 %, and 10 %.

    python benchmarks/gate_quality.py --iterations ryujaehun_iterations.parquet
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from scipy.stats import mannwhitneyu

from accelbench.judge.arms import judged_pairs
from accelbench.judge.verdicts import METRICS, Judgement, NoisePrior, judged
from accelbench.measure.launch_verdicts import Noise, aa_noise, abba_order, pool_noise, pool_runs
from accelbench.measure.run_to_run_noise import find_gate_noise
from keeping import HERE, keep, verdict

SHIFTS = (0.0, 0.03, 0.05, 0.1)
QUIET = 0.01
_SAMPLES = 5  # of a launch
_LAUNCHES = 5  # a side
_WARM = 5  # the first iterations of a series are its warm-up


@dataclass(frozen=True)
class Pair:
    """Launches of before and of now, each with its samples, where nothing changed."""

    before: Sequence[Sequence[float]]
    now: Sequence[Sequence[float]]
    known: Noise | None = None  # from other launches of the same
    runs: Noise | None = None  # by how much runs differ; None where both sides are of one
    interleaved: bool = False

    @property
    def noise(self) -> float:
        """Of launches, within both sides."""
        sides = [[median(one) for one in side] for side in (self.before, self.now)]
        found = pool_runs(sides)
        return found.value if found else math.inf

    def slower(self, share: float) -> Pair:
        """The same with now slower by a share."""
        now = [[sample * (1.0 + share) for sample in one] for one in self.now]
        return replace(self, now=now)


Rule = Callable[[Pair], str]


def gate(pair: Pair) -> str:
    """What `accelbench check` says."""
    sides = [[median(one) for one in side] for side in (pair.before, pair.now)]
    parts = [pool_runs(sides), pair.known]
    noise = pool_noise([part for part in parts if part is not None])
    if pair.interleaved:
        answer = judged_pairs(METRICS[0], sides[0], sides[1]).answer
    else:
        answer = judged(METRICS[0], sides[0], sides[1], NoisePrior(noise, pair.runs)).answer
    return {Judgement.WORSE: "alarm", Judgement.CANNOT_TELL: "unknown"}.get(answer, "silent")


def flat(pair: Pair) -> str:
    """More than 10 % slower in one launch."""
    return "alarm" if median(pair.now[0]) > 1.1 * median(pair.before[0]) else "silent"


def ranks(pair: Pair) -> str:
    """A rank test of all samples, as if they were independent."""
    before, now = _samples(pair.before), _samples(pair.now)
    p = float(mannwhitneyu(now, before, alternative="greater").pvalue)
    return "alarm" if p < 0.01 else "silent"


def asv(pair: Pair) -> str:
    """asv's `continuous`: 10 % slower, and a rank test at 0.2 %."""
    before, now = _samples(pair.before), _samples(pair.now)
    p = float(mannwhitneyu(now, before).pvalue)
    return "alarm" if median(now) > 1.1 * median(before) and p < 0.002 else "silent"


RULES: dict[str, Rule] = {
    "accelbench check": gate,
    "flat threshold of 10 %": flat,
    "rank test of samples": ranks,
    "asv continuous": asv,
}


def _samples(side: Sequence[Sequence[float]]) -> list[float]:
    return [sample for one in side for sample in one]


def public(path: Path) -> Iterator[Pair]:
    """Series of iterations, cut into launches: the first half before, the second now."""
    import duckdb

    rows = duckdb.execute(
        "SELECT list(latency_ms ORDER BY iteration) FROM read_parquet(?)"
        " GROUP BY model, hardware_name, n_gpus, precision, mode, batch_size, file",
        [str(path)],
    ).fetchall()
    for (samples,) in rows:
        warm = [one for one in samples[_WARM:] if one and one > 0]
        size = min(_SAMPLES, len(warm) // (2 * _LAUNCHES))
        if size < 1:
            continue
        launches = [warm[i * size : (i + 1) * size] for i in range(2 * _LAUNCHES)]
        yield Pair(launches[:_LAUNCHES], launches[_LAUNCHES:])


def own(file: Path, a_side: int, interleaved: bool) -> Iterator[Pair]:
    """Our launches one after the other: so many before, the next so many now; or A B B A."""
    medians = json.loads(file.read_text())["medians_ms"]
    noise = aa_noise(medians)
    known = Noise(noise, len(medians) - 1) if noise else None
    for at in range(0, len(medians) - 2 * a_side + 1, 2 * a_side):
        launches = [[m] for m in medians[at : at + 2 * a_side]]
        arms = abba_order(a_side) if interleaved else "a" * a_side + "b" * a_side
        sides = {
            arm: [m for m, of in zip(launches, arms, strict=True) if of == arm] for arm in "ab"
        }
        runs = None if interleaved else find_gate_noise([])
        yield Pair(sides["a"], sides["b"], known, runs, interleaved)


def counted(pairs: Sequence[Pair]) -> dict[str, dict[str, dict[str, float]]]:
    """Each rule's answers at each shift, as shares."""
    found = {}
    for name, rule in RULES.items():
        found[name] = {
            f"{shift:.0%}": {
                answer: count / len(pairs)
                for answer, count in Counter(rule(one.slower(shift)) for one in pairs).items()
            }
            for shift in SHIFTS
        }
    return found


def show(what: str, pairs: Sequence[Pair], found: dict[str, Any]) -> None:
    """Print them."""
    print(f"\n{what}: {len(pairs)} pairs of sides")
    for name, shifts in found.items():
        said = ", ".join(
            f"{shift}: {one.get('alarm', 0.0):.2%}"
            + (f" ({one['unknown']:.1%} can't tell)" if one.get("unknown") else "")
            for shift, one in shifts.items()
        )
        print(f"  {name:24} alarms at {said}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=Path, required=True)
    asked = parser.parse_args()
    every = list(public(asked.iterations))
    sets = {
        f"public series with launch noise up to {QUIET:.0%}": [
            p for p in every if p.noise <= QUIET
        ],
        "all public series": every,
    }
    for file in sorted((HERE / "results").glob("intervals-*.json")):
        for a_side, interleaved in product((5, 20, 40), (False, True)):
            how = "in turns" if interleaved else "one side after the other"
            sets[f"our launches, {a_side} a side, {how}"] = list(own(file, a_side, interleaved))
    figures: dict[str, Any] = {}
    for what, pairs in sets.items():
        figures[what] = {"pairs": len(pairs), "rules": counted(pairs)}
        show(what, pairs, figures[what]["rules"])
    print()
    reached = {}
    for what, one in figures.items():
        ours = one["rules"]["accelbench check"]
        false = verdict(f"{what}: false alarms", ours["0%"].get("alarm", 0.0), 0.01)
        reached[f"{what}: false alarms"] = false
    quiet = figures[next(iter(sets))]["rules"]["accelbench check"]
    for shift, least in (("5%", 0.95), ("10%", 0.99)):
        name = f"detected at {shift}, noise up to {QUIET:.0%}"
        reached[name] = verdict(name, quiet[shift].get("alarm", 0.0), least, at_most=False)
    keep("gate_quality", {"sets": figures, "reached": reached})


if __name__ == "__main__":
    main()
