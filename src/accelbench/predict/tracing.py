"""Operators of a catalogue model, traced in shapes alone: no weights, nothing is computed.

The counter of analytic costs sees every operation; here it also notes each one's class and sizes,
so that one rule says what an operation is, here and in `costs.json`. Attention is seen whole.

Imports torch: import this module only where something is traced.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from accelbench.catalog.counting import Count, Counter
from accelbench.catalog.graph_files.steps import COPIES, OperatorSignature, class_of
from accelbench.catalog.op_costs import FREE, PRODUCTS, Args
from accelbench.catalog.passes import Passes
from accelbench.core.case import Shapes
from accelbench.core.model import ModelSpec
from accelbench.predict.signatures import PassTrace, holds_pairs

#: Batches that are counted beside one item, where something grows with the square of a batch.
_SQUARED = (2, 4)


@dataclass
class SignatureCount(Count):
    """What one pass takes, with how often each signature occurs in it."""

    signatures: Tally[OperatorSignature] = field(default_factory=Tally)


class SignatureCounter(Counter):
    """Counter of costs and of signatures."""

    def begin(self, inputs: Iterable[torch.Tensor]) -> None:
        """A new pass."""
        super().begin(inputs)
        self.count: SignatureCount = SignatureCount(input_bytes=self.count.input_bytes)

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, masked: bool
    ) -> None:
        """One fused attention."""
        super().attention(query, key, value, masked)
        batch = math.prod(query.shape[:-2])
        length, other, width = int(query.shape[-2]), int(key.shape[-2]), int(query.shape[-1])
        depth = int(value.shape[-1])
        self.count.signatures[OperatorSignature(
            "sdpa", batch * length * other * (width + depth),
            query.numel() + key.numel() + value.numel(), 0, batch * length * depth,
            length, other, width, batch, int(masked), 1,
        )] += 1  # fmt: skip

    def _add_flops(self, func: Any, name: str, args: Args, result: Any) -> None:
        super()._add_flops(func, name, args, result)
        if name in PRODUCTS:
            self.count.signatures[_product(name, args, result)] += 1
        elif name not in FREE or name in COPIES:
            self._add_other(name, args, result)

    def _add_other(self, name: str, args: Args, result: Any) -> None:
        results = [t for t in operands((result,)) if t.numel()]
        if not results:
            return
        first = results[0]
        # Of a norm the other results are statistics, and at inference empty.
        made = first.numel() if "norm" in name else sum(t.numel() for t in results)
        read = made if name == "embedding" else sum(t.numel() for t in operands(args))
        width = int(first.shape[-1]) if first.dim() else 1
        self.count.signatures[OperatorSignature(
            class_of(name), 0, read, 0, made, width, 0, 0, 1, 1, 1
        )] += 1  # fmt: skip


def trace(spec: ModelSpec, shapes: Shapes) -> dict[str, PassTrace]:
    """The passes of one step of a batch of one, by name.

    A forward pass is `forward`, as is one pass of a denoiser. A request has `prefill` and, where
    more than one token is made, `decode`: a token in the middle of what is written.

    Raises:
        UnsupportedError, UsageError: the model cannot take these sizes.
        UnknownOperationError: an operation that no rule counts.
    """
    passes = Passes(spec, counter_class=SignatureCounter)
    single = replace(shapes, batch=1)
    weights = sum(parameter.numel() for parameter in passes.module.parameters())
    if not single.new_tokens:
        forward = _traced(passes.forward(single), weights)
        return {"forward": _with_pairs(forward, passes, single) if holds_pairs(spec) else forward}
    counts = {"prefill": passes.request(replace(single, new_tokens=2), 1)[0]}
    if single.new_tokens > 1:
        assert single.prompt_tokens is not None
        middle = single.prompt_tokens + single.new_tokens // 2
        longer = replace(single, prompt_tokens=middle, new_tokens=2)
        counts["decode"] = passes.request(longer, 1)[1]
    return {name: _traced(count, weights) for name, count in counts.items()}


def _with_pairs(forward: PassTrace, passes: Passes, single: Shapes) -> PassTrace:
    """A pass with what grows with the square of the batch, from what three batches take."""
    counts = [
        _traced(passes.forward(replace(single, batch=batch)), forward.weights).sums
        for batch in _SQUARED
    ]
    macs, values = (
        (forward_sum, *(float(getattr(count, name).sum()) for count in counts))
        for name, forward_sum in (
            ("macs", float(forward.sums.macs.sum())),
            ("values", float(forward.sums.values.sum())),
        )
    )
    return replace(forward, pair_macs=_squared(*macs), pair_values=_squared(*values))


def _squared(one: float, two: float, four: float) -> int:
    """The part of a sum that grows with the square of the batch, from batches of 1, 2 and 4."""
    return max(round(((four - two) - 2 * (two - one)) / 6), 0)


def _traced(count: Count, weights: int) -> PassTrace:
    assert isinstance(count, SignatureCount)
    ordered = sorted(count.signatures.items())
    return PassTrace(ordered, weights, count.peak_activation_bytes)


def operands(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among arguments or results."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from operands(value)


def _product(name: str, args: Args, result: Any) -> OperatorSignature:
    macs = PRODUCTS[name](args, result) // 2
    made = int(result.numel())
    if name == "convolution":
        return _convolution(args, result, macs)
    first, second = (args[1], args[2]) if name in {"addmm", "baddbmm"} else (args[0], args[1])
    rows, wide, deep = int(first.shape[-2]), int(second.shape[-1]), int(first.shape[-1])
    if name in {"bmm", "baddbmm"}:
        read = int(first.numel() + second.numel())
        return OperatorSignature(
            "bmm", macs, read, 0, made, rows, wide, deep, int(first.shape[0]), 1, 1
        )
    read, weights = int(first.numel()), int(second.numel())
    return OperatorSignature("lin", macs, read, weights, made, rows, wide, deep, 1, 1, 1)


def _convolution(args: Args, result: Any, macs: int) -> OperatorSignature:
    inputs, weight, strides, groups = args[0], args[1], args[3], int(args[8])
    kernel = math.prod(map(int, weight.shape[2:]))
    op_class = convolution_class(weight, groups)
    channels = int(result.shape[1]) * int(result.shape[0])
    made = int(result.numel())
    return OperatorSignature(
        op_class, macs, int(inputs.numel()), int(weight.numel()), made, made // max(channels, 1),
        int(weight.shape[0]), int(weight.shape[1]) * kernel, groups, kernel, int(strides[0]),
    )  # fmt: skip


def convolution_class(weight: torch.Tensor, groups: int) -> str:
    """The operator class of a convolution with these weights."""
    if groups > 1:
        return "dw" if int(weight.shape[1]) == 1 else "grp"
    return "pw" if math.prod(map(int, weight.shape[2:])) == 1 else "conv"
