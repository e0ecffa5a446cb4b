"""Verification: outputs against the reference's, in real workers."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fixed_machine import CPU, models
from scripted_runs import Watcher

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.facts import new_run_id
from accelbench.core.protocols import Device
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Provenance
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.verify.verification import Verifications

TOLD = {"error": 0.01, "tolerance": 0.5, "errors": {"y": 0.01}, "wrong": "", "telling": True}


class Pretending(ScriptedRuntime):
    """A script that says of itself that it measures."""

    info = replace(ScriptedRuntime.info, provenance=Provenance.MEASURED)


def case_of(precision="bf16", batch=1, **options):
    target = Target("pytorch", "cpu")
    return Case(models("bert-tiny")[0], target, precision, Shapes(batch, 16), options=options)


def planned_of(*args, device=CPU, **kwargs):
    return Planned(case_of(*args, **kwargs), device)


def judged(**changed):
    return Verifications().judge(planned_of(), {**TOLD, **changed})


def test_what_agrees_has_its_error_beside_what_is_allowed():
    verdict = judged()
    assert verdict.columns == {
        "verification": "ok",
        "verification_error": 0.01,
        "verification_tolerance": 0.5,
    }
    assert not verdict.reasons


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"error": 0.7, "errors": {"x": 0.1, "y": 0.7}}, "the output y is 0.7 off where 0.5"),
        ({"error": None, "errors": {"x": 0.1, "y": None}}, "the output y is no number off"),
        ({"wrong": "the output y is missing", "error": None, "errors": {}}, "y is missing"),
    ],
)
def test_what_does_not_agree_says_by_how_much(changed, words):
    verdict = judged(**changed)
    assert verdict.word == "failed"
    assert words in verdict.why


def test_outputs_of_no_input_or_another_way_prove_nothing():
    verdict = judged(telling=False)
    assert verdict.word == "not_done"
    assert set(verdict.reasons) == {"verification_error", "verification_tolerance"}

    verdict = Verifications().judge(planned_of(), TOLD, "model.py, line 9")
    assert verdict.word == "not_done"
    assert "model.py, line 9" in verdict.why
    wrong = {**TOLD, "error": 0.7, "errors": {"y": 0.7}}
    assert Verifications().judge(planned_of(), wrong, "model.py, line 9").word == "failed"


def test_a_verdict_is_of_one_batch_precision_and_device():
    cells, worse = Verifications(), {**TOLD, "error": 0.4}
    first = cells.judge(planned_of(batch=1), TOLD)
    assert cells.judge(planned_of(batch=1), worse) is first
    assert cells.judge(planned_of(batch=8), worse).error == 0.4
    assert cells.judge(planned_of("fp16"), worse).error == 0.4

    cells, first, second = Verifications(), Device("cuda", "a", 0), Device("cuda", "b", 1)
    cells.judge(planned_of(device=first), TOLD)
    context = SimpleNamespace(settings=RunSettings(run_id="x"), runtimes={})
    assert cells.known(context, planned_of(device=first)) is not None
    assert cells.known(context, planned_of(device=second)) is None


def test_what_is_wrong_at_one_batch_is_tried_at_no_other_unless_each_is_another_graph():
    cells, context = Verifications(), SimpleNamespace(settings=RunSettings(run_id="x"), runtimes={})
    wrong = cells.judge(planned_of(batch=1), {**TOLD, "error": 0.9})
    assert cells.known(context, planned_of(batch=8)) is wrong
    cells.forget(planned_of(batch=1))
    assert cells.known(context, planned_of(batch=8)) is None
    cells.at_each_batch(planned_of(batch=1))
    assert cells.judge(planned_of(batch=1), {**TOLD, "error": 0.9}).word == "failed"
    assert cells.known(context, planned_of(batch=8)) is None


def run_of(folder, *cases, **settings):
    watcher = Watcher()
    phases = []
    watcher._on_progress = lambda progress: phases.append(progress.phase)
    how = {"threads": 1, "iterations": 3, "warmup": 1, **settings}
    planned = PlannedRun(
        Plan(tuple(Planned(case, CPU) for case in cases)),
        RunSettings.from_dict({"run_id": new_run_id(), **how}),
        {"pytorch": PytorchRuntime()},
    )
    rows = list(lifecycle.start(planned, folder, watcher, {}).rows)
    watcher.notes = phases
    return rows, watcher


def test_a_real_cell_is_verified_and_the_reference_is_its_own(tmp_path):
    cases = [case_of("fp32"), case_of("bf16"), case_of("bf16", batch=2)]
    rows, watcher = run_of(tmp_path, *cases)
    own, first, second = rows
    assert [row["status"] for row in rows] == ["ok"] * 3, rows
    assert own["verification"] == "reference"
    assert own["nulls"]["verification_error"] == "it is the reference itself"
    assert first["verification"] == second["verification"] == "ok"
    assert 1e-4 < first["verification_error"] < 0.05
    assert 1e-4 < second["verification_error"] < 0.05
    assert 0.03 <= second["verification_tolerance"] == first["verification_tolerance"] < 0.2
    assert watcher.notes.count("reference") == 1
    assert watcher.notes.count("verifying") == 2


def test_only_verifying_times_nothing(tmp_path):
    ((row,), watcher) = run_of(tmp_path, case_of(), verify="only")
    assert (row["status"], row["verification"]) == ("ok", "ok")
    assert row.get("latency_mean_ms") is None
    assert row["nulls"]["latency_mean_ms"] == "only verified, not measured"
    assert "steady" not in "".join(watcher.notes)
    assert row["weights_digest"]


def test_only_measuring_looks_at_no_reference(tmp_path):
    ((row,), watcher) = run_of(tmp_path, case_of(), verify="off")
    assert (row["status"], row["verification"]) == ("ok", "not_done")
    assert row["nulls"]["verification_error"] == "it was not asked for"
    assert "reference" not in watcher.notes


def test_without_a_reference_a_case_stands_unless_one_is_required(scripted):
    (row,) = scripted.run(batches=[1])
    assert (row["status"], row["verification"]) == ("ok", "not_done")
    assert "follows a script" in row["nulls"]["verification_error"]
    scripted.runtimes["scripted"] = Pretending()
    (row,) = scripted.run(batches=[1])
    assert (row["status"], row["verification"]) == ("ok", "not_done")
    assert "pytorch is not installed" in row["nulls"]["verification_error"]
    for strict in ("require", "only"):
        (row,) = scripted.run(batches=[1], verify=strict)
        assert (row["status"], row["reason"]) == ("failed", "not_verified")
        assert f"--verify{'-only' if strict == 'only' else ' require'}" in row["advice"]
    (row,) = scripted.run(batches=[1], verify="require")
    assert (row["status"], row["reason"]) == ("failed", "not_verified")
    assert "pytorch is not installed" in row["message"]
    assert row.get("latency_mean_ms") is None


def test_a_runtime_that_computes_something_else_is_caught(scripted):
    """The scripted runtime's outputs are nobody's: beside the real model they are wrong."""
    scripted.runtimes |= {"scripted": Pretending(), "pytorch": PytorchRuntime()}
    rows = scripted.run(batches=[1, 4])
    assert [(row["status"], row["reason"]) for row in rows] == [("failed", "wrong_outputs")] * 2
    for row in rows:
        assert "is missing" in row["message"]
        assert row["verification"] == "failed"
        assert row.get("latency_mean_ms") is None
    (row,) = scripted.run(batches=[1], verify="off")
    assert row["status"] == "ok"
