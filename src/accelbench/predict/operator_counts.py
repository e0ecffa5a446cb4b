"""What the passes of a model take, by operator class: figures that are counted, not predicted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from accelbench.predict.cases import sizes_of
from accelbench.predict.graphs import CLASSES
from accelbench.predict.signatures import PassTrace
from accelbench.predict.terms import TracedCase

_FP32_BYTES = 4


class ClassCounts(TypedDict):
    """What the operators of a class take together, of a batch of one in fp32."""

    launches: int
    macs: int
    bytes: int  # operands, results and weights
    output_elements: int
    intensity: float | None  # operations a byte; None of what moves none


class PassCounts(TypedDict):
    """A pass of a model at its sizes."""

    model: str
    sizes: dict[str, int]
    part: str  # forward · prefill · decode
    weights: int
    classes: dict[str, ClassCounts]


def operator_counts(traced: Iterable[TracedCase]) -> list[PassCounts]:
    """The passes of cases, each once.

    Args:
        traced: cases with their operators.
    """
    counted: dict[tuple[str, str, str], PassCounts] = {}
    for entry in traced:
        sizes = sizes_of(entry.case.shapes)
        for part, taken in entry.passes.items():
            key = (entry.case.model, str(sizes), part)
            if key not in counted:
                counted[key] = {
                    "model": entry.case.model, "sizes": sizes, "part": part,
                    "weights": taken.weights, "classes": _by_class(taken),
                }  # fmt: skip
    return list(counted.values())


def _by_class(taken: PassTrace) -> dict[str, ClassCounts]:
    classes: dict[str, ClassCounts] = {}
    for name in CLASSES:
        rows = [(s, number) for s, number in taken.signatures if s.op_class == name]
        if not rows:
            continue
        macs = sum(number * s.macs for s, number in rows)
        made = sum(number * s.output_elements for s, number in rows)
        read = sum(number * (s.input_elements + s.weight_elements) for s, number in rows)
        moved = _FP32_BYTES * (made + read)
        classes[name] = {
            "launches": sum(number for _, number in rows), "macs": macs, "bytes": moved,
            "output_elements": made, "intensity": 2 * macs / moved if moved else None,
        }  # fmt: skip
    return classes
