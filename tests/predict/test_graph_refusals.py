"""Graphs that no engine would run: each refused with what is wrong with it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from accelbench.models.graph_files.steps import (
    FileInput,
    UntracedError,
    refuse_uncounted,
    stored_weights,
)
from accelbench.predict.graph_file_reading import read

_DIMENSIONS = "<dim>1</dim><dim>3</dim>"
_IN = f'<input><port id="0">{_DIMENSIONS}</port></input>'
_OUT = f'<output><port id="1" precision="FP32">{_DIMENSIONS}</port></output>'
_PARAMETER = (
    '<layer id="0" name="x" type="Parameter" version="opset1">'
    f'<data shape="1,3" element_type="f32"/>{_OUT}</layer>'
)


def refusal(path: Path) -> str:
    """Why a file is not read, or its only size is not."""
    try:
        (entry,) = read(path, [{}])["passes"]
    except UntracedError as error:
        return error.message
    return str(entry["error"])


def onnx_file(folder: Path, nodes: Sequence[onnx.NodeProto], shape: Sequence[int]) -> Path:
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    gives = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [given], [gives])
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))
    return path


def openvino_file(folder: Path, body: str) -> Path:
    path = folder / "m.xml"
    path.write_text(f'<?xml version="1.0"?>\n{body}')
    return path


@pytest.mark.parametrize(
    ("shape", "says"), [([0, 3], "Dimension 0 of its input x is 0"), ([1, -3], "x is -3")]
)
def test_a_size_below_one_is_no_free_one(tmp_path, shape, says):
    path = onnx_file(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], shape)
    assert says in refusal(path)
    with pytest.raises(UntracedError, match="none is below 1"):
        FileInput("x", ("batch", 0))


def test_a_weight_of_a_size_below_zero_is_refused(tmp_path):
    path = onnx_file(tmp_path, [helper.make_node("Add", ["x", "w"], ["y"])], [1, 3])
    model = onnx.load(str(path))
    model.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[-3]))
    path.write_bytes(model.SerializeToString())
    assert "below 0" in refusal(path)


def test_a_graph_that_runs_in_a_circle_names_where(tmp_path):
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    says = refusal(onnx_file(tmp_path, nodes, [1, 3]))
    assert says.startswith("Its operator Add reads 'b', which nothing before it gives")


def test_a_program_that_reads_what_nothing_gives_names_it(tmp_path):
    values = {name: {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}]} for name in "xyb"}
    node = {
        "target": "torch.ops.aten.add.Tensor",
        "inputs": [
            {"name": "self", "arg": {"as_tensor": {"name": "x"}}},
            {"name": "other", "arg": {"as_tensor": {"name": "b"}}},
        ],
        "outputs": [{"as_tensor": {"name": "y"}}],
    }
    given = [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]
    graph = {"tensor_values": values, "nodes": [node], "outputs": [{"as_tensor": {"name": "y"}}]}
    program = {"graph_module": {"graph": graph, "signature": {"input_specs": given}}}
    with zipfile.ZipFile(tmp_path / "p.pt2", "w") as archive:
        archive.writestr("p/models/model.json", json.dumps(program))
    assert "reads 'b', which nothing before it gives" in refusal(tmp_path / "p.pt2")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('<net name="m" version="11"></net>', "There is no layer in it."),
        ('<net name="m" version="11"><layers/><edges/></net>', "There is no layer in it."),
        ("<project><name>p</name></project>", "It is XML, and no OpenVINO graph."),
    ],
)
def test_xml_without_layers_is_said_to_have_none(tmp_path, body, says):
    pytest.importorskip("openvino")
    assert refusal(openvino_file(tmp_path, body)) == says


def test_an_input_without_a_tensor_name_is_called_by_its_layers(tmp_path):
    pytest.importorskip("openvino")
    layers = (
        f'{_PARAMETER}<layer id="1" name="r" type="ReLU" version="opset1">{_IN}{_OUT}</layer>'
        f'<layer id="2" name="z" type="Result" version="opset1">{_IN}</layer>'
    )
    edges = "".join(
        f'<edge from-layer="{n}" from-port="1" to-layer="{n + 1}" to-port="0"/>' for n in (0, 1)
    )
    body = f'<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    (entry,) = read(openvino_file(tmp_path, body), [{}])["passes"]
    assert entry["operators"] == 1


def test_readers_say_alike_what_no_rule_counts_and_what_weights_are_stored_in():
    with pytest.raises(UntracedError, match=r"^No rule counts its operators A, B, C, D, E and 2 m"):
        refuse_uncounted("GABACDEF")
    refuse_uncounted([])
    assert stored_weights([("int8", 4), ("float", 3), ("float", 2)]) == (9, "float")
    assert stored_weights([]) == (0, "float")
