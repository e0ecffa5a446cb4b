"""Judge all configurations of a check together: the geometric mean of their ratios. Pure.

A single configuration with one launch a side decides nothing below 33 %. A thousand of them decide:
what each launch deviates by averages out. Three errors are left. Configurations of one family
change alike, so that families are clusters. Configurations of one cluster differ from each other.
All of them share by how much one run differs from another (`measure.runs`), and no number of
configurations makes that smaller.

The variance of the mean is b·sum((n/N)²) + w/N + 2·r, for clusters of n of N configurations. The
variances w within clusters and b between them are those of an analysis of variance, and r is the
variance between runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from accelbench.analysis.judging import Judged, Judgement
from accelbench.core.rows import Row
from accelbench.core.vocabulary import Family
from accelbench.measure.launches import ALPHA, LEAST_EFFECT, Noise, p_value
from accelbench.measure.student import t_quantile
from accelbench.measure.unpaired import combine_errors

#: Fewer configurations are judged only one by one.
FEWEST_CONFIGURATIONS = 5
#: The metrics of time, by which a set is judged: the first that a configuration has.
_TIMES = ("latency", "throughput")

Logs = Sequence[float]


@dataclass(frozen=True)
class JudgedSet:
    """The judgement of all configurations together. Shares are of becoming worse."""

    configurations: int
    clusters: int
    by_family: bool  # clusters are families, else models
    worse_by: float
    low: float  # the interval: 98 % between runs, 99 % in one run
    high: float
    limit: float  # the share that a change has to exceed
    answer: Judgement
    runs: Noise | None  # the deviation from run to run that all share; None in one run


def judge_set(
    judged: Iterable[tuple[Row, Sequence[Judged]]], threshold: float | None
) -> JudgedSet | None:
    """Judge the times of all configurations together; None below five configurations.

    Args:
        judged: a row and the judged metrics of each configuration.
        threshold: the share that a change has to exceed at least.
    """
    timed = [
        (row, figure)
        for row, figures in judged
        if (figure := next((f for f in figures if f.metric.name in _TIMES), None)) is not None
    ]
    if len(timed) < FEWEST_CONFIGURATIONS:
        return None
    by_family, clusters = _clusters(timed)
    runs = sorted((f.runs for _, f in timed if f.runs is not None), key=lambda noise: noise.value)
    shared = runs[len(runs) // 2] if runs else None
    center = fmean(chain.from_iterable(clusters))
    error, freedom = combine_errors(variances_of_mean(clusters), shared)
    tail = ALPHA / 2.0 if shared is None else ALPHA
    reach = t_quantile(1.0 - tail, freedom) * error
    limit = max(threshold or 0.0, LEAST_EFFECT)
    answer = Judgement.CANNOT_TELL
    if p_value(center, error, freedom) < 2.0 * tail and abs(center) > math.log1p(limit):
        answer = Judgement.WORSE if center > 0 else Judgement.BETTER
    low, high = math.expm1(center - reach), math.expm1(center + reach)
    count = len(timed)
    return JudgedSet(
        count, len(clusters), by_family, math.expm1(center), low, high, limit, answer, shared
    )


def variances_of_mean(clusters: Sequence[Logs]) -> list[tuple[float, float]]:
    """Return the variances of the mean of all values, each with its degrees of freedom.

    The first is that between clusters, the second that within them. A part without degrees of
    freedom is left out.
    """
    count = sum(map(len, clusters))
    means = [fmean(cluster) for cluster in clusters]
    inside = count - len(clusters)
    squares = math.fsum(
        (value - mean) ** 2
        for cluster, mean in zip(clusters, means, strict=True)
        for value in cluster
    )
    within = squares / inside if inside else 0.0
    parts = []
    if len(clusters) > 1:
        middle = fmean(means)
        between = math.fsum((mean - middle) ** 2 for mean in means) / (len(means) - 1)
        explained = within * fmean(1.0 / len(cluster) for cluster in clusters)
        shares = math.fsum((len(cluster) / count) ** 2 for cluster in clusters)
        parts.append((max(between - explained, 0.0) * shares, len(clusters) - 1.0))
    if inside:
        parts.append((within / count, float(inside)))
    return parts


def _clusters(timed: Sequence[tuple[Row, Judged]]) -> tuple[bool, list[Logs]]:
    """Return the logarithms of the changes by family; of one family by model."""
    by_family = _grouped(timed, _family)
    if len(by_family) > 1:
        return True, by_family
    return False, _grouped(timed, lambda row: str(row.get("model")))


def _grouped(timed: Sequence[tuple[Row, Judged]], key: Callable[[Row], str]) -> list[Logs]:
    groups: dict[str, list[float]] = {}
    for row, figure in timed:
        groups.setdefault(key(row), []).append(math.log1p(figure.worse_by))
    return list(groups.values())


def _family(row: Row) -> str:
    """Return the family; a model whose family is unknown is a family of its own."""
    family = row.get("family")
    return str(row.get("model") if family in (None, "", Family.UNKNOWN) else family)
