"""Some values of outputs, evenly spaced: enough to tell one step's outputs from another's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: A language model's logits are 51 million values at a batch of 8. Of so many a step that left
#: out half of them, or computed them in a narrower type, differs in hundreds.
MOST_VALUES = 4096

#: Of a whole request, so many logits of each of its items are kept until it is over.
KEPT_LOGITS = 64


@dataclass(frozen=True)
class Sketch:
    """An output's shape, and its values or some of them."""

    shape: tuple[int, ...]
    values: npt.NDArray[Any]  # flat


def places(size: int, most: int) -> npt.NDArray[np.int64]:
    """Which of so many values are looked at: the same ones everywhere, a page's included."""
    if size <= most:
        return np.arange(size, dtype=np.int64)
    return np.arange(most, dtype=np.int64) * size // most


def sketch(outputs: Mapping[str, Any], most: int = MOST_VALUES) -> dict[str, Sketch]:
    """Of arrays, by name."""
    found = {}
    for name, output in outputs.items():
        whole = np.asarray(output)
        # A copy: an engine may write its next outputs to the same place.
        flat = np.array(whole.reshape(-1)[places(whole.size, most)])
        found[name] = Sketch(whole.shape, flat)
    return found
