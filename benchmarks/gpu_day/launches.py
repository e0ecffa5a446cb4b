"""Launches: how far fresh processes of one case differ, and whether intervals of A/A cover that.

Each call of `accelbench run --launches` gives the medians of three pairs A B B A A B of one and
the same thing. Of the comparisons of three pairs, 95 % should hold a ratio of 1.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence

from accelbench.engines.scripted import SCRIPT_VARIABLE
from accelbench.measure.launch_verdicts import aa_noise, abba_order, paired_interval
from gpu_day.part import Recorder
from gpu_day.rows import measured

PAIRS = 3
LEVEL = 0.95
#: As many intervals that do not cover are expected by chance once in a thousand days, or less.
CHANCE = 0.001


def launches(at: Recorder) -> None:
    arguments = _arguments(at)
    groups: list[list[float]] = []
    longest = 0.0
    while len(groups) < at.day.pick(10, 1) and at.seconds_left() > 1.3 * longest:
        start = time.monotonic()
        rows = measured(at, [*arguments, "--launches", str(2 * PAIRS)])
        groups.append([row["latency_p50_ms"] for row in rows if row["status"] == "ok"])
        longest = max(longest, time.monotonic() - start)
        at.figure("provenance", sorted({row["provenance"] for row in rows}))
        at.figure("medians_ms", groups)
    whole = [group for group in groups if len(group) == 2 * PAIRS]
    at.same("command lines of which every launch is ok", len(whole), len(groups))
    flat = [median for group in whole for median in group]
    at.figure("spread", {"launches": len(flat), "noise": aa_noise(flat),
                         "largest ÷ smallest": max(flat) / min(flat)})  # fmt: skip
    covering(at, whole)


def _arguments(at: Recorder) -> list[str]:
    common = ["--benchmark-only", "--batch-sizes"]
    if not at.day.dry:
        return ["resnet-50", "--framework", "pytorch", "--iterations", "200", "--warmup", "50",
                *common, "8"]  # fmt: skip
    # Made-up steps: what is walked is the way of the launches, not an engine.
    script = at.day.folder / "script.json"
    steps = {"median_ns": 1e6, "sigma": 0.02, "seed": 1}
    script.write_text(json.dumps({"lognormal": steps}), encoding="utf-8")
    os.environ[SCRIPT_VARIABLE] = str(script)
    return ["resnet-tiny", "--framework", "scripted", "--iterations", "30", "--warmup", "2",
            *common, "1"]  # fmt: skip


def covering(at: Recorder, groups: Sequence[Sequence[float]]) -> None:
    """How many A/A comparisons cover no change, and whether as few miss as chance allows."""
    covered = []
    for group in groups:
        sides: dict[str, list[float]] = {"a": [], "b": []}
        for arm, median in zip(abba_order(PAIRS), group, strict=True):
            sides[arm].append(median)
        found = paired_interval(sides["a"], sides["b"], LEVEL)
        assert found is not None
        covered.append(found.low <= 1 <= found.high)
    missed = covered.count(False)
    at.figure("A/A", {"comparisons": len(covered), "covered": sum(covered), "pairs_each": PAIRS})
    at.at_most("A/A intervals that do not cover 1", missed, most_missed(len(covered)))


def most_missed(comparisons: int) -> int:
    """The largest number of misses that chance still explains."""
    miss, tail = 1 - LEVEL, 1.0
    for count in range(comparisons + 1):
        if tail < CHANCE:
            return count - 1
        ways = math.comb(comparisons, count)
        tail -= ways * miss**count * LEVEL ** (comparisons - count)
    return comparisons
