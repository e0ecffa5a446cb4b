"""Files made to be taken for what they are not: a sentence each, and nothing of them comes in."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bodies import body
from foreign_files import (
    FORWARD,
    GUIDE,
    INFO,
    MLPERF,
    OPTIMUM,
    OURS,
    PERF,
    PYTEST,
    TIMM,
    TIMM_HEADER,
    document,
    results,
    table,
)
from test_imports_parquet import LINE

from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.exchange.imports.reading import read_import
from accelbench.exchange.imports.records import MalformedError
from accelbench.store.database import Database
from exported import export

GUIDE_FILE, TIMM_ROW = "benchmark_results_1.csv", "net,224,1000.0,256.0,256.0,5.5,{},2.04\n"
VALUES = "report__forward__latency__values"
DATA = "benchmarks__0__stats__data"
TRUTH = GUIDE.replace("git_commit\n", "git_commit,compiled\n").replace("abcdef\n", "abcdef,maybe\n")
#: Kind, name, text, the field that is named, and why.
REFUSED = (
    ("optimum", "benchmark.json", document(FORWARD, **{VALUES: ["x"]}), "values", "x' is among"),
    ("optimum", "benchmark.json", document(FORWARD, **{VALUES: [None]}), "values", "None' is"),
    ("optimum", "benchmark.json", document(FORWARD, **{VALUES: [10**400, 1]}), "values", "1000"),
    ("optimum", "benchmark.json", document(FORWARD, **{VALUES: [1e300, 1]}), "samples", "than the"),
    ("optimum", "benchmark.json", document(OPTIMUM, config__environment__gpu=5), "gpu", "a list"),
    ("optimum", "benchmark.json", document(OPTIMUM, config__environment__gpu=[5]), "gpu", "names"),
    ("pytest-benchmark", "a.json", document(PYTEST, **{DATA: [True, 1]}), "data", "True' is among"),
    ("pytest-benchmark", "a.json", document(PYTEST, **{DATA: [1e306, 1]}), "samples", "more than"),
    ("aihub", "perf.yaml", PERF.replace("max: 12", "max: -1"), "max", "is below 0"),
    ("aihub", "perf.yaml", PERF.replace("min: 0", "min: 13"), "max", "12 is below min, 13"),
    ("aihub", "perf.yaml", PERF.replace("total: 7", "total: 1e300"), "total", "more than there"),
    ("timm", TIMM, TIMM_HEADER + TIMM_ROW.format("-1"), "infer_gmacs", "is below 0"),
    ("timm", TIMM, TIMM_HEADER + TIMM_ROW.format("1_0"), "infer_gmacs", "is no number"),
    ("timm", TIMM, TIMM_HEADER + TIMM_ROW.format("\u0661"), "infer_gmacs", "is no number"),
    ("mlperf", "summary_results.json", json.dumps([{**MLPERF, "Power_Result": -1}]),
     "Power_Result", "is below 0"),
    ("mlperf", "summary_results.json", json.dumps([{**MLPERF, "Nodes": 10**12}]),
     "world_size", "more than there can be"),
    ("guide-csv", GUIDE_FILE, TRUTH, "compiled", "'maybe' is no truth"),
    ("guide-csv", GUIDE_FILE, GUIDE.replace("(8, 3, 224, 224)", "(" * 3000),
     "input_shape", "is no shape"),
    ("json", "r.json", results(sampling={"step": {"timing": "guessed"}}),
     "sampling", "is none of each"),
    ("json", "r.json", results(sampling={"step": {"steps": [0]}}), "sampling", "above 0"),
    ("json", "r.json", results(sampling={"step": 5}), "sampling", "objects were expected"),
    ("json", "r.json", results(conditions=[1]), "conditions", "or no object"),
    ("csv", "r.csv", table(seed="9223372036854775808"), "seed", "not a whole number of 64 bits"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "text", "field", "why"), REFUSED, ids=lambda one: str(one)[:24]
)
def test_a_value_that_cannot_be_is_named(
    kind: str, name: str, text: str, field: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MalformedError) as caught:
        read_import(kind, path)
    assert caught.value.field == field
    assert why in caught.value.message
    assert caught.value.line is not None
    assert len(caught.value.message) < len(str(path)) + 200


TIDY: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"latency_ms": "fast"}, "latency_ms", "it holds VARCHAR where a number is expected"),
    ({"model": 5}, "model", "it holds BIGINT where VARCHAR is expected"),
    ({"extra": ["x"]}, "extra", "where VARCHAR is expected"),
    ({"batch_size": 1.5}, "batch_size", "is no whole number"),
    ({"img_size": 224.5}, "img_size", "is no whole number"),
    ({"latency_ms": float("nan")}, "latency_ms", "is no finite number"),
    ({"throughput": 1e300, "latency_ms": None}, "throughput", "more than there can be"),
    ({"memory_mb": 1e15}, "memory_mb", "more than there can be"),
    ({"params_m": -1.0}, "params_m", "is below 0"),
    ({"gmacs": float("inf")}, "gmacs", "is no finite number"),
    ({"extra": "[]"}, "extra", "it is no JSON, or no object"),
    ({"extra": '{"n_gpus": -5}'}, "extra", "its n_gpus: it is not above 0"),
    ({"extra": '{"num_threads": "many"}'}, "extra", "its num_threads is no bigint"),
    ({"extra": '{"date": "soon"}'}, "extra", "its date is no timestamptz"),
    ({"extra": '{"date": "1999-01-01"}'}, "extra", "its date: it is in the future, or before"),
)


@pytest.mark.parametrize(("said", "field", "why"), TIDY, ids=lambda one: str(one)[:40])
def test_a_tidy_table_of_other_types_is_refused(
    said: dict[str, Any], field: str, why: str, tmp_path: Path
) -> None:
    pq.write_table(pa.Table.from_pylist([{**LINE, **said}]), tmp_path / "t.parquet")
    with pytest.raises(MalformedError) as caught:
        read_import("tidy", tmp_path / "t.parquet")
    assert caught.value.field == field
    assert why in caught.value.message
    assert caught.value.line == 1


def test_a_tidy_line_without_figures_did_not_run(tmp_path: Path) -> None:
    none = {**LINE, "latency_ms": None, "throughput": None}
    derived = {**LINE, "throughput": None, "extra": '{"latency_is_derived": true}'}
    pq.write_table(pa.Table.from_pylist([LINE, none, derived]), tmp_path / "t.parquet")
    found = read_import("tidy", tmp_path / "t.parquet")
    assert (found.results, found.empty) == (1, 2)
    database = Database(tmp_path / "a.duckdb")
    assert database.bring_in(found.run_id, found.facts, (), found.queries).results == 1


def test_what_is_left_out_is_not_made_up(tmp_path: Path) -> None:
    (tmp_path / "info.yaml").write_text(INFO.replace("25.5M", "25.5.5M"))
    (tmp_path / "perf.yaml").write_text(PERF)
    assert {one.get("parameters") for one in read_import("aihub", tmp_path).bodies} == {None}
    path = tmp_path / GUIDE_FILE
    path.write_text(GUIDE.replace("(8, 3, 224, 224)", "(1, 2, 1e999, 1e999)"))
    assert "image_size" not in read_import("guide-csv", path).bodies[0]


def test_a_name_with_brackets_is_one_file(tmp_path: Path) -> None:
    for name, model in (("a", "first"), ("b", "second"), ("[ab]", "third")):
        row = {**OURS, "model": model, "result_id": name}
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / f"{name}.parquet")
    found = read_import("parquet", tmp_path / "[ab].parquet")
    database = Database(tmp_path / "x.duckdb")
    database.bring_in(found.run_id, found.facts, (), found.queries)
    assert [row["model"] for row in database.results()] == ["third"]


def test_damage_in_any_byte_of_a_table_is_a_sentence(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([OURS]), tmp_path / "r.parquet")
    whole = (tmp_path / "r.parquet").read_bytes()
    database, refused = Database(tmp_path / "a.duckdb"), 0
    for place in range(4, 1200, 150):
        data = bytearray(whole)
        data[place] ^= 0xFF
        (tmp_path / "r.parquet").write_bytes(data)
        try:
            found = read_import("parquet", tmp_path / "r.parquet")
            database.bring_in(found.run_id, found.facts, (), found.queries)
        except AccelbenchError:
            refused += 1
    assert refused > 3


def test_places_that_are_no_files_are_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    for path, why in (
        (tmp_path / "fifo.json", "is neither a file nor a folder"),
        (tmp_path, r"There is no \*\.json in"),
        (tmp_path / "loop.json", "There is no|cannot be read"),
        (Path("x" * 5000), "cannot be read"),
    ):
        with pytest.raises(UsageError, match=why):
            read_import("json", path)


def test_a_cell_may_be_as_long_as_an_export_makes_it(tmp_path: Path) -> None:
    stream = io.StringIO()
    cells = {**OURS, "samples": "[" + "1000," * 40_000 + "1000]"}
    csv.writer(stream).writerows([cells, cells.values()])
    (tmp_path / "r.csv").write_text(stream.getvalue())
    assert read_import("csv", tmp_path / "r.csv").results == 1


WHOLE: dict[str, Any] = {
    "latency_mean_ms": 0.25, "latency_p50_ms": 0.05,
    "samples": {"step": [20_000, 50_000, 680_000], "forward": [7]},
    "latency_p90_ms": 0.3, "latency_p90_low_ms": 0.2, "latency_p90_rough": True,
    "latency_p99_ms": 0.4, "latency_p99_rough": False,
    "latency_ci_low_ms": 1 / 30, "latency_ci_high_ms": 0.1 + 0.2,
    "unexplained_share": 0.012345678901234567, "steps_verified": "ok", "self_check": "not_done",
    "verification": "ok", "verification_error": 1e-7, "verification_tolerance": 2e-4,
    "seed": 2**63 - 1, "launch": 3, "compiled": True, "emulated": False,
    "loss_per_step": [1.0, 0.1 + 0.2], "extra": {"a": 1.5, "b c": -2.0}, "options": {"x": [1, {}]},
    "warnings": ["a", "=b", "c,d"], "workarounds": [], "evidence": {"devices": ["cpu"]},
    "nulls": {"latency_max_ms": "why"}, "environment": {"load": [1, 2.5]}, "arm": "this",
    "conditions": {"torch": "2"}, "sampling": {"step": {"timing": "each"}}, "sample_count": 3,
}  # fmt: skip


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_what_goes_out_comes_in_the_same(form: str, tmp_path: Path) -> None:
    said = ("unusable", "fixed", "converged", "noise_limited", "throttled")
    bodies = [
        {**body(n, **WHOLE), "quality": word, "result_id": f"r{n}"} for n, word in enumerate(said)
    ]
    bodies[1] |= {"message": "a = b", "arm": ""}
    here, there = Database(tmp_path / "a.duckdb"), Database(tmp_path / "b.duckdb")
    here.bring_in("run", [], bodies)
    rows = here.results(samples=True)
    path = tmp_path / f"x.{form}"
    export(path, rows, form, samples=form == "json")
    found = read_import(form, path)
    there.bring_in(found.run_id, found.facts, found.bodies, found.queries)
    theirs = {"provenance": "imported", "conditions": {"torch": "2", "source": {"name": form}}}
    lost: dict[str, Any] = {} if form == "json" else {"samples": {}, "sampling": {}}
    assert there.results(samples=True) == [{**row, **theirs, **lost} for row in rows]
