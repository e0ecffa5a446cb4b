"""Passes of a file's graph, as the tracer would have seen them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from accelbench.catalog.graph_files.steps import GraphStep, OperatorSignature, alive_elements
from accelbench.predict.signatures import PassTrace

_FP32_BYTES = 4


def pass_of(
    steps: Sequence[GraphStep], results: Iterable[str], weights: int, batch: int = 1
) -> PassTrace:
    """What one pass of a batch of one takes.

    Args:
        steps: of the graph, in their order.
        results: names of what the graph gives.
        weights: elements of its weights.
        batch: items that the graph takes at once, where that is fixed.
    """
    found = [entry.signature for entry in steps if entry.signature is not None]
    single = Counter(_of_one(signature, batch) for signature in found)
    peak = max(alive_elements(steps, results), default=0) * _FP32_BYTES // batch
    return PassTrace(sorted(single.items()), weights, peak)


def _of_one(signature: OperatorSignature, batch: int) -> OperatorSignature:
    if batch == 1:
        return signature
    groups = signature.groups
    if signature.op_class in {"sdpa", "bmm"}:
        groups = max(groups // batch, 1)
    return signature._replace(
        macs=signature.macs // batch,
        input_elements=signature.input_elements // batch,
        output_elements=signature.output_elements // batch,
        groups=groups,
    )
