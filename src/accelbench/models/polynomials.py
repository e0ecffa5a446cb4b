"""Exact polynomials of the cost of a pass, from counts at a few batches and lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

from accelbench.core.case import Shapes

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


def drop_dominated(polynomials: Sequence[Polynomial]) -> list[list[list[int]]]:
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


#: Batches to fit through, and one to check. With a batch of one torch leaves out copies and
#: sums that change nothing: where that shows, a batch of one has polynomials of its own.
#: A batch whose items are compared with each other costs its square: a third batch shows it.
_FROM_ONE, _FROM_TWO, _SQUARED, ALONE = ((1, 2), 3), ((2, 3), 4), ((2, 3, 4), 5), ((1,), 1)
Batches = tuple[tuple[int, ...], int]
QUANTITIES = ("flops", "bytes_moved", "activation_bytes")
PEAK = "peak_activation_bytes"


class Counted(Protocol):
    """Counts of one pass."""

    @property
    def flops(self) -> int: ...
    @property
    def bytes_moved(self) -> int: ...
    @property
    def activation_bytes(self) -> int: ...
    @property
    def live_bytes(self) -> list[int]: ...
    @property
    def peak_activation_bytes(self) -> int: ...


#: One kind of pass at a batch and a length: a list of one, or of a decode step and the next.
At = Callable[[int, int], Counted]


@dataclass(frozen=True)
class Rule:
    """The size along which a pass is fitted, in which steps, at which lengths."""

    along: str | None
    step: int
    lengths: tuple[int, ...]
    others: tuple[int, ...]

    def shapes(self, batch: int, length: int) -> Shapes:
        sizes: dict[str, Any] = {} if self.along is None else {self.along: length * self.step}
        return replace(Shapes(batch), **sizes)


DEFAULT_SIZES = Rule(None, 1, (0,), (0,))


def exact(fitted: Callable[[Batches], dict[str, Any]], *, trains: bool = False) -> dict[str, Any]:
    """Fit all batches, or two and more with a batch of one apart."""
    if not trains:
        try:
            return fitted(_FROM_ONE)
        except InexactError:
            pass
    alone = fitted(ALONE)
    try:
        return {**fitted(_FROM_TWO), "alone": alone}
    except InexactError:
        return {**fitted(_SQUARED), "alone": alone}


def fit(
    at: At, rule: Rule, batches: Batches, *, apart: bool = False, peak_slack: float = 0.0
) -> dict[str, Any]:
    """Fit polynomials of every quantity along a rule; raise InexactError if they miss a point.

    `apart` leaves the peak's moments as they are, to be combined with others; `peak_slack` is the
    relative error of the peak that is accepted.
    """
    fitted_to, other = batches
    counts = {(b, x): at(b, x) for b in fitted_to for x in rule.lengths}

    def polynomial(read: Callable[[Counted], int]) -> list[list[int]]:
        points = {point: read(c) for point, c in counts.items()}
        return through(fitted_to, rule.lengths, points)

    fitted: dict[str, Any] = {
        name: polynomial(lambda c, name=name: int(getattr(c, name)))  # type: ignore[misc]
        for name in QUANTITIES
    }
    moments = {len(c.live_bytes) for c in counts.values()}
    if len(moments) == 1:
        peaks = [
            polynomial(lambda c, moment=moment: c.live_bytes[moment])  # type: ignore[misc]
            for moment in range(moments.pop())
        ]
    else:  # the pass loops along the length: as many operations as there are places
        peaks = [polynomial(lambda c: c.peak_activation_bytes)]
    fitted[PEAK] = peaks if apart else drop_dominated(peaks)
    for length in rule.others:
        _check(fitted, at(other, length), other, length, peak_slack)
    return fitted


def _check(
    fitted: Mapping[str, Any], seen: Counted, batch: int, length: int, peak_slack: float
) -> None:
    figures = {name: value(fitted[name], batch, length) for name in QUANTITIES}
    figures[PEAK] = max(value(peak, batch, length) for peak in fitted[PEAK])
    for name, figure in figures.items():
        # Gradients come in another order where sizes differ, and so the peak is not exact.
        slack = figure * peak_slack if name == PEAK else 0
        if abs(figure - getattr(seen, name)) > slack:
            raise InexactError(
                f"{name} at batch {batch}, length {length} is {getattr(seen, name)}, not {figure}"
            )
