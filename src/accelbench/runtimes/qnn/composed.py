"""What QNN was handed to compute, and in which types: read from its own graphs.

ONNX Runtime's provider writes each graph that it composes as JSON: operators, tensors, and
every tensor's type. So it is not the file that says what a product was computed in, but
what the NPU's compiler was given.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """What the graphs say."""

    operators: Mapping[str, int]
    computed_in: Mapping[str, float]  # share of the multiplications of products, by type


def read(folder: Path) -> Composed:
    """The graphs that were dumped into a folder."""
    paths = sorted(folder.rglob("*.json"))
    bodies = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    return understood(body["graph"] for body in bodies if "nodes" in body.get("graph", ()))


def understood(graphs: Iterable[Mapping[str, Any]]) -> Composed:
    """The same of the graphs themselves."""
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
    total = sum(work.values())
    return Composed(
        dict(operators), {name: count / total for name, count in work.items()} if total else {}
    )


def _type(inputs: list[Mapping[str, Any]]) -> str:
    """What a product of two tensors is computed in: int8 where both are held in 8 bits."""
    types = [_TYPES.get(input_["data_type"], hex(input_["data_type"])) for input_ in inputs[:2]]
    types = ["int8" if name == "fixed8" else name for name in types]
    return types[0] if len(set(types)) == 1 else " × ".join(types)


def _multiplications(kind: str, inputs: list[Mapping[str, Any]], out: Mapping[str, Any]) -> int:
    """As the sizes say; QNN keeps a convolution's channels last."""
    values: list[int] = inputs[0]["dims"]
    weights: list[int] = inputs[1]["dims"]
    made: list[int] = out["dims"]
    if kind in ("MatMul", "FullyConnected"):
        # A transposed left side is not seen on any graph of the catalogue.
        deep = weights[-1] if kind == "FullyConnected" else values[-1]
    else:
        deep = math.prod(weights) // max(weights[-1], 1)
    return math.prod(made) * deep
