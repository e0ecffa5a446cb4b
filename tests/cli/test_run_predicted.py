"""`accelbench run` before it starts: minutes from what its database has measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from shells import QUICK, SCRIPTED, Command
from stored_rows import store

from accelbench.cli.commands.predict import device_here
from accelbench.cli.services import forecasting
from accelbench.core.errors import StoreError
from accelbench.store.database import Database

DB = "accelbench.duckdb"


def measured(folder: Path, factor: float = 1.0, **more: object) -> None:
    """A database with two models by the scripted engine on this machine's CPU."""
    rows = [
        {"model": model, "batch_size": batch, "runtime": "scripted", "memory_peak_mb": 50.0 * batch,
         "latency_p50_ms": factor * (number + batch),
         "device_name": device_here("cpu"), "series_key": f"{model} {batch}", **more}
        for number, model in enumerate(("bert-tiny", "distilbert-tiny"), start=1)
        for batch in (1, 4, 16)
    ]  # fmt: skip
    store(folder / DB, *rows)
    Database(folder / DB).fill()


@pytest.fixture
def run(command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch) -> Command:
    made = command("run")
    Path("script.json").write_text("{}")
    monkeypatch.setenv("ACCELBENCH_SCRIPT", "script.json")
    monkeypatch.setenv("ACCELBENCH_CACHE", str(Path.cwd() / "cache"))
    return made


def test_minutes_come_from_what_was_measured(run):
    words = ("bert-tiny", "--batch-sizes", "1", "8", "--dry-run", *QUICK)
    before = run.json(*words)
    assert (before["predicted_cases"], before["learned_from"]) == (0, 0)
    assert before["cases"][0]["predicted"] is None
    measured(Path())
    quick = run.json(*words)
    assert (quick["predicted_cases"], quick["learned_from"]) == (2, 6)
    one, eight = (case["predicted"] for case in quick["cases"])
    assert one["step_seconds_low"] < one["step_seconds"] < one["step_seconds_high"]
    assert one["step_seconds"] < eight["step_seconds"] < 0.1
    _, out, _ = run(*words)
    assert "predicted from 6 measured cases" in " ".join(out.split())
    assert "operation counts" not in out


def test_minutes_from_what_others_measured_say_so(run):
    measured(Path(), provenance="imported", conditions={"source": {"name": "hub"}})
    words = ("bert-tiny", "--batch-sizes", "1", "--dry-run", *QUICK)
    found = run.json(*words)
    assert (found["learned_from"], found["learned_imported"]) == (6, 6)
    out = " ".join(run(*words)[1].split())
    assert "predicted from 6 measured cases, all of them measured by others, not measured" in out


def test_steps_of_a_dry_run_are_those_that_predict_says(run, command):
    """Of what was measured the figure itself; between batches no less than a smaller one took."""
    measured(Path())
    words = ("bert-tiny", "--hardware", "cpu", "--batch-sizes", "1", "4", "8")
    planned = [case["predicted"] for case in run.json(*words, "--dry-run", *QUICK)["cases"]]
    figures = command("predict").json(*words)["predictions"]
    assert planned[0]["step_seconds"] == pytest.approx(2e-3)
    for case, figure in zip(planned, figures, strict=True):
        assert case["step_seconds"] == pytest.approx(figure["latency_ms"] / 1e3)
        assert case["step_seconds_high"] == pytest.approx(figure["latency_high_ms"] / 1e3)
        assert case["memory_mb"] == pytest.approx(figure["memory_mb"])


def test_slower_measurements_give_longer_runs(run):
    measured(Path(), factor=1000.0)
    plan = run.json("bert-tiny", "--batch-sizes", "1", "--dry-run", *QUICK)
    assert plan["seconds_low"] > 12.0  # nine steps of two seconds and more
    assert plan["seconds_high"] < 120.0


def test_cases_that_take_minutes_or_do_not_fit_are_named(run):
    measured(Path(), factor=1000.0)
    words = ("qwen2-7b", "bert-tiny", "--batch-sizes", "1", "--dry-run", *SCRIPTED)
    (note,) = [note for note in run.json(*words)["notes"] if "predicted" in note]
    assert note.startswith("qwen2-7b on cpu: predicted ")
    assert " a step" in note
    assert "Note: qwen2-7b on cpu: predicted" in run(*words)[1]


def test_a_database_that_cannot_be_read_costs_the_minutes_alone(run, monkeypatch):
    measured(Path())

    def broken(*_: object, **__: object) -> None:
        raise StoreError("The database is broken.", "Mend it.")

    monkeypatch.setattr("accelbench.predict.stored_predictors.kept_cases", broken)
    words = ("bert-tiny", "--batch-sizes", "1", "--dry-run", *SCRIPTED)
    code, out, _ = run(*words)
    assert code == 0
    assert "its minutes are not predicted: The database is broken" in " ".join(out.split())
    assert "estimated from operation counts" in " ".join(out.split())


def test_before_a_run_no_predictor_is_fitted_to_many_cases(run, monkeypatch):
    measured(Path())
    monkeypatch.setattr(forecasting, "_MOST_FITTED", 5)
    words = ("bert-tiny", "--batch-sizes", "1", *QUICK, "--benchmark-only")
    assert run.json(*words, "--dry-run")["predicted_cases"] == 1  # a dry run has the time
    for file in Path("prediction_models").glob("*.npz"):
        file.unlink()
    assert "nothing was learned from 6 measured cases yet" in " ".join(run(*words)[1].split())


def test_measurements_that_wait_to_be_learned_from_say_whose_they_are(run, command, monkeypatch):
    measured(Path(), provenance="imported", conditions={"source": {"name": "hub"}})
    monkeypatch.setattr(forecasting, "_MOST_FITTED", 5)
    said = "6 measured cases, all of them measured by others"
    out = run("bert-tiny", "--batch-sizes", "1", *QUICK, "--benchmark-only")[1]
    assert f"nothing was learned from {said} yet" in " ".join(out.split())
    assert f"Learned from {said}." in " ".join(command("predict")("--retrain")[1].split())


def test_a_run_says_the_same_as_its_dry_run(shell):
    measured(shell.work)
    words = ("bert-tiny", "--batch-sizes", "1", *QUICK, "--benchmark-only")
    dry = shell(*words, "--dry-run").stdout
    done = shell(*words)
    assert "predicted from 6 measured cases" in done.stdout
    low, high = dry.partition("between ")[2].partition(",")[0].split(" and ")
    assert f"1 measurement, roughly {low} to {high}" in done.stdout
    document = json.loads(shell(*words, "--json", "--quiet").stdout)
    assert document["status"] == "finished"


def test_a_run_that_measures_nothing_says_why_in_place_of_its_minutes(run):
    words = ("bert-tiny", "--framework", "pytorch", "--dry-run")
    last = run(*words, "--hardware", "cpu", "--batch-sizes", str(10**8))[1].splitlines()[-1]
    assert last == "1 case; nothing would be measured: 1 larger than memory."
    last = run(*words, "--hardware", "cuda", "--batch-sizes", "1", "2")[1].splitlines()[-1]
    assert last == "2 cases; nothing would be measured: 2 refused."
