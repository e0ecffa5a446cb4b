"""A training step of a catalogue model, traced in shapes alone: forward, loss, backward, optimizer.

Some of a step grows with the batch and some does not: gradients of weights are as large at any.
Both are told apart by tracing two batches, which also tells what is kept for the backward pass.

Imports torch: import this module only where something is traced.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from accelbench.catalog.counting import Counter
from accelbench.catalog.graph_files.steps import COPIES, OperatorSignature, class_of
from accelbench.catalog.op_costs import FREE, PRODUCTS, Args
from accelbench.catalog.passes import TrainingPasses
from accelbench.core.case import Shapes
from accelbench.core.model import ModelSpec
from accelbench.predict.signatures import PassTrace
from accelbench.predict.tracing import convolution_class, operands

#: The batches of which one less the other is what an item takes. Of one item alone the statistics
#: of a batch do not exist.
_FEW, _MORE = 16, 32
#: AdamW on one tensor: values read and written for each weight, and operations.
_MOVED, _OPERATIONS = 20, 9
#: Casting a weight for autocast: fp32 read, half written, in halves.
_CAST = 3


class StepCounter(Counter):
    """Counter of a step's costs, and of products, values and launches by operator class."""

    def begin(self, inputs: Iterable[torch.Tensor]) -> None:
        """A new step."""
        super().begin(inputs)
        self.macs: Tally[str] = Tally()
        self.values: Tally[str] = Tally()
        self.launches: Tally[str] = Tally()

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, masked: bool
    ) -> None:
        """One fused attention."""
        before = self.count.matmul_flops
        super().attention(query, key, value, masked)
        made = query.numel() // int(query.shape[-1]) * int(value.shape[-1])
        moved = query.numel() + key.numel() + value.numel() + made
        self._note("sdpa", (self.count.matmul_flops - before) // 2, moved)

    def attention_backward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> None:
        """Its backward pass, which reads all that the forward pass did, and writes gradients."""
        before = self.count.matmul_flops
        super().attention_backward(query, key, value)
        moved = 2 * (query.numel() + key.numel() + value.numel()) + 2 * query.numel()
        self._note("sdpa", (self.count.matmul_flops - before) // 2, moved)

    def _add_flops(self, func: Any, name: str, args: Args, result: Any) -> None:
        super()._add_flops(func, name, args, result)
        made = [t for t in operands((result,)) if t.numel()]
        if name in PRODUCTS:
            moved = sum(t.numel() for t in (*operands(args), *made))
            self._note(_class(name, args), PRODUCTS[name](args, result) // 2, moved)
        elif made and (name not in FREE or name in COPIES):
            written = made[0].numel() if "norm" in name else sum(t.numel() for t in made)
            read = written if name == "embedding" else sum(t.numel() for t in operands(args))
            self._note(class_of(name), 0, read + written)

    def _note(self, op_class: str, macs: int, moved: int) -> None:
        self.macs[op_class] += macs
        self.values[op_class] += moved
        self.launches[op_class] += 1


def _class(name: str, args: Args) -> str:
    if name == "convolution":
        return convolution_class(args[1], int(args[8]))
    if name == "convolution_backward":
        return convolution_class(args[2], int(args[9]))
    return "bmm" if name in {"bmm", "baddbmm"} else "lin"


def trace_training(spec: ModelSpec, shapes: Shapes) -> dict[str, PassTrace]:
    """The parts of a training step of a batch of one, by name.

    `training` is forward, loss and backward; `optimizer` what AdamW moves, `tensors` its
    operations on each tensor, `casts` what autocast narrows.

    Raises:
        UnsupportedError, UsageError: the model cannot take these sizes.
        UnknownOperationError: an operation that no rule counts.
    """
    passes = TrainingPasses(spec)
    few, more = (_step(passes, replace(shapes, batch=batch)) for batch in (_FEW, _MORE))
    weights = [p.numel() for p in passes.module.parameters()]
    trained = [p.numel() for p in passes.module.parameters() if p.requires_grad]
    peaks = (few.count.peak_activation_bytes, more.count.peak_activation_bytes)
    return {
        "training": _joined(few, more, sum(weights), peaks),
        "optimizer": _moving(_MOVED * sum(trained), 0, sum(weights)),
        "tensors": _moving(0, _OPERATIONS * len(trained), sum(weights)),
        "casts": _moving(_CAST * sum(trained), len(trained), sum(weights)),
    }


def _step(passes: TrainingPasses, shapes: Shapes) -> StepCounter:
    counter = passes.step_counted(shapes, StepCounter)
    assert isinstance(counter, StepCounter)
    return counter


def _joined(few: StepCounter, more: StepCounter, weights: int, peaks: tuple[int, int]) -> PassTrace:
    """What grows with the batch by class, and what does not as weights that are read."""
    signatures = []
    fixed = 0
    for op_class in sorted(few.launches):
        macs = _item(few.macs[op_class], more.macs[op_class])
        values = _item(few.values[op_class], more.values[op_class])
        fixed += max(few.values[op_class] - _FEW * values, 0)
        signatures.append((_signature(op_class, macs=macs, values=values), 1))
        signatures.append((_signature(op_class), few.launches[op_class] - 1))
    signatures.append((_signature("elt", weights=fixed), 1))
    kept = _item(*peaks)
    return PassTrace(signatures, weights, kept, max(peaks[0] - _FEW * kept, 0))


def _item(few: int, more: int) -> int:
    """What one item more takes."""
    return max(more - few, 0) // (_MORE - _FEW)


def _moving(values: int, launches: int, weights: int) -> PassTrace:
    """A pass over weights."""
    signatures = [(_signature("elt", weights=values), 1)] if values else []
    more = launches - len(signatures)
    if more > 0:
        signatures.append((_signature("elt"), more))
    return PassTrace(signatures, weights, 0)


def _signature(
    op_class: str, macs: int = 0, values: int = 0, weights: int = 0
) -> OperatorSignature:
    return OperatorSignature(op_class, macs, values, weights, 0, 0, 0, 0, 1, 1, 1)
