"""Some values of outputs, evenly scattered: enough to tell one step's outputs from another's."""

from __future__ import annotations

import hashlib
import math
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
#: The outputs of a request: its tokens, and so many logits of the first ones that it decodes.
TOKENS, DECODE_LOGITS = "tokens", "decode_logits"


@dataclass(frozen=True)
class Sketch:
    """An output's shape, and its values or some of them."""

    shape: tuple[int, ...]
    values: npt.NDArray[Any]  # flat


@dataclass(frozen=True)
class Glance:
    """Outputs that were looked at where they lie."""

    digest: str  # as `outputs_digest` of them would be; empty where one value was asked for
    outputs: Mapping[str, Sketch]

    @property
    def nbytes(self) -> int:
        return sum(math.prod(s.shape) * s.values.itemsize for s in self.outputs.values())


def outputs_digest(outputs: Mapping[str, Any]) -> str:
    """Return a digest of names, shapes and bits, as the page's is."""
    total = hashlib.sha256()
    for name, values in sorted(outputs.items()):
        array = np.ascontiguousarray(values)
        total.update(f"{name} {array.shape} {array.dtype}".encode())
        total.update(array.tobytes())
    return total.hexdigest()[:16]


#: A prime: what is looked at moves by it, or of rows as wide as the way from one place to the next
#: the first column alone would ever be seen.
_SCATTER = 2654435761


def places(size: int, most: int) -> npt.NDArray[np.int64]:
    """Return which of so many values are looked at: the same ones everywhere, a page's included.

    One of each of as many stretches, each time elsewhere in it.
    """
    if size <= most:
        return np.arange(size, dtype=np.int64)
    each = np.arange(most, dtype=np.int64)
    return each * size // most + each * _SCATTER % (size // most)


def drawn_places(size: int, most: int, draw: int) -> npt.NDArray[np.int64]:
    """Return which of `size` values are read for this draw; an engine cannot foresee them."""
    shares = np.random.default_rng(draw).random(min(size, most))
    return (shares * size).astype(np.int64)


def sketch(outputs: Mapping[str, Any], most: int = MOST_VALUES) -> dict[str, Sketch]:
    """Return sketches of arrays, by name."""
    sketches = {}
    for name, output in outputs.items():
        whole = np.asarray(output)
        # A copy: an engine may write its next outputs to the same place.
        flat = np.array(whole.reshape(-1)[places(whole.size, most)])
        sketches[name] = Sketch(whole.shape, flat)
    return sketches
