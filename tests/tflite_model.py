"""A TensorFlow Lite model of two layers, written table by table: nothing here converts to it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema


def write(path: Path, batch: int = -1, seed: int = 0) -> Path:
    """Write the model; a batch of -1 is free."""
    random = np.random.default_rng(seed)
    model = schema.ModelT()
    model.version, model.description, model.buffers = 3, b"two layers", [schema.BufferT()]
    first = max(batch, 1)

    def tensor(name: str, shape: Sequence[int], weights: bool = False) -> Any:
        made = schema.TensorT()
        made.name, made.shape, made.type, made.buffer = name, list(shape), 0, 0
        if weights:
            buffer = schema.BufferT()
            values = random.standard_normal(shape).astype(np.float32)
            buffer.data = np.frombuffer(values.tobytes(), np.uint8)
            model.buffers.append(buffer)
            made.buffer = len(model.buffers) - 1
        else:
            made.shapeSignature = [batch, *shape[1:]]
        return made

    def layer(inputs: list[int], output: int, activation: int) -> Any:
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = 0, inputs, [output]
        made.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
        made.builtinOptions = schema.FullyConnectedOptionsT()
        made.builtinOptions.fusedActivationFunction = activation
        return made

    graph = schema.SubGraphT()
    graph.name, graph.inputs, graph.outputs = "main", [0], [6]
    graph.tensors = [
        tensor("x", (first, 16)),
        tensor("w", (32, 16), True),
        tensor("b", (32,), True),
        tensor("h", (first, 32)),
        tensor("v", (4, 32), True),
        tensor("c", (4,), True),
        tensor("y", (first, 4)),
    ]
    activations = schema.ActivationFunctionType
    graph.operators = [
        layer([0, 1, 2], 3, activations.RELU),
        layer([3, 4, 5], 6, activations.NONE),
    ]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    code.version = 1
    model.operatorCodes, model.subgraphs = [code], [graph]
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def kept() -> Path:
    """The model where every process of the tests finds it."""
    folder = Path(tempfile.gettempdir()) / f"accelbench-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    path = folder / "layers.tflite"
    if not path.exists():
        write(folder / f"{os.getpid()}.tflite").replace(path)
    return path
