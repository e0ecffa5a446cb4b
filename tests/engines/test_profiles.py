"""What each engine's profiler says, from its words written by hand."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest
import torch

from accelbench.engines.jax import programs as jax_profile
from accelbench.engines.jax.programs import Event
from accelbench.engines.onnxruntime import profile as ort_profile
from accelbench.engines.openvino.session import CountedRequest
from accelbench.engines.pytorch import session
from accelbench.engines.qnn import profile as qnn_profile
from accelbench.engines.shared.local import own


class TestOwn:
    """Times without what lies within."""

    def test_an_event_has_what_inner_ones_leave(self):
        events = [("t", 0, 10), ("t", 1, 3), ("t", 2, 1), ("t", 5, 4)]
        assert own(events) == [3, 2, 1, 4]
        events = [("t", 2, 1), ("u", 0, 10), ("t", 1, 3), ("t", 0, 10)]
        assert own(events) == [1, 10, 2, 7]
        assert own([("t", 0, 5), ("t", 5, 5)]) == [5, 5]
        assert own([("t", 0, 1), ("t", 0, 1), ("t", 0, 1)]) == [0, 0, 1]


def row(key, cpu_us, cuda_us=0, kernel=False, **more):
    kind = torch.autograd.DeviceType.CUDA if kernel else torch.autograd.DeviceType.CPU
    return SimpleNamespace(
        key=key,
        count=more.get("count", 1),
        self_cpu_time_total=cpu_us,
        self_device_time_total=cuda_us,
        device_type=kind,
        input_shapes=more.get("shapes", []),
    )


class TestPytorch:
    """torch.profiler's rows."""

    rows = (
        row("accelbench::step", 500, 900),
        row("aten::addmm", 30, 700, shapes=[[128], [32, 128], [128, 128], [], []], count=4),
        row("ampere_sgemm_128x64", 0, 700, kernel=True),
    )

    def test_times_of_the_host_and_of_a_device(self):
        [one] = session.spent(self.rows, "cpu:0")
        assert (one.kind, one.name) == ("aten::addmm", "128, 32x128, 128x128")
        assert (one.ns, one.calls, one.where) == (30_000, 4, "cpu:0")
        [one] = session.spent(self.rows, "cuda:1")
        assert (one.kind, one.ns, one.where) == ("aten::addmm", 700_000, "cuda:1")


def node(ts, dur, op, name="n"):
    args = {"op_name": op, "provider": "CPUExecutionProvider"}
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": ts, "dur": dur, "args": args}


class TestOnnxruntime:
    """Events of its profile file."""

    def test_steps_and_loops(self):
        runs = [{"cat": "Session", "name": "model_run", "ts": 100 * i, "dur": 90} for i in range(6)]
        nodes = [node(100 * i + 1, 10 + i, "Conv") for i in range(6)]
        # Two runs a step: of three steps the first is the warm one.
        found = ort_profile.spent([*runs, *nodes], steps=2, of=3, device="cpu:0")
        assert [one.ns for one in found] == [12_000, 13_000, 14_000, 15_000]

        events = [{"name": "model_run", "ts": 0, "dur": 99}, node(1, 50, "Loop", "loop")]
        events += [node(5, 10, "Add", "body"), node(20, 10, "Add", "body")]
        found = {}
        for one in ort_profile.spent(events, 1, 1, "cpu:0"):
            found[one.kind] = found.get(one.kind, 0) + one.ns
        assert found == {"Loop": 30_000, "Add": 20_000}


class FakeRequest:
    """Counters that are set by hand."""

    says: tuple[float, ...] = ()

    def __init__(self):
        self.asked = 0

    def infer(self, share_outputs):
        self.asked += 1

    def get_profiling_info(self):
        took = timedelta(microseconds=self.says[self.asked - 1])
        return [SimpleNamespace(node_name="n", node_type="MatMul", real_time=took)]

    def get_output_tensor(self, position):
        return position


class TestOpenvino:
    """Counters that are read after each inference."""

    @pytest.mark.parametrize(("averages", "says"), [(True, (100, 60, 50)), (False, (100, 20, 30))])
    def test_running_means_are_taken_apart(self, averages, says):
        request = FakeRequest()
        request.says = says
        counted = CountedRequest(request, "openvino:0", averages)
        for _ in says:
            counted.infer(share_outputs=True)
        assert [one.ns for one in counted.spent] == [100_000, 20_000, 30_000]
        assert counted.get_output_tensor(3) == 3


QNN = """Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier
0,FINALIZE,72054,US,BACKEND,ROOT,QNN (finalize) time
0,BACKEND,900,CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)
0,NODE,900,CYCLES,BACKEND,SUB-EVENT,/layer/Conv_token_1:OpId_146 (cycles)
0,BACKEND,90,US,BACKEND,ROOT,Accelerator (execute) time
0,EXECUTE,95,US,BACKEND,ROOT,QNN (execute) time
0,BACKEND,1000,CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)
0,NODE,20,CYCLES,BACKEND,SUB-EVENT,Input OpId_2 (cycles)
0,NODE,180,CYCLES,BACKEND,SUB-EVENT,pixel_values_QuantizeLinear:OpId_138 (cycles)
0,NODE,800,CYCLES,BACKEND,SUB-EVENT,/layer/Conv_token_1:OpId_146 (cycles)
0,BACKEND,50,US,BACKEND,ROOT,Accelerator (execute) time
0,EXECUTE,55,US,BACKEND,ROOT,QNN (execute) time
"""


def test_qnns_cycles_become_parts_of_the_time_that_the_graph_took(tmp_path):
    (tmp_path / "qnn.csv").write_text(QNN)
    graph = {"nodes": {"/layer/Conv_token_1": {"type": "Conv2d"}}}
    (tmp_path / "graph.json").write_text(json.dumps({"graph": graph}))
    (tmp_path / "graph_tensor_log.json").write_text("{}")
    types = qnn_profile.types_of(tmp_path)
    found = qnn_profile.read(tmp_path / "qnn.csv", types, 1, "qnn:0")
    assert [(one.name, one.kind, one.ns) for one in found] == [
        ("Input", "Input", 1_000),
        ("pixel_values_QuantizeLinear", "pixel_values_QuantizeLinear", 9_000),
        ("/layer/Conv_token_1", "Conv2d", 40_000),
    ]


class TestJax:
    """Events of XLA's profiler."""

    def test_loops_and_devices(self):
        events = [
            Event("a", 0, 100, "while.3", on_device=False),
            Event("a", 10, 40, "add_fusion.1", on_device=False),
            Event("b", 10, 70, "dot.2", on_device=False),
        ]
        found = {one.kind: one.ns for one in jax_profile.spent(events, "cpu:0")}
        assert found == {"while": 60, "add_fusion": 40, "dot": 70}

        events = [
            Event("stream", 0, 10, "dot.2", on_device=True),
            Event("host", 0, 99, "dot.2", on_device=False),
        ]
        assert [one.ns for one in jax_profile.spent(events, "cuda:0")] == [10]

    @pytest.mark.parametrize(
        ("operation", "kind"),
        [("add_fusion.12", "add_fusion"), ("copy", "copy"), ("a.b", "a.b"), (".1", ".1")],
    )
    def test_a_number_is_no_part_of_a_kind(self, operation, kind):
        assert jax_profile.kind(operation) == kind
