"""The qnn runtime's card, and what it reads from QNN's graphs and from who took which node."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest
from array_sessions import case_of

from accelbench.core.protocols import ArtifactFormat, Device
from accelbench.engines.qnn import QnnRuntime, backend
from accelbench.engines.qnn.profile import Composed, composed_of, read_composed
from accelbench.engines.shared import refusals

RUNTIME = QnnRuntime()
NPU = Device("qnn", "an NPU")
QNN, CPU = "QNNExecutionProvider", "CPUExecutionProvider"


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    monkeypatch.setattr(refusals, "find_spec", lambda name: object())


def case(model="bert-tiny", precision="int8", **options):
    return case_of(model, precision, target="qnn/qnn", **options)


def test_it_is_what_runs_on_qnn_by_default_and_wants_every_size_fixed():
    assert RUNTIME.info.hardware == RUNTIME.info.default_for == ("qnn",)
    assert not RUNTIME.info.generates
    for precision, kind in (("int8", "onnx-qnn-int8"), ("fp16", "onnx-fp16")):
        assert RUNTIME.supports(case(precision=precision), NPU).ok
        assert RUNTIME.wants(case(precision=precision)) == ArtifactFormat(kind, static=True)


def test_only_the_emulation_is_told_what_it_is(monkeypatch, tmp_path):
    package = SimpleNamespace(get_qnn_htp_path=lambda: "/site/libQnnHtp.so")
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime_qnn", package)
    assert backend.options(emulated=False) == {"backend_path": "/site/libQnnHtp.so"}
    emulated = backend.options(emulated=True, dump=tmp_path)
    assert emulated["soc_model"] == "60"
    assert emulated["json_qnn_graph_dir"] == str(tmp_path)
    assert emulated["dump_json_qnn_graph"] == "1"


def test_an_npu_comes_before_what_else_the_provider_offers(monkeypatch):
    registered = []

    def device(kind, name=QNN):
        kind = f"OrtHardwareDeviceType.{kind}"
        return SimpleNamespace(ep_name=name, device=SimpleNamespace(type=kind))

    offered = [device("CPU", CPU), device("GPU"), device("NPU"), device("CPU")]
    engine = SimpleNamespace(
        get_ep_devices=lambda: offered if registered else offered[:1],
        register_execution_provider_library=lambda *named: registered.append(named),
    )
    modules = __import__("sys").modules
    monkeypatch.setitem(modules, "onnxruntime", engine)
    plugin = SimpleNamespace(get_library_path=lambda: "/site/plugin.so")
    monkeypatch.setitem(modules, "onnxruntime_qnn", plugin)
    for _ in range(2):
        kinds = [one.device.type.rpartition(".")[2] for one in backend.devices()]
        assert kinds == ["NPU", "GPU", "CPU"]
    assert registered == [(QNN, "/site/plugin.so")]  # a second time is an error


def test_parts_and_products_are_weighed():
    taken = {
        QNN: Counter({"MatMul": 10, "Add": 5}),
        CPU: Counter({"Einsum": 1, "QuantizeLinear": 3}),
    }
    said = backend.left_over(taken)
    assert said == "4 of 19 operators on CPUExecutionProvider (QuantizeLinear × 3, Einsum × 1)"
    assert backend.left_over({QNN: Counter({"MatMul": 1})}) == "ONNX Runtime does not say which"

    def part(provider, *operators):
        nodes = [SimpleNamespace(op_type=name) for name in operators]
        return SimpleNamespace(ep_name=provider, get_nodes=lambda: nodes)

    parts = [part(QNN, "Conv", "Relu"), part(CPU, "Shape"), part(QNN, "Conv")]
    session = SimpleNamespace(get_provider_graph_assignment_info=lambda: parts)
    assert backend.assigned(session) == {QNN: Counter(Conv=2, Relu=1), CPU: Counter(Shape=1)}

    found = composed_of(
        [
            graph(
                ("FullyConnected", [(U8, [4, 10]), (U8, [6, 10]), (0x0332, [6])], [4, 6]),  # 240
                ("ElementWiseAdd", [(F32, [9]), (F32, [9])], [9]),
            ),
            graph(("MatMul", [(F32, [4, 10]), (F32, [10, 2])], [4, 2])),  # 80
        ]
    )
    assert found.computed_in == {"int8": 0.75, "float": 0.25}
    assert found.operators == {"FullyConnected": 1, "ElementWiseAdd": 1, "MatMul": 1}

    found = composed_of(
        [
            graph(
                ("Conv2d", [(U8, [1, 8, 8, 4]), (U8, [3, 3, 4, 6])], [1, 8, 8, 6]),  # × 36
                ("DepthWiseConv2d", [(F16, [1, 8, 8, 6]), (F16, [3, 3, 1, 6])], [1, 8, 8, 6]),
            )
        ]
    )
    assert found.computed_in == {"int8": 0.8, "float16": 0.2}


U8, U16, F16, F32 = 0x0408, 0x0416, 0x0216, 0x0232


def graph(*nodes):
    """Each: an operator, its inputs as type and sizes, its output's sizes."""
    tensors = {}
    body = {}
    for number, (kind, inputs, out) in enumerate(nodes):
        names = [f"{number}.{i}" for i in range(len(inputs))]
        for name, (data_type, dims) in zip(names, inputs, strict=True):
            tensors[name] = {"data_type": data_type, "dims": dims}
        tensors[f"{number}.out"] = {"data_type": U8, "dims": out}
        made = {"type": kind, "input_names": names, "output_names": [f"{number}.out"]}
        body[f"node {number}"] = made
    return {"nodes": body, "tensors": tensors}


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        (U8, U8, "int8"),
        (U8, 0x0308, "int8"),
        (U16, U8, "fixed16 × int8"),
        (F16, F16, "float16"),
        (0x9999, F16, "0x9999 × float16"),
    ],
)
def test_a_product_is_of_both_its_types(left, right, said):
    found = composed_of([graph(("MatMul", [(left, [2, 2]), (right, [2, 2])], [2, 2]))])
    assert found.computed_in == {said: 1.0}


def test_graphs_are_read_and_the_log_beside_them_is_not(tmp_path):
    body = graph(("MatMul", [(F16, [2, 2]), (F16, [2, 2])], [2, 2]))
    (tmp_path / "a.json").write_text(json.dumps({"graph": body, "op_types": ["MatMul"]}))
    (tmp_path / "a_tensor_log.json").write_text(json.dumps({"graph": {"name": "x"}, "log": []}))
    assert read_composed(tmp_path) == Composed({"MatMul": 1}, {"float16": 1.0})
    (tmp_path / "sub").mkdir()
    assert read_composed(tmp_path / "sub") == Composed({}, {})
