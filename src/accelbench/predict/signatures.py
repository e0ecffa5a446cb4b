"""Operator signatures of one pass of a model: what each operation is, how large, and how often.

Classes of operators, and the arrays of numbers that predictors calculate with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelbench.core.model import ModelSpec
from accelbench.models.graph_files.steps import OperatorSignature

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The first seven multiply; the others only move values.
CLASSES = (
    "conv", "pw", "dw", "grp", "lin", "bmm", "sdpa",
    "bn", "ln", "act", "pool", "softmax", "copy", "elt",
)  # fmt: skip
MULTIPLYING = 7


#: Centres of the sizes by which operators of a class have efficiencies of their own, as decimal
#: logarithms: multiply-accumulates of those that multiply, and values moved of all. An operator
#: between two centres counts for both by its distance.
PRODUCT_SIZES, VALUE_SIZES = (6.0, 8.0, 10.0), (5.0, 7.0, 9.0)

#: The loss of models that tell an item's counterpart from those of the others in its batch.
_OF_PAIRS = "contrastive"
#: The class of products between the items of a batch.
_PAIRED = CLASSES.index("lin")
_OFTEN_NONE = ("fixed_bytes", "pair_macs", "pair_values")


@dataclass(frozen=True)
class ClassSums:
    """What a pass of a batch of one takes, by operator class where it says so."""

    macs: Floats
    values: Floats  # read and written, weights left out
    weights_read: float
    launches: float


@dataclass(frozen=True)
class PassTrace:
    """One pass: its operations with their counts, and what it holds.

    Attributes:
        peak_bytes: intermediate results alive at once, in fp32.
        fixed_bytes: results alive at once whatever the batch: of training, gradients.
        pair_macs: what each two items of a batch take together, where they are compared with each
            other: pictures against the texts of all.
        pair_values: likewise, values read and written.
    """

    signatures: Sequence[tuple[OperatorSignature, int]]
    weights: int
    peak_bytes: int
    fixed_bytes: int = 0
    pair_macs: int = 0
    pair_values: int = 0

    @cached_property
    def sums(self) -> ClassSums:
        """Its operations summed up by class."""
        macs, values = np.zeros(len(CLASSES)), np.zeros(len(CLASSES))
        read = launches = 0.0
        for signature, count in self.signatures:
            number = CLASSES.index(signature.op_class)
            macs[number] += count * signature.macs
            values[number] += count * (signature.input_elements + signature.output_elements)
            read += count * signature.weight_elements
            launches += count
        return ClassSums(macs, values, read, launches)

    def sized(self, batch: int) -> Floats:
        """Multiply-accumulates, then values moved, by operator class and size, of a whole batch."""
        if batch not in self._sized:
            self._sized[batch] = self._sums_by_size(batch)
        return self._sized[batch]

    @cached_property
    def _sized(self) -> dict[int, Floats]:
        return {}

    @cached_property
    def _columns(self) -> tuple[Ints, Floats, Floats, Floats]:
        """Class, multiply-accumulates, values and count of each signature."""
        rows = [
            (CLASSES.index(s.op_class), s.macs, s.input_elements + s.output_elements, count)
            for s, count in self.signatures
        ]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 4)
        return table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3]

    def _sums_by_size(self, batch: int) -> Floats:
        classes, macs, values, counts = self._columns
        pairs = batch * (batch - 1.0)  # an item's own pair is counted with it
        classes = np.append(classes, _PAIRED)
        macs = np.append(batch * macs, pairs * self.pair_macs)
        values = np.append(batch * values, pairs * self.pair_values)
        counts = np.append(counts, 1.0)
        products = _by_size(classes, macs, counts, PRODUCT_SIZES)
        moved = _by_size(classes, values, counts, VALUE_SIZES)
        return np.concatenate([products[: MULTIPLYING * len(PRODUCT_SIZES)], moved])

    @cached_property
    def scores(self) -> int:
        """Elements of the largest matrix of attention scores."""
        sizes = (s.groups * s.m * s.n for s, _ in self.signatures if s.op_class == "sdpa")
        return max(sizes, default=0)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        rows = [[*signature, count] for signature, count in self.signatures]
        more = {name: size for name in _OFTEN_NONE if (size := getattr(self, name))}
        sizes = {"weights": self.weights, "peak_bytes": self.peak_bytes, **more}
        return {"signatures": rows, **sizes}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PassTrace:
        """What `to_dict` gave."""
        rows = [(OperatorSignature(*row[:-1]), row[-1]) for row in content["signatures"]]
        more = {name: content.get(name, 0) for name in _OFTEN_NONE}
        return cls(rows, content["weights"], content["peak_bytes"], **more)


def _by_size(classes: Ints, each: Floats, counts: Floats, centres: Sequence[float]) -> Floats:
    """Sums by class and size; each operator is shared out between the centres around its size."""
    sums = np.zeros((len(CLASSES), len(centres)))
    sizes = np.clip(np.log10(each + 1.0), centres[0], centres[-1])
    below = np.clip(np.searchsorted(centres, sizes, side="right") - 1, 0, len(centres) - 2)
    edges = np.array(centres)
    upper = (sizes - edges[below]) / (edges[below + 1] - edges[below])
    np.add.at(sums, (classes, below), each * counts * (1.0 - upper))
    np.add.at(sums, (classes, below + 1), each * counts * upper)
    return sums.ravel()


def holds_pairs(spec: ModelSpec) -> bool:
    """Whether a model holds each item of a batch against every other, as CLIP does."""
    return spec.training is not None and spec.training.loss == _OF_PAIRS
