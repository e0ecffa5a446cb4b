"""Inputs that differ from those that are drawn by one unit in the last place of each number.

What that alone changes of a model's outputs, rounding within the model changes as well: how far
its outputs are determined in the type that it computes in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_moved: ContextVar[bool] = ContextVar("_moved", default=False)


@contextmanager
def last_places_moved() -> Iterator[None]:
    """Within it every number that is drawn is its upper or lower neighbour, as chance has it."""
    before = _moved.set(True)
    try:
        yield
    finally:
        _moved.reset(before)


def as_asked(drawn: np.ndarray[Any, Any], stream: np.random.Generator) -> np.ndarray[Any, Any]:
    """What was drawn, or its neighbours where those are asked for; ids have none.

    Args:
        drawn: values of one tensor.
        stream: what they were drawn by; the same seed goes to the same neighbours.
    """
    if not _moved.get() or drawn.dtype.kind != "f":
        return drawn
    import numpy as np

    towards = np.where(stream.random(drawn.shape) < 0.5, -np.inf, np.inf).astype(drawn.dtype)
    neighbours: np.ndarray[Any, Any] = np.nextafter(drawn, towards)
    return neighbours
