"""Anchors: a few measurements on new hardware, and what they say of everything else there.

The residual of predictions on one device is a Gaussian process: a shift of the whole device, one
of each configuration, a part linear in the shares of the time by operator class, and a smooth part
over those shares. Its standard deviations are those under which ten anchors told most of one GPU
from another's times; the optimum is flat, halving or doubling any of them costs 0.1 points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelbench.predict.residual_process import squared_distances
from accelbench.predict.signatures import Floats, Ints

_SHIFT, _OWN, _LINEAR, _SMOOTH = 0.2, 0.03, 0.25, 0.09  # standard deviations, of logarithms
_REACH = 0.3  # of the smooth part, in shares
_SIZES = 0.05  # how much sizes count beside shares where anchors are chosen
_STARTS, _ROUNDS_OF_CENTRES = 6, 30
_FREEDOM, _ROUNDS = 3.0, 5  # of the Student-t noise of anchors, and of its reweighting


@dataclass(frozen=True)
class ResidualInputs:
    """What the process sees of each row on one device."""

    shares: Floats  # of the time: computing and memory by operator class, launches
    sizes: Floats  # standardised sizes and intensities
    configuration: Ints
    noise: Floats  # standard deviation of what no neighbour explains


def choose_anchors(inputs: ResidualInputs, number: int, seed: int = 0) -> Ints:
    """Which rows to measure: the ones nearest to the centres of k-means over shares and sizes.

    Only rows of the least noise are chosen, models that were measured elsewhere: what is off on
    them is the device's, not the model's (measured: 0.4 points). Configurations take turns:
    without that all anchors may lie in the first, since a model's shares are nearly alike in all
    of them (up to a point).
    """
    quiet = np.flatnonzero(inputs.noise <= inputs.noise.min(initial=np.inf))
    candidates = quiet if len(quiet) > number else np.arange(len(inputs.noise))
    if number >= len(candidates):
        return candidates
    points = np.column_stack([inputs.shares, _SIZES * inputs.sizes])[candidates]
    configuration = inputs.configuration[candidates]
    configurations, rows = np.unique(configuration, return_counts=True)
    turns = configurations[np.argsort(-rows, kind="stable")]
    chosen: list[int] = []
    for turn, centre in enumerate(_centres(points, number, np.random.default_rng(seed))):
        away = ((points - centre) ** 2).sum(axis=1)
        away[configuration != turns[turn % len(turns)]] += 1e6
        away[chosen] = np.inf
        chosen.append(int(np.argmin(away)))
    return candidates[np.array(sorted(chosen), dtype=np.int64)]


def _centres(points: Floats, number: int, rng: np.random.Generator) -> Floats:
    """The centres nearest to their points, of several beginnings."""
    starts = [_lloyd(points, number, rng) for _ in range(_STARTS)]
    return min(
        starts, key=lambda centres: float(squared_distances(points, centres).min(axis=1).sum())
    )


def _lloyd(points: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Centres by Lloyd's algorithm, begun far from each other."""
    centres = points[[int(rng.integers(len(points)))]]
    for _ in range(number - 1):
        away = squared_distances(points, centres).min(axis=1)
        total = away.sum()
        share = away / total if total > 0 else np.full(len(points), 1 / len(points))
        centres = np.vstack([centres, points[[int(rng.choice(len(points), p=share))]]])
    for _ in range(_ROUNDS_OF_CENTRES):
        nearest = squared_distances(points, centres).argmin(axis=1)
        members = np.bincount(nearest, minlength=number)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, points)
        centres = np.where(members[:, None] > 0, sums / np.maximum(members, 1)[:, None], centres)
    return np.asarray(centres)


def condition(inputs: ResidualInputs, anchors: Ints, residual: Floats) -> tuple[Floats, Floats]:
    """The mean and standard deviation of every row's residual, given those of the anchors."""
    cross = _covariance(inputs, anchors)
    noise = inputs.noise[anchors] ** 2
    spread = noise
    for _ in range(_ROUNDS):  # an anchor far from what the others say counts as a noisier one
        mean = cross[anchors] @ np.linalg.solve(cross[anchors] + np.diag(spread), residual)
        spread = noise * (_FREEDOM + (residual - mean) ** 2 / noise) / (_FREEDOM + 1)
    covariance = cross[anchors] + np.diag(spread)
    solved = np.linalg.solve(covariance, np.column_stack([residual, cross.T]))
    known = np.einsum("ij,ji->i", cross, solved[:, 1:])
    variance = np.maximum(_variance(inputs) - known, 0) + inputs.noise**2
    return cross @ solved[:, 0], np.sqrt(variance)


def _covariance(inputs: ResidualInputs, anchors: Ints) -> Floats:
    """The covariance of every row with the anchors."""
    same = inputs.configuration[:, None] == inputs.configuration[anchors][None]
    smooth = np.exp(-squared_distances(inputs.shares, inputs.shares[anchors]) / (2 * _REACH**2))
    linear = inputs.shares @ inputs.shares[anchors].T
    parts = _OWN**2 * same + _LINEAR**2 * linear + _SMOOTH**2 * smooth
    return np.asarray(_SHIFT**2 + parts)


def _variance(inputs: ResidualInputs) -> Floats:
    linear = (inputs.shares**2).sum(axis=1)
    return np.asarray(_SHIFT**2 + _OWN**2 + _LINEAR**2 * linear + _SMOOTH**2)
