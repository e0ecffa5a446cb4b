"""Reading a model's file: what it is, and what its passes take, in a process that ends afterwards.

`python -m accelbench.predict.graph_file_reading FILE SIZES` prints one line of JSON. Files come
from anywhere: what their readers in C++ make of a hostile one ends that process, and not the
command.

Passes of a file's graph, as the tracer would have seen them.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.jsonc import loads
from accelbench.core.model import FileFormat
from accelbench.core.processes import send_answer
from accelbench.models.file_models import kinds
from accelbench.models.file_models.given_inputs import BATCH, IMAGE, SEQUENCE
from accelbench.models.graph_files.costs import FileGraph, fuse_steps, graph_name, open_graph
from accelbench.models.graph_files.steps import (
    GraphStep,
    OperatorSignature,
    UntracedError,
    alive_elements,
    axes_of,
    bound,
)
from accelbench.predict.signatures import PassTrace

EXPORT_IT = (
    "Give an ONNX graph (.onnx), OpenVINO's .xml, a .pt2 of torch.export, a .tflite or a .param"
    " of ncnn."
)
#: Larger values and weights are of no machine: a slip, or a file that means harm.
_MOST_ELEMENTS = 2**48
_MOST_MACS = 2**62
#: Of two items in place of one: twice the work, and a little that is done once.
_MOST_GROWTH = 2.05
Sizes = Mapping[str, int | None]

_FP32_BYTES = 4


def pass_of(
    steps: Sequence[GraphStep], results: Iterable[str], weights: int, batch: int = 1
) -> PassTrace:
    """Return what one pass of a batch of one takes, of a graph that takes `batch` items at once."""
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


def format_of(path: Path) -> FileFormat:
    """The format of a file, by its name and how it begins.

    Raises:
        UntracedError: no operators are read from such a file.
    """
    try:
        kind = kinds.format_of(path)
    except kinds.FileRefusedError as error:
        raise UntracedError(error.message, error.advice) from error
    if kind.uncounted:
        raise UntracedError(f"No operators are read from it: {kind.uncounted}.", EXPORT_IT)
    return kind


def refuse_missing(kind: FileFormat) -> None:
    """Raise MissingExtraError where what reads a format is not installed."""
    if kind is not FileFormat.PT2:  # the JSON in it is read without torch
        kinds.refuse_missing_reader(kind, f"Reading a graph in {graph_name(kind)}")


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(path: Path, grid: Sequence[Sizes]) -> dict[str, Any]:
    """What a file says of itself, and its passes at each of some sizes.

    Raises:
        UntracedError: its operators are not known; of single sizes the answer says it.
    """
    graph = open_graph(path, graph_name(format_of(path)))
    if graph.weights > _MOST_ELEMENTS:
        raise UntracedError(f"It claims {graph.weights:,} weights, which no machine holds.")
    axes = axes_of(graph.inputs)
    passes: list[dict[str, Any]] = []
    for sizes in grid:
        try:
            passes.append(_passed(graph, {name: sizes.get(name) for name in (SEQUENCE, IMAGE)}))
        except UntracedError as error:
            passes.append({"error": error.message, "advice": error.advice})
    return {
        "axes": sorted(axes - {""}),
        "weights": graph.weights,
        "precision": graph.precision,
        "passes": passes,
    }


def _passed(graph: FileGraph, sizes: Sizes) -> dict[str, Any]:
    inputs = bound(graph.inputs, sizes)
    steps, results = graph.steps(inputs)
    if any(value.elements > _MOST_ELEMENTS for entry in steps for value in entry.makes):
        raise UntracedError("It makes values that no machine holds.")
    joined = fuse_steps(steps, results)
    taken = pass_of(joined, results, graph.weights, inputs.batch)
    if sum(signature.macs * number for signature, number in taken.signatures) > _MOST_MACS:
        raise UntracedError("It multiplies more than any machine ever will.")
    if not taken.signatures:
        raise UntracedError("Nothing in it depends on its inputs.")
    return {
        "pass": taken.to_dict(),
        "batch": None if BATCH in inputs.axes and _grows(graph, sizes, taken) else inputs.batch,
        "operators": sum(number for _, number in taken.signatures),
    }


def _grows(graph: FileGraph, sizes: Sizes, single: PassTrace) -> bool:
    """Whether a graph takes two items at once, as twice the work of one.

    Raises:
        UntracedError: two items are more than twice the work: every item is compared with every
            other, and from the work of one nothing follows for many.
    """
    inputs = bound(graph.inputs, {**sizes, BATCH: 2})
    try:
        steps, results = graph.steps(inputs)
    except UntracedError:  # its batch is free by name alone
        return False
    double = pass_of(fuse_steps(steps, results), results, graph.weights)
    for one, two in zip(_work(single), _work(double), strict=True):
        if two > _MOST_GROWTH * one:
            raise UntracedError(
                "Its work grows faster than its batch.", "Export it with a fixed batch."
            )
    return True


def _work(taken: PassTrace) -> tuple[float, float]:
    return float(taken.sums.macs.sum()), float(taken.sums.values.sum())


def main(arguments: Sequence[str]) -> None:
    """Print what a file says, or why nothing is known of it."""
    path, grid = Path(arguments[0]), loads(arguments[1])
    try:
        answer = read(path, grid)
    except UntracedError as error:
        answer = {"error": error.message, "advice": error.advice}
    except (RecursionError, MemoryError) as error:
        answer = {"error": f"It is too much for its reader ({type(error).__name__}).", "advice": ""}
    send_answer(answer)


if __name__ == "__main__":
    main(sys.argv[1:])
