"""`accelbench run`: what it prints and writes, for people, machines and files."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from shells import QUICK

from accelbench.cli.arguments.resolved_values import guide_folder
from accelbench.cli.services.running import OutputPlaces, _result_files
from accelbench.core.columns import COLUMNS
from accelbench.core.facts import RUN_STARTED, Fact
from accelbench.exchange.result_schema import result_schema
from accelbench.store.database import Database
from accelbench.store.journal import Journal


def test_json_is_one_document_and_nothing_else(shell):
    done = shell("bert-tiny", "--batch-sizes", "1,2", "--json", *QUICK)
    document = json.loads(done.stdout)
    assert list(document) == ["run_id", "status", "results", "warnings"]
    assert document["status"] == "finished"
    assert [list(row) for row in document["results"]] == [[c.name for c in COLUMNS]] * 2
    assert {row["run_id"] for row in document["results"]} == {document["run_id"]}
    assert "Run " in done.stderr
    rows = Database(shell.work / "accelbench.duckdb").results()
    assert [r["latency_p50_ms"] for r in rows] == [1.0, 2.0]


def test_people_get_devices_progress_a_table_and_every_path(shell):
    done = shell("bert-tiny", "--batch-sizes", "1", "--output-dir", "out", *QUICK)
    assert not done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Device: ")
    assert lines[1:3] == ["  Type: cpu", "  Available: yes"]
    assert "[1/1] bert-tiny" in done.stdout
    assert "Total configurations: 1 (1 ok)" in done.stdout
    (result,) = shell.work.glob("out/raw_results/bert-tiny_cpu_float32_*.json")
    for path in (shell.work / "accelbench.duckdb", *shell.journals()):
        assert str(path) in done.stdout
    assert result.name in done.stdout


def test_quiet_prints_nothing(shell):
    done = shell("bert-tiny", "--batch-sizes", "1", "--quiet", *QUICK)
    assert done.stdout == done.stderr == ""
    assert len(Database(shell.work / "accelbench.duckdb").results()) == 1


def test_quiet_json_is_the_document_alone(shell):
    done = shell("bert-tiny", "--batch-sizes", "1", "--quiet", "--json", *QUICK)
    assert done.stderr == ""
    assert len(json.loads(done.stdout)["results"]) == 1
    assert len(done.stdout.splitlines()) == 1


def test_a_model_of_a_file_is_picked_by_its_key_and_called_as_typed(shell):
    models = {"mine": {"name": "bert-tiny"}, "other": {"name": "vit-tiny"}}
    (shell.work / "models.json").write_text(json.dumps(models))
    shell("mine", "--models-file", "models.json", "--batch-sizes", "1", "--output-dir", "out",
          *QUICK)  # fmt: skip
    (table,) = shell.work.glob("out/*.csv")
    lines = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [(one["model"], one["model_id"]) for one in lines] == [("mine", "bert-tiny")]


def test_result_files_fit_the_published_schema(shell):
    shell.script(faults=[{"how": "raise", "when": "step", "batch": 2}])
    shell(
        *("bert-tiny", "vit-tiny", "--batch-sizes", "1,2", "--output-dir", "out"),
        *("--output-ci", "ci/all.json", *QUICK),
        code=1,
    )
    files = [*shell.work.glob("out/raw_results/*.json"), shell.work / "ci" / "all.json"]
    assert len(files) == 3
    for path in files:
        document = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.validate(document, result_schema())
    assert [row["status"] for row in document["results"]] == ["ok", "failed"] * 2
    assert document["results"][0]["samples"]["step"] == [1_000_000] * 5


def test_without_a_database_only_the_journal_is_kept(shell):
    shell("bert-tiny", "--batch-sizes", "1", "--no-database", *QUICK)
    assert [p.name for p in shell.work.iterdir()] == ["accelbench.journal"]
    assert len(shell.journals()) == 1


def test_an_encoding_that_lacks_a_sign_does_not_end_the_run(shell):
    done = shell(
        "bert-tiny", "--batch-sizes", "1", *QUICK, env={"PYTHONIOENCODING": "ascii:strict"}
    )
    assert "p50 1.00 ms" in done.stdout


def test_a_real_model_from_command_to_database(shell):
    began = time.monotonic()
    done = shell(
        *("bert-tiny", "--hardware", "cpu", "--batch-sizes", "1,2", "--sequence-lengths", "16"),
        *("--iterations", "3", "--warmup", "1", "--threads", "2", "--json"),
    )
    wall_ms = 1000 * (time.monotonic() - began)
    rows = json.loads(done.stdout)["results"]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    for row in rows:
        assert row["provenance"] == "measured"
        assert row["runtime"] == "pytorch"
        assert row["threads"] == 2
        assert row["parameters"] == 4_385_920
        assert row["sample_count"] == 3
        assert row["warmup_steps"] == 1
        assert 0 < row["latency_min_ms"] <= row["latency_p50_ms"] <= row["latency_max_ms"]
        assert row["latency_max_ms"] < wall_ms
        assert row["evidence"]["devices"] == ["cpu:0"]
        assert row["evidence"]["details"]["weight_dtypes"] == ["float32"]
        assert row["memory_peak_mb"] > 0
        assert row["flops"] > 0
        assert row["warnings"]  # fixed, and fewer than thirty
    assert rows[0]["weights_digest"] == rows[1]["weights_digest"]
    stored = Database(shell.work / "accelbench.duckdb").results(samples=True)
    assert [len(row["samples"]["step"]) for row in stored] == [3, 3]


def test_an_engine_takes_the_threads_that_it_takes_by_itself(shell):
    """As users have it: nothing but the engine settles how many, and no fork waits for them."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        shell.environment.pop(name, None)
    words = ("bert-tiny", "--hardware", "cpu", "--batch-sizes", "1", "--sequence-lengths", "16")
    process = shell.start(
        *words, "--iterations", "3", "--warmup", "1", "--benchmark-only", "--json"
    )
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    asked = [sys.executable, "-c", "import torch; print(torch.get_num_threads())"]
    said = subprocess.run(asked, env=shell.environment, capture_output=True, text=True, check=True)
    assert [row["threads"] for row in json.loads(out)["results"]] == [int(said.stdout)]


@pytest.mark.parametrize(
    ("frameworks", "models", "is_spelled"),
    [
        (["both"], ["both"], True),
        (["Both"], ["resnet50", "both"], True),
        (["pytorch"], ["resnet50"], True),
        (["pytorch,jax"], ["both"], True),
        (["both"], None, False),
        (None, ["both"], False),
    ],
)
def test_a_run_with_the_guides_options_leaves_its_csv_unasked(frameworks, models, is_spelled):
    folder = guide_folder(frameworks, models)
    assert folder == (Path("results", "raw") if is_spelled else None)


def test_the_guides_csv_is_written_alone_into_its_folder(tmp_path):
    with Journal.create(tmp_path / "journals", "r") as journal:
        journal.append(Fact(RUN_STARTED, "r", {"started_at": "2026-01-01T00:00:00Z"}))
    row = {column.name: None for column in COLUMNS}
    row |= {"model": "resnet-50", "runtime": "pytorch", "batch_size": 1, "status": "ok"}
    row |= {"latency_p50_ms": 5.0, "hardware": "cpu", "mode": "inference", "precision": "fp32"}
    places = OutputPlaces(csv_dir=tmp_path / "results" / "raw")
    ended: Any = SimpleNamespace(rows=[row])
    ((label, path),) = _result_files(ended, places, tmp_path / "journals" / "r.jsonl")
    assert label == "Results saved to"
    assert [path] == list((tmp_path / "results" / "raw").iterdir())
    with path.open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["framework"], line["batch_size"], line["latency_p50_ms"]) == (
        "pytorch",
        "1",
        "5.0",
    )
