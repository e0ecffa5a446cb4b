"""Sum of positive terms, fitted to logarithms: log y = log Σ exp(θ) · term. Pure numpy.

θ stays near what is usual as far as the data say nothing else: a Gaussian prior of the logarithms.
Fitted by Gauss-Newton with weights that hold outliers down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from accelbench.predict.cases import CaseConfiguration, distance
from accelbench.predict.signatures import Floats, Ints
from accelbench.predict.terms import SHARPNESS, SIZES_OF_TERMS, TIME_TERMS, longer_of

_SPREAD = 0.8  # of an efficiency beside the usual one, as a logarithm
_NOISE = 0.35  # what one case is off by for reasons of its own
#: What a host takes to hand over an operator, and a device to begin one, differs by less. Large
#: batches tell nothing of reading weights: with 0.8 an RTX 4090 read them at half the rate.
_SPREADS = {"dispatch": 0.4, "launches": 0.4, "weights": 0.4}
#: Whether a term is what a host takes, which tables of large batches tell nothing of.
OF_THE_HOST = np.array([name == "dispatch" for name in TIME_TERMS])
_HUBER = 2.0
#: Neighbouring sizes of a class differ by a factor of e to this, as a standard deviation.
_NEIGHBOURS = 0.2
_LINK = np.array([[1.0, -1.0], [-1.0, 1.0]]) / _NEIGHBOURS**2
_STEPS = 40
_LONGEST = 0.7  # a step of θ: the sum bends, and a longer one overshoots


@dataclass(frozen=True)
class PositiveSum:
    """Factors of terms, as logarithms, beside the overall one."""

    theta: Floats

    def __call__(self, terms: Floats) -> Floats:
        """Logarithms of the sums, a row of terms each."""
        return np.asarray(np.log(self._total(terms * np.exp(self.theta))[0] + 1e-12))

    def shares(self, terms: Floats) -> Floats:
        """Each term's share of its row's sum, by which the sum grows as the term does."""
        parts = terms * np.exp(self.theta)
        total, weights = self._total(parts)
        return np.asarray(parts * weights / (total[:, None] + 1e-12))

    def _total(self, parts: Floats) -> tuple[Floats, Floats]:
        """Return sums of parts, and by how much each grows with a part.

        A device works while its host hands over operators: of the two the slower one counts.
        """
        if len(self.theta) != len(TIME_TERMS):
            return parts.sum(axis=1), np.ones_like(parts)
        device, host = parts[:, ~OF_THE_HOST].sum(axis=1), parts[:, OF_THE_HOST].sum(axis=1)
        total = longer_of(device, host)
        by_device, by_host = (
            (part / (total + 1e-12)) ** (SHARPNESS - 1) for part in (device, host)
        )
        return total, np.where(OF_THE_HOST, by_host[:, None], by_device[:, None])

    def slower(self, by: float) -> PositiveSum:
        """Return the sum of a device that is slower by this logarithm; its host is not."""
        of_the_host = OF_THE_HOST if len(self.theta) == len(TIME_TERMS) else False
        return PositiveSum(self.theta + np.where(of_the_host, 0.0, by))


@dataclass
class ConfigurationSums:
    """A sum for each configuration that was measured, and one of all for others."""

    whole: PositiveSum = field(default_factory=lambda: PositiveSum(np.zeros(0)))
    of: dict[CaseConfiguration, PositiveSum] = field(default_factory=dict)

    def sums(self, configurations: Sequence[CaseConfiguration], terms: Floats) -> Floats:
        """Logarithms of the sums, a row of terms each in its configuration."""
        values = np.zeros(len(terms))
        for sums, rows in self._by_sum(configurations):
            values[rows] = sums(terms[rows])
        return values

    def shares(self, configurations: Sequence[CaseConfiguration], terms: Floats) -> Floats:
        """Each term's share of its row's sum."""
        values = np.zeros_like(terms)
        for sums, rows in self._by_sum(configurations):
            values[rows] = sums.shares(terms[rows])
        return values

    def _by_sum(
        self, configurations: Sequence[CaseConfiguration]
    ) -> Iterator[tuple[PositiveSum, Ints]]:
        if not self.of:
            yield self.whole, np.arange(len(configurations))
            return
        rows: dict[CaseConfiguration, list[int]] = {}
        for row, configuration in enumerate(configurations):
            rows.setdefault(configuration, []).append(row)
        for configuration, places in rows.items():
            yield self.nearest(configuration), np.array(places)

    def nearest(self, configuration: CaseConfiguration) -> PositiveSum:
        """The sum of the most similar configuration that has one: terms are at each one's peaks.

        What the host of another device takes to hand over an operator says nothing of this one's.
        """
        if not self.of:
            return self.whole
        if configuration in self.of:
            return self.of[configuration]
        known = min(self.of, key=lambda known: distance(configuration, known))
        theta = self.of[known].theta
        if known.device == configuration.device or len(theta) != len(TIME_TERMS):
            return self.of[known]
        return PositiveSum(np.where(OF_THE_HOST, 0.0, theta))


@cache
def prior_precision(count: int) -> Floats:
    """Return how surely so many factors are near the usual ones, and near their neighbours.

    Factors of one class of operators are alike for neighbouring sizes. Tables with one large batch
    for each model say nothing of the middle sizes otherwise, and batch 256 was predicted to take
    0.3 of batch 1,024.
    """
    precision = np.eye(count) / _SPREAD**2
    if count == len(TIME_TERMS):
        for name, spread in _SPREADS.items():
            term = TIME_TERMS.index(name)
            precision[term, term] = 1 / spread**2
        first = 0
        for width in SIZES_OF_TERMS:
            for term in range(first, first + width - 1):
                precision[term : term + 2, term : term + 2] += _LINK
            first += width
    return precision


def fit_sum(
    terms: Floats, log_values: Floats, usual: Floats, groups: Ints | None = None
) -> PositiveSum:
    """The factors that fit.

    Args:
        terms: a row a case.
        log_values: logarithms of what was measured.
        usual: the factors that are usual.
        groups: the number of each row's configuration, of which each has an offset: how much slower
            all of it is. They are fitted beside the factors and left out of the sum.
    """
    prior = np.log(usual)
    count = 0 if groups is None else int(groups.max()) + 1
    theta, shift = prior.copy(), np.zeros(count)
    precision = prior_precision(len(usual))
    for _ in range(_STEPS):
        model = PositiveSum(theta)
        residual = log_values - model(terms)
        if groups is not None:
            residual -= shift[groups]
        weight = np.minimum(1.0, _HUBER * _NOISE / (np.abs(residual) + 1e-9)) / _NOISE**2
        shares = model.shares(terms)
        weighted = shares * weight[:, None]
        normal = shares.T @ weighted
        normal += precision
        towards = weighted.T @ residual + precision @ (prior - theta)
        if groups is None:
            moved = np.zeros(0)
            step = np.linalg.solve(normal, towards)
        else:
            step, moved = _with_offsets(normal, towards, groups, weighted, weight, residual, shift)
        step, moved = (np.clip(by, -_LONGEST, _LONGEST) for by in (step, moved))
        theta, shift = theta + step, shift + moved
        if max(np.abs(step).max(), np.abs(moved).max(initial=0.0)) < 1e-4:
            break
    return PositiveSum(theta)


def _with_offsets(
    normal: Floats,
    towards: Floats,
    groups: Ints,
    weighted: Floats,
    weight: Floats,
    residual: Floats,
    shift: Floats,
) -> tuple[Floats, Floats]:
    """A step of the factors and of the offsets together.

    A row has one offset, so that theirs is a diagonal, and what is solved is as small as the
    factors: as one matrix of both, a hundred configurations took twenty times as long.
    """
    count = len(shift)
    own = np.bincount(groups, weight, count) + 1.0
    across = np.stack([np.bincount(groups, column, count) for column in weighted.T])
    wanted = np.bincount(groups, weight * residual, count) - shift
    step = np.linalg.solve(normal - (across / own) @ across.T, towards - across @ (wanted / own))
    return np.asarray(step), np.asarray((wanted - across.T @ step) / own)
