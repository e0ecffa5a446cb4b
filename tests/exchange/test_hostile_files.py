"""Files made to be taken for what they are not: a sentence each, and nothing of them comes in."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bodies import body
from foreign_files import GUIDE, INFO, OURS, PERF, bring
from test_imports_parquet import LINE

from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.exchange.imports.reading import read_import
from accelbench.exchange.imports.records import MalformedError
from accelbench.store.database import Database
from exported import export

TIDY: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"latency_ms": "fast"}, "latency_ms", "its type is VARCHAR, and a number is expected"),
    ({"model": 5}, "model", "its type is BIGINT, and VARCHAR is expected"),
    ({"extra": ["x"]}, "extra", "and VARCHAR is expected"),
    ({"batch_size": 1.5}, "batch_size", "is not a whole number"),
    ({"img_size": 224.5}, "img_size", "is not a whole number"),
    ({"latency_ms": float("nan")}, "latency_ms", "is not a finite number"),
    ({"throughput": 1e300, "latency_ms": None}, "throughput", "above the largest possible value"),
    ({"memory_mb": 1e15}, "memory_mb", "above the largest possible value"),
    ({"params_m": -1.0}, "params_m", "is below 0"),
    ({"gmacs": float("inf")}, "gmacs", "is not a finite number"),
    ({"extra": "[]"}, "extra", "it is not a JSON object"),
    ({"extra": '{"n_gpus": -5}'}, "extra", "its n_gpus: it is not above 0"),
    ({"extra": '{"num_threads": "many"}'}, "extra", "its num_threads is not a bigint"),
    ({"extra": '{"date": "soon"}'}, "extra", "its date is not a timestamptz"),
    ({"extra": '{"date": "1999-01-01"}'}, "extra", "its date: it is in the future, or before"),
)


@pytest.mark.parametrize(("said", "field", "why"), TIDY, ids=lambda one: str(one)[:40])
def test_a_tidy_table_of_other_types_is_refused(said, field, why, tmp_path):
    pq.write_table(pa.Table.from_pylist([{**LINE, **said}]), tmp_path / "t.parquet")
    with pytest.raises(MalformedError) as caught:
        read_import("tidy", tmp_path / "t.parquet")
    assert caught.value.field == field
    assert why in caught.value.message
    assert caught.value.line == 1


def test_a_tidy_line_without_figures_did_not_run(tmp_path):
    none = {**LINE, "latency_ms": None, "throughput": None}
    derived = {**LINE, "throughput": None, "extra": '{"latency_is_derived": true}'}
    pq.write_table(pa.Table.from_pylist([LINE, none, derived]), tmp_path / "t.parquet")
    found = read_import("tidy", tmp_path / "t.parquet")
    assert (found.results, found.empty) == (1, 2)
    assert bring(Database(tmp_path / "a.duckdb"), "tidy", tmp_path / "t.parquet") == 1


def test_what_is_left_out_is_not_made_up(tmp_path):
    (tmp_path / "info.yaml").write_text(INFO.replace("25.5M", "25.5.5M"))
    (tmp_path / "perf.yaml").write_text(PERF)
    assert {one.get("parameters") for one in read_import("aihub", tmp_path).bodies} == {None}
    path = tmp_path / "benchmark_results_1.csv"
    path.write_text(GUIDE.replace("(8, 3, 224, 224)", "(1, 2, 1e999, 1e999)"))
    assert "image_size" not in read_import("guide-csv", path).bodies[0]


def test_a_name_with_brackets_is_one_file(tmp_path):
    for name, model in (("a", "first"), ("b", "second"), ("[ab]", "third")):
        row = {**OURS, "model": model, "result_id": name}
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / f"{name}.parquet")
    database = Database(tmp_path / "x.duckdb")
    bring(database, "parquet", tmp_path / "[ab].parquet")
    assert [row["model"] for row in database.results()] == ["third"]


def test_damage_in_any_byte_of_a_table_is_a_sentence(tmp_path):
    pq.write_table(pa.Table.from_pylist([OURS]), tmp_path / "r.parquet")
    whole = (tmp_path / "r.parquet").read_bytes()
    database, refused = Database(tmp_path / "a.duckdb"), 0
    for place in range(4, 1200, 150):
        data = bytearray(whole)
        data[place] ^= 0xFF
        (tmp_path / "r.parquet").write_bytes(data)
        try:
            bring(database, "parquet", tmp_path / "r.parquet")
        except AccelbenchError:
            refused += 1
    assert refused > 3


def test_places_that_are_no_files_are_said(tmp_path):
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


def test_a_cell_may_be_as_long_as_an_export_makes_it(tmp_path):
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
def test_what_goes_out_comes_in_the_same(form, tmp_path):
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
    bring(there, form, path)
    theirs = {"provenance": "imported", "conditions": {"torch": "2", "source": {"name": form}}}
    lost: dict[str, Any] = {} if form == "json" else {"samples": {}, "sampling": {}}
    assert there.results(samples=True) == [{**row, **theirs, **lost} for row in rows]
