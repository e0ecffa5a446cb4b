"""All configurations of a check judged together: by a closed form, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from accelbench.judge.regressions import (
    Check,
    JudgedSet,
    Outcome,
    Rules,
    checked,
    judge_set,
    variances_of_mean,
)
from accelbench.judge.verdicts import METRICS, Judged, Judgement
from accelbench.measure.launch_verdicts import Noise
from accelbench.measure.run_to_run_noise import find_gate_noise
from accelbench.present.check import document, headline, sentences
from asked_rows import row

KNOWN = find_gate_noise([])
FAMILIES = ("embedding", "text_generation", "vision", "audio", "multimodal")
ABOUT = {"baseline": "main", "runs": ["r2"], "machine": "lab"}


def figure(log: float, runs: Noise | None = KNOWN) -> Judged:
    change = math.expm1(log)
    return Judged(
        METRICS[0], 8.0, 8.0 * (1 + change), change, Judgement.CANNOT_TELL, 0.33, (1, 1), runs=runs
    )


def whole(
    logs: Sequence[float],
    threshold: float | None = 0.1,
    runs: Noise | None = KNOWN,
    families: Sequence[str] = FAMILIES,
) -> JudgedSet | None:
    judged = [
        ({"model": f"m{n}", "family": families[n % len(families)]}, [figure(log, runs)])
        for n, log in enumerate(logs)
    ]
    return judge_set(judged, threshold)


def single(count: int, factor: float, **changes: Any) -> list[dict[str, Any]]:
    """One launch of each of many configurations."""
    rng = np.random.default_rng(count)
    return [
        row(
            model=f"m{n}",
            case_id=f"c{n}",
            series_key=f"s{n}",
            family=FAMILIES[n % 5],
            launch=0,
            latency_p50_ms=8.0 * factor * math.exp(rng.normal(0.0, 0.03)),
            memory_peak_mb=None,
            **changes,
        )
        for n in range(count)
    ]


def of(count: int, factor: float) -> Check:
    now = single(count, factor, run_id="r2", started_at="2026-01-02 00:00:00")
    return checked(now, single(count, 1.0), Rules(threshold=0.1))


def test_a_thousand_single_launches_that_are_slower_are_a_regression():
    found = of(1143, 1.2)
    assert found.outcome is Outcome.WORSE
    assert {question.outcome for question in found.questions} == {Outcome.CANNOT_TELL}
    judged = found.whole
    assert judged is not None
    assert (judged.configurations, judged.clusters, judged.answer) == (1143, 5, Judgement.WORSE)
    assert judged.worse_by == pytest.approx(0.2, abs=1e-6)
    assert judged.low == pytest.approx(0.12, abs=0.01)
    assert judged.high == pytest.approx(0.29, abs=0.01)
    assert "all 1,143 configurations: 20.0 % slower (12." in headline(found)
    about = document(found, ABOUT)["all_configurations"]
    assert isinstance(about, dict)
    assert (about["configurations"], about["answer"]) == (1143, "worse")
    said = list(sentences(found, ABOUT))
    assert sum("1,143 configurations" in sentence for sentence in said) >= 2
    assert len(said) < 10  # no reason is repeated for each of them


def test_a_set_is_no_regression_within_the_threshold_or_what_runs_differ_by():
    assert of(1143, 1.0).outcome is Outcome.CANNOT_TELL
    assert of(1143, 1.09).outcome is Outcome.CANNOT_TELL
    assert of(4, 1.2).whole is None
    quicker = of(1143, 0.8)
    assert quicker.whole is not None
    assert (quicker.whole.answer, quicker.outcome) == (Judgement.BETTER, Outcome.CANNOT_TELL)


def test_the_error_of_a_set_has_three_parts():
    """Clusters of unequal size: an analysis of variance, by hand."""
    clusters = [[0.1, 0.12, 0.14, 0.08], [0.3, 0.28], [0.2]]
    means = [np.mean(cluster) for cluster in clusters]
    within = sum(np.var(cluster) * len(cluster) for cluster in clusters) / (7 - 3)
    between = np.var(means, ddof=1) - within * (1 / 4 + 1 / 2 + 1) / 3
    parts = [(between * (16 + 4 + 1) / 49, 2.0), (within / 7, 4.0)]
    assert variances_of_mean(clusters) == [pytest.approx(part) for part in parts]
    judged = [
        ({"model": f"m{n}", "family": family}, [figure(log)])
        for n, (family, log) in enumerate(
            (family, log)
            for family, cluster in zip(FAMILIES, clusters, strict=False)
            for log in cluster
        )
    ]
    found = judge_set(judged, None)
    assert found is not None
    parts.append((2 * 0.02**2, math.inf))
    total = sum(variance for variance, _ in parts)
    freedom = total**2 / sum(variance**2 / each for variance, each in parts)
    center = float(np.mean([log for cluster in clusters for log in cluster]))
    reach = stats.t.ppf(0.99, freedom) * math.sqrt(total)
    assert math.log1p(found.low) == pytest.approx(center - reach, rel=1e-6)
    assert math.log1p(found.high) == pytest.approx(center + reach, rel=1e-6)


def test_of_one_family_models_are_the_clusters_and_unknown_families_are_none():
    logs = [0.2] * 10
    one = whole(logs, families=("vision",))
    assert one is not None
    assert (one.clusters, one.by_family) == (10, False)
    unknown = whole(logs, families=("unknown",))
    assert unknown is not None
    assert (unknown.clusters, unknown.by_family) == (10, True)


def test_one_family_that_changed_is_not_the_set():
    """All of vision is 60 % slower and the rest as before: that says little of another set."""
    found = whole([0.47 if n % 5 == 2 else 0.0 for n in range(100)], 0.05)
    assert found is not None
    assert found.worse_by > 0.05
    assert found.answer is Judgement.CANNOT_TELL


@pytest.mark.parametrize("count", [5, 20, 200])
def test_sets_alarm_rarely_though_runs_differ(count):
    """Runs differ by 2 %, launches by 5 %, and one launch in fifty takes 30 % longer."""
    rng = np.random.default_rng(count)
    trials, alarms = 1000, 0
    for _ in range(trials):
        sides = rng.normal(0.0, 0.05, (2, count)) + rng.normal(0.0, 0.02, (2, 1))
        sides += math.log(1.3) * (rng.random(sides.shape) < 0.02)
        found = whole((sides[1] - sides[0]).tolist(), None)
        alarms += found is not None and found.answer is Judgement.WORSE
    assert alarms <= 19  # 1 % of 1000 are 10; three standard errors are 9


@pytest.mark.parametrize("few", [1, 8, 100, 1143])
def test_single_launches_of_a_large_set_alarm_no_more_often_than_one(few):
    """Without a change, and one launch in fifty takes 30 % longer: at most 1 % of checks alarm."""
    now = [row(model=f"m{n}", latency_p50_ms=8.0, run_id="r2") for n in range(few)]
    before = [row(model=f"m{n}", latency_p50_ms=8.0) for n in range(few)]
    limit = checked(now, before).questions[0].figures[0].limit
    rng, trials = np.random.default_rng(few), 1_000_000 // few
    sides = rng.normal(0.0, 0.05, (2, trials, few))
    sides += math.log(1.3) * (rng.random(sides.shape) < 0.02)
    alarms = ((sides[1] - sides[0]) > math.log1p(limit)).any(axis=1)
    assert alarms.mean() <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / trials)
