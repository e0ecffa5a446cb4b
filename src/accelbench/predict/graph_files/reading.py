"""Reading a model's file: what it is, and what its passes take, in a process that ends afterwards.

`python -m accelbench.predict.graph_files.reading FILE SIZES` prints one line of JSON. Files come
from anywhere: what their readers in C++ make of a hostile one ends that process, and not the
command.

Passes of a file's graph, as the tracer would have seen them.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from accelbench.catalog.file_models.given_inputs import BATCH, IMAGE, SEQUENCE
from accelbench.catalog.graph_files.costs import fused
from accelbench.catalog.graph_files.opening import (
    NCNN,
    ONNX,
    OPENVINO,
    TFLITE,
    TORCH_EXPORT,
    FileGraph,
    opened,
)
from accelbench.catalog.graph_files.steps import (
    GraphStep,
    OperatorSignature,
    UntracedError,
    alive_elements,
    axes_of,
    bound,
)
from accelbench.core.errors import MissingExtraError
from accelbench.core.jsonc import loads
from accelbench.core.processes import tell
from accelbench.predict.signatures import PassTrace

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


FORMATS = {
    ".onnx": ONNX,
    ".xml": OPENVINO,
    ".pt2": TORCH_EXPORT,
    ".tflite": TFLITE,
    ".param": NCNN,
}
#: Files of models that no operators are read from, and why.
_OTHERS = {
    **dict.fromkeys(
        (".pt", ".pth", ".pkl", ".ckpt"),
        "it is pickled: whoever reads that runs what is in it",
    ),
    **dict.fromkeys((".safetensors", ".bin", ".npz", ".data"), "it holds weights and no graph"),
    ".gguf": "it holds weights, and a config whose graph each engine builds for itself",
    ".pte": "an ExecuTorch program holds what each backend made of its operators, in the"
    " backend's own form",
    ".pb": "graphs of TensorFlow are not read",
    ".h5": "models of Keras are not read",
    ".keras": "models of Keras are not read",
    ".engine": "it holds compiled code, and no graph",
    ".plan": "it holds compiled code, and no graph",
    ".trt": "it holds compiled code, and no graph",
    ".mlmodel": "models of Core ML are not read",
    ".mlpackage": "models of Core ML are not read",
    ".mlmodelc": "models of Core ML are not read",
}
EXPORT_IT = (
    "Give an ONNX graph (.onnx), OpenVINO's .xml, a .pt2 of torch.export, a .tflite or a .param"
    " of ncnn."
)
#: Packages that a format is read with, and the extra that brings them.
_NEEDS = {
    ONNX: ("onnx", "onnx"),
    OPENVINO: ("openvino", "openvino"),
    TFLITE: ("ai_edge_litert", "litert"),
    NCNN: ("ncnn", "ncnn"),
}
#: What protobuf and flatbuffers can hold; XML and ncnn's text have none of the weights in them.
_LARGEST = {ONNX: 2**31, OPENVINO: 2**29, TORCH_EXPORT: 2**40, TFLITE: 2**31, NCNN: 2**26}
#: Larger values and weights are of no machine: a slip, or a file that means harm.
_MOST_ELEMENTS = 2**48
_MOST_MACS = 2**62
#: Of two items in place of one: twice the work, and a little that is done once.
_MOST_GROWTH = 2.05
_POINTER = b"version https://git-lfs"
#: The mark of a TensorFlow Lite file, after the four bytes of an offset.
_TFLITE_MARK = b"TFL3"

Sizes = Mapping[str, int | None]


def format_of(path: Path) -> str:
    """The format of a file, by its name and how it begins.

    Raises:
        UntracedError: no operators are read from such a file.
    """
    if path.suffix.lower() in _OTHERS:
        raise UntracedError(f"No operators are read from it: {_OTHERS[path.suffix.lower()]}.",
                            EXPORT_IT)  # fmt: skip
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise UntracedError(f"A file called {path.suffix or path.name} is no model's.", EXPORT_IT)
    if not path.exists():
        raise UntracedError("There is no such file.", "Check its path.")
    if not path.is_file():
        raise UntracedError("It is no file.", EXPORT_IT)
    _refuse_content(path, kind)
    return kind


def _refuse_content(path: Path, kind: str) -> None:
    """Refuse a file that begins as no file of its kind does, or is larger than any."""
    try:
        with path.open("rb") as file:
            begins, size = file.read(64), path.stat().st_size
    except OSError as error:
        raise UntracedError(f"It cannot be read: {error.strerror}.") from error
    if not size:
        raise UntracedError("It is empty.")
    if begins.startswith(_POINTER):
        raise UntracedError("It is a pointer of Git LFS, not the file itself.", "Fetch that first.")
    if size > _LARGEST[kind]:
        raise UntracedError(
            f"It is larger than {_LARGEST[kind] / 2**30:g} GiB, which no graph in {kind} is.",
            "Weights of that size lie beside it." if kind == ONNX else "",
        )
    # Four bytes of a TensorFlow Lite file are an offset, and may be any.
    pickled = begins[:1] == b"\x80" and begins[1:2] in b"\x02\x03\x04\x05"
    if pickled and kind not in {ONNX, TFLITE}:
        raise UntracedError("It is pickled: whoever reads that runs what is in it.", EXPORT_IT)
    if kind == ONNX and begins.startswith((b"PK", b"\x80", b"<")):
        raise UntracedError("It is no ONNX graph, whatever its name says.", EXPORT_IT)
    if kind == OPENVINO and not begins.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<"):
        raise UntracedError("It is no OpenVINO graph, whatever its name says.", EXPORT_IT)
    if kind == TFLITE and begins[4:8] != _TFLITE_MARK:
        raise UntracedError("It is no TensorFlow Lite model, whatever its name says.", EXPORT_IT)


def refuse_missing(kind: str) -> None:
    """Raise MissingExtraError where what reads a format is not installed."""
    package, extra = _NEEDS.get(kind, ("", ""))
    if package and find_spec(package) is None:
        raise MissingExtraError(package, extra, f"Reading a graph in {kind}")


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(path: Path, grid: Sequence[Sizes]) -> dict[str, Any]:
    """What a file says of itself, and its passes at each of some sizes.

    Raises:
        UntracedError: its operators are not known; of single sizes the answer says it.
    """
    graph = opened(path, format_of(path))
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
    joined = fused(steps, results)
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
    double = pass_of(fused(steps, results), results, graph.weights)
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
    tell(answer)


if __name__ == "__main__":
    main(sys.argv[1:])
