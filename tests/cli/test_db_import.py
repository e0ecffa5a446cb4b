"""`accelbench db import`: what it says, and whose machines the results are then of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored_rows import store

TIMM = "benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv"
TIMM_TEXT = (
    "model,infer_samples_per_sec,infer_step_time,infer_batch_size\n"
    "net_a,1000,256,256\nnet_b,500,512,256\n"
)
NO_MOMENT = (
    "2 results say no moment: they are compared, but have no place in a history; --measured-at"
    " gives them one, in a database without them"
)


def tidy(path: Path, *sources: str) -> Path:
    """A table of public measurements, a figure a source."""
    line = {"model": "net", "hardware_name": "A phone", "hardware_kind": "qualcomm-npu",
            "framework": "ncnn", "runtime": "ncnn", "precision": "fp32", "batch_size": 1,
            "mode": "inference", "latency_ms": 2.5, "throughput": 400.0}  # fmt: skip
    lines = [
        {**line, "source": source, "hardware_name": phone}
        for source in sources
        for phone in ("A phone", "B phone")
    ]
    pq.write_table(pa.Table.from_pylist(lines), path)
    return path


def a_table(path: Path, *changes: dict[str, Any]) -> None:
    """A table of public measurements, a line that is the usual one but for some changes."""
    line = {"source": "s", "model": "net", "hardware_name": "A phone", "hardware_kind": "cpu",
            "framework": "ncnn", "runtime": "ncnn", "precision": "fp32", "batch_size": 1,
            "mode": "inference", "latency_ms": 2.5, "throughput": 400.0, "memory_mb": 100.0,
            "gmacs": 1.0, "extra": "{}"}  # fmt: skip
    pq.write_table(pa.Table.from_pylist([{**line, **one} for one in changes]), path)


def test_equal_lines_are_taken_once_and_counted_apart_from_what_is_there(tmp_path, db):
    other = {"latency_ms": 5.0, "throughput": 200.0}
    a_table(tmp_path / "a.parquet", {}, {}, {}, other)
    found = db.json("import", "tidy", "a.parquet")
    assert (found["results"], found["equal_lines"], found["there_already"]) == (2, 2, 0)
    _, out, _ = db("import", "tidy", "a.parquet")
    equal, known = out.splitlines()[1:]
    assert equal.startswith("2 lines repeat another in everything and are taken once: ")
    assert known == "2 more were there already"


def test_equal_lines_that_say_they_are_launches_are_launches(tmp_path, db):
    a_table(tmp_path / "a.parquet", *({"extra": f'{{"launch": {n}}}'} for n in range(3)))
    assert db.json("import", "tidy", "a.parquet")["results"] == 3


def test_import_brings_in_once_and_says_so(tmp_path, db):
    (tmp_path / TIMM).write_text(TIMM_TEXT)
    code, out, _ = db("import", "timm", TIMM)
    assert code == 0
    assert out.splitlines() == [
        f"2 results from {TIMM}", "Machine, by --machine: source timm", NO_MOMENT,
    ]  # fmt: skip
    again = db("import", "timm", TIMM)[1].splitlines()
    assert again == [f"0 results from {TIMM}", "2 more were there already"]
    status = db.json("status")
    assert status["results_by_provenance"] == {"imported": 2}
    assert status["runs_by_status"] == {"finished": 1}
    assert status["machines"] == ["source timm"]


def test_a_single_result_is_one_result(tmp_path, db):
    (tmp_path / TIMM).write_text("".join(TIMM_TEXT.splitlines(keepends=True)[:2]))
    first, _, undated = db("import", "timm", TIMM)[1].splitlines()
    assert first == f"1 result from {TIMM}"
    assert undated.startswith("1 result says no moment: it is compared, but has no place")
    assert "1 more was there already" in db("import", "timm", TIMM)[1]


def test_lines_without_a_figure_are_counted(tmp_path, db):
    """Lines were left out without a word."""
    empty = "net_c" + "," * TIMM_TEXT.splitlines()[0].count(",") + "\n"
    (tmp_path / TIMM).write_text(TIMM_TEXT + empty)
    assert db.json("import", "timm", TIMM)["without_figures"] == 1
    said = db("import", "timm", TIMM)[1]
    assert "1 more line has no figure: it did not run, and is left out" in said


def test_a_moment_that_is_given_is_said_to_be_late(tmp_path, db):
    (tmp_path / TIMM).write_text(TIMM_TEXT)
    dated = ("import", "timm", TIMM, "--measured-at", "2026-08-08")
    assert "no moment" not in db(*dated, "--db", "dated.duckdb")[1]
    db("import", "timm", TIMM)
    found = db(*dated)[1].splitlines()
    assert found[1].endswith("already; what is there keeps the moment it has, or none")
    assert db.json("status")["tables"]["benchmark_results"] == 2
    assert db.json("status", "--db", "dated.duckdb")["first_result_at"].startswith("2026-08-08")


def test_import_says_what_it_did_to_machines(tmp_path, db):
    (tmp_path / TIMM).write_text(TIMM_TEXT)
    found = db.json("import", "timm", ".", "--commit", "abc", "--licence", "none")
    assert (found["results"], found["there_already"], found["without_moment"]) == (2, 0, 2)
    assert found["source"] == {"name": "timm", "commit": "abc", "licence": "none"}
    assert found["machines"] == ["source timm"]
    assert found["files"] == [TIMM]


def test_import_refuses_what_is_malformed_and_brings_in_nothing(tmp_path, db):
    (tmp_path / TIMM).write_text(TIMM_TEXT + "net_c,1,soon,1\n")
    code, out, err = db("import", "timm", TIMM)
    assert (code, out) == (2, "")
    assert f"{TIMM}, line 4, 'infer_step_time': 'soon' is not a number." in err
    assert "Nothing was imported." in err
    assert not (tmp_path / "accelbench.duckdb").exists()


def test_import_knows_its_kinds(db):
    code, _, err = db("import", "timn", "x.csv")
    assert code == 2
    assert "There is no kind named 'timn'." in err
    assert "pytest-benchmark" in err


def test_status_does_not_list_thousands_of_models(tmp_path, db):
    lines = "".join(f"net_{n},1000,256,256\n" for n in range(2000))
    (tmp_path / TIMM).write_text(TIMM_TEXT.splitlines(keepends=True)[0] + lines)
    db("import", "timm", TIMM)
    shown = db("status")[1]
    assert len(shown.splitlines()) < 40
    assert "1976 more" in " ".join(shown.split())
    assert len(db.json("status")["models"]) == 2000


def measured(path: Path, *, days: int = 6) -> None:
    """Nights of one machine, the last ones slower."""
    for day in range(1, days + 1):
        rows: list[dict[str, Any]] = [
            {"result_id": f"{day}-{n}", "case_id": name, "series_key": name, "hardware": name,
             "device_name": f"A {name}", "launch": n, "arm": "",
             "started_at": f"2026-01-{day:02d}T00:00:0{n}.000000Z",
             "latency_p50_ms": base * (1.5 if day > days // 2 else 1.0)}
            for n, (name, base) in enumerate((("cpu", 8.0), ("cuda", 2.0)))
        ]  # fmt: skip
        about = {"git_commit": f"{day:040x}", "label": "nightly"}
        store(path, *rows, run=f"r{day:02d}", about=about)


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_a_source_that_is_named_is_the_machine(form, tmp_path, db, command):
    measured(tmp_path / "a.duckdb")
    db("export", f"all.{form}", "--db", "a.duckdb")
    found = db.json("import", form, f"all.{form}", "--source", "cellar", "--db", "b.duckdb")
    assert found["machines"] == ["source cellar (A processor, 2 CPUs, 16 GiB)"]
    for word in ("cellar", "source cellar"):
        history = command("history").json("--machine", word, "--db", "b.duckdb")
        assert len(history["series"]) == 2
    # What others have been told of it goes on from here.
    db("export", f"more.{form}", "--db", "b.duckdb")
    further = db.json("import", form, f"more.{form}", "--db", "c.duckdb")
    assert further["machines"] == found["machines"]


def test_each_source_of_a_tidy_table_is_a_machine(tmp_path, db):
    tidy(tmp_path / "both.parquet", "timm", "ncnn")
    found = db.json("import", "tidy", "both.parquet")
    assert found["machines"] == ["source ncnn", "source timm"]
    assert (found["results"], found["without_moment"]) == (4, 4)
    again = db("import", "tidy", "both.parquet")[1].splitlines()
    assert again[1] == "4 more were there already"
    query = "SELECT count(DISTINCT run_id) FROM benchmark_results"
    assert db.json("sql", query)["rows"] == [{"count(DISTINCT run_id)": 2}]
    # Another file, with a source of which everything is here: no run of nothing.
    tidy(tmp_path / "later.parquet", "timm", "hailo")
    assert db.json("import", "tidy", "later.parquet")["machines"] == ["source hailo"]
    assert db.json("status")["tables"]["benchmark_runs"] == 3
    code, _, err = db("import", "tidy", "both.parquet", "--source", "me")
    assert (code, "names the source of each result" in err) == (2, True)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_samples_of_a_table_are_not_read_and_that_is_said(tmp_path, db, form):
    store(tmp_path / "own.duckdb", {"case_id": "c", "samples": {"step": [1, 2]}})
    db("export", f"o.{form}", "--samples", "--db", "own.duckdb")
    _, out, err = db("import", form, f"o.{form}", "--db", "new.duckdb")
    assert err == ""
    assert f"The samples in o.{form} are not read" in out
    assert db.json("import", form, f"o.{form}", "--db", "new.duckdb")["samples_not_read"] == [
        f"o.{form}"
    ]
    db("export", f"without.{form}", "--db", "own.duckdb")
    assert "samples" not in db("import", form, f"without.{form}", "--db", "b.duckdb")[1]
