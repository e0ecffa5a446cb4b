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


#: The loss of models that tell an item's counterpart from those of the others in its batch.
_OF_PAIRS = "contrastive"
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


def holds_pairs(spec: ModelSpec) -> bool:
    """Whether a model holds each item of a batch against every other, as CLIP does."""
    return spec.training is not None and spec.training.loss == _OF_PAIRS
