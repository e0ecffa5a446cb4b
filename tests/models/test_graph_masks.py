"""Masks of an ONNX graph are found by what the graph does with them, whatever they are called."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from accelbench.models.file_models.onnx_file import Ranges

#: From a mask in `m` and scores in `x` to what is left of the scores, as exporters write it.
Nodes = Callable[[], list[Any]]


def make(kind, reads, made, **how):
    return helper.make_node(kind, reads, [made], **how)


def added():
    """transformers: (1 - mask) * least, added."""
    return [
        make("Unsqueeze", ["m", "axes"], "wide"),
        make("Cast", ["wide"], "f", to=TensorProto.FLOAT),
        make("Sub", ["one", "f"], "left"),
        make("Mul", ["left", "least"], "bias"),
        make("Add", ["x", "bias"], "y"),
    ]


def filled_where_zero():
    """masked_fill(mask == 0, -inf)."""
    return [make("Equal", ["m", "zero"], "out"), make("Where", ["out", "least", "x"], "y")]


def kept_where_true():
    return [
        make("Cast", ["m"], "keep", to=TensorProto.BOOL),
        make("And", ["causal", "keep"], "both"),
        make("Where", ["both", "x", "spread"], "y"),
    ]


def filled_where_true():
    """torch's key_padding_mask: what is true is left out."""
    return [
        make("Cast", ["m"], "out", to=TensorProto.BOOL),
        make("Where", ["out", "least", "x"], "y"),
    ]


def filled_where_not():
    return [
        make("Cast", ["m"], "keep", to=TensorProto.BOOL),
        make("Not", ["keep"], "out"),
        make("Where", ["out", "least", "x"], "y"),
    ]


def no_mask():
    """A number that scales, and chooses between two things neither of which leaves out."""
    return [
        make("Cast", ["m"], "f", to=TensorProto.FLOAT),
        make("Mul", ["f", "one"], "scaled"),
        make("Cast", ["m"], "choose", to=TensorProto.BOOL),
        make("Where", ["choose", "scaled", "x"], "y"),
    ]


def ranges(nodes, kind):
    def constant(name, value, of):
        return numpy_helper.from_array(np.array(value, of), name)

    spread = make("Expand", ["least", "shape"], "spread")
    graph = helper.make_graph(
        [spread, *nodes()],
        "g",
        [
            helper.make_tensor_value_info("m", kind, ["batch", 4]),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            constant("one", 1.0, np.float32), constant("least", -1e4, np.float32),
            constant("zero", 0, np.int64), constant("causal", True, np.bool_),
            numpy_helper.from_array(np.array([1], np.int64), "axes"),
            numpy_helper.from_array(np.array([1, 4], np.int64), "shape"),
        ],
    )  # fmt: skip
    return Ranges(helper.make_model(graph))


@pytest.mark.parametrize(
    ("nodes", "value"),
    [
        (added, 1),
        (filled_where_zero, 1),
        (kept_where_true, 1),
        (filled_where_true, 0),
        (filled_where_not, 1),
    ],
)
def test_a_mask_leaves_nothing_out(nodes, value):
    drawn = ranges(nodes, TensorProto.INT64).of("m", "m", "int64")
    assert drawn["constant"] == value
    words = "ones" if value else "zeros"
    assert drawn["drawn"] == f"{words}: the graph uses it as a mask, and they leave nothing out"


def test_what_is_no_mask_is_not_taken_for_one():
    assert ranges(no_mask, TensorProto.INT64).of("m", "m", "int64") == {}
    assert ranges(no_mask, TensorProto.BOOL).of("m", "m", "bool") == {
        "drawn": "true and false alike"
    }
