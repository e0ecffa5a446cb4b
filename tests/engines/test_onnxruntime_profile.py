"""What a profile says, from events written by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accelbench.core.errors import CaseError
from accelbench.core.identity import plain
from accelbench.core.protocols import Evidence
from accelbench.engines.onnxruntime.profile import Profile, read, understood
from accelbench.engines.onnxruntime.providers import place_of
from accelbench.run.verify.precision_proof import proved

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def run(ts: int) -> dict[str, Any]:
    return {"cat": "Session", "name": "model_run", "ts": ts, "dur": 90}


def node(
    ts: int, dur: int, op: str = "MatMul", provider: str = CPU, index: int = 0, types: str = "float"
) -> dict[str, Any]:
    args = {
        "op_name": op,
        "provider": provider,
        "node_index": str(index),
        "input_type_shape": [{types: [2, 2]}, {"float": [2]}],
    }
    name = f"/layer.{index}/{op}_kernel_time"
    return {"cat": "Node", "name": name, "ts": ts, "dur": dur, "args": args}


def test_the_first_run_is_not_counted_by_time():
    events = [run(100), node(110, 1000), node(1120, 9, "Add", CUDA, 1)]
    events += [run(2000), node(2010, 30), node(2040, 10, "Add", CUDA, 1)]
    found = understood(events)
    assert found.nodes == {CPU: 1, CUDA: 1}
    assert found.time_share == {CPU: 0.75, CUDA: 0.25}


def test_a_run_in_which_another_process_had_the_core_does_not_count():
    events = [run(0), run(100), node(110, 30), node(140, 10, "Add", CUDA, 1)]
    events += [run(200), node(210, 3000), node(3210, 10, "Add", CUDA, 1)]
    assert understood(events).time_share == {CPU: 0.75, CUDA: 0.25}


def test_a_loops_body_counts_as_often_as_it_runs():
    events = [run(0), run(100), *(node(110 + 10 * i, 10) for i in range(3))]
    events += [node(140, 10, "Add", CUDA)]
    assert understood(events).time_share == {CPU: 0.75, CUDA: 0.25}
    assert understood(events).nodes == {CPU: 1, CUDA: 1}


def test_a_branch_on_the_cpu_with_its_body_on_the_card_is_nearly_all_on_the_card():
    events = [run(0), run(100), node(110, 100, "If"), node(112, 50, "MatMul", CUDA, 1)]
    events += [node(162, 46, "MatMul", CUDA, 2)]
    assert understood(events).time_share == {CPU: 0.04, CUDA: 0.96}


def test_a_loop_of_products_is_no_product_itself():
    events = [run(0), run(100), node(110, 40, "Loop"), node(110, 30, "QGemm", types="uint8")]
    events += [node(150, 10, index=1)]
    found = understood(events)
    assert found.time_share == {CPU: 1.0}
    assert found.computed_in == {"int8": 0.75, "float": 0.25}


def test_a_provider_that_shows_no_product_says_so():
    one_piece = [run(0), node(1, 90, "TRTKernel_graph", CUDA)]
    details = understood(one_piece).as_details()
    assert details["computed_in"] == {}
    assert "shows none of the products" in details["computed_in_unknown"]


def test_what_a_provider_left_to_the_cpu_is_named_by_operator():
    events = [run(0), node(1, 9, "NonZero", CPU, 1), node(10, 9, "MatMul", CUDA, 2)]
    events += [node(20, 9, "ScatterND", CPU, 3), node(30, 9, "ScatterND", CPU, 4)]
    assert understood(events).as_details()["left_to_the_cpu"] == "ScatterND × 2, NonZero × 1"
    assert "left_to_the_cpu" not in understood([run(0), node(1, 9)]).as_details()


def test_a_fallback_says_what_the_cpu_was_left():
    details = {"left_to_the_cpu": "ScatterND × 2, NonZero × 1"}
    shares = {"webnn:0": 0.8, "cpu:0": 0.2}
    evidence = Evidence(tuple(shares), "webnn:0", shares=shares, details=details)
    with pytest.raises(CaseError, match=r"cpu:0 \(20%\): the CPU was left ScatterND × 2, NonZero"):
        proved(plain(evidence), "webnn:0")


def test_other_events_are_not_nodes():
    fence = {**node(110, 500), "name": "/layer.0/MatMul_fence_before"}
    thread = {"cat": "Node", "name": "x_kernel_time", "ts": 110, "dur": 5, "args": {}}
    found = understood([run(100), fence, thread, node(120, 5)])
    assert found.nodes == {CPU: 1, "": 1}
    assert found.computed_in == {"float": 1.0}


def test_nothing_is_no_share():
    assert understood([]) == Profile({}, {}, {})
    assert understood([run(1)]).time_share == {}


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


def test_products_are_weighed_by_their_time():
    events = [run(0), node(1, 30, "QGemm", types="uint8"), node(31, 10, index=1)]
    assert understood(events).computed_in == {"int8": 0.75, "float": 0.25}


def test_a_file_is_read(tmp_path):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps([run(0), node(1, 10)]))
    assert read(path).as_details() == {
        "provider_nodes": {CPU: 1},
        "provider_time_share": {CPU: 1.0},
        "computed_in": {"float": 1.0},
    }


def test_a_providers_place():
    assert place_of(CPU, "cuda:1") == "cpu:0"
    assert place_of(CUDA, "cuda:1") == "cuda:1"
    assert place_of("TensorrtExecutionProvider", "cuda:1") == "cuda:1"
    assert place_of(CUDA, "rocm:0") == CUDA
    assert place_of("VitisAIExecutionProvider", "cuda:0") == "VitisAIExecutionProvider"
