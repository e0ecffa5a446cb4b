"""Student's t distribution, without scipy: the core installs numpy alone.

The distribution function is the regularised incomplete beta function by
Lentz's continued fraction (Numerical Recipes, 3rd edition, §6.4 and §6.14);
the quantile inverts it. Degrees of freedom need not be whole.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300


def t_cdf(t: float, df: float) -> float:
    """P(T ≤ t) for `df` > 0 degrees of freedom."""
    if df <= 0:
        raise ValueError(f"degrees of freedom must be positive, not {df}")
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    tail = 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=512)
def t_quantile(p: float, df: float) -> float:
    """The t that a share `p` of the distribution stays below; relative error under 1e-9.

    Works for df ≥ 0.5 and p within (1e-12, 1 − 1e-12); outside, ValueError.
    """
    if not 1e-12 < p < 1 - 1e-12 or df < 0.5:
        raise ValueError(f"no quantile for p = {p} with {df} degrees of freedom")
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -_lower_quantile(1.0 - p, df)
    return _lower_quantile(p, df)


def _lower_quantile(p: float, df: float) -> float:
    """For p < 0.5: bracket by doubling, then halve the bracket until doubles end."""
    low = -1.0
    while t_cdf(low, df) > p:
        low *= 2.0
    high = 0.0 if low == -1.0 else low / 2.0
    while high - low > 1e-12 * -low:
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if t_cdf(middle, df) > p:
            high = middle
        else:
            low = middle
    return (low + high) / 2.0


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), with `rest` = 1 − x handed in because a difference would lose its digits."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _continued_fraction(a, b, x) / a
    return 1.0 - front * _continued_fraction(b, a, rest) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Lentz's evaluation; needs O(√max(a, b)) rounds where x is below the mean."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            return value
    raise ArithmeticError(f"the incomplete beta function of {a}, {b}, {x} did not settle")


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
