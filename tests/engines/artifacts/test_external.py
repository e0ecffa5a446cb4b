"""Weights beside a graph: in one file, each once, whatever files they were in before."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.external_data_helper import ExternalDataInfo, uses_external_data  # noqa: E402

from accelbench.engines.artifacts.external import SMALLEST, gather  # noqa: E402


def _scattered(folder, values):
    """A graph whose tensors are in a file each, as PyTorch writes those beyond 2 GB."""
    tensors = [numpy_helper.from_array(value, name) for name, value in values.items()]
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in values]
    outputs = [
        helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, value.shape)
        for name, value in values.items()
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [], outputs, tensors))
    onnx.save_model(
        model,
        str(folder / "model.onnx"),
        save_as_external_data=True,
        all_tensors_to_one_file=False,
        size_threshold=0,
    )
    return onnx.load(str(folder / "model.onnx"), load_external_data=False)


VALUES = {
    "large": np.arange(1000, dtype=np.float32).reshape(10, 100),
    "odd": np.arange(333, dtype=np.float32),
    "other": -np.arange(2048, dtype=np.float32),
}


def test_weights_lie_in_one_file_by_pages(tmp_path):
    model = _scattered(tmp_path, VALUES)
    gather(model, tmp_path / "model.onnx", "model.data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.data", "model.onnx"]
    again = onnx.load(str(tmp_path / "model.onnx"))
    found = {one.name: numpy_helper.to_array(one) for one in again.graph.initializer}
    assert found.keys() == VALUES.keys()
    for name, value in VALUES.items():
        np.testing.assert_array_equal(found[name], value)

    model = _scattered(tmp_path, VALUES)
    gather(model, tmp_path / "model.onnx", "model.data")
    again = onnx.load(str(tmp_path / "model.onnx"), load_external_data=False)
    infos = [ExternalDataInfo(one) for one in again.graph.initializer if uses_external_data(one)]
    assert len(infos) == len(VALUES)
    assert all(info.offset % 4096 == 0 for info in infos)


def test_what_is_in_the_graph_leaves_it_where_it_is_large(tmp_path):
    model = _scattered(tmp_path, VALUES)
    inline = {"small": np.zeros(2, dtype=np.float32), "big": np.full(SMALLEST, 3, dtype=np.float32)}
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in inline.items()
    )
    gather(model, tmp_path / "model.onnx", "model.data")
    again = onnx.load(str(tmp_path / "model.onnx"), load_external_data=False)
    outside = {one.name for one in again.graph.initializer if uses_external_data(one)}
    assert outside == {*VALUES, "big"}
    whole = onnx.load(str(tmp_path / "model.onnx"))
    big = next(one for one in whole.graph.initializer if one.name == "big")
    np.testing.assert_array_equal(numpy_helper.to_array(big), inline["big"])


def test_one_file_for_many_is_taken_apart_by_its_offsets(tmp_path):
    tensors = [numpy_helper.from_array(value, name) for name, value in VALUES.items()]
    model = helper.make_model(helper.make_graph([], "g", [], [], tensors))
    onnx.save_model(
        model, str(tmp_path / "model.onnx"), save_as_external_data=True, size_threshold=0,
        location="before.data",
    )  # fmt: skip
    loaded = onnx.load(str(tmp_path / "model.onnx"), load_external_data=False)
    gather(loaded, tmp_path / "model.onnx", "model.data")
    assert not (tmp_path / "before.data").exists()
    again = onnx.load(str(tmp_path / "model.onnx"))
    for one in again.graph.initializer:
        np.testing.assert_array_equal(numpy_helper.to_array(one), VALUES[one.name])


def test_a_file_that_ends_too_early_is_no_weights(tmp_path):
    model = _scattered(tmp_path, VALUES)
    (tmp_path / ExternalDataInfo(model.graph.initializer[1]).location).write_bytes(b"1234")
    with pytest.raises(OSError, match="ends before"):
        gather(model, tmp_path / "model.onnx", "model.data")
