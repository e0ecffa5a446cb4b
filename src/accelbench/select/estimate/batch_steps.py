"""What the step of one batch says of a step of another. Pure."""

from __future__ import annotations

import math

from accelbench.select.estimate.spans import Bounds
from accelbench.select.evidence.cells import NEAR_BATCH

#: Beyond the largest batch an item is taken to cost the same, give or take so much a doubling.
BEYOND = 0.2


def at_batch(step: float, batch: int, target: int) -> Bounds:
    """What a step of one batch comes to at another.

    An item costs the same at about the same batch. Of a far larger one nobody knows how much of a
    step is saved with all but a few of its items, and of a far smaller one what more of them cost:
    the same as of the model's own figures.
    """
    alike = step * target / batch
    if is_near(target, batch):
        return Bounds(alike, alike, alike)
    if target < batch:
        return Bounds(step * math.sqrt(target / batch), alike, step)
    reach = math.exp(BEYOND * math.log2(target / batch))
    return Bounds(alike, max(alike / reach, step), alike * reach)


def is_near(batch: int, other: int) -> bool:
    """Whether two batches are about the same."""
    return max(batch, other) <= NEAR_BATCH * min(batch, other)
