"""Weights that are others for a moment: doubled, and then again what they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch


@contextmanager
def doubled(weights: Sequence[torch.Tensor]) -> Iterator[None]:
    """Exact both ways, since a power of two only moves the exponent.

    Of a weight that would be infinite then, such as a mask's, a copy is kept.
    """
    with torch.no_grad():
        kept = {i: weight.clone() for i, weight in enumerate(weights) if not _can_double(weight)}
        for weight in weights:
            weight.mul_(2)
    try:
        yield
    finally:
        with torch.no_grad():
            for i, weight in enumerate(weights):
                if i in kept:
                    weight.copy_(kept[i])
                else:
                    weight.mul_(0.5)


def _can_double(weight: torch.Tensor) -> bool:
    """Whether no value would be beyond its type; of none that is no number."""
    if not weight.numel():
        return True
    low, high = torch.aminmax(weight)
    return bool(torch.maximum(-low, high) <= torch.finfo(weight.dtype).max / 2)
