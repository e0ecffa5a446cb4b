"""Gaussian process of the residuals of a fitted roofline, over cases. Pure numpy.

The kernel is a sum of parts for what residuals have in common: a configuration, a model anywhere, a
model in one configuration, a family, shares of time by operator class, and sizes. Similar
configurations have more in common. The marginal likelihood chooses how much each part explains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from accelbench.predict.cases import CaseConfiguration, PredictedCase, numbers_of_places
from accelbench.predict.signatures import Floats, Ints

#: Below this a general inverse is as fast as dividing further.
_SMALL = 96


def inverse_of(lower: Floats) -> Floats:
    """Return the inverse, a lower triangle too, in parts: numpy has no routine for triangles.

    A general inverse of 1,500 rows takes six times the operations: half of fitting a predictor.
    """
    inverse = np.zeros_like(lower)
    _invert(lower, inverse)
    return inverse


def _invert(lower: Floats, into: Floats) -> None:
    """[A 0; B C] becomes [A⁻¹ 0; -C⁻¹ B A⁻¹ C⁻¹]."""
    size = len(lower)
    if size <= _SMALL:
        into[:] = np.tril(np.linalg.inv(lower))
        return
    half = size // 2
    _invert(lower[:half, :half], into[:half, :half])
    _invert(lower[half:, half:], into[half:, half:])
    into[half:, :half] = -into[half:, half:] @ (lower[half:, :half] @ into[:half, :half])


#: By so much a difference in each field parts two configurations: e to the minus of the sum is what
#: their residuals have in common.
_APART = {
    "device": 1.2, "hardware": 0.4, "runtime": 1.0, "precision": 0.6, "mode": 1.0,
    "compiled": 0.5, "threads": 0.2, "options": 0.3,
}  # fmt: skip
#: Parts of the kernel, with the variance that each begins with; the last is noise.
_PARTS = (
    "configuration", "model", "model in configuration", "family", "shares", "sizes",
    "model and sizes", "noise",
)  # fmt: skip
_OF_MODEL = "model in configuration"
_BEGIN = (0.25, 0.02, 0.01, 0.02, 0.2, 0.05, 0.005, 0.003)
_LEAST, _MOST = 1e-5, 4.0
_FACTORS = (0.25, 0.5, 2.0, 4.0)
_ROUNDS = 3
#: Hyperparameters are chosen on so many cases at most: each try takes the cube of them.
_MOST_TRIED = 500
_CHUNK = 4096
#: Errors of so many deviations are of a model that is unlike the others in a configuration.
_UNLIKE = 2.0


@dataclass(frozen=True)
class CaseInputs:
    """What the kernel sees of cases, a row each."""

    configuration: Ints  # cases × fields, as numbers
    model: Ints
    family: Ints
    sizes: Floats
    shares: Floats
    unlike: Floats  # so many times the usual deviation of a model in a configuration

    def __len__(self) -> int:
        return len(self.model)

    def only(self, rows: Ints) -> CaseInputs:
        """Some of the cases."""
        return CaseInputs(
            self.configuration[rows], self.model[rows], self.family[rows], self.sizes[rows],
            self.shares[rows], self.unlike[rows],
        )  # fmt: skip


@dataclass
class KernelNames:
    """Numbers of names, by kind; a name that was never learned is -1, which equals nothing."""

    known: dict[str, dict[str, int]] = field(default_factory=dict)

    def number(self, kind: str, name: str, *, learn: bool) -> int:
        """The number of a name."""
        names = self.known.setdefault(kind, {})
        if name not in names and learn:
            names[name] = len(names)
        return names.get(name, -1)

    def _numbers(self, kind: str, names: Sequence[str], *, learn: bool) -> Ints:
        known = {name: self.number(kind, name, learn=learn) for name in dict.fromkeys(names)}
        return np.array([known[name] for name in names], dtype=np.int64)

    def inputs(
        self,
        cases: Sequence[PredictedCase],
        sizes: Floats,
        shares: Floats,
        unlike: Floats,
        *,
        learn: bool,
    ) -> CaseInputs:
        """What the kernel sees of cases."""
        numbers = numbers_of_places(cases)
        places = {number: c.configuration for number, c in zip(numbers, cases, strict=True)}
        fields = [
            [self.number(name, text, learn=learn) for name, text in _fields(places[number])]
            for number in range(len(places))
        ]
        table = np.array(fields, dtype=np.int64).reshape(len(fields), len(_APART))
        return CaseInputs(
            table[np.array(numbers, dtype=np.int64)],
            self._numbers("model", [case.model for case in cases], learn=learn),
            self._numbers("family", [case.family for case in cases], learn=learn),
            sizes,
            shares,
            unlike,
        )


def _fields(configuration: CaseConfiguration) -> list[tuple[str, str]]:
    return [(name, str(getattr(configuration, name))) for name in _APART]


@dataclass(frozen=True)
class ResidualProcess:
    """A process conditioned on the residuals of some cases."""

    inputs: CaseInputs
    residual: Floats
    variances: Floats
    lower: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    solved: Floats = field(default_factory=lambda: np.zeros(0))

    def conditioned(self) -> ResidualProcess:
        """With the factor of its covariance, ready to predict."""
        covariance = _across(self.inputs, self.inputs, self.variances)
        covariance[np.diag_indices(len(self.inputs))] += self.variances[-1]
        lower: Floats = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        process = replace(self, lower=lower)
        return replace(process, solved=process.upper @ (process.upper.T @ self.residual))

    @cached_property
    def upper(self) -> Floats:
        """The transposed inverse of the factor: a product takes a tenth of solving each time."""
        return inverse_of(self.lower).T

    @cached_property
    def _inverse(self) -> Floats:
        """Of the covariance of the known cases, which every leaving out asks for."""
        return np.asarray(self.upper @ self.upper.T)

    def __call__(self, inputs: CaseInputs) -> tuple[Floats, Floats]:
        """Mean and variance of the residuals of other cases, noise included."""
        if not len(self.inputs):
            return np.zeros(len(inputs)), np.full(len(inputs), self.variances.sum())
        mean, variance = np.zeros(len(inputs)), np.zeros(len(inputs))
        for start in range(0, len(inputs), _CHUNK):
            rows = np.arange(start, min(start + _CHUNK, len(inputs)))
            some = inputs.only(rows)
            covariance = _across(some, self.inputs, self.variances)
            mean[rows] = covariance @ self.solved
            explained = covariance @ self.upper
            explained *= explained
            variance[rows] = self._prior(some) - explained.sum(axis=1)
        return mean, np.maximum(variance, 1e-6) + self.variances[-1]

    def left_out(self, groups: Ints) -> tuple[Floats, Floats]:
        """Mean and variance of each case from those of all other groups, in closed form.

        Cases of a negative group stay; of them nothing is said.
        """
        mean, variance = np.zeros(len(self.inputs)), np.zeros(len(self.inputs))
        for rows in _of_one_size(groups):
            blocks = np.linalg.inv(self._inverse[rows[:, :, None], rows[:, None, :]])
            off = (blocks @ self.solved[rows][:, :, None])[:, :, 0]
            mean[rows] = self.residual[rows] - off
            variance[rows] = np.diagonal(blocks, axis1=1, axis2=2)
        return mean, np.maximum(variance, 1e-6)

    def unlike_models(self, groups: Ints) -> Floats:
        """So many times the usual deviation of a model in a configuration as each case shows.

        One whose operators are others in a runtime than were traced (an export that computes every
        expert of a mixture takes ten times as long) is to say nothing of other models. Where a
        group's errors, its model left out, are within the usual, it is 1.
        """
        mean, variance = self.left_out(self.inputs.model)
        error, unlike = np.abs(self.residual - mean), np.ones(len(groups))
        deviation = np.sqrt(self.variances[_PARTS.index(_OF_MODEL)])
        for group in np.unique(groups):
            rows = np.flatnonzero(groups == group)
            typical = float(np.sqrt(np.mean(error[rows] ** 2)))
            if typical > _UNLIKE * float(np.sqrt(np.mean(variance[rows]))):
                unlike[rows] = max(typical / deviation, 1.0)
        return unlike

    def covariance(self, inputs: CaseInputs) -> Floats:
        """Covariance of the residuals of other cases, noise left out."""
        prior = _covariance(_parts(inputs, inputs), self.variances)
        if not len(self.inputs):
            return prior
        across = _covariance(_parts(inputs, self.inputs), self.variances)
        return prior - across @ np.linalg.solve(self.lower.T, np.linalg.solve(self.lower, across.T))

    def _prior(self, inputs: CaseInputs) -> Floats:
        """Variance of cases by themselves; two parts are not one there."""
        of_shares = self.variances[_PARTS.index("shares")]
        of_model = self.variances[_PARTS.index(_OF_MODEL)]
        alone = np.sum(self.variances[:-1]) - of_shares - of_model
        shares = of_shares * np.sum(inputs.shares**2, axis=1)
        return np.asarray(alone + shares + of_model * inputs.unlike**2)


def usual_variances() -> Floats:
    """The variances of the parts before anything was fitted."""
    return np.array(_BEGIN)


def fit_process(
    inputs: CaseInputs, residual: Floats, begin: Floats | None = None, seed: int = 0
) -> ResidualProcess:
    """Return the process whose parts explain the residuals, as logarithms, best.

    It begins with the variances of the last training. Of many cases, the seed draws those that are
    tried.
    """
    variances = np.array(_BEGIN) if begin is None else begin.copy()
    if not len(inputs):
        return ResidualProcess(inputs, residual, variances)
    rows = np.arange(len(inputs))
    if len(rows) > _MOST_TRIED:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _MOST_TRIED, replace=False))
    parts = [*_parts(inputs.only(rows), inputs.only(rows)), np.eye(len(rows))]
    covariance = _covariance(parts, variances)
    best = _likelihood(covariance, variances, residual[rows])
    for _ in range(_ROUNDS):
        before = best
        for place in range(len(_PARTS)):
            for factor in _FACTORS:
                tried = variances.copy()
                tried[place] = np.clip(tried[place] * factor, _LEAST, _MOST)
                # One part is another: the sum of all takes six times as long.
                changed = covariance + (tried[place] - variances[place]) * parts[place]
                value = _likelihood(changed, tried, residual[rows])
                if value > best:
                    best, variances, covariance = value, tried, changed
        if best - before < 0.5:
            break
    return ResidualProcess(inputs, residual, variances).conditioned()


def _likelihood(covariance: Floats, variances: Floats, residual: Floats) -> float:
    """How well variances explain residuals, noise being a part of their covariance."""
    # The factor of both together has the residuals, solved, for its last row. Below it stands what
    # is no less than they come to: the covariance is nowhere below its noise.
    size = len(residual)
    both = np.empty((size + 1, size + 1))
    both[:size, :size] = covariance
    both[size, :size] = both[:size, size] = residual
    both[size, size] = 1.0 + 2.0 * float(residual @ residual) / variances[-1]
    try:
        lower = np.linalg.cholesky(both)
    except np.linalg.LinAlgError:
        return -np.inf
    solved = lower[size, :size]
    # A prior of each variance: e-fold away from where it begins costs half a unit.
    prior = 0.25 * np.sum((np.log(variances / np.array(_BEGIN)) / 1.5) ** 2)
    return float(-0.5 * solved @ solved - np.sum(np.log(np.diag(lower)[:size])) - prior)


def _of_one_size(groups: Ints) -> Iterator[Ints]:
    """The rows of each group, those of equal size together: a line a group.

    A thousand small inverses take no longer together than thirty one by one.
    """
    order = np.argsort(groups, kind="stable")
    order = order[groups[order] >= 0]
    _, counts = np.unique(groups[order], return_counts=True)
    begins = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)[:-1]])
    for size in np.unique(counts):
        yield order[begins[counts == size][:, None] + np.arange(size)]


def _covariance(parts: Sequence[Floats], variances: Floats) -> Floats:
    total = np.zeros_like(parts[0])
    for part, variance in zip(parts, variances, strict=False):
        total += variance * part
    return total


def _parts(some: CaseInputs, others: CaseInputs) -> list[Floats]:
    """The kernel's parts of variance one, noise left out."""
    alike = _alike(some.configuration, others.configuration)
    model = _equal(some.model, others.model)
    family = _equal(some.family, others.family)
    near = np.exp(-0.5 * squared_distances(some.sizes, others.sizes))
    # Products: numpy's powers take ten times as long, and a matrix has twenty million of them.
    in_configuration = model * (alike * alike * alike) * some.unlike[:, None] * others.unlike
    nearer = near * near
    return [
        alike, model, in_configuration, family * alike,
        (some.shares @ others.shares.T) * alike, near * alike, model * (nearer * nearer) * alike,
    ]  # fmt: skip


def _across(some: CaseInputs, others: CaseInputs, variances: Floats) -> Floats:
    """The covariance of cases with others, noise left out: `_covariance` of `_parts` at once.

    A matrix has twenty million fields, and each pass over them takes a tenth of a second. What
    follows from the configuration and the family alone is calculated once for each that there is,
    and what two cases of one model have in common only where there are such.
    """
    whole, of_model, in_place, of_family, of_shares, of_sizes, of_both = variances[:-1]
    alike, row = _alike_rows(some.configuration, others.configuration)
    families, family = np.unique(some.family, return_inverse=True)
    kinds, kind = np.unique(row * len(families) + family.ravel(), return_inverse=True)
    same = of_family * _equal(families, others.family)[kinds % len(families)]
    common = np.take(same + whole, kind.ravel(), axis=0)
    common += (of_shares * some.shares) @ others.shares.T
    near = squared_distances(some.sizes, others.sizes)
    near *= -0.5
    np.exp(near, out=near)
    common += of_sizes * near
    shared = np.take(alike, row, axis=0)
    common *= shared
    for model in np.intersect1d(some.model, others.model):
        rows, columns = np.flatnonzero(some.model == model), np.flatnonzero(others.model == model)
        block = np.ix_(rows, columns)
        cubed, nearer = shared[block] ** 3, near[block] ** 4
        unlike = some.unlike[rows, None] * others.unlike[columns]
        common[block] += of_model + in_place * cubed * unlike + of_both * nearer * shared[block]
    return np.asarray(common)


def _alike(some: Ints, others: Ints) -> Floats:
    """How much configurations have in common; many cases have few of them."""
    alike, row = _alike_rows(some, others)
    return np.asarray(alike[row])


def _alike_rows(some: Ints, others: Ints) -> tuple[Floats, Ints]:
    """How much each configuration that there is has in common with others, and whose each is."""
    rows, row = _distinct(some)
    columns, column = _distinct(others)
    apart = np.zeros((len(rows), len(columns)))
    for place, weight in enumerate(_APART.values()):
        apart += weight * (rows[:, place, None] != columns[None, :, place])
    return np.asarray(np.exp(-apart)[:, column]), row


def _distinct(configurations: Ints) -> tuple[Ints, Ints]:
    """The rows that there are, and the number of each: as one number each, sorted ten times as fast
    as rows."""
    low = configurations.min(axis=0, initial=0)
    spans = configurations.max(axis=0, initial=0) - low + 1
    factors = np.concatenate([np.ones(1, dtype=np.int64), np.cumprod(spans[:-1])])
    _, first, number = np.unique(
        (configurations - low) @ factors, return_index=True, return_inverse=True
    )
    return configurations[first], number.ravel()


def _equal(some: Ints, others: Ints) -> Floats:
    return np.asarray((some[:, None] == others[None, :]).astype(np.float64))


def squared_distances(left: Floats, right: Floats) -> Floats:
    """Squared distances, without a third dimension in memory."""
    cross = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None] - 2 * left @ right.T
    return np.asarray(np.maximum(cross, 0))
