"""The memory that an option takes: by what its other batches took, or as counted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accelbench.catalog.cost import memory_estimate_bytes
from accelbench.core.case import Option, Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.vocabulary import MIB, Mode
from accelbench.select.estimate.figures import Bounds
from accelbench.select.evidence.cells import EvidenceCell
from accelbench.select.query.query import GENERATING, SIZES, Query

#: Of a batch size, what the catalogue counts that it takes.
Counted = Callable[[int], float | None]


def counted_memory(
    query: Query,
    batch: int,
    precision: str,
    sizes: Mapping[str, int],
    options: Mapping[str, Option] | None = None,
) -> float | None:
    """Megabytes as the catalogue counts them; None where it does not.

    Args:
        query: the question.
        batch: items in a step.
        precision: as it is stored.
        sizes: of a step, by the store's columns: those that are asked for, or that a figure is of.
        options: what was set on purpose.
    """
    if query.spec is None:
        return None
    made = GENERATING if query.mode == Mode.TRAINING else ()
    known: dict[str, Any] = {
        SIZES[name]: int(value) for name, value in sizes.items() if name not in made
    }
    try:
        estimate = memory_estimate_bytes(
            query.spec, Shapes(batch, **known), precision or "fp32", query.mode, options
        )
    except AccelbenchError:
        return None
    return None if estimate is None else estimate / MIB


def by_batches(batch: int, way: Sequence[EvidenceCell], count: Counted) -> Bounds | None:
    """By what the same way took at other batches; None where nobody measured that.

    A larger batch takes no less, and mostly no more an item: both bound it. Between the ends it
    grows as between the two nearest batches, else as the catalogue counts.
    """
    known: dict[int, float] = {}
    for cell in way:  # of several that are called alike the one that took most
        took = float(cell.row.get("memory_peak_mb") or 0.0)
        known[cell.batch] = max(took, known.get(cell.batch, took))
    known = {size: took for size, took in known.items() if took}
    if not known:
        return None
    if batch in known:
        return Bounds.exact(known[batch])
    below = max((b for b in known if b < batch), default=None)
    above = min((b for b in known if b > batch), default=None)
    low = known[below] if below is not None else 0.0
    high = known[above] if above is not None else known[max(known)] * batch / max(known)
    low, high = min(low, high), max(low, high)
    near = min(known, key=lambda size: (abs(size - batch), size))
    growth = _growth(near, batch, known, count)
    middle = high if growth is None else known[near] + growth * (batch - near)
    return Bounds(min(max(middle, low), high), low, high)


def _growth(near: int, batch: int, known: Mapping[int, float], count: Counted) -> float | None:
    """What an item more takes, about there."""
    if len(known) > 1:
        first, last = sorted(sorted(known, key=lambda size: (abs(size - batch), size))[:2])
        return (known[last] - known[first]) / (last - first)
    here, there = count(near), count(batch)
    return None if here is None or there is None else (there - here) / (batch - near)
