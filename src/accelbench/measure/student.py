"""Student's t and the binomial distribution without scipy, because the core only needs numpy.

The distribution function is the regularised incomplete beta function by Lentz's continued fraction
(Numerical Recipes, 3rd edition, §6.4 and §6.14). The quantile inverts it. Degrees of freedom need
not be whole.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

#: Replaces zero as a divisor. A sum with 1 is either 0 or at least 1e-16.
_TINY = 1e-300
#: Limit of Newton steps. Four or five suffice, and about forty with half a degree of freedom.
_MOST_STEPS = 400


def t_cdf(t: float, df: float) -> float:
    """Return P(T ≤ t) for `df` > 0 degrees of freedom."""
    if df <= 0:
        raise ValueError(f"degrees of freedom must be positive, not {df}")
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    tail = 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """Return the t below which a share `p` of the distribution lies; relative error under 1e-9.

    Raises ValueError unless df ≥ 0.5 and p is within (1e-12, 1 − 1e-12).
    """
    if not 1e-12 < p < 1 - 1e-12 or df < 0.5:
        raise ValueError(f"no quantile for p = {p} with {df} degrees of freedom")
    if p == 0.5:
        return 0.0
    if p > 0.5:
        return -_lower_quantile(1.0 - p, df)
    return _lower_quantile(p, df)


def binomial_cdf(count: float, n: float, p: float) -> float:
    """Return P(at most `count` of `n` trials succeed) at probability `p`; `n` need not be whole."""
    return _incomplete_beta(n - count, count + 1.0, 1.0 - p, p)


def _lower_quantile(p: float, df: float) -> float:
    """Return the quantile for p < 0.5, by Newton's method within a shrinking bracket."""
    # Below 0 the distribution function is convex: steps from above the root never pass it.
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    low, high = -math.inf, 0.0
    t = _initial_guess(p, df)
    for _ in range(_MOST_STEPS):
        over = t_cdf(t, df) - p
        if over > 0.0:
            high = t
        else:
            low = t
        then = t - over / (scale * math.pow(1.0 + t * t / df, -(df + 1) / 2))
        if abs(then - t) <= 1e-7 * abs(t):  # the remaining error is the square of the step
            return then
        if not low < then < high:
            then = (max(low, 2.0 * t) + high) / 2.0
        t = then
    return t


def _initial_guess(p: float, df: float) -> float:
    """Return the normal quantile with the first terms of its expansion (Hill 1970)."""
    z = NormalDist().inv_cdf(p)
    first = (z**3 + z) / (4 * df)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
    return z + first + second + third


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return I_x(a, b); `rest` is 1 − x, passed because a subtraction would lose digits."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _continued_fraction(a, b, x) / a
    return 1.0 - front * _continued_fraction(b, a, rest) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Return Lentz's evaluation, which needs O(√max(a, b)) rounds if x is below the mean."""
    c, d = 1.0, 1.0 / ((1.0 - (a + b) * x / (a + 1.0)) or _TINY)
    value = d
    for m in range(1, 10_000):
        twice = a + 2 * m
        even = m * (b - m) * x / ((twice - 1) * twice)
        d = 1.0 / ((1.0 + even * d) or _TINY)
        c = (1.0 + even / c) or _TINY
        value *= c * d
        odd = -(a + m) * (a + b + m) * x / (twice * (twice + 1))
        d = 1.0 / ((1.0 + odd * d) or _TINY)
        c = (1.0 + odd / c) or _TINY
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            return value
    raise ArithmeticError(f"the incomplete beta function of {a}, {b}, {x} did not settle")
