"""Gaussian process of the residuals of a fitted roofline, over cases. Pure numpy.

The kernel is a sum of parts for what residuals have in common: a configuration, a model anywhere, a
model in one configuration, a family, shares of time by operator class, and sizes. Similar
configurations have more in common. The marginal likelihood chooses how much each part explains.

The parts of a family and of a model connect cases of one family only: they are exact, a block a
family. The smooth parts connect all cases, and are approximated by their values at some of the
cases (Snelson and Ghahramani 2006, FITC, with blocks in place of a diagonal). Fitting n cases thus
takes n times the square of that number instead of the cube of n. Up to as many cases it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from accelbench.predict.cases import (
    APART,
    CaseConfiguration,
    PredictedCase,
    numbers_of_places,
)
from accelbench.predict.signatures import Floats, Ints

#: Below this a general inverse is as fast as dividing further.
_SMALL = 96


def inverse_factor(covariance: Floats) -> Floats:
    """Return the transposed inverse of the factor of a covariance: to multiply by, not to solve."""
    lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    return inverse_of(lower).T


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


#: Parts of the kernel, with the variance that each begins with; the last is noise.
_PARTS = (
    "configuration", "model", "model in configuration", "family", "shares", "sizes",
    "model and sizes", "noise",
)  # fmt: skip
_OF_MODEL = "model in configuration"
_SMOOTH = ("configuration", "shares", "sizes")
#: Next to the part of a model in a configuration.
_LOCAL = ("model", "family", "model and sizes")
_BEGIN = (0.03, 0.0025, 0.004, 0.04, 0.15, 0.03, 0.01, 0.002)
_PRIOR_SPREAD = 0.3
_LEAST, _MOST = 1e-5, 4.0
_FACTORS = (0.25, 0.5, 2.0, 4.0)
_ROUNDS = 3
#: Hyperparameters are chosen on so many cases at most: each try takes the cube of them.
_MOST_TRIED = 600
_CHUNK = 4096
#: The smooth parts are approximated by their values at so many cases. With 250, 500 and 1,000 for
#: 6,000 cases unseen models on GPUs were off by 5.3, 5.2 and 5.2 %, unseen families by 7.4 % each.
_MOST_NODES = 500
_JITTER = 1e-7
#: Across families cases are near by the work of an item, launches and length. Tables have one large
#: batch for each model, the smaller the larger the model: that is not an effect of the batch, which
#: matters by the sizes of its operators.
_OF_AN_ITEM = np.array([
    [1.0, 0.0, 0.0], [-math.log(2.0), 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0],
])  # fmt: skip
#: A larger family is divided into its models: to invert a block takes the cube of its cases.
_LARGEST_BLOCK = 1200
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
        table = np.array(fields, dtype=np.int64).reshape(len(fields), len(APART))
        return CaseInputs(
            table[np.array(numbers, dtype=np.int64)],
            self._numbers("model", [case.model for case in cases], learn=learn),
            self._numbers("family", [case.relatives for case in cases], learn=learn),
            sizes,
            shares,
            unlike,
        )


def _fields(configuration: CaseConfiguration) -> list[tuple[str, str]]:
    return [(name, str(getattr(configuration, name))) for name in APART]


@dataclass(frozen=True)
class _Block:
    """Cases of one family, of which the covariance that is their own is inverted exactly."""

    rows: Ints
    upper: Floats  # transposed inverse of the factor of that covariance, noise included
    weighted: Floats  # its inverse, times the features of these cases


@dataclass(frozen=True)
class ResidualProcess:
    """A process conditioned on the residuals of some cases.

    Attributes:
        kept: weights of the features that stand for the smooth parts, and the transposed inverse
            of the factor of their precision, if they were calculated before.
    """

    inputs: CaseInputs
    residual: Floats
    variances: Floats
    kept: tuple[Floats, Floats] | None = None

    @cached_property
    def posterior(self) -> tuple[Floats, Floats]:
        """The weights, and the factor of their precision, as in `kept`."""
        if self.kept is not None:
            return self.kept
        count = len(self._nodes)
        precision, towards = np.eye(count), np.zeros(count)
        for key in self._rows_by_key:
            block = self._block(key)
            precision += self._features[block.rows].T @ block.weighted
            towards += block.weighted.T @ self.residual[block.rows]
        factor = inverse_factor(precision)
        return factor @ (factor.T @ towards), factor

    @cached_property
    def _nodes(self) -> CaseInputs:
        """The cases by which the smooth parts are approximated, from all configurations in turn.

        Of a configuration without one, nothing that its cases have in common would be learned.
        """
        count = len(self.inputs)
        if count <= _MOST_NODES:
            return self.inputs
        drawn = np.random.default_rng(0).permutation(count)
        turn = np.zeros(count, dtype=np.int64)
        configurations = _distinct(self.inputs.configuration)[1][drawn]
        for configuration in range(int(configurations.max()) + 1):
            rows = np.flatnonzero(configurations == configuration)
            turn[rows] = np.arange(len(rows))
        return self.inputs.only(np.sort(drawn[np.argsort(turn, kind="stable")[:_MOST_NODES]]))

    @cached_property
    def _node_factor(self) -> Floats:
        nodes = self._nodes
        covariance = _smooth(nodes, nodes, self.variances)
        covariance[np.diag_indices(len(nodes))] += _JITTER
        return inverse_factor(covariance)

    def _features_of(self, inputs: CaseInputs) -> Floats:
        """What the smooth parts see of cases, so that products of rows are their covariance."""
        return np.asarray(_smooth(inputs, self._nodes, self.variances) @ self._node_factor)

    @cached_property
    def _features(self) -> Floats:
        return self._features_of(self.inputs)

    @cached_property
    def _large_families(self) -> Ints:
        """Families of which a block would be too large: each of their models has one."""
        families, counts = np.unique(self.inputs.family, return_counts=True)
        return np.asarray(families[counts > _LARGEST_BLOCK])

    def _block_keys(self, inputs: CaseInputs) -> Ints:
        is_large = np.isin(inputs.family, self._large_families)
        return np.where(is_large, -2 - inputs.model, inputs.family)

    @cached_property
    def _rows_by_key(self) -> dict[int, Ints]:
        keys = self._block_keys(self.inputs)
        order = np.argsort(keys, kind="stable")
        known, counts = np.unique(keys, return_counts=True)
        return dict(zip(known.tolist(), np.split(order, np.cumsum(counts)[:-1]), strict=True))

    @cached_property
    def _blocks(self) -> dict[int, _Block]:
        return {}

    def _block(self, key: int) -> _Block:
        """Return a block, inverted when first needed: a question is of one or two families."""
        if key not in self._blocks:
            rows = self._rows_by_key[key]
            inputs, features = self.inputs.only(rows), self._features[rows]
            left = self._smooth_prior(inputs) - (features**2).sum(axis=1)
            covariance = _local(inputs, inputs, self.variances)
            covariance[np.diag_indices(len(rows))] += np.maximum(left, 0.0) + self.variances[-1]
            upper = inverse_factor(covariance)
            self._blocks[key] = _Block(rows, upper, upper @ (upper.T @ features))
        return self._blocks[key]

    def _solved(self, block: _Block) -> Floats:
        """Return the rows of a block of the inverse covariance times the residuals."""
        off = self.residual[block.rows] - self._features[block.rows] @ self.posterior[0]
        return np.asarray(block.upper @ (block.upper.T @ off))

    def __call__(self, inputs: CaseInputs) -> tuple[Floats, Floats]:
        """Mean and variance of the residuals of other cases, noise included."""
        if not len(self.inputs):
            return np.zeros(len(inputs)), np.full(len(inputs), self.variances.sum())
        mean, variance = np.zeros(len(inputs)), np.zeros(len(inputs))
        for start in range(0, len(inputs), _CHUNK):
            rows = np.arange(start, min(start + _CHUNK, len(inputs)))
            mean[rows], variance[rows] = self._predicted(inputs.only(rows))
        return mean, np.maximum(variance, 1e-6) + self.variances[-1]

    def _predicted(self, inputs: CaseInputs) -> tuple[Floats, Floats]:
        features = self._features_of(inputs)
        mean = features @ self.posterior[0]
        variance = self._smooth_prior(inputs) - (features**2).sum(axis=1)
        variance = np.maximum(variance, 0.0) + self._local_prior(inputs)
        for block, rows, across in self._related(inputs):
            mean[rows] += across @ self._solved(block)
            variance[rows] -= ((across @ block.upper) ** 2).sum(axis=1)
            features[rows] -= across @ block.weighted
        return mean, variance + ((features @ self.posterior[1]) ** 2).sum(axis=1)

    def _related(self, inputs: CaseInputs) -> Iterator[tuple[_Block, Ints, Floats]]:
        """Yield the blocks of cases, the rows of the cases and their covariance with the block."""
        keys = self._block_keys(inputs)
        for key in np.unique(keys).tolist():
            if key in self._rows_by_key:
                block, rows = self._block(key), np.flatnonzero(keys == key)
                known = self.inputs.only(block.rows)
                yield block, rows, _local(inputs.only(rows), known, self.variances)

    def covariance(self, inputs: CaseInputs) -> Floats:
        """Covariance of the residuals of other cases, noise left out."""
        total = _smooth(inputs, inputs, self.variances) + _local(inputs, inputs, self.variances)
        if not len(self.inputs):
            return total
        features = self._features_of(inputs)
        total -= features @ features.T
        for block, rows, across in self._related(inputs):
            explained = across @ block.upper
            total[np.ix_(rows, rows)] -= explained @ explained.T
            features[rows] -= across @ block.weighted
        unsure = features @ self.posterior[1]
        return np.asarray(total + unsure @ unsure.T)

    @cached_property
    def _inverse_parts(self) -> tuple[Floats, Floats, Ints, Ints]:
        """Of each known case: inverse times residuals, features, its block and its place there."""
        count = len(self.inputs)
        solved, features = np.zeros(count), np.zeros((count, len(self.posterior[0])))
        keys, places = self._block_keys(self.inputs), np.zeros(count, dtype=np.int64)
        for key in self._rows_by_key:
            block = self._block(key)
            solved[block.rows] = self._solved(block)
            features[block.rows] = block.weighted @ self.posterior[1]
            places[block.rows] = np.arange(len(block.rows))
        return solved, features, keys, places

    def _inverse_of(self, rows: Ints) -> Floats:
        """Return some rows and columns of the inverse of the covariance of all known cases."""
        _, features, keys, places = self._inverse_parts
        inverse = -(features[rows] @ features[rows].T)
        for key in np.unique(keys[rows]).tolist():
            at = np.flatnonzero(keys[rows] == key)
            upper = self._block(key).upper[places[rows[at]]]
            inverse[np.ix_(at, at)] += upper @ upper.T
        return np.asarray(inverse)

    def of_rows(self, rows: Ints) -> ResidualProcess:
        """Return the process of some of the cases."""
        return ResidualProcess(self.inputs.only(rows), self.residual[rows], self.variances)

    def left_out(self, groups: Ints) -> tuple[Floats, Floats]:
        """Mean and variance of each case from those of all other groups, in closed form.

        Cases of a negative group stay; of them nothing is said.
        """
        mean, variance = np.zeros(len(self.inputs)), np.zeros(len(self.inputs))
        if not len(self.inputs):
            return mean, variance
        solved = self._inverse_parts[0]
        order = np.argsort(groups, kind="stable")
        order = order[groups[order] >= 0]
        _, counts = np.unique(groups[order], return_counts=True)
        for rows in np.split(order, np.cumsum(counts)[:-1]):
            block = np.linalg.inv(self._inverse_of(rows))
            mean[rows] = self.residual[rows] - block @ solved[rows]
            variance[rows] = np.diagonal(block)
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

    def _smooth_prior(self, inputs: CaseInputs) -> Floats:
        whole, of_shares, of_sizes = (self.variances[_PARTS.index(name)] for name in _SMOOTH)
        return np.asarray(whole + of_sizes + of_shares * np.sum(inputs.shares**2, axis=1))

    def _local_prior(self, inputs: CaseInputs) -> Floats:
        """Variance of what cases have in common with their family and model; one part varies."""
        of_model = self.variances[_PARTS.index(_OF_MODEL)]
        local = [self.variances[_PARTS.index(name)] for name in _LOCAL]
        return np.asarray(sum(local) + of_model * inputs.unlike**2)


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
    return ResidualProcess(inputs, residual, variances)


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
    # A prior of each variance. Fitted more freely to 600 of 6,000 cases they erred more on others.
    prior = 0.5 * np.sum((np.log(variances / np.array(_BEGIN)) / _PRIOR_SPREAD) ** 2)
    return float(-0.5 * solved @ solved - np.sum(np.log(np.diag(lower)[:size])) - prior)


def _covariance(parts: Sequence[Floats], variances: Floats) -> Floats:
    total = np.zeros_like(parts[0])
    for part, variance in zip(parts, variances, strict=False):
        total += variance * part
    return total


def _parts(some: CaseInputs, others: CaseInputs) -> list[Floats]:
    """The kernel's parts of variance one, noise left out."""
    alone = np.eye(len(_PARTS))
    return [
        (_smooth if name in _SMOOTH else _local)(some, others, alone[place])
        for place, name in enumerate(_PARTS[:-1])
    ]


def _smooth(some: CaseInputs, others: CaseInputs, variances: Floats) -> Floats:
    """The covariance by the parts that connect cases of all families.

    A matrix has twenty million fields, and each pass over them takes a tenth of a second.
    """
    whole, of_shares, of_sizes = (variances[_PARTS.index(name)] for name in _SMOOTH)
    near = squared_distances(some.sizes @ _OF_AN_ITEM, others.sizes @ _OF_AN_ITEM)
    near *= -0.5
    np.exp(near, out=near)
    near *= of_sizes
    near += (of_shares * some.shares) @ others.shares.T
    near += whole
    alike, row = _alike_rows(some.configuration, others.configuration)
    near *= np.take(alike, row, axis=0)
    return near


def _local(some: CaseInputs, others: CaseInputs, variances: Floats) -> Floats:
    """The covariance by the parts of a family and of a model."""
    of_model, in_place, of_family, of_both = (
        variances[_PARTS.index(name)] for name in ("model", _OF_MODEL, "family", "model and sizes")
    )
    alike = _alike(some.configuration, others.configuration)
    near = np.exp(-2.0 * squared_distances(some.sizes, others.sizes))
    unlike = some.unlike[:, None] * others.unlike
    own = of_model + in_place * (alike * alike * alike) * unlike + of_both * near * alike
    own *= _equal(some.model, others.model)
    return np.asarray(own + of_family * _equal(some.family, others.family) * alike)


def _alike(some: Ints, others: Ints) -> Floats:
    """How much configurations have in common; many cases have few of them."""
    alike, row = _alike_rows(some, others)
    return np.asarray(alike[row])


def _alike_rows(some: Ints, others: Ints) -> tuple[Floats, Ints]:
    """How much each configuration that there is has in common with others, and whose each is."""
    rows, row = _distinct(some)
    columns, column = _distinct(others)
    apart = np.zeros((len(rows), len(columns)))
    for place, weight in enumerate(APART.values()):
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
