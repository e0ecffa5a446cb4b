"""What a step costs on paper, from counts kept as data: no model is built, no torch imported.

`costs.json` holds polynomials in batch and sequence (or image) that
`accelbench.catalog.analytic` found to reproduce torch's own shapes exactly. A
model without an entry, or whose config is not the one counted, has no cost:
None, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from accelbench.catalog.inputs import input_bytes, settle
from accelbench.core.case import Shapes
from accelbench.core.model import AnalyticCost, ModelSpec
from accelbench.core.precision import bytes_per_weight
from accelbench.core.words import Mode

COSTS_FILE = Path(__file__).with_name("costs.json")

#: Which count holds for a precision. Autocast mixes two and int8 depends on the
#: quantiser: their bytes are not known from either.
_KINDS = {"fp32": "fp32", "fp16": "half", "bf16": "half"}

#: polynomial[i][j] belongs to batch**i × length**j.
Polynomial = Sequence[Sequence[int]]


def cost(
    spec: ModelSpec, shapes: Shapes, precision: str, mode: str = Mode.INFERENCE
) -> AnalyticCost | None:
    """The analytic cost of one step, exact by the rules of `counting`.

    Returns None where it has not been counted: a model without an entry, an
    image size between those the rule holds for, autocast, int8, and training.

    Raises:
        UsageError, UnsupportedError: the model cannot take these shapes.
    """
    kind = _KINDS.get(precision)
    found = _entry_and_point(spec, shapes)
    if kind is None or found is None or mode != Mode.INFERENCE:
        return None
    entry, batch, length = found
    counted = entry[kind]
    peaks = counted["peak_activation_bytes"]
    return AnalyticCost(
        flops=value(counted["flops"], batch, length),
        bytes_moved=value(counted["bytes_moved"], batch, length),
        activation_bytes=value(counted["activation_bytes"], batch, length),
        peak_activation_bytes=max(value(peak, batch, length) for peak in peaks),
        weight_bytes=entry["weight_bytes"][kind],
    )


def flops(spec: ModelSpec, shapes: Shapes) -> float | None:
    """Operations of one forward pass: the same at every precision, autocast and int8 too."""
    counted = cost(spec, shapes, "fp32")
    return None if counted is None else counted.flops


def memory_estimate_bytes(
    spec: ModelSpec, shapes: Shapes, precision: str, mode: str = Mode.INFERENCE
) -> int | None:
    """Bytes that weights, results alive at once and inputs take; None where not counted.

    What the engine itself holds (code, workspaces, a caching allocator's rounding) comes
    on top: a case whose estimate exceeds what is free cannot fit; one below it may.
    Autocast keeps a half copy of the weights beside fp32 ones and is taken to keep
    fp32 results. Training is AdamW's: weights, gradients and two moments, and
    every result kept for the backward pass.

    Raises:
        UsageError, UnsupportedError: the model cannot take these shapes.
    """
    kind = _KINDS.get(precision, "fp32")
    counted = cost(spec, shapes, kind if kind == "fp32" else "bf16")
    if counted is None:
        return None
    weights = counted.weight_bytes
    if precision == "int8":
        weights = spec.parameters * bytes_per_weight(precision)
    elif precision.startswith("amp-"):
        weights += spec.parameters * 2
    results = counted.peak_activation_bytes
    if mode == Mode.TRAINING:
        weights, results = 4 * weights, counted.activation_bytes
    floats = 2 if kind == "half" else 4
    return int(weights + results + input_bytes(spec, shapes, floats))


def value(polynomial: Polynomial, batch: int, length: int) -> int:
    """Evaluate a polynomial in batch and length, in exact integers."""
    return sum(
        coefficient * batch**i * length**j
        for i, row in enumerate(polynomial)
        for j, coefficient in enumerate(row)
    )


def _entry_and_point(spec: ModelSpec, shapes: Shapes) -> tuple[dict[str, Any], int, int] | None:
    """The counts of this very config, and where to evaluate them."""
    settled = settle(spec, shapes)
    entry = _costs().get(spec.id)
    if entry is None or entry["config"] != spec.config_digest:
        return None
    along, step = entry["along"], entry["step"]
    if along is None:
        return entry, settled.batch, 0
    size = getattr(settled, along)
    if size is None or size % step:
        return None
    return entry, settled.batch, size // step


@cache
def _costs() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = json.loads(COSTS_FILE.read_text(encoding="utf-8"))
    return read
