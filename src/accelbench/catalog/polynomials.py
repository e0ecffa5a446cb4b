"""Exact polynomials through counted points, in whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

#: polynomial[i][j] belongs to batch**i × length**j.
Polynomial = Sequence[Sequence[int]]

#: Points at which the polynomials that can be the largest are looked for: batches, and
#: lengths as multiples of the shortest.
_BATCHES = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 512, 4096, 2**20)
_LENGTHS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 2048, 4096, 32768)
_FEW = 8


class InexactError(Exception):
    """No polynomial of this form holds."""


def value(polynomial: Polynomial, batch: int, length: int) -> int:
    """Evaluate a polynomial in batch and length, in exact integers."""
    return sum(
        coefficient * batch**i * length**j
        for i, row in enumerate(polynomial)
        for j, coefficient in enumerate(row)
    )


def through(
    batches: Sequence[int], lengths: Sequence[int], points: Mapping[tuple[int, int], int]
) -> list[list[int]]:
    """Return the polynomial of least degree in batch and length through all points.

    It has as many rows as batches, and as many coefficients per row as lengths. Raises InexactError
    if a coefficient is not a whole number.
    """
    lines = [_lagrange(lengths, [points[b, x] for x in lengths]) for b in batches]
    columns = [_lagrange(batches, column) for column in zip(*lines, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    if any(c.denominator != 1 for row in rows for c in row):
        raise InexactError("a coefficient is no whole number")
    return [[int(c) for c in row] for row in rows]


def _lagrange(xs: Sequence[int], ys: Sequence[int | Fraction]) -> list[Fraction]:
    total = [Fraction(0)] * len(xs)
    for i, (xi, yi) in enumerate(zip(xs, ys, strict=True)):
        basis = [Fraction(yi)]
        for j, xj in enumerate(xs):
            if j != i:  # times (x - xj) / (xi - xj)
                shifted = [Fraction(0), *basis]
                scaled = [-xj * c for c in basis] + [Fraction(0)]
                basis = [(a + b) / (xi - xj) for a, b in zip(shifted, scaled, strict=True)]
        total = [a + b for a, b in zip(total, basis, strict=True)]
    return total


def undominated(polynomials: Sequence[Polynomial]) -> list[list[list[int]]]:
    """Return those that can be the largest for some batch and length of one or more.

    If many are left, as of a training step in which gradients replace results one by one: those
    that are the largest at some point of a grid.
    """
    flat = {tuple(tuple(row) for row in p) for p in polynomials}

    def dominated(poly: Polynomial) -> bool:
        return any(other != poly and _nowhere_less(other, poly) for other in flat)

    kept = flat if len(flat) > 400 else {poly for poly in flat if not dominated(poly)}
    if len(kept) > _FEW:
        kept = {
            max(kept, key=lambda p, b=b, x=x: value(p, b, x))  # type: ignore[misc]
            for b in _BATCHES
            for x in _LENGTHS
        }
    return [[list(row) for row in poly] for poly in sorted(kept, reverse=True)]


def _nowhere_less(poly: Polynomial, other: Polynomial) -> bool:
    return all(a >= b for p, q in zip(poly, other, strict=True) for a, b in zip(p, q, strict=True))
