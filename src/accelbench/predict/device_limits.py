"""The least that a case can take on its device: no step is faster, no model smaller. Pure numpy.

Products take no less than at the device's peak, measured or a vendor's, and weights that no cache
holds are read no faster than at its bandwidth. Memory holds the weights in the precision that they
are kept in, which is fp32 under autocast. Where something was measured below such a limit (a
convolution that multiplies less than was counted, a mapped file of which few rows are read), the
limit of its configuration is lowered by that much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np

from accelbench.predict.cases import LATENCY, CaseConfiguration, PredictedCase
from accelbench.predict.signatures import Floats, Ints
from accelbench.predict.terms import (
    NOT_CALIBRATED,
    PRODUCT_TERMS,
    Calibrated,
    TracedCase,
    peak_limits,
    peaks_are_known,
    value_bytes,
    weight_bytes,
)

#: Bytes of weights that a cache may hold from one step to the next: the largest of a server's CPU.
_CACHED = 512 * 2**20
_MIB = 2.0**20
#: A training step multiplies as often as two forward passes at least: inputs have no gradient.
_LEAST_TRAINED = 2.0 / 3.0
#: Of intervals, and half of one as standard deviations.
LEVEL = 0.9
HALF_WIDTH = 1.645
#: Beyond so many standard deviations the share above is too small to halve by its inverse.
_FAR_TAIL = 30.0
_NORMAL = NormalDist()


def least_values(
    traced: Sequence[TracedCase],
    target: str,
    times: Floats,
    calibrated: Calibrated = NOT_CALIBRATED,
) -> Floats:
    """Return milliseconds or megabytes below which no case can be; 0 if no peak is known."""
    if target != LATENCY:
        return np.array([_bytes_of(entry, weight_bytes) / _MIB for entry in traced])
    places = dict.fromkeys(entry.case.configuration for entry in traced)
    known = {place: peaks_are_known(place, calibrated) for place in places}
    limiting = {place: peak_limits(place, calibrated) for place in places}
    products = times[:, :PRODUCT_TERMS].sum(axis=1)
    products *= [limiting[entry.case.configuration] for entry in traced]
    by_rule = np.array([entry.is_trained_by_rule for entry in traced], dtype=bool)
    products = products * np.where(by_rule, _LEAST_TRAINED, 1.0)
    read = np.array([_bytes_of(entry, value_bytes) > _CACHED for entry in traced], dtype=bool)
    least = np.maximum(products, np.where(read, times[:, -2], 0.0))
    return np.where([known[entry.case.configuration] for entry in traced], least, 0.0)


def _bytes_of(entry: TracedCase, each: Callable[[str], float]) -> float:
    weights = max(passed.weights for passed in entry.passes.values())
    return weights * each(entry.case.configuration.precision)


def measured_below(
    cases: Sequence[PredictedCase], least: Floats, log_values: Floats
) -> dict[CaseConfiguration, float]:
    """Return by configuration the smallest share of its limit at which a case was measured."""
    shares: dict[CaseConfiguration, float] = {}
    for case, limit, value in zip(cases, least.tolist(), np.exp(log_values).tolist(), strict=True):
        if limit > value:
            place = case.configuration
            shares[place] = min(value / limit, shares.get(place, 1.0))
    return shares


def within_limits(
    log_value: Floats, half: Floats, least: Floats
) -> tuple[Floats, Floats, Floats, Ints]:
    """Return values, both ends, and the rows that a limit moved; none is below its limit.

    If less was learned than is possible, the truth lies above the limit all the same: the value is
    the middle of that part of the distribution, so that it never is its own lower end. Values and
    half widths are logarithms; a limit of 0 is unknown.
    """
    value, low, high = (np.exp(log_value + side * half) for side in (0.0, -1.0, 1.0))
    moved = np.flatnonzero(value < least)
    for row in moved.tolist():
        limit, deviation = math.log(least[row]), max(half[row] / HALF_WIDTH, 1e-6)
        short = (limit - log_value[row]) / deviation
        middle, end = (log_value[row] + deviation * _above(short, share) for share in (0.5, 0.05))
        value[row], high[row] = math.exp(middle), math.exp(max(end, limit + half[row]))
    return value, np.maximum(low, least), high, moved


def _above(limit: float, share: float) -> float:
    """What a standard normal variable exceeds so often, of the times that it exceeds a limit."""
    if limit > _FAR_TAIL:
        return limit - math.log(share) / limit
    return -_NORMAL.inv_cdf(share * math.erfc(limit / math.sqrt(2.0)) / 2.0)
