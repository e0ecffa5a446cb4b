"""Steps of a file's graph in any format: classes, sizes and signatures.

Products and sizes are those of `predict.tracing`: one rule for traced models and files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from accelbench.core.errors import AccelbenchError
from accelbench.core.formatting import join_first
from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.given_inputs import BATCH, IMAGE, SEQUENCE, meaning


class UntracedError(AccelbenchError):
    """The operators of a model are not known."""


class OperatorSignature(NamedTuple):
    """Class and sizes of an operation, for a batch of one."""

    op_class: str
    macs: int
    input_elements: int
    weight_elements: int
    output_elements: int
    m: int
    n: int
    k: int
    groups: int
    kernel: int
    stride: int


Shape = tuple[int, ...]


@dataclass(frozen=True)
class GraphValue:
    """A value between steps, with every dimension known."""

    name: str  # unique in its graph
    shape: Shape
    constant: bool = False  # a weight, or computed from weights only: once

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class GraphStep:
    """An operation of a graph."""

    operator: str  # its name in the format
    reads: tuple[GraphValue, ...]  # operands that are not constants
    makes: tuple[GraphValue, ...]
    signature: OperatorSignature | None = None  # None if it is a view

    @property
    def op_class(self) -> str:
        """Its class; "" of a view."""
        return self.signature.op_class if self.signature else ""


def step(
    operator: str,
    inputs: Sequence[GraphValue],
    outputs: Sequence[GraphValue],
    signature: OperatorSignature | None,
) -> GraphStep:
    """Return a step of all its operands, constants among them."""
    return GraphStep(
        operator, tuple(value for value in inputs if not value.constant), tuple(outputs), signature
    )


# -- signatures


def moving(
    op_class: str, inputs: Iterable[GraphValue], outputs: Sequence[GraphValue], *,
    looked_up: bool = False,
) -> OperatorSignature:  # fmt: skip
    """Return the signature of an operation that multiplies no matrices.

    `inputs` include constants. If `looked_up`, only the rows that a table gives are read.
    """
    first = outputs[0]
    made = first.elements if op_class in {"bn", "ln"} else sum(v.elements for v in outputs)
    read = made if looked_up else sum(value.elements for value in inputs)
    width = first.shape[-1] if first.shape else 1
    return OperatorSignature(op_class, 0, read, 0, made, width, 0, 0, 1, 1, 1)


def product(left: GraphValue, right: GraphValue, made: GraphValue, deep: int) -> OperatorSignature:
    """Return the signature of a product with weights, or of two computed values.

    `deep` is the number of products in each element's sum.
    """
    macs = made.elements * deep
    rows = made.shape[-2] if len(made.shape) > 1 else 1
    wide = made.shape[-1] if made.shape else 1
    if not left.constant and not right.constant:
        groups = made.elements // max(rows * wide, 1)
        read = left.elements + right.elements
        return OperatorSignature(
            "bmm", macs, read, 0, made.elements, rows, wide, deep, groups, 1, 1
        )
    values, weights = (right, left) if left.constant else (left, right)
    rows = made.elements // max(wide, 1)  # of a batch all rows at once
    return OperatorSignature(
        "lin", macs, values.elements, weights.elements, made.elements, rows, wide, deep, 1, 1, 1
    )


def convolution(
    values: GraphValue,
    weight: GraphValue,
    made: GraphValue,
    *,
    groups: int,
    stride: int,
    transposed: bool = False,
) -> OperatorSignature:
    """Return the signature of a convolution.

    The weight is (out, in a group, kernel …), of a transposed one (in, out …).
    """
    kernel = math.prod(weight.shape[2:])
    along = values if transposed else made
    macs = along.elements * math.prod(weight.shape[1:])
    if groups > 1:
        op_class = "dw" if weight.shape[1] == 1 else "grp"
    else:
        op_class = "pw" if kernel == 1 else "conv"
    channels = math.prod(made.shape[:2])
    return OperatorSignature(
        op_class, macs, values.elements, weight.elements, made.elements,
        made.elements // max(channels, 1), weight.shape[0], weight.shape[1] * kernel, groups,
        kernel, stride,
    )  # fmt: skip


def attention(
    query: Shape, key: Shape, depth: int, *, heads: int, masked: bool
) -> OperatorSignature:
    """Return the signature of a fused attention.

    `query` and `key` are (length, width) of a head, `depth` is the width of its values, `heads` are
    those of all items, `masked` states whether scores are added to.
    """
    (length, width), other = query, key[0]
    read = heads * (length * width + other * (width + depth))
    return OperatorSignature(
        "sdpa", heads * length * other * (width + depth), read, 0, heads * length * depth,
        length, other, width, heads, int(masked), 1,
    )  # fmt: skip


def alive_elements(steps: Sequence[GraphStep], names: Iterable[str]) -> list[int]:
    """Return the elements alive after each step: a view keeps alive what it looks at."""
    results = set(names)
    owner: dict[str, str] = {}
    last: dict[str, int] = {}
    for number, entry in enumerate(steps):
        for value in entry.reads:
            last[owner.get(value.name, value.name)] = number
        for value in entry.makes:
            is_view = entry.signature is None and entry.reads
            owner[value.name] = (
                owner.get(entry.reads[0].name, entry.reads[0].name) if is_view else value.name
            )
            last[owner[value.name]] = len(steps) if value.name in results else number
            if value.name in results:
                results.add(owner[value.name])
    dying: dict[int, list[str]] = {}
    for name, number in last.items():
        dying.setdefault(len(steps) if name in results else number, []).append(name)
    sizes: dict[str, int] = {}
    alive = 0
    each: list[int] = []
    for number, entry in enumerate(steps):
        for value in entry.makes:
            if owner[value.name] == value.name and entry.signature is not None:
                sizes[value.name] = value.elements
                alive += value.elements
        each.append(alive)
        alive -= sum(sizes.pop(name, 0) for name in dying.get(number, ()))
    return each


def consumers_of(steps: Sequence[GraphStep]) -> Mapping[str, list[int]]:
    """Return the steps that read each value."""
    readers: dict[str, list[int]] = {}
    for number, entry in enumerate(steps):
        for value in entry.reads:
            readers.setdefault(value.name, []).append(number)
    return readers


def with_signature(entry: GraphStep, signature: OperatorSignature) -> GraphStep:
    """Return the step with another signature."""
    return replace(entry, signature=signature)


_FP32 = "float"
_MOST_NAMED = 5


def stored_weights(tensors: Iterable[tuple[str, int]]) -> tuple[int, str]:
    """Return the elements of a graph's weights, and what most are stored in."""
    by_kind: dict[str, int] = {}
    for kind, number in tensors:
        by_kind[kind] = by_kind.get(kind, 0) + number
    return sum(by_kind.values()), max(by_kind, key=lambda kind: by_kind[kind], default=_FP32)


def refuse_uncounted(names: Iterable[str]) -> None:
    """Raise UntracedError if there are operators that no rule counts."""
    unknown = sorted(set(names))
    if unknown:
        raise UntracedError(f"No rule counts its operators {join_first(unknown, _MOST_NAMED)}.")


def refuse_unmade(operator: str, missing: Iterable[str]) -> None:
    """Raise UntracedError if an operator reads what none before it gives."""
    for name in missing:
        raise UntracedError(
            f"Its operator {operator} reads {in_quotes(name)}, which nothing before it gives: the"
            " graph runs in a circle, or a part of it is missing."
        )


ACTIVATIONS = {
    "relu", "gelu", "silu", "hardswish", "sigmoid", "hardtanh", "hardsigmoid", "tanh",
    "leaky_relu", "mish", "clamp", "softplus", "elu", "threshold", "erf", "clamp_min",
}  # fmt: skip
REDUCTIONS = {"mean", "var", "var_mean", "sum", "amax", "max", "linalg_vector_norm", "cumsum"}
#: Operations that calculate nothing but do move values; what else is free gives only sizes,
#: constants, or what the next operation reads in passing.
COPIES = {
    "clone", "_to_copy", "copy_", "copy", "cat", "stack", "gather", "index", "index_select",
    "embedding", "where", "masked_fill", "masked_fill_", "constant_pad_nd", "repeat", "roll",
    "flip", "im2col", "col2im", "upsample_nearest2d", "scatter", "scatter_", "masked_scatter",
    "_reshape_copy", "split_with_sizes_copy", "reflection_pad1d", "select_scatter",
    "slice_scatter", "sort", "topk", "argsort", "max_pool2d_with_indices",
}  # fmt: skip


def class_of(name: str) -> str:
    """Return the class of an operation of torch that multiplies no matrices."""
    bare = name.removesuffix("_")
    if "batch_norm" in name:
        return "bn"
    if "norm" in name and name != "linalg_vector_norm":
        return "ln"
    if bare in ACTIVATIONS:
        return "act"
    if "pool" in name or bare in REDUCTIONS:
        return "pool"
    if "softmax" in name:
        return "softmax"
    return "copy" if name in COPIES or "upsample" in name else "elt"


#: The options that bind each.
OPTIONS = {BATCH: "--batch-sizes", SEQUENCE: "--sequence-lengths", IMAGE: "--image-sizes"}


@dataclass(frozen=True)
class FileInput:
    """An input of a graph; a free dimension is its name, or "" without one."""

    name: str
    shape: tuple[int | str, ...]

    def __post_init__(self) -> None:
        for place, size in enumerate(self.shape):
            if not isinstance(size, str) and size < 1:
                raise UntracedError(
                    f"Dimension {place} of its input {self.name} is {size}, and none is below 1.",
                    "Export the model with a size there, or with a name for a free one.",
                )


@dataclass(frozen=True)
class GraphSizes:
    """Inputs with all dimensions bound."""

    shapes: Mapping[str, tuple[int, ...]]  # by input
    dimensions: Mapping[str, int]  # by the name of a free dimension
    axes: frozenset[str]  # sizes that the graph leaves open
    batch: int  # items at once; one if the batch is free


def bound(inputs: Sequence[FileInput], sizes: Mapping[str, int | None]) -> GraphSizes:
    """Return inputs at some sizes, with a batch of one if it is free.

    Raises UntracedError if a dimension remains free.
    """
    known: dict[str, int | None] = {BATCH: 1, **sizes}
    shapes: dict[str, tuple[int, ...]] = {}
    dimensions: dict[str, int] = {}
    axes: set[str] = set()
    for entry in inputs:
        shape = []
        for place, size in enumerate(entry.shape):
            if isinstance(size, str):
                wanted = meaning(size, place, len(entry.shape))
                value = known.get(wanted) if wanted else None
                if value is None:
                    raise UntracedError(*_remains(entry, place, size, wanted))
                axes.add(wanted)
                if size:
                    value = dimensions.setdefault(size, value)
                shape.append(value)
            else:
                shape.append(size)
        shapes[entry.name] = tuple(shape)
    fixed = {shape[0] for shape in shapes.values() if len(shape) > 1}
    batch = 1 if BATCH in axes or len(fixed) != 1 else max(fixed.pop(), 1)
    return GraphSizes(shapes, dimensions, frozenset(axes), batch)


def axes_of(inputs: Iterable[FileInput]) -> frozenset[str]:
    """Return the sizes that a graph leaves open."""
    return frozenset(
        meaning(size, place, len(entry.shape))
        for entry in inputs
        for place, size in enumerate(entry.shape)
        if isinstance(size, str)
    )


def _remains(entry: FileInput, place: int, name: str, wanted: str) -> tuple[str, str]:
    called = f"{in_quotes(name)}" if name else f"{place}"
    return (
        f"Dimension {called} of its input {entry.name} is free.",
        f"Name its size: {OPTIONS[wanted]} 128." if wanted else
        "No option binds it: export the model with a fixed size there.",
    )  # fmt: skip
