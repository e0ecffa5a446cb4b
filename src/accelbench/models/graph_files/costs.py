"""Cost of a pass of a file's graph, as in `costs.json`.

Products are counted whole, multiply and add apart; other operations by `op_costs`. Every value is
assumed as wide as the precision: ids, masks and sizes too, which are few. The tracer sees attention
whole, GELU as one operation and a bias as part of its product; a file has them in parts, which are
joined here.

The graph in a file, by its format; readers are imported on use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from accelbench.core.model import FileFormat
from accelbench.models.file_models.given_inputs import BATCH, IMAGE, SEQUENCE, named_sizes
from accelbench.models.file_models.kinds import FileRefusedError, reader_of
from accelbench.models.graph_files.steps import (
    FileInput,
    GraphSizes,
    GraphStep,
    GraphValue,
    UntracedError,
    alive_elements,
    attention,
    consumers_of,
    moving,
    with_signature,
)
from accelbench.models.polynomials import DEFAULT_SIZES, InexactError, Rule, exact, fit

TORCH_EXPORT = "torch.export"
_GRAPHS = {
    "onnx": "onnx_graph:OnnxGraph",
    "openvino": "openvino_graph:OpenvinoGraph",
    "tflite": "tflite_graph:TfliteGraph",
    TORCH_EXPORT: "torch_export_graph:TorchExportGraph",
}


def graph_name(kind: FileFormat) -> str:
    """Return what graphs of a format are called in answers."""
    return TORCH_EXPORT if kind is FileFormat.PT2 else kind


class FileGraph(Protocol):
    """A graph of any format."""

    inputs: tuple[FileInput, ...]  # what it is fed
    weights: int  # elements of its weights
    precision: str  # what most of them are stored in
    operators: int  # how many it has

    def steps(self, sizes: GraphSizes) -> tuple[list[GraphStep], set[str]]:
        """Return its steps at some sizes, and the names of its results."""


def open_graph(path: Path, kind: str) -> FileGraph:
    """Return the graph of a file, or raise UntracedError if its operators are not known."""
    module, _, name = _GRAPHS.get(kind, "").partition(":")
    read = (
        getattr(import_module(f"accelbench.models.graph_files.{module}"), name)
        if module
        else reader_of(FileFormat(kind)).graph
    )
    try:
        made: FileGraph = read(path)
    except FileRefusedError as error:
        raise UntracedError(error.message, error.advice) from error
    return made


#: Between a product and its softmax, or after it: scaling, masks, and what looks for NaN.
_BETWEEN = {"elt", "act", "copy", ""}
#: So many steps lie between them at most.
_FARTHEST = 8
_ERF = {"Erf", "erf"}
_SIGMOIDS = {"Sigmoid", "HardSigmoid"}


def fuse_steps(steps: Sequence[GraphStep], results: set[str]) -> list[GraphStep]:
    """Return the steps of a graph with those joined that engines make one; its results stay."""
    joined: dict[int, GraphStep | None] = {}
    for rule in (_attentions, _activations, _biases):
        joined |= rule(steps, consumers_of(steps), results, set(joined))
    return [
        entry
        for number, plain in enumerate(steps)
        if (entry := joined.get(number, plain)) is not None
    ]


Joined = dict[int, GraphStep | None]
Readers = Mapping[str, list[int]]


def _attentions(
    steps: Sequence[GraphStep], readers: Readers, results: set[str], _taken: set[int]
) -> Joined:
    makers = {value.name: n for n, entry in enumerate(steps) for value in entry.makes}
    joined: Joined = {}
    for number, entry in enumerate(steps):
        if entry.op_class != "softmax" or not entry.reads:
            continue
        size = entry.makes[0].elements
        before = _first_product(steps, makers, entry, size)
        after = _second_product(steps, readers, entry, size)
        if before is None or after is None:
            continue
        scores, between = before
        last, further = after
        inside = {scores, number, *between, *further}
        if _is_seen_outside(steps, readers, results, inside, last):
            continue
        scalings = _scalings(steps, readers, makers, scores)
        operands = [steps[scalings[v.name]].reads[0] if v.name in scalings else v
                    for v in steps[scores].reads]  # fmt: skip
        joined |= dict.fromkeys([*inside, *scalings.values()])
        joined[last] = _whole(steps, (scores, last), between, further, number, operands)
    return joined


def _scalings(
    steps: Sequence[GraphStep], readers: Readers, makers: Mapping[str, int], scores: int
) -> dict[str, int]:
    found = {}
    for value in steps[scores].reads:
        maker = makers.get(value.name)
        if maker is None or len(readers[value.name]) > 1:
            continue
        if steps[maker].op_class == "elt" and len(steps[maker].reads) == 1:
            found[value.name] = maker
    return found


def _whole(
    steps: Sequence[GraphStep],
    products: tuple[int, int],
    between: Sequence[int],
    further: Sequence[int],
    softmax: int,
    operands: Sequence[GraphValue],
) -> GraphStep:
    scores, last = products
    first, second = steps[scores].signature, steps[last].signature
    assert first is not None
    assert second is not None
    masked = any(len(steps[n].reads) > 1 for n in between)
    signature = attention(
        (first.m, first.k), (first.n, first.k), second.n, heads=first.groups, masked=masked
    )
    shares = {value.name for number in (*further, softmax) for value in steps[number].makes}
    values = [value for value in steps[last].reads if value.name not in shares]
    return GraphStep("attention", (*operands, *values), steps[last].makes, signature)


def _first_product(
    steps: Sequence[GraphStep], makers: Mapping[str, int], entry: GraphStep, size: int
) -> tuple[int, list[int]] | None:
    waiting = [(value, 0) for value in entry.reads]
    between: list[int] = []
    while waiting:
        value, far = waiting.pop(0)
        number = makers.get(value.name)
        if number is None or value.elements != size or far > _FARTHEST:
            continue
        if steps[number].op_class == "bmm":
            return number, between
        if steps[number].op_class in _BETWEEN:
            between.append(number)
            waiting += [(read, far + 1) for read in steps[number].reads]
    return None


def _second_product(
    steps: Sequence[GraphStep], readers: Readers, entry: GraphStep, size: int
) -> tuple[int, list[int]] | None:
    waiting = [(entry.makes[0], 0)]
    between: list[int] = []
    while waiting:
        value, far = waiting.pop(0)
        if value.elements != size or far > _FARTHEST:
            continue
        for number in readers.get(value.name, ()):
            if steps[number].op_class == "bmm":
                return number, between
            if steps[number].op_class in _BETWEEN and number not in between:
                between.append(number)
                waiting += [(made, far + 1) for made in steps[number].makes]
    return None


def _is_seen_outside(
    steps: Sequence[GraphStep], readers: Readers, results: set[str], inside: set[int], last: int
) -> bool:
    made = [value.name for number in inside for value in steps[number].makes]
    return any(
        name in results or any(n not in inside and n != last for n in readers.get(name, ()))
        for name in made
    )


def _activations(
    steps: Sequence[GraphStep], readers: Readers, results: set[str], taken: set[int]
) -> Joined:
    """Join GELU by its error function, and SiLU: the steps from the first to the last product."""
    makers = {value.name: n for n, entry in enumerate(steps) for value in entry.makes}
    joined: Joined = {}
    for number, entry in enumerate(steps):
        if number in taken or not entry.reads:
            continue
        source: GraphValue = entry.reads[0]
        inside = {number}
        if entry.operator in _ERF:
            before = makers.get(source.name)
            scaled = before is not None and steps[before].op_class == "elt"
            if before is not None and scaled and len(steps[before].reads) == 1:
                inside.add(before)
                source = steps[before].reads[0]
            most = 3
        elif entry.operator in _SIGMOIDS:
            most = 1
        else:
            continue
        end = _chain(steps, readers, number, source, inside, most)
        if end == number or _is_seen_outside(steps, readers, results, inside - {end}, end):
            continue
        joined |= dict.fromkeys(inside)
        made = steps[end].makes
        joined[end] = GraphStep("activation", (source,), made, moving("act", (source,), made))
    return joined


def _chain(
    steps: Sequence[GraphStep],
    readers: Readers,
    number: int,
    source: GraphValue,
    inside: set[int],
    most: int,
) -> int:
    end = number
    for _ in range(most):
        following = readers.get(steps[end].makes[0].name, [])
        if len(following) != 1:
            break
        after = steps[following[0]]
        others = {v.name for v in after.reads} - {steps[end].makes[0].name, source.name}
        if after.op_class != "elt" or others:
            # The half of x that some exporters take first stands for x.
            break
        end = following[0]
        inside.add(end)
    return end


def _biases(
    steps: Sequence[GraphStep], readers: Readers, results: set[str], taken: set[int]
) -> Joined:
    """Join a product with weights and the sum with a constant, which is its bias."""
    joined: Joined = {}
    for number, entry in enumerate(steps):
        if number in taken or entry.op_class not in {"lin", "conv", "pw", "dw", "grp"}:
            continue
        made = entry.makes[0].name
        following = readers.get(made, [])
        if len(following) != 1 or made in results or following[0] in taken:
            continue
        after = steps[following[0]]
        if after.operator not in {"Add", "add"} or len(after.reads) != 1:
            continue
        assert entry.signature is not None
        joined[number] = None
        joined[following[0]] = with_signature(
            GraphStep(entry.operator, entry.reads, after.makes), entry.signature
        )
    return joined


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
    """Counts of one pass through a graph."""

    flops: int = 0
    bytes_moved: int = 0
    activation_bytes: int = 0
    live_bytes: list[int] = field(default_factory=list)

    @property
    def peak_activation_bytes(self) -> int:
        return max(self.live_bytes, default=0)


def count_file(path: Path, kind: str, given: Shapes) -> dict[str, Any]:
    """Return the entry of a file's model; raise UntracedError with the reason if it has none.

    `given` are the shapes of inputs that its owner bound.
    """
    graph = open_graph(path, kind)
    shapes = {entry.name: _name_sizes(entry, given.get(entry.name)) for entry in graph.inputs}
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
    walked = cache(lambda sizes: _walk_sizes(graph, shapes, dict(sizes)))
    for rule in _rules(free, short=graph.operators <= _MOST_ALONG):
        try:
            passes = {
                kind: _fit_costs(graph, walked, rule, width) for kind, width in _WIDTHS.items()
            }
            return {"forward": {"along": rule.along, "step": rule.step, **passes}}
        except (InexactError, UntracedError) as error:
            why = str(error)
    raise UntracedError(f"What it takes follows no rule in its batch: {why}")


def _rules(free: set[str], *, short: bool) -> Iterator[Rule]:
    if short:
        for name, rule in ((SEQUENCE, _SEQUENCES), (IMAGE, _IMAGES)):
            if free & set(_DEFAULTS) == {name}:
                yield rule
    yield DEFAULT_SIZES


def _fit_costs(graph: FileGraph, walked: Walk, rule: Rule, width: int) -> dict[str, Any]:
    def at(batch: int, length: int) -> GraphCount:
        along = () if rule.along is None else ((rule.along, length * rule.step),)
        return _count(*walked(((BATCH, batch), *along)), width)

    return {"weight_bytes": graph.weights * width, **exact(lambda batches: fit(at, rule, batches))}


def _name_sizes(entry: FileInput, given: Sequence[int | str] | None) -> tuple[int | str, ...]:
    if given is not None:
        # Of ncnn the sizes of an item may be said, whose batch is an axis of its own.
        whole = tuple(given) if len(given) == len(entry.shape) else (BATCH, *given)
        if len(whole) != len(entry.shape):
            raise UntracedError(f"Its input {entry.name} is said to have other axes than it has.")
        return whole
    return named_sizes(entry.shape)


def _walk_sizes(
    graph: FileGraph, shapes: Shapes, sizes: Mapping[str, int]
) -> tuple[list[GraphStep], set[str], GraphSizes]:
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
    return fuse_steps(steps, results), results, inputs


def _count(
    steps: Sequence[GraphStep], results: set[str], inputs: GraphSizes, width: int
) -> GraphCount:
    taken = [entry for entry in steps if entry.signature is not None]
    made = sum(value.elements for entry in taken for value in entry.makes)
    weights = sum(entry.signature.weight_elements for entry in taken if entry.signature)
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
