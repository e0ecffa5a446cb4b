"""What a pass of a file's graph takes, as `costs.json` has it of the catalogue's models.

Products are counted whole, multiply and add apart; of everything else the few operations for each
value that `catalog.op_costs` states for its class. Every value is taken to be stored as wide as the
precision: ids, masks and sizes among them, which are few beside the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from accelbench.catalog.cost_fitting import DEFAULT_SIZES, Rule, exact, fit
from accelbench.catalog.file_models.dimensions import BATCH, IMAGE, SEQUENCE, size_named
from accelbench.catalog.graph_files.free_sizes import FileInput, GraphSizes
from accelbench.catalog.graph_files.fusing import fused
from accelbench.catalog.graph_files.opening import FileGraph, opened
from accelbench.catalog.graph_files.signatures import OperatorSignature, UntracedError
from accelbench.catalog.graph_files.steps import GraphStep, alive_elements
from accelbench.catalog.polynomials import InexactError

Shapes = Mapping[str, Sequence[int | str]]
#: Steps at some sizes, what they give, and the inputs' sizes.
Walk = Callable[[tuple[tuple[str, int], ...]], tuple[list[GraphStep], set[str], GraphSizes]]

#: Operations for each value that is made, of what multiplies no matrices.
_EACH = {"bn": 2, "ln": 7, "softmax": 4, "act": 1, "elt": 1}
_SOFTMAX = 4
_WIDTHS = {"fp32": 4, "half": 2}
#: A rule along a size is found from eight walks through a graph, one at the default sizes from
#: three, and a look should stay short: a walk through a thousand steps takes a tenth of a second.
_MOST_ALONG, _MOST_STEPS = 2_000, 8_000
_SEQUENCES = Rule("sequence", 1, (4, 6, 11), (3, 64))
#: In steps of the total stride of convolutional networks: at its multiples no side is rounded.
_IMAGES = Rule("image", 32, (2, 3, 5), (4, 7))
_DEFAULTS = {SEQUENCE: 128, IMAGE: 224}


@dataclass
class GraphCount:
    """What one pass through a graph takes."""

    flops: int = 0
    bytes_moved: int = 0
    activation_bytes: int = 0
    live_bytes: list[int] = field(default_factory=list)

    @property
    def peak_activation_bytes(self) -> int:
        """The most that is alive at once."""
        return max(self.live_bytes, default=0)


def counted(path: Path, kind: str, given: Shapes) -> dict[str, Any]:
    """The entry of a file's model.

    Args:
        path: of the file.
        kind: its format, as `opening` calls it.
        given: shapes of inputs as its owner has bound them.

    Raises:
        UntracedError: it cannot be counted: one sentence with the reason.
    """
    graph = opened(path, kind)
    shapes = {entry.name: _named(entry, given.get(entry.name)) for entry in graph.inputs}
    free = {size for shape in shapes.values() for size in shape if isinstance(size, str)}
    others = sorted(free - {BATCH, *_DEFAULTS})
    if others:
        raise UntracedError(f"What it takes depends on {others[0]}, a free size of its own.")
    if graph.operators > _MOST_STEPS:
        raise UntracedError(
            f"It has {graph.operators:,} operators, and {_MOST_STEPS:,} are the most that are"
            " counted while it is looked at."
        )
    why = ""
    walked = cache(lambda sizes: _walked(graph, shapes, dict(sizes)))
    for rule in _rules(free, short=graph.operators <= _MOST_ALONG):
        try:
            passes = {kind: _fitted(graph, walked, rule, width) for kind, width in _WIDTHS.items()}
            return {"forward": {"along": rule.along, "step": rule.step, **passes}}
        except (InexactError, UntracedError) as error:
            why = str(error)
    raise UntracedError(f"What it takes follows no rule in its batch: {why}")


def _rules(free: set[str], *, short: bool) -> Iterator[Rule]:
    """Along which sizes a rule may hold, the most general first."""
    if short:
        for name, rule in ((SEQUENCE, _SEQUENCES), (IMAGE, _IMAGES)):
            if free & set(_DEFAULTS) == {name}:
                yield rule
    yield DEFAULT_SIZES


def _fitted(graph: FileGraph, walked: Walk, rule: Rule, width: int) -> dict[str, Any]:
    def at(batch: int, length: int) -> GraphCount:
        along = () if rule.along is None else ((rule.along, length * rule.step),)
        return _count(*walked(((BATCH, batch), *along)), width)

    return {
        "weight_bytes": graph.weights * width,
        **exact(lambda batches: fit(at, rule, batches)),
    }


def _named(entry: FileInput, given: Sequence[int | str] | None) -> tuple[int | str, ...]:
    """The sizes of an input, free ones by the names that its model has them by."""
    if given is not None:
        # Of ncnn the sizes of an item may be said, whose batch is an axis of its own.
        whole = tuple(given) if len(given) == len(entry.shape) else (BATCH, *given)
        if len(whole) != len(entry.shape):
            raise UntracedError(f"Its input {entry.name} is said to have other axes than it has.")
        return whole
    return tuple(
        size if isinstance(size, int) else size_named(size, place, len(entry.shape))
        for place, size in enumerate(entry.shape)
    )


def _walked(
    graph: FileGraph, shapes: Shapes, sizes: Mapping[str, int]
) -> tuple[list[GraphStep], set[str], GraphSizes]:
    """The steps of a graph at some sizes, what it gives, and its inputs' sizes."""
    known = {**_DEFAULTS, **sizes}
    own: dict[str, int] = {}
    bound: dict[str, tuple[int, ...]] = {}
    for entry in graph.inputs:
        values = [s if isinstance(s, int) else known[s] for s in shapes[entry.name]]
        for size, value in zip(entry.shape, values, strict=True):
            if isinstance(size, str) and size and own.setdefault(size, value) != value:
                raise UntracedError(f"Its free size {size} stands for {own[size]} and {value}.")
        bound[entry.name] = tuple(values)
    inputs = GraphSizes(bound, own, frozenset(), sizes[BATCH])
    steps, results = graph.steps(inputs)
    return fused(steps, results), results, inputs


def _count(
    steps: Sequence[GraphStep], results: set[str], inputs: GraphSizes, width: int
) -> GraphCount:
    taken = [entry for entry in steps if entry.signature is not None]
    made = sum(value.elements for entry in taken for value in entry.makes)
    weights = sum(_weights_read(entry.signature) for entry in taken)
    fed = sum(math.prod(shape) for shape in inputs.shapes.values())
    return GraphCount(
        sum(_operations(entry) for entry in taken),
        width * (weights + fed + made),
        width * made,
        [width * elements for elements in alive_elements(steps, results)],
    )


def _operations(entry: GraphStep) -> int:
    signature = entry.signature
    if signature is None:
        return 0
    if signature.op_class == "sdpa":
        scores = signature.groups * signature.m * signature.n
        return 2 * signature.macs + (_SOFTMAX + signature.kernel) * scores
    if signature.op_class == "pool":
        return sum(value.elements for value in entry.reads)  # axes are constants
    return 2 * signature.macs + _EACH.get(signature.op_class, 0) * signature.output_elements


def _weights_read(signature: OperatorSignature | None) -> int:
    return 0 if signature is None else signature.weight_elements
