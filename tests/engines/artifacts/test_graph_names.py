"""Graphs that tools have named their own way are opened, optimised, and the same."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts.external import once, renamed, tidy
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.inputs import make_inputs
from artifact_makers import by_engine, by_torch, case_of, made
from kept_artefacts import kept_artefacts


def graph_of(nodes, constants):
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in ("x", "y")]
    kept = [numpy_helper.from_array(v, name) for name, v in constants.items()]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def run(model):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": np.arange(4, dtype=np.float32)})[0]


def test_constants_are_kept_once():
    cast = helper.make_node("Cast", ["x"], ["c"], name="same", to=TensorProto.FLOAT)
    total = helper.make_node("Add", ["c", "c"], ["y"])
    model = graph_of([cast, cast, total], {})
    with pytest.raises(Exception, match="same node name"):
        run(model)
    assert once(model) == 1
    np.testing.assert_array_equal(run(model), [0, 2, 4, 6])
    assert once(model) == 0

    branch = [
        helper.make_graph([helper.make_node(op, ["x", "k"], [op])], op, [], [
            helper.make_tensor_value_info(op, TensorProto.FLOAT, [4])
        ])
        for op in ("Add", "Mul")
    ]  # fmt: skip
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])
    model = graph_of([choice], {"c": np.array(False), "k": np.array(3, np.float32)})
    assert renamed(model) == 2
    assert {one.name for one in model.graph.initializer} == {"c_kept", "k_kept"}
    np.testing.assert_array_equal(run(model), [0, 3, 6, 9])

    # For one batch size ONNX Runtime writes names of its own, which it would make again.
    # At one item products become Gemm, with the shapes that it names; at two they do not.
    case = case_of("bert-tiny", batch=1)
    kept = make(Recipe(case, ArtifactFormat("onnx-fp16", static=True)), kept_artefacts())
    arrays = make_inputs(case.model, case.shapes, 0)
    found = by_engine(kept, arrays)
    for name, right in by_torch("bert-tiny", arrays).items():
        np.testing.assert_allclose(found[name], right, atol=0.02)


def test_a_detector_in_fp16_is_a_valid_graph():
    kept = made("detr-tiny", "onnx-fp16")
    model = onnx.load(str(kept.folder / kept.manifest.file))
    names = [node.name for node in model.graph.node if node.name]
    assert len(names) == len(set(names))
    before = len(model.graph.node)
    tidy(model)
    assert len(model.graph.node) == before
    arrays = make_inputs(case_of("detr-tiny").model, case_of("detr-tiny").shapes, 0)
    assert set(by_engine(kept, arrays)) == {one.name for one in kept.manifest.outputs}
