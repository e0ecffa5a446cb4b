"""Anchors: a few measurements on new hardware, and what they say of everything else there.

The residual of predictions on one device is a Gaussian process: a shift of the whole device, one
of each configuration, a part linear in the shares of operator classes, and a smooth part over
sizes and intensity. Its scale is the one under which the anchors are most likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelbench.predict.graphs import Floats, Ints

_SHIFT, _OWN, _LINEAR, _SMOOTH = 0.25, 0.02, 0.12, 0.03  # standard deviations, of logarithms
_REACH = 1.5  # of the smooth part, in standard deviations of its features
_SCALES = (1.0, 1.5, 2.0, 3.0)
_PREFERENCE = 2.0  # for a scale of one; ten anchors alone tell little of it
_FREEDOM, _ROUNDS = 3.0, 5  # of the Student-t noise of anchors, and of its reweighting


@dataclass(frozen=True)
class ResidualInputs:
    """What the process sees of each row on one device."""

    shares: Floats  # by operator class
    smooth: Floats  # standardised sizes and intensities
    configuration: Ints
    noise: Floats  # standard deviation of what no neighbour explains


def choose_anchors(inputs: ResidualInputs, number: int, seed: int = 0) -> Ints:
    """Which rows to measure: the ones nearest to the centres of k-means over shares and sizes."""
    total = len(inputs.noise)
    if number >= total:
        return np.arange(total)
    points = np.column_stack([inputs.shares / (inputs.shares.std() + 1e-9), 0.3 * inputs.smooth])
    centres = _centres(points, number, np.random.default_rng(seed))
    chosen: list[int] = []
    for centre in centres:
        away = ((points - centre) ** 2).sum(axis=1)
        away[chosen] = np.inf
        chosen.append(int(np.argmin(away)))
    return np.array(sorted(chosen), dtype=np.int64)


def _centres(points: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Centres by Lloyd's algorithm, begun far from each other."""
    centres = points[[int(rng.integers(len(points)))]]
    for _ in range(number - 1):
        away = _squares(points, centres).min(axis=1)
        total = away.sum()
        share = away / total if total > 0 else np.full(len(points), 1 / len(points))
        centres = np.vstack([centres, points[[int(rng.choice(len(points), p=share))]]])
    for _ in range(30):
        nearest = _squares(points, centres).argmin(axis=1)
        for one in range(number):
            if (nearest == one).any():
                centres[one] = points[nearest == one].mean(axis=0)
    return np.asarray(centres)


def _squares(one: Floats, other: Floats) -> Floats:
    """Squared distances, without a third dimension in memory."""
    cross = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)[None] - 2 * one @ other.T
    return np.asarray(np.maximum(cross, 0))


def condition(inputs: ResidualInputs, anchors: Ints, residual: Floats) -> tuple[Floats, Floats]:
    """The mean and standard deviation of every row's residual, given those of the anchors."""
    shift, rest = _kernels(inputs, anchors)
    noise = inputs.noise[anchors] ** 2
    best = max(_SCALES, key=lambda one: _likelihood_of(one, shift, rest, noise, anchors, residual))
    cross = shift + best**2 * rest
    spread = best**2 * noise
    for _ in range(_ROUNDS):  # an anchor far from what the others say counts as a noisier one
        covariance = cross[anchors] + np.diag(spread)
        mean = cross[anchors] @ np.linalg.solve(covariance, residual)
        apart = (residual - mean) ** 2 / (best**2 * noise)
        spread = best**2 * noise * (_FREEDOM + apart) / (_FREEDOM + 1)
    covariance = cross[anchors] + np.diag(spread)
    solved = np.linalg.solve(covariance, np.column_stack([residual, cross.T]))
    own = _SHIFT**2 + best**2 * (_own_variance(inputs) + inputs.noise**2)
    variance = own - np.einsum("ij,ji->i", cross, solved[:, 1:])
    return cross @ solved[:, 0], np.sqrt(np.maximum(variance, (best * inputs.noise) ** 2))


def _likelihood_of(
    scale: float, shift: Floats, rest: Floats, noise: Floats, anchors: Ints, residual: Floats
) -> float:
    covariance = shift[anchors] + scale**2 * (rest[anchors] + np.diag(noise))
    return _log_likelihood(covariance, residual) - _PREFERENCE * float(np.log(scale)) ** 2


def _log_likelihood(covariance: Floats, values: Floats) -> float:
    _, size = np.linalg.slogdet(covariance)
    return float(-0.5 * (size + values @ np.linalg.solve(covariance, values)))


def _kernels(inputs: ResidualInputs, anchors: Ints) -> tuple[Floats, Floats]:
    """Covariances of every row with the anchors: of the device's shift, and of all else."""
    shift = np.full((len(inputs.noise), len(anchors)), _SHIFT**2)
    same = inputs.configuration[:, None] == inputs.configuration[anchors][None]
    away = _squares(inputs.smooth, inputs.smooth[anchors])
    smooth = np.exp(-away / (2 * _REACH**2 * max(inputs.smooth.shape[1], 1)))
    linear = inputs.shares @ inputs.shares[anchors].T
    return shift, _OWN**2 * same + _LINEAR**2 * linear + _SMOOTH**2 * smooth


def _own_variance(inputs: ResidualInputs) -> Floats:
    linear = (inputs.shares**2).sum(axis=1)
    return np.asarray(_OWN**2 + _LINEAR**2 * linear + _SMOOTH**2)
