"""What the NPU's nodes took, by QNN's own profiler, and the graphs that QNN was handed.

ONNX Runtime sees the whole graph as one node. QNN counts the cycles of each of its own nodes, and
the cycles and time of the whole: a node's share of the cycles is its share of that time. The graphs
that the provider composes, written as JSON, have the type of every tensor: so it is not the file
that says what a product was computed in, but what the NPU's compiler was given.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.profile import OperatorTime
from accelbench.engines.shared.local import shares

NAME = "QNN's profiler"
REMARK = (
    "Shares of the NPU's cycles, in parts of the time that QNN says its graph took. What they"
    " leave of the step is ONNX Runtime's and the way to the NPU and back."
)
EMULATED = " The NPU is emulated: these cycles are the emulation's, and no device's."

_CYCLES, _MICROSECONDS = "CYCLES", "US"
_WHOLE_CYCLES = "Accelerator (execute) time (cycles)"
_WHOLE_TIME = "Accelerator (execute) time"


def options(path: Path) -> dict[str, str]:
    """Return the provider's options that have the file written."""
    return {"profiling_level": "detailed", "profiling_file_path": str(path)}


def types_of(folder: Path) -> dict[str, str]:
    """Return what each node of the graphs does that were dumped into a folder."""
    bodies = (json.loads(path.read_text(encoding="utf-8")) for path in folder.rglob("*.json"))
    graphs = (body["graph"]["nodes"] for body in bodies if "nodes" in body.get("graph", ()))
    return {name: str(node["type"]) for graph in graphs for name, node in graph.items()}


def read(path: Path, types: Mapping[str, str], steps: int, device: str) -> list[OperatorTime]:
    """Return the nodes of the last so many runs of a file."""
    with path.open(newline="", encoding="utf-8") as stream:
        runs = list(understood(csv.DictReader(stream), types, device))
    return [node for run in runs[-steps:] for node in run]


def understood(
    rows: Iterable[Mapping[str, str]], types: Mapping[str, str], device: str
) -> Iterator[list[OperatorTime]]:
    """Yield the nodes of each run: rows of cycles, and then the run's whole time."""
    nodes: list[tuple[str, int]] = []
    whole = 0
    for row in rows:
        event, unit, value = row["Event Identifier"], row["Unit of Measurement"], int(row["Time"])
        if row["Message"] == "NODE" and unit == _CYCLES:
            nodes.append((_name(event), value))
        elif event == _WHOLE_CYCLES:
            nodes, whole = [], value  # another run begins
        elif event == _WHOLE_TIME and unit == _MICROSECONDS and whole:
            ns = value * 1e3 / whole
            yield [
                OperatorTime(name, types.get(name, name), cycles * ns, where=device)
                for name, cycles in nodes
            ]


def _name(event: str) -> str:
    # "/encoder/Conv:OpId_146 (cycles)" is /encoder/Conv. What QNN put between the graph and the
    # outside has no name of the graph's: "Input OpId_2".
    name, _, _ = event.partition("OpId_")
    return name.strip(": ") or "unnamed"


#: Qnn_DataType_t, of QnnTypes.h.
_TYPES = {
    0x0008: "int8", 0x0016: "int16", 0x0032: "int32", 0x0064: "int64",
    0x0108: "uint8", 0x0116: "uint16", 0x0132: "uint32", 0x0164: "uint64",
    0x0216: "float16", 0x0232: "float", 0x0264: "double",
    0x0304: "fixed4", 0x0308: "fixed8", 0x0316: "fixed16", 0x0332: "fixed32",
    0x0404: "fixed4", 0x0408: "fixed8", 0x0416: "fixed16", 0x0432: "fixed32",
    0x0508: "bool",
}  # fmt: skip

_PRODUCTS = frozenset(
    ("MatMul", "FullyConnected", "Conv1d", "Conv2d", "Conv3d", "DepthWiseConv1d",
     "DepthWiseConv2d", "TransposeConv1d", "TransposeConv2d", "TransposeConv3d")
)  # fmt: skip


@dataclass(frozen=True)
class Composed:
    """Operators of QNN's graphs, and in which types they multiply."""

    operators: Mapping[str, int]
    computed_in: Mapping[str, float]  # share of the multiplications of products, by type


def read_composed(folder: Path) -> Composed:
    """Read the graphs that were dumped into a folder."""
    paths = sorted(folder.rglob("*.json"))
    bodies = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    return composed_of(body["graph"] for body in bodies if "nodes" in body.get("graph", ()))


def composed_of(graphs: Iterable[Mapping[str, Any]]) -> Composed:
    """Count the operators and multiplications of graphs."""
    operators: Counter[str] = Counter()
    work: Counter[str] = Counter()
    for graph in graphs:
        tensors = graph["tensors"]
        for node in graph["nodes"].values():
            operators[node["type"]] += 1
            if node["type"] in _PRODUCTS:
                ins = [tensors[name] for name in node["input_names"]]
                out = tensors[node["output_names"][0]]
                work[_type(ins)] += _multiplications(node["type"], ins, out)
    return Composed(dict(operators), shares(work))


def _type(inputs: list[Mapping[str, Any]]) -> str:
    # int8 if both tensors are held in 8 bits.
    types = [_TYPES.get(input_["data_type"], hex(input_["data_type"])) for input_ in inputs[:2]]
    types = ["int8" if name == "fixed8" else name for name in types]
    return types[0] if len(set(types)) == 1 else " × ".join(types)


def _multiplications(kind: str, inputs: list[Mapping[str, Any]], out: Mapping[str, Any]) -> int:
    # QNN keeps a convolution's channels last.
    values: list[int] = inputs[0]["dims"]
    weights: list[int] = inputs[1]["dims"]
    made: list[int] = out["dims"]
    if kind in ("MatMul", "FullyConnected"):
        # A transposed left side is not seen on any graph of the catalogue.
        deep = weights[-1] if kind == "FullyConnected" else values[-1]
    else:
        deep = math.prod(weights) // max(weights[-1], 1)
    return math.prod(made) * deep
