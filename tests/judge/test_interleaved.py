"""Arms of one run: judged by pairs of neighbours, each question apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from accelbench.judge.arms import checked_arms, judged_pairs, names_of_arms
from accelbench.judge.regressions import Check, CheckedQuestion, Outcome
from accelbench.judge.verdicts import METRICS, Judgement
from accelbench.present.check import document, sentences
from asked_rows import row

LATENCY, THROUGHPUT, MEMORY, *_ = METRICS


def wandering(count: int, seed: int = 0) -> list[float]:
    """A machine that becomes slower and quicker by half: neighbours are alike all the same."""
    drift = np.cumsum(np.random.default_rng(seed).normal(0.0, 0.1, count))
    return [10.0 * math.exp(one) for one in drift]


def near(values: Sequence[float], factor: float, noise: float = 0.005) -> list[float]:
    drawn = np.random.default_rng(7).normal(0.0, noise, len(values))
    return [one * factor * math.exp(error) for one, error in zip(values, drawn, strict=True)]


def test_pairs_of_neighbours():
    # Launches differ by half, pairs by half a percent: 5 % is found, and nothing where is none.
    machine = wandering(10)
    assert judged_pairs(LATENCY, machine, near(machine, 1.05)).answer is Judgement.WORSE
    assert judged_pairs(LATENCY, machine, near(machine, 0.95)).answer is Judgement.BETTER
    found = judged_pairs(LATENCY, machine, near(machine, 1.0))
    assert (found.answer, found.paired, found.runs) == (Judgement.STEADY, True, None)
    assert found.noise is not None
    assert found.noise.value < 0.01
    # The interval is students over the ratios.
    a = [10.0, 11.0, 9.5, 10.2, 10.8, 9.9]
    b = [10.9, 11.6, 10.4, 11.5, 11.2, 10.6]
    found = judged_pairs(LATENCY, a, b)
    ratios = np.log(b) - np.log(a)
    low, high = stats.t.interval(0.99, 5, ratios.mean(), stats.sem(ratios))
    assert found.low == pytest.approx(math.expm1(low))
    assert found.high == pytest.approx(math.expm1(high))
    assert found.worse_by == pytest.approx(math.expm1(ratios.mean()))
    # Fewer than five pairs tell nothing.
    machine = wandering(4)
    found = judged_pairs(LATENCY, machine, near(machine, 3.0))
    assert (found.answer, found.required) == (Judgement.CANNOT_TELL, 5)
    assert judged_pairs(LATENCY, [10.0], [30.0]).answer is Judgement.CANNOT_TELL
    loud = near(wandering(5), 1.0, 0.2)
    found = judged_pairs(LATENCY, wandering(5), loud)
    assert found.answer is Judgement.CANNOT_TELL
    assert found.required is not None
    assert found.required > 5


def test_arms_are_held_against_each_other():
    # Less throughput is worse and a threshold counts.
    machine = wandering(8)
    assert judged_pairs(THROUGHPUT, machine, near(machine, 0.9)).answer is Judgement.WORSE
    assert judged_pairs(LATENCY, machine, near(machine, 1.08), 0.1).answer is Judgement.STEADY
    assert judged_pairs(LATENCY, machine, near(machine, 1.2), 0.1).answer is Judgement.WORSE
    # A run s arms are held against each other.
    assert names_of_arms(arms(1.0)) == ("old",)
    assert names_of_arms([row()]) == ()
    assert checked_arms(arms(1.1)).outcome is Outcome.WORSE
    assert checked_arms(arms(1.0)).outcome is Outcome.STEADY
    assert only(checked_arms(arms(0.9))).outcome is Outcome.BETTER
    # What arms differ in on purpose is no other question.
    found = checked_arms(arms(1.1, threads=1, options={"threads": 1}))
    assert (only(found).outcome, found.not_measured, found.not_before) == (Outcome.WORSE, (), ())
    found = checked_arms(arms(1.1, weights_digest="other"))
    assert (only(found).outcome, only(found).why) == (Outcome.CANNOT_TELL, "not alike: weights")
    changed = [one | {"weights": "code"} for one in arms(1.1, weights_digest="other" * 4)]
    found = checked_arms(changed)
    assert only(found).outcome is Outcome.WORSE
    assert only(found).differs[0].startswith("code ")
    found = checked_arms(arms(1.1, conditions={"versions": {"torch": "2.14"}}))
    assert only(found).differs == ("versions.torch 2.13 → 2.14",)


def arms(factor: float, count: int = 6, **changes: Any) -> list[dict[str, Any]]:
    """Launches of both arms, as a run leaves them."""
    machine = wandering(count)
    sides = {"this": near(machine, factor), "old": machine}
    return [
        row(arm=arm, launch=n, latency_p50_ms=ms, **(changes if arm == "this" else {}))
        for arm, times in sides.items()
        for n, ms in enumerate(times)
    ]


def only(found: Check) -> CheckedQuestion:
    (one,) = found.questions
    return one


def test_launches_that_make_no_pair():
    # Launches without a neighbour do not count.
    rows = arms(1.1, 8)
    left = [one for one in rows if (one["arm"], one["launch"]) not in {("old", 7), ("this", 0)}]
    assert only(checked_arms(left)).figures[0].launches == (6, 6)
    few = [one for one in rows if one["arm"] == "this" or one["launch"] < 3]
    found = only(checked_arms(few))
    assert found.outcome is Outcome.CANNOT_TELL
    assert found.why == "only 3 pairs of launches, and 5 are the least: use --launches 5"
    none = [one for one in rows if (one["arm"] == "this") == (one["launch"] < 4)]
    assert "has one of the other beside it" in only(checked_arms(none)).why
    # A launch that is of no use stands beside nothing.
    rows = arms(1.1, 8)
    rows[3] |= {"quality": "unusable"}
    assert only(checked_arms(rows)).figures[0].launches == (7, 7)
    every = only(checked_arms(arms(3.0, 8, quality="unusable")))
    assert every.outcome is Outcome.CANNOT_TELL
    assert every.why.endswith("; launches are unusable: interval wider than ±25 %")
    # A figure that one arm lacks leaves it open.
    found = only(checked_arms(arms(1.0, memory_peak_mb=None)))
    assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, "no pair has a memory on both sides")
    # An arm that fails is told.
    every = range(6)
    assert only(checked_arms(lost(arms(1.0), "this", every))).outcome is Outcome.BROKEN
    assert only(checked_arms(lost(arms(1.0), "old", every))).outcome is Outcome.MENDED
    both = lost(lost(arms(1.0), "old", every), "this", every)
    assert only(checked_arms(both)).outcome is Outcome.FAILS_STILL
    once = only(checked_arms(lost(arms(1.0, 8), "this", [2])))
    assert (once.outcome, once.why) == (Outcome.BROKEN, "1 of 8 launches: crash")


def lost(rows: list[dict[str, Any]], arm: str, launches: Sequence[int]) -> list[dict[str, Any]]:
    gone = {"status": "failed", "reason": "crash", "latency_p50_ms": None}
    return [one | gone if one["arm"] == arm and one["launch"] in launches else one for one in rows]


def test_what_the_document_and_the_rules_have_of_arms():
    # The document has the ratio by pairs.
    about: dict[str, Any] = {"runs": ["r"], "labels": {}, "baseline": "old", "notes": []}
    check = checked_arms(arms(1.25))
    (figure, *_) = document(check, about)["questions"][0]["figures"]
    assert figure["by_pairs"]
    assert figure["times_as_fast"] == pytest.approx(0.8, rel=0.01)
    assert figure["times_as_fast_low"] < figure["times_as_fast"] < figure["times_as_fast_high"]
    assert any("Judged by pairs of launches" in one for one in sentences(check, about))
    # Rates of one unit alone, and nothing faster is better that is verified no longer.
    other_rates = [
        {**one, "throughput": 100.0, "throughput_unit": _UNITS[one["arm"]]} for one in arms(0.9)
    ]
    found = only(checked_arms(other_rates))
    assert (found.outcome, "other things" in found.why) == (Outcome.CANNOT_TELL, True)
    assert "throughput" not in {one.metric.name for one in found.figures}
    unverified = [{**one, "verification": _VERDICTS[one["arm"]]} for one in arms(0.9)]
    found = only(checked_arms(unverified))
    assert (found.outcome, found.why) == (Outcome.CANNOT_TELL, "outputs are no longer verified")


_UNITS = {"this": "tokens/s", "old": "images/s"}
_VERDICTS = {"this": "not_done", "old": "ok"}
