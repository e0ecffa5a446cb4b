"""Steps that engines make one: attention, activations that a format spells out, and biases.

The tracer sees attention whole, GELU as one operation and a bias as part of its product. A file has
them in their parts; what is joined here is what it saw whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accelbench.catalog.graph_files.steps import (
    GraphStep,
    GraphValue,
    attention,
    consumers_of,
    moving,
    with_signature,
)

#: Between a product and its softmax, or after it: scaling, masks, and what looks for NaN.
_BETWEEN = {"elt", "act", "copy", ""}
#: So many steps lie between them at most.
_FARTHEST = 8
_ERF = {"Erf", "erf"}
_SIGMOIDS = {"Sigmoid", "HardSigmoid"}


def fused(steps: Sequence[GraphStep], results: set[str]) -> list[GraphStep]:
    """The steps with those joined that engines make one.

    Args:
        steps: of a graph, in their order.
        results: names of what the graph gives: what it gives stays.
    """
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
    """Steps that only scale an operand of the scores by a constant, by what they make."""
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
    """The product that a softmax's operand comes from, and the steps between them."""
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
    """The product that reads the shares, and the steps between."""
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
    """Whether something else reads what the fused steps make."""
    made = [value.name for number in inside for value in steps[number].makes]
    return any(
        name in results or any(n not in inside and n != last for n in readers.get(name, ()))
        for name in made
    )


def _activations(
    steps: Sequence[GraphStep], readers: Readers, results: set[str], taken: set[int]
) -> Joined:
    """GELU by its error function, and SiLU: the steps from the first to the last product."""
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
    """The last of the elementwise steps that each alone read the one before, or the source."""
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
    """A sum of a product with weights and a constant is that product's bias."""
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
