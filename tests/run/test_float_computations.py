"""Quantised files that an engine computes in floats: measured as fp32 if nobody asked for int8."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from fixed_machine import CPU
from onnx import TensorProto, helper, numpy_helper
from scripted_runs import Watcher

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.facts import new_run_id
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Outcome, Status
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.models.selection import choose
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.launch_context import FloatComputations
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.conduct.results import LaunchFacts, identities_of, identity_of
from accelbench.run.conduct.run_record import _planned_from_json, planned_to_json
from accelbench.run.plan.request import Plan, Planned
from accelbench.store.database import Database

_OTHER = Outcome(Status.FAILED, "precision_changed", "0% of its products were computed in int8")


def _written(path):
    """A quantised convolution before a sine: ONNX Runtime fuses nothing and computes in floats."""
    weights = np.random.default_rng(0).integers(-100, 100, (8, 3, 3, 3)).astype(np.int8)
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "step", "zero"], ["quantised"]),
        node("DequantizeLinear", ["quantised", "step", "zero"], ["floats"]),
        node("DequantizeLinear", ["weights", "step", "zero"], ["kernel"]),
        node("Conv", ["floats", "kernel"], ["made"]),
        node("Sin", ["made"], ["bent"]),
        node("GlobalAveragePool", ["bent"], ["y"]),
    ]
    stored = [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.float32(0.02).reshape(()), "step"),
        numpy_helper.from_array(np.int8(0).reshape(()), "zero"),
    ]
    pictures = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 8, 8])
    means = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 8, 1, 1])
    graph = helper.make_graph(nodes, "g", [pictures], [means], stored)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


@pytest.fixture
def quantised(tmp_path):
    (model,) = choose([str(_written(tmp_path / "quantised.onnx"))])
    case = Case(model, Target("onnxruntime", "cpu"), "int8", Shapes(1))
    return Planned(case, CPU, as_stored=True)


def test_a_file_computed_in_floats_is_measured_in_fp32_at_every_batch(quantised):
    known = FloatComputations()
    assert known.apply(quantised) == quantised
    assert known.learn(quantised, _OTHER)
    found = known.apply(quantised)
    assert found.case.precision == "fp32"
    assert found.case.is_run_as_stored  # nothing is converted
    assert found.case.tolerance_precision == "int8"
    larger = replace(quantised, case=replace(quantised.case, shapes=Shapes(8)))
    assert known.apply(larger).case.precision == "fp32"
    assert not known.learn(found, _OTHER)  # and not again
    noted = known.note(found, Outcome(Status.OK))
    assert len(noted.warnings) == 1
    assert "int8" in noted.warnings[0]


def test_only_what_computes_in_floats_is_measured_again(quantised):
    known, asked = FloatComputations(), replace(quantised, as_stored=False)
    assert not known.learn(asked, _OTHER)
    assert known.apply(asked) == asked
    assert not known.note(asked, Outcome(Status.OK)).warnings
    assert not FloatComputations().learn(quantised, Outcome(Status.FAILED, "wrong_outputs", ""))
    body = json.loads(json.dumps(planned_to_json(quantised)))
    assert _planned_from_json(body).as_stored


@pytest.mark.parametrize(
    ("as_stored", "status", "precision"), [(True, "ok", "fp32"), (False, "failed", "int8")]
)
def test_a_run_of_a_quantised_file(quantised, tmp_path, as_stored, status, precision):
    planned = replace(quantised, as_stored=as_stored)
    settings = {"run_id": new_run_id(), "threads": 1, "iterations": 3, "warmup": 0}
    spec = PlannedRun(
        Plan((planned,)), RunSettings.from_dict(settings), {"onnxruntime": OnnxruntimeRuntime()}
    )
    (row,) = lifecycle.start(spec, tmp_path, Watcher(), {}).rows
    assert (row["status"], row["precision"]) == (status, precision)
    measured = replace(planned, case=replace(planned.case, precision=precision))
    assert row["result_id"] == identity_of(LaunchFacts(settings["run_id"], 1), measured)
    assert row["result_id"] in identities_of(LaunchFacts(settings["run_id"], 1), planned)


def test_its_result_reaches_the_store(quantised, tmp_path):
    database = Database(tmp_path / "results.duckdb")
    database.ensure()
    spec = PlannedRun(
        Plan((quantised,)),
        RunSettings.from_dict({"run_id": new_run_id(), "threads": 1, "iterations": 3, "warmup": 0}),
        {"onnxruntime": OnnxruntimeRuntime()},
    )
    lifecycle.start(spec, database.journals, Watcher(), {})
    database.fill()
    _, rows = database.query("SELECT status, precision FROM benchmark_results")
    assert rows == [("ok", "fp32")]
