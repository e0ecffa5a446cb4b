"""Quantising: calibrated with seeded inputs of its own; masks softened; sizes left alone."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from accelbench.core.errors import CaseError
from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts import external, quantising
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.quantising import CALIBRATION_BATCHES, calibration, seeds
from accelbench.engines.artifacts.recipe import Recipe
from artifact_makers import by_engine, case_of, inputs_of, made
from kept_artefacts import kept_artefacts

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(nodes, constants, shape=None):
    """x goes in and y comes out."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, shape or [2, 3])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    # A version that every ONNX Runtime of the range reads.
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def constants_of(model):
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def test_masks_are_softened_and_nothing_else():
    lowest = np.finfo(np.float32).min
    attribute = numpy_helper.from_array(np.array([-np.inf], np.float32), "c")
    model = model_of(
        [helper.make_node("Constant", [], ["c"], value=attribute)],
        {
            "mask": np.array([0.0, lowest, -1.5], np.float32),
            "weights": np.array([-1e8, 2.0], np.float32),
            "ids": np.array([-(2**40)], np.int64),
            "empty": np.zeros((0,), np.float32),
            "large": np.full((1100, 1100), lowest, np.float32),
        },
    )
    assert quantising.soften(model) == 3
    found = constants_of(model)
    assert found["mask"].tolist() == [0.0, -30.0, -1.5]
    assert found["weights"].tolist() == [-1e8, 2.0]
    assert found["ids"].tolist() == [-(2**40)]
    assert (found["large"] == -30).all()
    inside = numpy_helper.to_array(model.graph.node[0].attribute[0].t)
    assert inside.tolist() == [-30.0]
    assert quantising.soften(model) == 0


def test_what_becomes_an_index_or_a_size_is_spared():
    model = model_of(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], "product"),
            helper.make_node("Log", ["h"], ["l"], "log"),
            helper.make_node("Mul", ["l", "two"], ["m"]),  # without a name: it gets one
            helper.make_node("Cast", ["m"], ["i"], "cast", to=INT64),
            helper.make_node("Cast", ["x"], ["f"], "to float", to=FLOAT),
            helper.make_node("Mul", ["size", "two"], ["scales"], "scales"),
            helper.make_node("Resize", ["x", "", "scales"], ["y"], "resize"),
            helper.make_node("Add", ["h", "h"], ["z"], "another"),
        ],
        {"w": np.ones((3, 3), np.float32), "two": np.float32(2), "size": np.ones(2, np.float32)},
    )
    assert sorted(quantising.spared(model)) == ["Mul_2", "log", "scales"]


def test_products_of_two_computed_values_are_attention():
    products = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "weighted"),
        helper.make_node("MatMul", ["w", "x"], ["b"], "weighted too"),
    ]
    weights = {"w": np.ones((3, 3), np.float32)}
    plain = quantising.chosen(model_of(products, weights))
    assert plain.operators is None
    assert plain.words == "everything"
    attends = helper.make_node("MatMul", ["a", "b"], ["y"], "scores")
    choice = quantising.chosen(model_of([*products, attends], weights))
    assert choice.operators is not None
    assert "Add" not in choice.operators
    assert "MatMul" in choice.operators
    assert list(choice.without) == ["scores"]


def test_weights_that_are_picked_and_turned_are_weights_still():
    model = model_of(
        [
            helper.make_node("Gather", ["experts", "which"], ["picked"], "pick"),
            helper.make_node("Transpose", ["picked"], ["turned"], "turn"),
            helper.make_node("MatMul", ["x", "turned"], ["a"], "an expert"),
            helper.make_node("Gather", ["a", "which"], ["few"], "of what is computed"),
            helper.make_node("MatMul", ["a", "few"], ["y"], "scores"),
        ],
        {"experts": np.ones((2, 3, 3), np.float32), "which": np.int64(1)},
    )
    assert quantising.attention(model) == ["scores"]


def test_a_bias_is_nobody_elses():
    model = model_of(
        [
            helper.make_node("Gemm", ["x", "w", "zero"], ["a"], "one"),
            helper.make_node("Gemm", ["a", "w", "zero"], ["b"], "two"),
            helper.make_node("Add", ["b", "zero"], ["y"], "sum"),
            helper.make_node("Gemm", ["a", "w", "alone"], ["c"], "three"),
        ],
        {
            "w": np.ones((3, 3), np.float32),
            "zero": np.zeros(3, np.float32),
            "alone": np.ones(3, np.float32),
        },
    )
    assert quantising.unshare(model) == 2
    biases = [node.input[2] for node in model.graph.node if node.op_type == "Gemm"]
    assert len({*biases, "zero"}) == 4
    assert "alone" in biases
    assert all(constants_of(model)[name].shape == (3,) for name in biases)


def test_constant_weights_of_gemms_are_stored_with_output_channels_first():
    """Chromium's WebNN builds no graph whose scales are along the second axis."""
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    model = model_of(
        [
            helper.make_node("Gemm", ["x", "turned"], ["a"], "first"),
            helper.make_node("Gemm", ["x", "right"], ["b"], "second", transB=1),
            helper.make_node("Gemm", ["x", "shared"], ["c"], "third"),
            helper.make_node("MatMul", ["x", "shared"], ["y"], "fourth"),
        ],
        {"turned": weights, "right": weights, "shared": weights},
    )
    assert quantising.transpose_weights(model) == 1
    constants = constants_of(model)
    assert np.array_equal(constants["turned"], weights.T)
    assert np.array_equal(constants["right"], weights)
    assert np.array_equal(constants["shared"], weights)
    first = model.graph.node[0]
    assert [(held.name, held.i) for held in first.attribute] == [("transB", 1)]


def test_folding_computes_what_depends_on_nothing(tmp_path):
    model = model_of(
        [
            helper.make_node("Transpose", ["w"], ["t"], "turn"),
            helper.make_node("MatMul", ["x", "t"], ["y"], "product"),
        ],
        {"w": np.arange(1200, dtype=np.float32).reshape(400, 3)},
    )
    external.save(model, tmp_path / "in.onnx", "in.data")
    quantising.fold(tmp_path / "in.onnx", tmp_path / "out.onnx")
    folded = onnx.load(str(tmp_path / "out.onnx"))
    assert [node.op_type for node in folded.graph.node] == ["MatMul"]
    (weights,) = constants_of(folded).values()
    assert np.array_equal(weights, np.arange(1200, dtype=np.float32).reshape(400, 3).T)
    # Beside the graph, where two gigabytes are not the end.
    assert (tmp_path / "out.onnx").stat().st_size < 1200
    assert (tmp_path / "out.data").stat().st_size >= 4800


def recipe(model="resnet-tiny", seed=0, kind="onnx-int8"):
    return Recipe(case_of(model), ArtifactFormat(kind), seed=seed)


def test_calibration_is_seeded_and_never_with_what_is_measured():
    manifest = made("resnet-tiny").manifest
    first, again = (list(calibration(recipe(), manifest)) for _ in "ab")
    assert len(first) == CALIBRATION_BATCHES
    for one, other in zip(first, again, strict=True):
        assert one.keys() == other.keys() == {"pixel_values"}
        assert np.array_equal(one["pixel_values"], other["pixel_values"])
    values = [batch["pixel_values"] for batch in first]
    assert len({value.tobytes() for value in values}) == CALIBRATION_BATCHES
    usual = seeds(recipe())
    assert len(set(usual)) == CALIBRATION_BATCHES
    unlucky = seeds(recipe(seed=usual[3]))
    assert len(set(unlucky)) == CALIBRATION_BATCHES
    assert usual[3] not in unlucky


def test_a_batch_and_bits_of_quantising():
    batch = next(calibration(recipe(), made("resnet-tiny", static=True).manifest))
    assert batch["pixel_values"].shape[0] == 2

    kept = made("resnet-tiny", "onnx-int8")
    model = onnx.load(str(kept.folder / kept.manifest.file))
    tensors = constants_of(model).values()
    int8 = sum(one.size for one in tensors if one.dtype == np.int8)
    floats = sum(one.size for one in tensors if one.dtype == np.float32)
    assert int8 > 0.9 * case_of("resnet-tiny").model.parameters
    assert floats < 0.05 * int8


@pytest.mark.parametrize(
    ("model", "kind", "whole"),
    [
        ("resnet-tiny", "onnx-int8", True),
        ("bert-tiny", "onnx-int8", False),
        ("t5-tiny", "onnx-int8", False),
        ("bert-tiny", "onnx-qnn-int8", False),
    ],
)
def test_a_quantised_model_is_near_its_own_and_says_how_it_was_made(model, kind, whole):
    kept = made(model, kind, static="qnn" in kind)
    arrays, others = inputs_of(model), inputs_of(model, seed=6)
    right, found = by_engine(made(model), arrays), by_engine(kept, arrays)
    moved = by_engine(made(model), others)
    for name in right:
        error = np.sqrt(np.mean((found[name] - right[name]) ** 2))
        assert 0 < error < 0.15 * np.sqrt(np.mean((moved[name] - right[name]) ** 2))
    said = kept.manifest.quantiser
    assert said["quantised"] == ("everything" if whole else "products with weights")
    assert said["calibration"]["source"] == "seeded"
    assert said["calibration"]["batches"] == CALIBRATION_BATCHES
    assert kept.manifest.versions["onnxruntime"]
    assert set(kept.manifest.seconds) == {"onnx", kind}
    left = {path.name for path in kept.folder.iterdir() if path.is_dir()}
    assert not left


def test_half_precision_keeps_its_doors_in_fp32():
    kept = made("resnet-tiny", "onnx-fp16")
    model = onnx.load(str(kept.folder / kept.manifest.file))
    doors = [*model.graph.input, *model.graph.output]
    assert {one.type.tensor_type.elem_type for one in doors} == {FLOAT}
    large = [one for one in constants_of(model).values() if one.size > 100]
    assert {one.dtype for one in large} == {np.dtype(np.float16)}
    arrays = inputs_of("resnet-tiny")
    right, found = by_engine(made("resnet-tiny"), arrays), by_engine(kept, arrays)
    assert np.abs(right["logits"] - found["logits"]).max() < 0.02 * np.abs(right["logits"]).max()


def test_a_tool_that_fails_is_an_error_of_the_case(monkeypatch):
    def fail(*_):
        raise ValueError("this graph is too strange\nat length")

    monkeypatch.setattr(quantising, "fold", fail)
    asked = recipe(kind="onnx-qnn-int8")
    with pytest.raises(CaseError) as raised:
        make(asked, kept_artefacts())
    assert raised.value.reason == "conversion_failed"
    assert "too strange" in raised.value.message
    assert kept_artefacts().find(asked.key) is None
