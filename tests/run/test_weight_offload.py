"""Weights that memory does not hold: on the disk where nothing is timed, and nowhere else."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from fixed_machine import CPU, models
from scripted_runs import Watcher

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.facts import new_run_id
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.run.conduct import artifacts, lifecycle
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.plan import run_forecast
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.process import memory_guard
from accelbench.run.process.memory_guard import advice, spill_to, weights_bytes

MB = 2**20


def case_of(precision="bf16", runtime="pytorch", mode=Mode.INFERENCE):
    return Case(models("bert-tiny")[0], Target(runtime, "cpu"), precision, Shapes(1, 16), mode=mode)


HEAVY = weights_bytes(case_of())


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def little_memory(monkeypatch):
    """Room for the model in bf16 (16.5 MiB by estimate), and none for it in fp32 (24.9)."""
    monkeypatch.setattr(run_forecast, "free", lambda _: 20 * MB)


@pytest.mark.parametrize(
    ("weights", "mode", "need", "room", "spilled"),
    [
        ("random", Mode.INFERENCE, HEAVY + 5 * MB, 10 * MB, True),
        ("random", Mode.INFERENCE, HEAVY + 11 * MB, 10 * MB, False),  # the rest is too much, too
        ("random", Mode.INFERENCE, HEAVY, None, False),  # nobody knows how much is free
        ("hub", Mode.INFERENCE, HEAVY + 5 * MB, 10 * MB, False),  # files are read whole
        ("random", Mode.TRAINING, HEAVY + 5 * MB, 10 * MB, False),  # every weight is written
    ],
)
def test_only_drawn_weights_of_inference_are_spilled_and_only_where_the_rest_fits(
    cache, weights, mode, need, room, spilled
):
    found = spill_to(case_of(mode=mode), weights, need, room)
    assert found == (cache if spilled else None)


def test_a_disk_without_room_takes_nothing(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2 * HEAVY))
    assert spill_to(case_of(), "random", HEAVY, 10 * MB, files=1) is not None
    assert spill_to(case_of(), "random", HEAVY, 10 * MB, files=2) is None
    assert not advice(case_of(), "random", HEAVY, 10 * MB, files=1)
    assert "ACCELBENCH_CACHE" in advice(case_of(), "random", HEAVY, 10 * MB, files=2)
    assert not advice(case_of(), "hub", HEAVY, 10 * MB, files=2)
    assert memory_guard._disk_free(Path("/not/there/yet")) == 2 * HEAVY


def run_of(folder, case, **settings):
    how = {"threads": 1, "iterations": 3, "warmup": 1, **settings}
    runtimes = {"pytorch": PytorchRuntime(), "onnxruntime": OnnxruntimeRuntime()}
    planned = PlannedRun(
        Plan((Planned(case, CPU),)),
        RunSettings.from_dict({"run_id": new_run_id(), **how}),
        runtimes,
    )
    (row,) = lifecycle.start(planned, folder, Watcher(), {}).rows
    return row


@pytest.mark.usefixtures("little_memory")
def test_a_case_that_fits_is_verified_against_a_reference_that_does_not(tmp_path):
    row = run_of(tmp_path, case_of("bf16"))
    assert (row["status"], row["verification"]) == ("ok", "ok"), row
    assert 1e-4 < row["verification_error"] < 0.05


@pytest.mark.usefixtures("little_memory")
def test_what_does_not_fit_is_never_timed_from_the_disk(tmp_path):
    row = run_of(tmp_path, case_of("fp32"))
    assert (row["status"], row["reason"]) == ("out_of_memory", "out_of_memory_estimated")
    row = run_of(tmp_path, case_of("fp32"), verify="only")
    assert (row["status"], row["verification"]) == ("ok", "reference")
    assert row.get("latency_mean_ms") is None


@pytest.mark.usefixtures("little_memory")
def test_an_artefact_of_weights_that_do_not_fit_is_made_and_verified(tmp_path, cache, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(artifacts, "_WITHOUT_WEIGHTS", MB)
    row = run_of(tmp_path, case_of("fp32", "onnxruntime"), verify="only")
    assert (row["status"], row["verification"]) == ("ok", "ok"), row
    assert row["verification_error"] < 2e-4
    kept = [path.name for path in cache.rglob("*") if path.is_file()]
    assert sorted(kept)[-3:] == ["manifest.json", "model.data", "model.onnx"]
    assert not [name for name in kept if name.startswith(".weights")]
