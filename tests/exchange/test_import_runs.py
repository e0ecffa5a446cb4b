"""The runs of an import: whose machine each was, however the file tells it."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_files import TIMM, TIMM_HEADER

from accelbench.core.columns import COLUMNS
from accelbench.exchange.imports.reading import read_import
from accelbench.exchange.imports.records import MalformedError
from accelbench.exchange.titles import run_facts
from accelbench.store.database import Database
from exported import export

MACHINE = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 2**34}
ABOUT: dict[str, Any] = {"git_commit": "abc", "environment": MACHINE}
FORMS = ("json", "csv", "parquet")
ROW: dict[str, Any] = {
    **dict.fromkeys(column.name for column in COLUMNS),
    "result_id": "i1", "run_id": "r1", "case_id": "c", "model": "net", "hardware": "cpu",
    "runtime": "pytorch", "status": "ok", "provenance": "measured", "options": {},
    "conditions": {}, "started_at": "2026-01-02T03:04:05.000000Z", "arm": "",
    "latency_mean_ms": 2.0,
}  # fmt: skip
TOLD = {"conditions": {"source": {"name": "timm"}}, "provenance": "imported"}


def environments(path: Path, form: str, **more: str) -> dict[str, Mapping[str, Any]]:
    """Of each run but the import itself, what its facts say of the machine."""
    found = read_import(form, path, **more)
    return {
        str(fact.body["run_id"]): fact.body["environment"]
        for fact in found.facts
        if fact.kind == "run_started" and fact.body["run_id"] != found.run_id
    }


def wrote(path: Path, form: str, *rows: dict[str, Any], **runs: dict[str, Any]) -> Path:
    export(path, [{**ROW, **row} for row in rows or ({},)], form, runs=runs)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_an_export_keeps_each_run_with_its_machine(form, tmp_path):
    rows = [{"result_id": f"i{n}", "run_id": f"r{n % 2}"} for n in range(4)]
    other = {**ABOUT, "environment": {**MACHINE, "machine": "cellar"}}
    path = wrote(tmp_path / "out", form, *rows, r0=ABOUT, r1=other)
    found = environments(path, form)
    assert found == {"r0": MACHINE, "r1": other["environment"]}
    by_name = environments(path, form, source="ours")
    assert by_name["r0"] == {**MACHINE, "source": {"name": "ours"}}


@pytest.mark.parametrize("form", FORMS)
def test_where_no_machine_is_told_it_is_that_of_the_source(form, tmp_path):
    path = wrote(tmp_path / "out", form)
    assert environments(path, form) == {"r1": {"source": {"name": form}}}
    assert environments(path, form, source="us") == {"r1": {"source": {"name": "us"}}}


@pytest.mark.parametrize("form", FORMS)
def test_what_was_imported_there_stays_of_its_source(form, tmp_path):
    path = wrote(tmp_path / "out", form, TOLD)
    assert environments(path, form, source="us") == {"r1": {"source": {"name": "timm"}}}
    run = {"environment": {"source": {"name": "timm"}}}
    path = wrote(tmp_path / "more", form, TOLD, r1=run)
    assert environments(path, form, source="us") == {"r1": run["environment"]}


@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_is_not_told_began_with_its_first_result(form, tmp_path):
    moments = [f"2026-01-0{day}T03:04:05.000000Z" for day in (3, 2, 4)]
    rows = [{"result_id": moment, "started_at": moment} for moment in moments]
    found = read_import(form, wrote(tmp_path / "out", form, *rows))
    assert [run.about["started_at"] for run in found.runs if not run.is_import] == [moments[1]]


def test_a_result_file_is_of_the_machine_of_its_run(tmp_path):
    run = {"command": "run", "environment": {**MACHINE, "kernel": "6"}, "plan": [1, 2]}
    for name in ("a", "b"):
        whole = {"run": run, "results": [{**ROW, "result_id": name}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(whole))
    assert environments(tmp_path, "json") == {"r1": MACHINE}


def test_a_table_of_an_older_version_is_taken(tmp_path):
    table = pq.read_table(wrote(tmp_path / "out", "parquet", TOLD))
    needed = ("result_id", "run_id", "case_id", "model", "hardware", "runtime", "status")
    bare = table.select([*needed, "provenance", "latency_mean_ms"])
    pq.write_table(bare, tmp_path / "bare.parquet")
    found = environments(tmp_path / "bare.parquet", "parquet")
    assert found == {"r1": {"source": {"name": "parquet"}}}
    pq.write_table(bare.drop_columns("run_id"), tmp_path / "none.parquet")
    database = Database(tmp_path / "a.duckdb")
    one = read_import("parquet", tmp_path / "none.parquet")
    assert database.bring_in(one.run_id, one.facts, (), one.queries).results == 1
    assert [row["run_id"] for row in database.results()] == [one.run_id]


def test_what_is_said_of_a_run_has_to_be_json(tmp_path):
    path = wrote(tmp_path / "out.csv", "csv", r1=ABOUT)
    with path.open() as stream:
        (line,) = csv.DictReader(stream)
    with path.open("w") as stream:
        writer = csv.DictWriter(stream, line)
        writer.writeheader()
        writer.writerow({**line, "run": "{"})
    with pytest.raises(MalformedError, match="'run': it is not valid JSON"):
        read_import("csv", path)
    table = pq.read_table(wrote(tmp_path / "out", "parquet"))
    pq.write_table(table.append_column("run", pa.array(["{"])), tmp_path / "x.parquet")
    with pytest.raises(MalformedError, match="'run': it is not valid JSON"):
        read_import("parquet", tmp_path / "x.parquet")


def test_of_a_run_only_what_is_as_it_has_to_be_is_told():
    odd = {"label": ["a"], "git_commit": "abc", "plan": [1], "command": "secret"}
    environment = {"machine": "lab", "cpu": 7, "memory_total": "much", "kernel": "6"}
    assert run_facts({**odd, "environment": environment}) == {
        "git_commit": "abc",
        "environment": {"machine": "lab"},
    }
    assert run_facts({"environment": "a lab"}) == {}


def test_runs_come_in_with_their_results_alone(tmp_path):
    path = tmp_path / TIMM
    path.write_text(TIMM_HEADER + "net,224,1000,256,256,5.5,0.39,2.04\n")
    database = Database(tmp_path / "a.duckdb")
    for form, file in (("timm", path), ("csv", wrote(tmp_path / "out", "csv", r1=ABOUT))):
        found = read_import(form, file)
        database.bring_in(found.run_id, found.facts, found.bodies)
    _, rows = database.query("SELECT label, git_commit FROM benchmark_runs ORDER BY ALL")
    assert rows == [("timm", None), (None, "abc")]
