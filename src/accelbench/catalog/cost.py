"""What a step costs on paper, from counts kept as data: no model is built, no torch imported.

`costs.json` holds polynomials in batch and sequence (or prompt, image, sound) that
`accelbench.catalog.analytic` found to reproduce torch's own shapes. A model
without an entry, or whose config is not the one counted, has no cost: None, never
a guess. Some passes were counted at the model's default sizes alone: at others
they have none either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from accelbench.catalog.inputs import input_bytes, settle
from accelbench.catalog.polynomials import value
from accelbench.core.axes import Part, axes_of
from accelbench.core.case import Shapes
from accelbench.core.model import AnalyticCost, ModelSpec
from accelbench.core.vocabulary import Mode

COSTS_FILE = Path(__file__).with_name("costs.json")

#: Which count holds for a precision. Autocast mixes two and int8 depends on the
#: quantiser: their bytes are not known from either.
_KINDS = {"fp32": "fp32", "fp16": "half", "bf16": "half"}

#: AdamW for each weight: decay (1), both moments (3 and 4), the root with its correction
#: and epsilon (3), the step (3); it reads weight, gradient and moments and writes all but
#: the gradient, in fp32.
_ADAMW_FLOPS, _ADAMW_BYTES = 14, 28

#: Options that change a training step's work in ways that were not counted.
UNCOUNTED_OPTIONS = ("optimizer", "gradient_checkpointing", "pure")

_QUANTITIES = ("flops", "bytes_moved", "activation_bytes", "peak_activation_bytes")


@dataclass(frozen=True)
class CostPoint:
    """One pass of a model at one batch and length, to be read."""

    counted: Mapping[str, Any]  # of the pass, all kinds
    batch: int
    length: int

    def of(self, kind: str) -> Mapping[str, Any]:
        """The polynomials of a kind, at this batch."""
        polynomials: Mapping[str, Any] = self.counted[kind]
        return {**polynomials, **polynomials.get("alone", {})} if self.batch == 1 else polynomials

    def read(self, polynomials: Mapping[str, Any]) -> dict[str, int]:
        """Every quantity of one pass."""
        quantities = {
            name: value(polynomials[name], self.batch, self.length)
            for name in _QUANTITIES
            if name in polynomials and name != "peak_activation_bytes"
        }
        peaks = polynomials["peak_activation_bytes"]
        return {
            **quantities,
            "peak_activation_bytes": max(value(p, self.batch, self.length) for p in peaks),
        }


def cost(
    spec: ModelSpec, shapes: Shapes, precision: str, mode: str = Mode.INFERENCE
) -> AnalyticCost | None:
    """The analytic cost of one step, by the rules of `rules`.

    A step is a forward pass, a whole request where tokens are made, every pass of
    the denoiser for an image (its scheduler left out: a few operations a latent
    value), or a training step: forward, loss, backward and AdamW.

    Returns None where it has not been counted: a model without an entry, sizes
    between those the rule holds for, autocast, int8, and training in other than
    fp32, which is autocast.

    Raises:
        UsageError, UnsupportedError: the model cannot take these shapes.
    """
    kind = _KINDS.get(precision)
    if kind is None:
        return None
    settled = settle(spec, shapes)
    if mode == Mode.TRAINING:
        return _training(spec, settled) if kind == "fp32" else None
    entry = entry_of(spec)
    quantities = (
        request(spec, settled, kind) if settled.new_tokens else _passes(spec, settled, kind)
    )
    if entry is None or quantities is None:
        return None
    return AnalyticCost(**quantities, weight_bytes=entry["forward"][kind]["weight_bytes"])


@dataclass(frozen=True)
class Work:
    """What has to be done, wherever it is done."""

    flops: float
    bytes_moved: float


def parts(
    spec: ModelSpec, shapes: Shapes, precision: str, mode: str = Mode.INFERENCE
) -> Mapping[str, Work] | None:
    """The work of a step's parts that come one after the other; together they are its `cost`.

    A request has a prefill and, where more than one token is made, a decode: all its steps.
    Whatever else a step is has one part, "step".

    Returns None, and raises, as `cost` does.
    """
    counted = cost(spec, shapes, precision, mode)
    if counted is None:
        return None
    whole = Work(counted.flops, counted.bytes_moved)
    settled = settle(spec, shapes)
    cost_point = None
    if mode == Mode.INFERENCE and settled.new_tokens:
        cost_point = point(spec, settled, "request")
    if cost_point is None:
        return {"step": whole}
    read = cost_point.read(cost_point.of(_KINDS[precision])["prefill"])
    prefill = Work(read["flops"], read["bytes_moved"])
    if settled.new_tokens == 1:
        return {"prefill": prefill}
    decode = Work(whole.flops - prefill.flops, whole.bytes_moved - prefill.bytes_moved)
    return {"prefill": prefill, "decode": decode}


def flops(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> float | None:
    """Operations of one step: the same at every precision."""
    counted = cost(spec, shapes, "fp32", mode)
    return None if counted is None else counted.flops


def weight_bytes_read(spec: ModelSpec, bytes_per_weight: float) -> float | None:
    """Compute the bytes of weights that a forward pass reads; None if that was not counted.

    Rows of embeddings that no input names are not among them.
    """
    settled = replace(settle(spec, Shapes(1)), new_tokens=None)
    cost_point = point(spec, settled, "forward")
    if cost_point is None:
        return None
    counted = cost_point.read(cost_point.of("fp32"))
    inputs = input_bytes(spec, settled)
    weights = counted["bytes_moved"] - counted["activation_bytes"] - inputs
    return max(weights, 0) * bytes_per_weight / 4


def _passes(spec: ModelSpec, settled: Shapes, kind: str) -> dict[str, int] | None:
    """A forward pass; of a denoiser as many as there are steps."""
    cost_point = point(spec, settled, "forward")
    if cost_point is None:
        return None
    quantities = cost_point.read(cost_point.of(kind))
    times = settled.steps or 1 if spec.procedure == "denoise" else 1
    peak = quantities.pop("peak_activation_bytes")
    return {**{n: times * q for n, q in quantities.items()}, "peak_activation_bytes": peak}


def request(spec: ModelSpec, settled: Shapes, kind: str) -> dict[str, int] | None:
    """A prefill and a decode step for each token after the first.

    Step k takes what the first takes and k - 1 times what each adds to the one
    before: a token more is looked at and kept. What is kept is among what is alive.
    """
    cost_point = point(spec, settled, "request")
    if cost_point is None or settled.new_tokens is None:
        return None
    counted = cost_point.of(kind)
    total = cost_point.read(counted["prefill"])
    steps = settled.new_tokens - 1
    decode = counted["decode"]
    for name in _QUANTITIES[:3]:
        first, growth = (value(p, cost_point.batch, cost_point.length) for p in decode[name])
        total[name] += steps * first + steps * (steps - 1) // 2 * growth
    last = max(
        value(first, cost_point.batch, cost_point.length)
        + (steps - 1) * value(growth, cost_point.batch, cost_point.length)
        for first, growth in decode["peak_activation_bytes"]
    )
    peak = max(total["peak_activation_bytes"], last if steps else 0)
    return {**total, "peak_activation_bytes": peak}


def _training(spec: ModelSpec, settled: Shapes) -> AnalyticCost | None:
    cost_point = point(spec, settled, "training")
    if cost_point is None:
        return None
    quantities = cost_point.read(cost_point.of("fp32"))
    trained = cost_point.counted["trained"]
    quantities["flops"] += _ADAMW_FLOPS * trained
    quantities["bytes_moved"] += _ADAMW_BYTES * trained
    return AnalyticCost(**quantities, weight_bytes=cost_point.counted["fp32"]["weight_bytes"])


def entry_of(spec: ModelSpec) -> Mapping[str, Any] | None:
    """The counts of this very config; what its owner brought was counted when looked at."""
    if spec.own is not None:
        return spec.own.counted
    entry = _costs().get(spec.id)
    return None if entry is None or entry["config"] != spec.config_digest else entry


def point(spec: ModelSpec, settled: Shapes, kind: str) -> CostPoint | None:
    """Where to read a pass: forward, request or training. None where it was not counted.

    Every size but the one along which the pass was fitted must be the model's default.
    """
    entry = entry_of(spec)
    if entry is None or kind not in entry:
        return None
    counted = entry[kind]
    if kind == "training" and counted["config"] != spec.trained.config_digest:
        return None
    along, step = counted["along"], counted["step"]
    for name, default in _defaults(spec, kind).items():
        if name != along and getattr(settled, name) != default:
            return None
    if along is None:
        return CostPoint(counted, settled.batch, 0)
    size = getattr(settled, along)
    return None if size is None or size % step else CostPoint(counted, settled.batch, size // step)


def _defaults(spec: ModelSpec, kind: str) -> dict[str, int | None]:
    """The sizes that a pass depends on."""
    sizes = {axis.field: axis.own(spec) for axis in axes_of(Part.INPUT)}
    if kind == "request":
        makes = spec.generation
        del sizes["sequence"]  # what it reads is its prompt
        return {**sizes, "prompt_tokens": None if makes is None else makes.prompt_tokens}
    return sizes


@cache
def _costs() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = json.loads(COSTS_FILE.read_text(encoding="utf-8"))
    return read
