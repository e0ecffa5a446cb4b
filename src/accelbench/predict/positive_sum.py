"""Sum of positive terms, fitted to logarithms: log y = log Σ exp(θ) · term. Pure numpy.

θ stays near what is usual as far as the data say nothing else: a Gaussian prior of the logarithms.
Fitted by Gauss-Newton with weights that hold outliers down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from accelbench.predict.cases import CaseConfiguration
from accelbench.predict.graphs import Floats, Ints

_SPREAD = 0.8  # of an efficiency beside the usual one, as a logarithm
_NOISE = 0.35  # what one case is off by for reasons of its own
_HUBER = 2.0
_STEPS = 40
_LONGEST = 0.7  # a step of θ: the sum bends, and a longer one overshoots


@dataclass(frozen=True)
class PositiveSum:
    """Factors of terms, as logarithms, beside the overall one."""

    theta: Floats

    def __call__(self, terms: Floats) -> Floats:
        """Logarithms of the sums, a row of terms each."""
        return np.asarray(np.log(terms @ np.exp(self.theta) + 1e-12))

    def shares(self, terms: Floats) -> Floats:
        """Each term's share of its row's sum."""
        parts = terms * np.exp(self.theta)
        return np.asarray(parts / (parts.sum(axis=1, keepdims=True) + 1e-12))


@dataclass
class ConfigurationSums:
    """A sum for each configuration that was measured, and one of all for others.

    Attributes:
        whole: of all.
        of: by configuration.
    """

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
            yield self.of.get(configuration, self.whole), np.array(places)


def fit_sum(terms: Floats, log_values: Floats, usual: Floats, offsets: Floats) -> PositiveSum:
    """The factors that fit.

    Args:
        terms: a row a case.
        log_values: logarithms of what was measured.
        usual: the factors that are usual.
        offsets: design of further offsets (a column a configuration), which take up how much slower
            all of one configuration is; they are fitted beside the factors and left out of the sum.
    """
    prior = np.log(usual)
    theta, shift = prior.copy(), np.zeros(offsets.shape[1])
    precision = np.concatenate([
        np.full(len(prior), 1 / _SPREAD**2), np.full(len(shift), 1.0)
    ])  # fmt: skip
    for _ in range(_STEPS):
        model = PositiveSum(theta)
        residual = log_values - model(terms) - offsets @ shift
        weight = np.minimum(1.0, _HUBER * _NOISE / (np.abs(residual) + 1e-9)) / _NOISE**2
        design = np.hstack([model.shares(terms), offsets])
        normal = design.T @ (design * weight[:, None]) + np.diag(precision)
        towards = np.concatenate([prior - theta, -shift])
        step = np.linalg.solve(normal, design.T @ (weight * residual) + precision * towards)
        step = np.clip(step, -_LONGEST, _LONGEST)
        theta, shift = theta + step[: len(theta)], shift + step[len(theta) :]
        if np.abs(step).max() < 1e-4:
            break
    return PositiveSum(theta)
