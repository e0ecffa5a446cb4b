"""Graphs of operators before opset 7: opened when converted, and compared with that, named so."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from fixed_machine import CPU, models
from onnx import TensorProto, helper, numpy_helper

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UnsupportedError
from accelbench.core.formatting import add_reference
from accelbench.engines.onnxruntime.rounded_graph import converted
from accelbench.run.plan.request import Planned
from accelbench.run.verify.reference import CellReference, NoReferenceError, held_against, otherwise
from accelbench.run.verify.verification import Verifications

Array = np.ndarray[Any, Any]
X = np.random.default_rng(0).standard_normal((2, 3, 3)).astype(np.float32)
W = np.array([0.5, -1.0, 2.0], np.float32)


def old(path, kind, *, slope=True, opset=6, **how):
    """One operator of x and w; sides of x are alike, so that a wrong axis shows in values alone."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 3])]
    if not slope:
        inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "w"], ["y"], **how)],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3, 3])],
        [numpy_helper.from_array(W, "w")] if slope else [],
    )
    if slope:  # weights were inputs, too
        graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=3), str(path))
    return path


@pytest.mark.parametrize(
    ("kind", "how", "right"),
    [
        ("Add", {"broadcast": 1, "axis": 1}, X + W[:, None]),
        ("Mul", {"broadcast": 1, "axis": 1}, X * W[:, None]),
        ("Sub", {"broadcast": 1}, X - W),
        ("Add", {"broadcast": 1, "axis": 2}, X + W),
        ("Mul", {"broadcast": 1, "axis": -2}, X * W[:, None]),
        ("PRelu", {}, np.where(X > 0, X, X * W[:, None])),
    ],
)
def test_what_is_converted_means_what_it_meant(tmp_path, kind, how, right):
    made = converted(old(tmp_path / "old.onnx", kind, **how))
    assert [entry.version for entry in made.opset_import] == [7]
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(None, {"x": X})
    assert np.allclose(found, right, atol=1e-6)


def test_what_the_converter_would_change_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="a PRelu of it works on"):
        converted(old(tmp_path / "old.onnx", "PRelu", slope=False))
    with pytest.raises(UnsupportedError, match="onnx cannot convert it to opset 7"):
        converted(old(tmp_path / "old.onnx", "Greater", broadcast=1, axis=1))
    newer = old(tmp_path / "new.onnx", "Add", opset=17)
    assert converted(newer) == onnx.load(str(newer))


def test_a_converted_graph_shows_nobody_to_be_wrong():
    case = Case(models("bert-tiny")[0], Target("openvino", "openvino"), "fp32", Shapes(1, 16))
    held = Verifications()
    told = {"error": 0.9, "tolerance": 2e-4, "errors": {"y": 0.9}, "wrong": "", "telling": True}
    assert held.judge(Planned(case, CPU), told).word == "failed"
    held = Verifications()
    monkey = held.yardsticks
    monkey.of = lambda _: CellReference(1, Path("x"), other="the graph, converted")
    verdict = held.judge(Planned(case, CPU), told)
    assert verdict.word == "not_done"
    assert "which are right is not known" in verdict.why


def test_no_other_reference_where_something_else_was_missing():
    case = Case(models("bert-tiny")[0], Target("onnxruntime", "cpu"), "fp32", Shapes(1, 16))
    assert otherwise(case, NoReferenceError("no operator", "operator")) is None  # no file
    assert held_against(case) == ""
    named = add_reference("another", {"devices": ["cpu:0"], "details": {"threads": 1}})
    assert named == {"devices": ["cpu:0"], "details": {"threads": 1, "held_against": "another"}}
