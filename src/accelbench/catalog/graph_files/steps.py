"""Steps of a file's graph, in whatever format: each with its signature.

A reader of a format makes `GraphStep`s in the order in which they run. Products and sizes are those
of `predict.tracing`: one rule says what an operation is, in a traced model and in a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from accelbench.catalog.graph_files.signatures import OperatorSignature

Shape = tuple[int, ...]


@dataclass(frozen=True)
class GraphValue:
    """A value between steps.

    Attributes:
        name: unique in its graph.
        shape: with every dimension known.
        constant: a weight, or what follows from weights alone: engines calculate it once.
    """

    name: str
    shape: Shape
    constant: bool = False

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class GraphStep:
    """An operation of a graph.

    Attributes:
        operator: as its format calls it.
        reads: its operands that are no constants.
        makes: its results.
        signature: what it takes; None of what only looks at values in another way.
    """

    operator: str
    reads: tuple[GraphValue, ...]
    makes: tuple[GraphValue, ...]
    signature: OperatorSignature | None = None

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
    """A step of all its operands, constants among them."""
    return GraphStep(
        operator, tuple(value for value in inputs if not value.constant), tuple(outputs), signature
    )


# -- signatures


def moving(
    op_class: str, inputs: Iterable[GraphValue], outputs: Sequence[GraphValue], *,
    looked_up: bool = False,
) -> OperatorSignature:  # fmt: skip
    """An operation that multiplies no matrices.

    Args:
        op_class: its class.
        inputs: operands, constants among them.
        outputs: results.
        looked_up: of a table of embeddings only the rows that it gives are read.
    """
    first = outputs[0]
    made = first.elements if op_class in {"bn", "ln"} else sum(v.elements for v in outputs)
    read = made if looked_up else sum(value.elements for value in inputs)
    width = first.shape[-1] if first.shape else 1
    return OperatorSignature(op_class, 0, read, 0, made, width, 0, 0, 1, 1, 1)


def product(left: GraphValue, right: GraphValue, made: GraphValue, deep: int) -> OperatorSignature:
    """A product of matrices: with weights, or of two values that are calculated.

    Args:
        left: an operand.
        right: the other one.
        made: the result.
        deep: how many products each of its elements is a sum of.
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
    """A convolution; the weight is (out, in a group, kernel …), of a transposed one (in, out …)."""
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
    """One fused attention.

    Args:
        query: (length, width) of each head.
        key: (length, width) of each head.
        depth: of each head's values.
        heads: of all items together.
        masked: whether scores are added to.
    """
    (length, width), other = query, key[0]
    read = heads * (length * width + other * (width + depth))
    return OperatorSignature(
        "sdpa", heads * length * other * (width + depth), read, 0, heads * length * depth,
        length, other, width, heads, int(masked), 1,
    )  # fmt: skip


def alive_elements(steps: Sequence[GraphStep], names: Iterable[str]) -> list[int]:
    """Elements alive, step by step: a view keeps alive what it looks at.

    Args:
        steps: of a graph, in their order.
        names: of what the graph gives.
    """
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
    """The steps that read each value."""
    readers: dict[str, list[int]] = {}
    for number, entry in enumerate(steps):
        for value in entry.reads:
            readers.setdefault(value.name, []).append(number)
    return readers


def with_signature(entry: GraphStep, signature: OperatorSignature) -> GraphStep:
    """The same step, taking something else."""
    return replace(entry, signature=signature)
