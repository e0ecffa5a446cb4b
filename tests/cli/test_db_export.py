"""`accelbench db export`: which file, and what it says that it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stored_rows import store

DB = "accelbench.duckdb"


def launches(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"launch": n, **one} for one in (more or ({},)) for n in range(2)]


def test_export_writes_new_files_only(tmp_path, db):
    store(tmp_path / DB, *launches({"samples": {"step": [1, 2]}}))
    found = db.json("export", tmp_path / "out.csv")
    path = str(tmp_path / "out.csv")
    counts = {"results": 2, "entries": 2, "left_out": {}}
    assert found == {"path": path, "format": "csv", **counts}
    assert (tmp_path / "out.csv").read_text().count("\n") == 3
    code, _, err = db("export", tmp_path / "out.csv")
    assert code == 2
    assert "already exists" in err
    code, out, _ = db("export", "o", "--format", "json", "--samples")
    assert (code, out) == (0, "Wrote 2 results to o\n")
    assert json.loads(Path("o").read_text())["results"][0]["samples"] == {"step": [1, 2]}
    code, _, err = db("export", "o.xls")
    assert code == 2
    assert "csv, json, parquet" in err


def test_export_writes_what_pipelines_read(tmp_path, db):
    store(tmp_path / DB, *launches())
    assert db("export", "out.xml")[0] == 0
    assert "<testsuite " in (tmp_path / "out.xml").read_text()
    assert db("export", "out.json", "--format", "bencher")[0] == 0
    (one,) = json.loads((tmp_path / "out.json").read_text()).values()
    assert one["latency (ms)"]["value"] == 8.0


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("github-action-benchmark", "Wrote 3 entries of 6 results to out\n"),
        ("bencher", "Wrote 3 benchmarks of 6 results to out\n"),
        ("junit", "Wrote 3 test cases of 6 results to out\n"),
        ("markdown", "Wrote 6 results to out\n"),
        ("csv", "Wrote 6 results to out\n"),
    ],
)
def test_what_was_written_is_said(form, said, tmp_path, db):
    store(tmp_path / DB, *launches({}, {"batch_size": 8}, {"batch_size": 32}))
    assert db("export", "out", "--format", form)[1] == said


def test_what_was_left_out_is_said(tmp_path, db):
    """It said “Wrote 1 entry of 2 results to out”, and not which is in none."""
    store(tmp_path / DB, {}, {"batch_size": 8, "quality": "unusable"})
    said = "Wrote 1 entry of 2 results to out\nLeft out: 1 unusable.\n"
    assert db("export", "out", "--format", "github-action-benchmark")[1] == said
    found = db.json("export", "out.json", "--format", "bencher")
    assert (found["entries"], found["left_out"]) == (2, {})  # its memory is known


def test_a_run_that_a_check_made_for_itself_is_no_news(tmp_path, db):
    store(tmp_path / DB, *launches(), run="r", about={"label": "nightly"})
    for number, label in enumerate(("check --noise", "rerun of r")):
        later = {"latency_p50_ms": 99.0, "started_at": f"2026-03-0{number + 1}T00:00:00Z"}
        store(tmp_path / DB, *launches(later), run=f"own{number}", about={"label": label})
    assert db("export", "out.json", "--format", "bencher")[0] == 0
    (one,) = json.loads((tmp_path / "out.json").read_text()).values()
    assert one["latency (ms)"]["value"] == 8.0
    assert db("export", "all.csv")[1] == "Wrote 6 results to all.csv\n"


def test_one_is_one(tmp_path, db):
    store(tmp_path / DB, {})
    assert db("export", "out.md")[1] == "Wrote 1 result to out.md\n"
    assert db("export", "out.xml")[1] == "Wrote 1 test case of 1 result to out.xml\n"


@pytest.mark.parametrize("suffix", ["md", "csv", "xml"])
def test_a_folder_that_is_missing_is_made(suffix, tmp_path, db):
    store(tmp_path / DB, {})
    assert db("export", f"made/here/out.{suffix}")[0] == 0
    assert (tmp_path / "made" / "here" / f"out.{suffix}").stat().st_size > 0


def test_a_document_says_of_each_run_whose_machine_it_was(tmp_path, db):
    store(tmp_path / DB, {}, about={"label": "nightly", "command": "secret words"})
    db("export", "out.json")
    (about,) = json.loads((tmp_path / "out.json").read_text())["runs"].values()
    assert about["label"] == "nightly"
    assert about["environment"]["machine"] == "lab"
    assert "command" not in about


def test_results_go_into_a_tracker_once(tmp_path, db):
    store(tmp_path / DB, *launches(), {"status": "skipped", "latency_p50_ms": None}, run="r")
    store(tmp_path / DB, *launches(), run="later", about={"label": "nightly"})
    code, out, _ = db("export", "events", "--to", "tensorboard", "--run", "nightly")
    assert (code, out.splitlines()) == (
        0,
        ["Wrote 2 results into TensorBoard at events", "See it with: tensorboard --logdir events"],
    )
    found = db.json("export", "events", "--to", "tensorboard")
    assert found == {
        "tracker": "tensorboard",
        "place": "events",
        "results": 5,
        "written": 2,
        "there_already": 2,
        "never_run": 1,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "tensorbord"), "Did you mean tensorboard?"),
        (("--to", "mlflow", "--format", "csv"), "contradict each other"),
        (("--to", "tensorboard", "--run", "nobody"), "There is no run"),
    ],
)
def test_what_does_not_go_with_a_tracker_is_refused(words, said, tmp_path, db):
    store(tmp_path / DB, {})
    code, _, err = db("export", "out", *words)
    assert code == 2
    assert said in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow", "markdown", "junit"])
def test_models_and_runs_are_exported_by_name(form, tmp_path, db):
    later = {"started_at": "2026-02-01T00:00:00Z"}
    store(tmp_path / DB, *launches({}, {"model": "vit-tiny"}), run="r1")
    store(tmp_path / DB, *launches({"model": "vit-tiny", **later}), run="r2")
    counts = {
        words: db.json("export", tmp_path / f"out{number}", *words, "--format", form)["results"]
        for number, words in enumerate(
            [(), ("vit-tiny",), ("--run", "last"), ("--run", "r1"), ("vit-tiny", "--run", "r1")]
        )
    }
    assert list(counts.values()) == [6, 4, 2, 4, 2]


def test_an_export_of_nothing_names_the_command_that_measures_it(tmp_path, db):
    store(tmp_path / DB, *launches())
    code, _, err = db("export", tmp_path / "out.csv", "resnet-tiny")
    assert (code, "accelbench run resnet-tiny" in err) == (4, True)
    assert not (tmp_path / "out.csv").exists()


def test_the_run_and_its_label_are_a_column_of_markdown(tmp_path, db):
    store(tmp_path / DB, {}, run="first", about={"label": "before | after"})
    store(tmp_path / DB, {"result_id": "b"}, run="second")
    db("export", tmp_path / "out.md")
    heading, _, *lines = (tmp_path / "out.md").read_text().splitlines()
    assert heading.split("|")[-2].strip() == "run"
    assert ["first (before" in line or "second |" in line for line in lines] == [True, True]


def test_the_arm_is_a_column_of_markdown(tmp_path, db):
    store(tmp_path / DB, {"arm": "this"}, {"arm": "threads=1"})
    db("export", tmp_path / "out.md")
    heading, _, *lines = (tmp_path / "out.md").read_text().splitlines()
    at = heading.split(" | ").index("arm")
    assert sorted(line.split(" | ")[at] for line in lines) == ["this", "threads=1"]
