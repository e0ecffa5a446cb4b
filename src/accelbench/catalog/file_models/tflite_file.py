"""What a TensorFlow Lite model is: inputs, outputs, what they may hold, what it is stored in.

The engine checks a file's tables before it reads them, and maps the weights.

Imports ai_edge_litert: import this module only in the process that looks at a file.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.catalog.file_models.tflite_layers import PRODUCTS
from accelbench.catalog.file_models.tflite_ranges import TfliteRanges
from accelbench.core.visible import in_quotes

#: How a model begins, after four bytes.
_MARK = b"TFL3"
_STORED = {
    "FLOAT32": "fp32", "FLOAT64": "fp64", "FLOAT16": "fp16", "BFLOAT16": "bf16", "INT8": "int8",
    "UINT8": "int8", "INT4": "int8",
}  # fmt: skip


def look(path: Path) -> dict[str, Any]:
    """What a file says of itself.

    Raises:
        FileRefusedError: it is no whole model, or one that cannot be fed.
    """
    content = path.read_bytes()
    if content[4:8] != _MARK:
        raise FileRefusedError("It is no TensorFlow Lite model, whatever its name says.")
    try:
        opened = Interpreter(
            model_path=str(path),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    except Exception as error:  # the engine's own, by version
        words = " ".join(str(error).split())
        raise FileRefusedError(
            f"LiteRT cannot read it: {words[:200].rstrip('.') or type(error).__name__}.",
            "Convert it again.",
        ) from error
    graph = model.subgraphs[0]
    if not graph.operators:
        raise FileRefusedError("There is no operator in it: nothing would be measured.")
    inputs, outputs = opened.get_input_details(), opened.get_output_details()
    if not inputs:
        raise FileRefusedError("It takes no input: what it gives is a constant.")
    weights = [
        tensor
        for tensor in graph.tensors
        if model.buffers[tensor.buffer].data is not None and _stored(tensor)
    ]
    names = {value: name for name, value in vars(schema.BuiltinOperator).items()}
    codes = [names.get(code.builtinCode, "") for code in model.operatorCodes]
    ranges = TfliteRanges(model, codes)
    return {
        "inputs": [_input(entry, ranges) for entry in inputs],
        "outputs": [_tensor(entry) for entry in outputs],
        "weights": sum(math.prod(map(int, _shape(tensor))) for tensor in weights),
        "precision": _precision(graph, codes, weights),
        "operators": len(graph.operators),
        "beside": [],
    }


def _stored(tensor: Any) -> str:
    names = {value: name for name, value in vars(schema.TensorType).items()}
    return _STORED.get(names.get(tensor.type, ""), "")


def _shape(tensor: Any) -> list[int]:
    return [] if tensor.shape is None else list(tensor.shape)


def _tensor(entry: dict[str, Any]) -> dict[str, Any]:
    signature = entry["shape_signature"] if len(entry["shape_signature"]) else entry["shape"]
    return {
        "name": str(entry["name"]),
        "dtype": np.dtype(entry["dtype"]).name if entry["dtype"] is not np.bytes_ else "str",
        "shape": [int(size) if size >= 0 else "" for size in signature],
    }


def _input(entry: dict[str, Any], ranges: TfliteRanges) -> dict[str, Any]:
    fields = _tensor(entry)
    if fields["dtype"] in ("str", "bytes"):
        raise FileRefusedError(
            f"Its input {in_quotes(fields['name'])} takes text, which is not drawn.",
            "Measure the part behind it: convert the model without that step.",
        )
    return fields | ranges.of(int(entry["index"]), fields["name"], fields["dtype"])


def _precision(graph: Any, codes: list[str], weights: list[Any]) -> str:
    """What most weights of its products are stored in."""
    held = {id(tensor): tensor for tensor in weights}
    counted: Counter[str] = Counter()
    for operator in graph.operators:
        if codes[operator.opcodeIndex] in PRODUCTS:
            for index in operator.inputs:
                tensor = graph.tensors[index] if index >= 0 else None
                if tensor is not None and id(tensor) in held:
                    counted[_stored(tensor)] += math.prod(map(int, _shape(tensor)))
    return counted.most_common(1)[0][0] if counted else "fp32"
