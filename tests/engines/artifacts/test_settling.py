"""A graph for one batch, in which no size is left to be computed."""

import onnx
import onnxruntime
import pytest

from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from artifact_makers import case_of
from kept_artefacts import kept_artefacts


@pytest.mark.parametrize("model", ["resnet-tiny", "distilbert-tiny"])
def test_its_sizes_are_numbers_and_every_engine_may_optimise_it_again(model):
    """DistilBERT's was opened by no browser: ONNX Runtime makes the names it made before."""
    recipe = Recipe(case_of(model, batch=1), ArtifactFormat("onnx-folded", static=True))
    path = str(make(recipe, kept_artefacts()).folder / "model.onnx")
    graph = onnx.load(path, load_external_data=False).graph
    sizes = [d for one in (*graph.input, *graph.output) for d in one.type.tensor_type.shape.dim]
    assert not any(size.dim_param for size in sizes)
    assert {one.type.tensor_type.shape.dim[0].dim_value for one in graph.input} == {1}
    assert not {"Shape", "ConstantOfShape", "Range"} & {node.op_type for node in graph.node}
    assert any(one.data_location == onnx.TensorProto.EXTERNAL for one in graph.initializer)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [one.shape[0] for one in session.get_inputs()] == [1] * len(graph.input)
