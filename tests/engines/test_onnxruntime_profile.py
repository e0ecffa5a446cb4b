"""What a profile says, from events written by hand."""

import json

import pytest

from accelbench.core.errors import CaseError
from accelbench.core.identity import to_plain
from accelbench.core.protocols import Evidence
from accelbench.engines.onnxruntime.profile import Profile, read, understood
from accelbench.engines.onnxruntime.providers import place_of
from accelbench.run.verify.precision_proof import proved

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def run(ts):
    return {"cat": "Session", "name": "model_run", "ts": ts, "dur": 90}


def node(ts, dur, op="MatMul", provider=CPU, index=0, types="float"):
    args = {
        "op_name": op,
        "provider": provider,
        "node_index": str(index),
        "input_type_shape": [{types: [2, 2]}, {"float": [2]}],
    }
    name = f"/layer.{index}/{op}_kernel_time"
    return {"cat": "Node", "name": name, "ts": ts, "dur": dur, "args": args}


def test_runs_and_loops_that_count():
    events = [run(100), node(110, 1000), node(1120, 9, "Add", CUDA, 1)]
    events += [run(2000), node(2010, 30), node(2040, 10, "Add", CUDA, 1)]
    found = understood(events)
    assert found.nodes == {CPU: 1, CUDA: 1}
    assert found.time_share == {CPU: 0.75, CUDA: 0.25}

    events = [run(0), run(100), node(110, 30), node(140, 10, "Add", CUDA, 1)]
    events += [run(200), node(210, 3000), node(3210, 10, "Add", CUDA, 1)]
    assert understood(events).time_share == {CPU: 0.75, CUDA: 0.25}
    events = [run(0), run(100), *(node(110 + 10 * i, 10) for i in range(3))]
    events += [node(140, 10, "Add", CUDA)]
    assert understood(events).time_share == {CPU: 0.75, CUDA: 0.25}
    assert understood(events).nodes == {CPU: 1, CUDA: 1}
    events = [run(0), run(100), node(110, 100, "If"), node(112, 50, "MatMul", CUDA, 1)]
    events += [node(162, 46, "MatMul", CUDA, 2)]
    assert understood(events).time_share == {CPU: 0.04, CUDA: 0.96}

    events = [run(0), run(100), node(110, 40, "Loop"), node(110, 30, "QGemm", types="uint8")]
    events += [node(150, 10, index=1)]
    found = understood(events)
    assert found.time_share == {CPU: 1.0}
    assert found.computed_in == {"int8": 0.75, "float": 0.25}


def test_what_was_left_to_the_cpu_is_named():
    one_piece = [run(0), node(1, 90, "TRTKernel_graph", CUDA)]
    details = understood(one_piece).as_details()
    assert details["computed_in"] == {}
    assert "shows none of the products" in details["computed_in_unknown"]
    events = [run(0), node(1, 9, "NonZero", CPU, 1), node(10, 9, "MatMul", CUDA, 2)]
    events += [node(20, 9, "ScatterND", CPU, 3), node(30, 9, "ScatterND", CPU, 4)]
    assert understood(events).as_details()["left_to_the_cpu"] == "ScatterND × 2, NonZero × 1"
    assert "left_to_the_cpu" not in understood([run(0), node(1, 9)]).as_details()

    details = {"left_to_the_cpu": "ScatterND × 2, NonZero × 1"}
    shares = {"webnn:0": 0.8, "cpu:0": 0.2}
    evidence = Evidence(tuple(shares), "webnn:0", shares=shares, details=details)
    with pytest.raises(CaseError, match=r"cpu:0 \(20%\): the CPU was left ScatterND × 2, NonZero"):
        proved(to_plain(evidence), "webnn:0")

    fence = {**node(110, 500), "name": "/layer.0/MatMul_fence_before"}
    thread = {"cat": "Node", "name": "x_kernel_time", "ts": 110, "dur": 5, "args": {}}
    found = understood([run(100), fence, thread, node(120, 5)])
    assert found.nodes == {CPU: 1, "": 1}
    assert found.computed_in == {"float": 1.0}

    assert understood([]) == Profile({}, {}, {})
    assert understood([run(1)]).time_share == {}
    events = [run(0), node(1, 30, "QGemm", types="uint8"), node(31, 10, index=1)]
    assert understood(events).computed_in == {"int8": 0.75, "float": 0.25}

    assert place_of(CPU, "cuda:1") == "cpu:0"
    assert place_of(CUDA, "cuda:1") == "cuda:1"
    assert place_of("TensorrtExecutionProvider", "cuda:1") == "cuda:1"
    assert place_of(CUDA, "rocm:0") == CUDA
    assert place_of("VitisAIExecutionProvider", "cuda:0") == "VitisAIExecutionProvider"


@pytest.mark.parametrize(
    ("op", "types", "said"),
    [
        ("MatMul", "float", "float"),
        ("FusedConv", "float16", "float16"),
        ("QLinearConv", "uint8", "int8"),
        ("QGemm", "uint8", "int8"),
        ("MatMulIntegerToFloat", "float", "int8"),
        ("DynamicQuantizeMatMul", "float", "int8"),
    ],
)
def test_a_product_is_computed_in_what_it_takes(op, types, said):
    events = [run(0), node(1, 10, op, types=types), node(11, 90, "Add", index=1, types="float")]
    assert understood(events).computed_in == {said: 1.0}


def test_a_file_is_read(tmp_path):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps([run(0), node(1, 10)]))
    assert read(path).as_details() == {
        "provider_nodes": {CPU: 1},
        "provider_time_share": {CPU: 1.0},
        "computed_in": {"float": 1.0},
    }
