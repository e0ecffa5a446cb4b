"""Exact polynomials of what a pass takes, from counts at a few batches and lengths. Pure.

Coefficients must give whole numbers and reproduce other lengths and another batch exactly. The peak
is the largest of several polynomials: one for each moment of the pass that no other dominates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from accelbench.catalog.polynomials import InexactError, through, undominated, value
from accelbench.core.case import Shapes

#: Batches to fit through, and one to check. With a batch of one torch leaves out copies and
#: sums that change nothing: where that shows, a batch of one has polynomials of its own.
#: A batch whose items are compared with each other costs its square: a third batch shows it.
_FROM_ONE, _FROM_TWO, _SQUARED, ALONE = ((1, 2), 3), ((2, 3), 4), ((2, 3, 4), 5), ((1,), 1)
Batches = tuple[tuple[int, ...], int]
QUANTITIES = ("flops", "bytes_moved", "activation_bytes")
PEAK = "peak_activation_bytes"


class Counted(Protocol):
    """What was counted of a pass."""

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
    """Along which size a pass is to be fitted, in which steps, at which lengths."""

    along: str | None
    step: int
    lengths: tuple[int, ...]
    others: tuple[int, ...]

    def shapes(self, batch: int, length: int) -> Shapes:
        """The shapes at a point."""
        sizes: dict[str, Any] = {} if self.along is None else {self.along: length * self.step}
        return replace(Shapes(batch), **sizes)


DEFAULT_SIZES = Rule(None, 1, (0,), (0,))


def exact(fitted: Callable[[Batches], dict[str, Any]], *, trains: bool = False) -> dict[str, Any]:
    """Of all batches, or of two and more with one apart, as sums over a batch always are."""
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
    """Polynomials of every quantity along a rule.

    Args:
        at: counts at a batch and a length.
        rule: where.
        batches: to fit through, and one to check.
        apart: leave the peak's moments as they come, to be put together with others.

    Raises:
        InexactError: they do not reproduce other points.
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
    fitted[PEAK] = peaks if apart else undominated(peaks)
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
