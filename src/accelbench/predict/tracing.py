"""Operators of a catalogue model, traced in shapes only: no weights, nothing is computed.

The counter of analytic costs sees every operation; here it also notes each one's class and sizes,
so that one rule defines an operation, here and in `costs.json`. Attention is seen whole.

A training step is forward, loss, backward and optimizer. Two batches are traced: that separates
what grows with the batch from what does not, such as the gradients of weights.

Imports torch: import this module only where something is traced.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from accelbench.core.case import Shapes
from accelbench.core.model import ModelSpec
from accelbench.models.counting import Count, Counter, count_forward
from accelbench.models.find import key_of
from accelbench.models.graph_files.steps import COPIES, OperatorSignature, class_of
from accelbench.models.op_costs import FREE, PRODUCTS, Args
from accelbench.models.package_models.building import package as import_package
from accelbench.models.passes import Passes, TrainingPasses
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


#: One row of a table of operators, by its columns.
OperatorRow = dict[str, object]


def package_operators(
    package: str, wanted: Mapping[str, Collection[int]], hear: Callable[[str], None]
) -> list[OperatorRow]:
    """Return the operators of a package's models, as a table of operators has them.

    Args:
        package: timm or torchvision.
        wanted: sides of images by model; models that the package does not have are left out, and
            so are those that cannot be traced.
        hear: is called before each model.
    """
    library = import_package(package)
    models = library if package == "timm" else library.models
    names = {key_of(name): name for name in models.list_models()}
    known = {names[key]: wanted[name] for name in wanted if (key := _key_in(name, names))}
    rows: list[OperatorRow] = []
    for number, (name, sides) in enumerate(known.items(), start=1):
        hear(f"Tracing {name}, {number} of {len(known)} models of {package} …")
        try:
            with torch.device("meta"):
                module = (
                    models.create_model(name, pretrained=False)
                    if package == "timm"
                    else models.get_model(name, weights=None)
                )
            argument = next(iter(inspect.signature(module.forward).parameters))
            for side in sides or (_side_of(module),):
                fed = {argument: torch.empty(1, 3, side, side, device="meta")}
                count = count_forward(module.eval(), fed, SignatureCounter)
                assert isinstance(count, SignatureCount)
                rows += [
                    {"model": name, "img_size": side, **signature._asdict(), "count": times}
                    for signature, times in count.signatures.items()
                ]
        except Exception:  # noqa: S112 — another input than a picture, or another size
            continue
    return rows


def _key_in(name: str, names: Mapping[str, str]) -> str:
    keys = (key_of(name), key_of(name.split(".")[0]))
    return next((key for key in keys if key in names), "")


def _side_of(module: torch.nn.Module) -> int:
    config = getattr(module, "pretrained_cfg", None) or {}
    return int((config.get("input_size") or (3, 224, 224))[-1])


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
