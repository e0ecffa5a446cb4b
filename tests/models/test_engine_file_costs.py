"""What a pass of an engine's own files costs, TensorFlow Lite's and ncnn's, counted by hand."""

import subprocess
import sys
from collections.abc import Mapping, Sequence

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import ncnn_model
import tflite_model
from accelbench.core.case import Shapes
from accelbench.models.cost import cost
from accelbench.models.file_models.given_inputs import parse_inputs
from accelbench.models.file_models.models import model_of_file
from accelbench.models.graph_files.costs import count_file
from accelbench.models.graph_files.steps import UntracedError

CODES, KINDS = schema.BuiltinOperator, schema.BuiltinOptions
#: Tensors by name: a shape, and whether it is a weight.
Tensors = Mapping[str, tuple[Sequence[int], bool]]


def options(kind, **fields):
    made = getattr(schema, f"{kind}T")()
    for name, value in fields.items():
        setattr(made, name, value)
    return getattr(KINDS, kind), made


def lite(path, tensors, layers, sizes=()):
    """A model whose first tensor is its input; the results of its last layer are its outputs."""
    names, model = list(tensors), schema.ModelT()
    model.version, model.buffers, model.operatorCodes = 3, [schema.BufferT()], []
    graph = schema.SubGraphT()
    graph.tensors, graph.operators = [], []
    for name, (shape, weight) in tensors.items():
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = name, list(shape), 0
        tensor.type = schema.TensorType.FLOAT32
        if weight:
            buffer = schema.BufferT()
            values = np.zeros(shape, np.float32)
            if name == "sizes":
                values, tensor.type = np.array(sizes, np.int32), schema.TensorType.INT32
            buffer.data = np.frombuffer(values.tobytes(), np.uint8)
            model.buffers.append(buffer)
            tensor.buffer = len(model.buffers) - 1
        else:
            tensor.shapeSignature = [-1, *shape[1:]]
        graph.tensors.append(tensor)
    for code, reads, made, (kind, fields) in layers:
        entry, named = schema.OperatorT(), schema.OperatorCodeT()
        named.builtinCode = getattr(CODES, code)
        named.deprecatedBuiltinCode, named.version = min(named.builtinCode, 127), 1
        entry.opcodeIndex = len(model.operatorCodes)
        entry.inputs = [names.index(name) for name in reads]
        entry.outputs = [names.index(made)]
        entry.builtinOptionsType, entry.builtinOptions = kind, fields
        graph.operators.append(entry)
        model.operatorCodes.append(named)
    graph.inputs, graph.outputs = [0], [names.index(layers[-1][2])]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def test_operators_of_tensorflow_lite_are_counted(tmp_path):
    relu = schema.ActivationFunctionType.RELU
    strided = {"padding": 0, "strideW": 2, "strideH": 2}
    path = lite(
        tmp_path / "net.tflite",
        {
            "x": ((1, 8, 8, 3), False), "k": ((16, 3, 3, 3), True), "c": ((1, 4, 4, 16), False),
            "d": ((1, 3, 3, 16), True), "e": ((1, 4, 4, 16), False),
            "p": ((1, 1, 1, 16), False), "w": ((10, 16), True), "y": ((1, 10), False),
            "s": ((1, 10), False), "b": ((16,), True), "o": ((10,), True),
        },
        [
            ("CONV_2D", ["x", "k", "b"], "c",
             options("Conv2DOptions", fusedActivationFunction=relu, dilationWFactor=1,
                     dilationHFactor=1, **strided)),
            ("DEPTHWISE_CONV_2D", ["c", "d", "b"], "e",
             options("DepthwiseConv2DOptions", padding=0, strideW=1, strideH=1, depthMultiplier=1,
                     dilationWFactor=1, dilationHFactor=1)),
            ("AVERAGE_POOL_2D", ["e"], "p",
             options("Pool2DOptions", padding=1, strideW=4, strideH=4, filterWidth=4,
                     filterHeight=4)),
            ("FULLY_CONNECTED", ["p", "w", "o"], "y", options("FullyConnectedOptions")),
            ("SOFTMAX", ["y"], "s", options("SoftmaxOptions", beta=1.0)),
        ],
    )  # fmt: skip
    found = count_file(path, "tflite", {})["forward"]["fp32"]
    places = 4 * 4
    each = 2 * places * 16 * 27 + 16 * places  # the convolution, and what it puts on its result
    each += 2 * places * 16 * 9 + 16 * places  # by channel; a mean reads all of it
    each += 2 * 16 * 10 + 4 * 10
    assert found["flops"] == [[0], [each]]
    made = 8 * 8 * 3 + 3 * 16 * places + 16 + 10 + 10
    weights = 16 * 27 + 16 * 9 + 160
    assert found["bytes_moved"] == [[4 * weights], [4 * made]]
    assert found["weight_bytes"] == 4 * (weights + 16 + 10)


def test_a_transposed_convolution_multiplies_what_it_reads(tmp_path):
    path = lite(
        tmp_path / "net.tflite",
        {
            "x": ((1, 4, 4, 3), False), "sizes": ((4,), True), "k": ((5, 2, 2, 3), True),
            "y": ((1, 8, 8, 5), False),
        },
        [("TRANSPOSE_CONV", ["sizes", "k", "x"], "y",
          options("TransposeConvOptions", padding=1, strideW=2, strideH=2))],
        sizes=(1, 8, 8, 5),
    )  # fmt: skip
    found = count_file(path, "tflite", {"x": [1, 4, 4, 3]})["forward"]["fp32"]
    assert found["flops"] == [[2 * 4 * 4 * 3 * 5 * 4], [0]]


def test_an_operator_that_no_rule_counts_is_named(tmp_path):
    path = lite(
        tmp_path / "net.tflite",
        {"x": ((1, 8), False), "y": ((1, 8), False)},
        [("SIGN", ["x"], "y", (0, None)), ("ATAN2", ["x", "x"], "y", (0, None))],
    )
    with pytest.raises(UntracedError, match=r"No rule counts its operators ATAN2\."):
        count_file(path, "tflite", {})


NCNN = """7767517
6 6
Input                 in0  0 1 in0 0=8 1=8 2=3
Convolution           c    1 1 in0 1 0=16 1=3 4=1 3=2 5=0 6=432 9=1
ConvolutionDepthWise  d    1 1 1 2 0=16 1=3 4=1 5=0 6=144 7=16
Deconvolution         e    1 1 2 3 0=5 1=2 3=2 5=0 6=320
Pooling               p    1 1 3 4 0=1 4=1
InnerProduct          f    1 1 4 out0 0=10 1=0 2=50
"""


def test_layers_of_ncnn_are_counted(tmp_path):
    path = tmp_path / "net.param"
    path.write_text(NCNN, encoding="utf-8")
    parts = [np.zeros(1 + size, np.float32) for size in (432, 144, 320, 50)]  # each with its tag
    path.with_suffix(".bin").write_bytes(b"".join(part.tobytes() for part in parts))
    found = count_file(path, "ncnn", {"in0": ["batch", 3, 8, 8]})["forward"]["fp32"]
    places = 4 * 4
    each = 2 * places * 16 * 27 + 16 * places + 2 * places * 16 * 9
    each += 2 * places * 16 * 5 * 4 + 5 * 8 * 8 + 2 * 5 * 10
    assert found["flops"] == [[0], [each]]
    made = 3 * 8 * 8 + 3 * 16 * places + 5 * 8 * 8 + 5 + 10
    assert found["bytes_moved"] == [[4 * 946], [4 * made]]
    assert found["weight_bytes"] == 4 * 946


def test_sizes_of_an_ncnn_network_are_those_that_are_said_of_an_item(tmp_path):
    """The file's own 16 were counted, or nothing was and the command ended by a fault of ours."""
    stated = ncnn_model.write(tmp_path / "stated.param", sizes="0=16 1=16 2=3")
    free = ncnn_model.write(tmp_path / "free.param")
    for path in (stated, free):
        for shape in ("[3,32,32]", "[batch,3,32,32]"):
            model = model_of_file(str(path), parse_inputs([f"in0={shape}"]))
            found = cost(model, Shapes(2), "fp32")
            assert found.flops == 2 * (2 * 8 * 27 * 1024 + 2 * 8 * 1024 + 2 * 8 * 4)
    with pytest.raises(UntracedError, match="other axes"):
        count_file(stated, "ncnn", {"in0": [3, 32]})


def test_sizes_of_a_large_input_are_found_on_zeros_that_are_still_there(tmp_path):
    """An array of some 128 kB and more is unmapped once nothing keeps it: SIGSEGV at 224 pixels."""
    path = ncnn_model.write(tmp_path / "net.param")
    code = (
        "from pathlib import Path; from accelbench_ncnn.reader import *;"
        f"print(item_shapes(Path({str(path)!r}), {{'in0': ('float32', (3, 224, 224))}})['1'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "(8, 224, 224)")


def test_what_both_cost_is_a_models_own(tmp_path):
    layers = model_of_file(str(tflite_model.write(tmp_path / "net.tflite")))
    found = cost(layers, Shapes(4), "fp32")
    assert found.flops == 4 * (2 * 16 * 32 + 32 + 2 * 32 * 4)
    network = model_of_file(str(ncnn_model.write(tmp_path / "net.param")))
    at_32 = cost(network, Shapes(2, image=32), "fp32")
    assert at_32.flops == 2 * (2 * 8 * 27 * 1024 + 2 * 8 * 1024 + 2 * 8 * 4)
