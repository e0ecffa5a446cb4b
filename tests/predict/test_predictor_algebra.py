"""The shorter ways that a predictor is fitted by give what the plain ones give."""

from __future__ import annotations

import numpy as np
import pytest

from accelbench.predict import positive_sum, residual_process
from accelbench.predict.residual_process import (
    CaseInputs,
    ResidualProcess,
    inverse_of,
    usual_variances,
)
from accelbench.predict.signatures import Floats, Ints


def inputs(count: int, rng: np.random.Generator) -> CaseInputs:
    model = rng.integers(0, 9, count)
    return CaseInputs(
        rng.integers(0, 3, (count, 8)), model, model % 4,
        rng.normal(size=(count, 4)), rng.dirichlet(np.ones(4), count), np.ones(count),
    )  # fmt: skip


def covariance_of(some: CaseInputs, variances: Floats) -> Floats:
    parts = residual_process._parts(some, some)
    return residual_process._covariance(parts, variances) + variances[-1] * np.eye(len(some))


@pytest.mark.parametrize("size", [1, 96, 97, 250])
def test_the_inverse_of_a_triangle_is_its_inverse(size):
    rng = np.random.default_rng(size)
    lower = np.tril(rng.normal(size=(size, size))) + 10 * np.eye(size)
    assert inverse_of(lower) == pytest.approx(np.linalg.inv(lower), abs=1e-12)
    assert not np.triu(inverse_of(lower), 1).any()


def test_groups_and_factors():
    # Leaving groups out is solving without them.
    rng = np.random.default_rng(0)
    some, residual, variances = inputs(40, rng), rng.normal(size=40), usual_variances()
    process = ResidualProcess(some, residual, variances)
    groups: Ints = np.array([-1, 0, 0, 1, 2, 2, 2] + [3 + n // 2 for n in range(33)])
    mean, variance = process.left_out(groups)
    whole = covariance_of(some, variances)
    for group in np.unique(groups[groups >= 0]):
        out, rest = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
        across = whole[np.ix_(out, rest)] @ np.linalg.inv(whole[np.ix_(rest, rest)])
        assert mean[out] == pytest.approx(across @ residual[rest], abs=1e-4)
        wanted = np.diag(whole[np.ix_(out, out)] - across @ whole[np.ix_(rest, out)])
        assert variance[out] == pytest.approx(wanted)
    assert mean[0] == 0.0
    # A likelihood by one factor is that by two.
    rng = np.random.default_rng(1)
    some, residual, variances = inputs(30, rng), rng.normal(size=30), usual_variances()
    whole = covariance_of(some, variances)
    lower = np.linalg.cholesky(whole)
    plain = -0.5 * residual @ np.linalg.solve(whole, residual) - np.sum(np.log(np.diag(lower)))
    assert residual_process._likelihood(whole, variances, residual) == pytest.approx(plain)
    # Offsets of groups are fitted as columns of a design are.
    rng = np.random.default_rng(2)
    groups: Ints = np.arange(60) % 5
    shares, weight = rng.dirichlet(np.ones(3), 60), rng.uniform(1, 2, 60)
    residual, shift, towards = rng.normal(size=60), rng.normal(size=5), rng.normal(size=3)
    weighted, design = shares * weight[:, None], np.hstack([shares, np.eye(5)[groups]])
    precision = np.diag([1.5] * 3 + [1.0] * 5)
    normal = design.T @ (design * weight[:, None]) + precision
    gradient = np.concatenate([towards, np.eye(5)[groups].T @ (weight * residual) - shift])
    wanted = np.linalg.solve(normal, gradient)
    step, moved = positive_sum._with_offsets(
        shares.T @ weighted + 1.5 * np.eye(3), towards, groups, weighted, weight, residual, shift
    )
    assert np.concatenate([step, moved]) == pytest.approx(wanted)
