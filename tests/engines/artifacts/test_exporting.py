"""Exports: PyTorch's names and numbers at any batch, every weight in the files once."""

import numpy as np
import onnx
import pytest

from accelbench.core.errors import CaseError
from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts import exporting
from accelbench.engines.artifacts.exporting import GRAPH, WEIGHTS
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from artifact_makers import by_engine, by_torch, case_of, inputs_of, made
from kept_artefacts import kept_artefacts

MODELS = ["bert-tiny", "resnet-tiny", "gpt2-tiny", "t5-tiny"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_another_batch_than_was_traced_gives_pytorchs_numbers(model, batch):
    arrays = inputs_of(model, batch)
    right, found = by_torch(model, arrays), by_engine(made(model), arrays)
    assert list(found) == list(right)
    for name, value in right.items():
        assert found[name].shape == value.shape
        np.testing.assert_allclose(found[name], value, atol=2e-5 * np.abs(value).max())


@pytest.mark.parametrize("model", MODELS)
def test_every_weight_is_stored_once(model):
    kept = made(model)
    bytes_ = 4 * case_of(model).model.parameters
    size = (kept.folder / WEIGHTS).stat().st_size
    assert 0.9 * bytes_ < size < 1.1 * bytes_
    assert {path.name for path in kept.folder.iterdir()} == {GRAPH, WEIGHTS, "manifest.json"}
    assert (kept.folder / GRAPH).stat().st_size < 2**20


def test_the_manifest_says_what_goes_in_and_comes_out():
    manifest = made("bert-tiny").manifest
    ids = next(one for one in manifest.inputs if one.name == "input_ids")
    assert (ids.file_name, ids.dtype, list(ids.shape)) == ("input_ids", "int64", ["batch", 16])
    assert [one.name for one in manifest.outputs] == ["last_hidden_state", "pooler_output"]
    assert manifest.batch is None
    assert manifest.weights_digest
    assert manifest.versions["torch"]
    assert manifest.seconds["onnx"] > 0


def test_names_and_batches_of_the_file():
    (one,) = made("unet-tiny").manifest.outputs
    assert (one.name, one.file_name) == ("sample", "sample_out")
    graph = onnx.load(str(made("unet-tiny").folder / GRAPH), load_external_data=False).graph
    names = [each.name for side in (graph.input, graph.output) for each in side]
    assert len(names) == len(set(names))

    kept = made("resnet-tiny", static=True)
    assert kept.manifest.batch == 2
    assert kept.manifest.inputs[0].shape[0] == 2
    graph = onnx.load(str(kept.folder / GRAPH), load_external_data=False).graph
    sizes = [size.dim_value for size in graph.input[0].type.tensor_type.shape.dim]
    assert sizes == list(kept.manifest.inputs[0].shape)
    with pytest.raises(Exception, match="Got: 3 Expected: 2"):
        by_engine(kept, inputs_of("resnet-tiny", 3))

    recipe = Recipe(case_of("resnet-tiny"), ArtifactFormat("onnx"), seed=1)
    other = make(recipe, kept_artefacts())
    assert other.manifest.weights_digest != made("resnet-tiny").manifest.weights_digest


def test_a_workaround_is_written_down_and_changes_no_number():
    kept = made("bert-tiny", workarounds=("eager_attention",))
    assert list(kept.manifest.workarounds) == ["eager_attention"]
    arrays = inputs_of("bert-tiny")
    plain, other = by_engine(made("bert-tiny"), arrays), by_engine(kept, arrays)
    assert kept.manifest.weights_digest == made("bert-tiny").manifest.weights_digest
    for name in plain:
        np.testing.assert_allclose(plain[name], other[name], atol=1e-5)


def test_what_is_there_is_not_made_again(monkeypatch):
    kept = made("resnet-tiny")
    monkeypatch.setattr(exporting, "export", None)
    again = make(Recipe(case_of("resnet-tiny", batch=7), ArtifactFormat("onnx")), kept_artefacts())
    assert again.folder == kept.folder


def test_an_exporter_that_fails_is_an_error_of_the_case(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("Exporting the operator 'aten::diff' is not supported\nmore")

    monkeypatch.setattr("torch.onnx.export", fail)
    recipe = Recipe(case_of("resnet-tiny"), ArtifactFormat("onnx"), seed=99)
    with pytest.raises(CaseError) as raised:
        make(recipe, kept_artefacts())
    assert raised.value.reason == "export_failed"
    assert "aten::diff" in raised.value.message
    assert "more" not in raised.value.message
    assert kept_artefacts().find(recipe.key) is None
