"""`accelbench fleet validate` and `fleet run`: what is measured on nodes, what they say of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shells import Command

from accelbench.cli.services import fleet_running
from accelbench.core.calibration import DeviceCalibration
from accelbench.core.protocols import Device
from accelbench.fleet.session import FleetAddress
from accelbench.run import calibrating
from accelbench.store.database import Database
from calibrating_cluster import Calibrating
from made_up_calibration import made_calibration

PLAN = """
models: [bert-tiny, vit-tiny]
matrix:
  hardware: cpu
  batch_sizes: [2, 4]
run:
  launches: 2
  iterations: 7
"""


@pytest.fixture
def fleet(command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The commands of a fleet that is somewhere."""
    where = FleetAddress("10.0.0.1:6379", None)
    monkeypatch.setattr(FleetAddress, "resolve", lambda *_: where)
    return command("fleet")


@pytest.fixture
def probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nodes with these peaks, when they are connected with."""
    peaks: list[float] = []

    def calibrate(device: Device, *_: object) -> DeviceCalibration:
        return made_calibration(
            device, fp32=peaks[len(told)], day=f"2026-03-0{told.append(1) or 1}"
        )

    told: list[int] = []
    monkeypatch.setattr(calibrating, "calibrate", calibrate)
    monkeypatch.setattr(
        FleetAddress, "connect", lambda _: Calibrating(tmp_path / "nodes", "abcd"[: len(peaks)])
    )
    return peaks


def test_a_node_whose_products_are_slow_falls_out_by_its_probes(fleet, probed):
    probed += [100e9, 98e9, 101e9, 50e9]
    code, out, err = fleet("validate", "--probes", "--hardware", "cpu")
    assert code == 1, err
    lines = out.splitlines()
    assert "d falls out of its kind:" in lines
    assert "  matrix product fp32 on cpu: 98% slower than the median of its kind" in lines
    (product,) = [line for line in lines if line.startswith("matrix product fp32 on cpu on a cpu")]
    assert "median 99.0 GFLOP/s" in product
    assert "d 50.0" in product
    assert any(line.startswith("launch overhead on cpu on a cpu: median 0.002") for line in lines)
    rows = Database(Path("accelbench.duckdb")).query(
        "SELECT DISTINCT calibration_id FROM device_calibrations"
    )[1]
    assert len(rows) == 4


def test_probes_of_two_that_differ_cannot_be_told_and_the_document_has_figures(fleet, probed):
    probed += [100e9, 50e9]
    code, out, err = fleet("validate", "--probes", "--json")
    assert code == 4, err
    document = json.loads(out)
    assert document["run_id"] is None
    assert "matrix product fp32 on cpu" in document["cannot_tell"]
    (product,) = [c for c in document["cases"] if c["case"] == "matrix product fp32 on cpu"]
    assert (product["unit"], product["nodes"]) == ("FLOP/s", {"a": 100e9, "b": 50e9})


def test_a_plan_is_measured_in_place_of_the_usual(fleet, monkeypatch):
    started: list[Any] = []

    def new_run(asked: Any, where: Any, options: Any, *_: object) -> Any:
        started.append((asked, options))
        row = {
            "device_fingerprint": "k", "device_name": "k", "model": "bert-tiny", "hardware": "cpu",
            "runtime": "pytorch", "precision": "fp32", "batch_size": 2, "status": "ok",
            "latency_p50_ms": 1.0, "latency_mean_ms": 1.0, "sample_count": 9,
        }  # fmt: skip
        rows = [{**row, "run_id": f"run.{node}"} for node in "abc"]
        return SimpleNamespace(interrupted=False, run_id="run", rows=rows)

    monkeypatch.setattr(fleet_running, "new_run", new_run)
    Path("plan.yaml").write_text(PLAN)
    code, out, err = fleet("validate", "--plan", "plan.yaml", "--models", "vit-tiny")
    assert code == 0, err
    assert "Every node measures as its kind does." in out
    asked, options = started[0]
    (request,) = asked.parts
    assert ([m.id for m in request.models], request.batch_sizes) == (["vit-tiny"], (2, 4))
    assert (asked.spec.launches, asked.spec.iterations) == (2, 7)
    assert (asked.spec.label, options.each) == ("fleet validate", True)
    code, _, err = fleet("validate", "--plan", "plan.yaml", "--launches", "4", "--quiet")
    assert code == 0, err
    assert started[1][0].spec.launches == 4
    code, _, err = fleet("validate", "--quiet")  # the usual
    assert [m.id for m in started[2][0].requests[0].models] == ["bert-tiny", "resnet-tiny"]


def test_nodes_that_agree_by_unusable_times_cannot_be_told(fleet, monkeypatch):
    row = {
        "device_fingerprint": "k", "device_name": "k", "model": "bert-tiny", "hardware": "cpu",
        "runtime": "pytorch", "precision": "fp32", "batch_size": 2, "status": "ok",
        "latency_p50_ms": 1.0, "latency_mean_ms": 1.0, "sample_count": 9, "quality": "unusable",
    }  # fmt: skip
    rows = [{**row, "run_id": f"run.{node}"} for node in "abc"]
    ended = SimpleNamespace(interrupted=False, run_id="run", rows=rows)
    monkeypatch.setattr(fleet_running, "new_run", lambda *_: ended)
    code, out, err = fleet("validate")
    assert code == 4, err
    assert "batch 2 on k: nothing to judge by; a 1.00 unusable; b 1.00 unusable" in out
    assert "Can't tell for 1 of 1: times of a, b, c are unusable: interval wider than ±25 %." in out
    assert "Every node" not in out
    code, out, _ = fleet("validate", "--json")
    (case,) = json.loads(out)["cases"]
    assert (case["median_ms"], case["nodes_ms"]) == (None, {})
    assert case["unusable_ms"] == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_what_is_no_plan_or_is_of_one_machine_is_refused(fleet):
    code, _, err = fleet("validate", "--plan", "night.txt")
    assert (code, "'night.txt' is not a plan file." in err) == (2, True)
    Path("plan.yaml").write_text(PLAN.replace("run:", "run:\n  simulate: true"))
    code, _, err = fleet("validate", "--plan", "plan.yaml")
    assert (code, "which a fleet's run does not have" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rdzv-endpoint", "a:1"), "A fleet chooses the nodes that make a step together"),
        (("--node-rank", "1"), "--nnodes says how many nodes"),
        (("--each",), "--each measures on every node separately"),
    ],
)
def test_what_a_fleet_says_of_several_nodes_is_not_typed(words, said, fleet):
    together = ("run", "bert-tiny", "--mode", "training", "--distributed", "--nnodes", "2")
    code, _, err = fleet(*together, *words)
    assert code == 2
    assert said in " ".join(err.split())


def test_a_plan_of_several_nodes_together_validates_none(fleet):
    plan = PLAN.replace("matrix:", "matrix:\n  mode: training")
    Path("plan.yaml").write_text(plan.replace("run:", "run:\n  distributed: true\n  nnodes: 2"))
    code, _, err = fleet("validate", "--plan", "plan.yaml")
    assert code == 2, err
    assert "Each node is validated separately" in err
