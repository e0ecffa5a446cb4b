"""What the words of `accelbench compare` may mean: runs, models, databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stored_rows import store

DB = "accelbench.duckdb"
RUNS = {"20260101-aa": ("main", 8.0), "20260102-bb": ("main", 4.0), "20260103-cc": ("pr-12", 2.0)}


@pytest.fixture
def runs(tmp_path: Path) -> None:
    """Three runs on two batch sizes, of two labels."""
    for run, (label, ms) in RUNS.items():
        moment = f"{run[:4]}-{run[4:6]}-{run[6:8]}T00:00:00Z"
        sides = [
            {"batch_size": batch, "latency_p50_ms": ms * batch, "started_at": moment}
            for batch in (1, 2)
        ]
        store(tmp_path / DB, *sides, run=run, about={"label": label, "started_at": moment})


def of_runs(found: Any) -> set[str]:
    return {line["run_id"] for line in found["comparisons"]}


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("word", ["pr-12", "20260103-cc", "20260103"])
def test_a_run_is_named_by_label_id_or_beginning(compare, word):
    assert of_runs(compare.json("--by", "batch", "--run", word)) == {"20260103-cc"}


@pytest.mark.usefixtures("runs")
def test_of_a_label_of_many_runs_the_newest_is_the_baseline(compare):
    found = compare.json("--by", "run", "--baseline", "main", "--batch-sizes", "1")
    assert {line["baseline"] for line in found["comparisons"]} == {"20260102-bb"}
    assert [line["speedup"] for line in found["comparisons"]] == [0.5, 1.0, 2.0]
    assert found["labels"] == {run: label for run, (label, _) in RUNS.items()}
    assert "20260102-bb (main)" in compare("--by", "run")[1]


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--run", "mian"),
            "There is no run, label or branch 'mian'. There are: 20260103-cc (pr-12)",
        ),
        (("--by", "run", "--baseline", "mian"), "There is no run, label or branch 'mian'."),
        (("--run", "202601"), "'202601' begins the ids of 3 runs."),
    ],
)
def test_a_word_that_means_no_one_run_is_refused(compare, words, said):
    code, out, err = compare(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert "20260101-aa (main)" in err


def test_a_slip_in_a_models_name_is_told_with_what_is_like_it(tmp_path, compare):
    store(tmp_path / DB, {"model": "theirs_v2"}, {"model": "theirs_v2", "hardware": "cuda"})
    for words in (("theirs_v3",), ("theirs_v2", "theirs_v3"), ("THEIRS_V2",)):
        code, out, err = compare(*words)
        assert (code, out) == (2, "")
        assert f"No model is called {words[-1]!r}. Did you mean theirs_v2?" in err
    code, _, err = compare("zzz")
    assert (code, "There are results of theirs_v2." in err) == (2, True)


def test_a_model_that_is_known_and_was_not_measured_is_to_be_measured(tmp_path, compare):
    store(tmp_path / DB, {}, {"hardware": "cuda"})
    for word in ("vit-base", "bert-tiny --precision int8"):
        code, _, err = compare(*word.split())
        assert (code, "measure first" in err) == (4, True)


def test_a_folder_that_is_no_lake_is_told(tmp_path, compare):
    folder = tmp_path / "results"
    folder.mkdir()
    code, _, err = compare("--db", folder)
    assert code == 3
    assert f"{folder} is a folder with no lake in it. Begin one" in err
    store(folder / DB, {})
    assert f"There is a database in it: --db {folder / DB}." in compare("--db", folder)[2]


def test_a_file_in_a_folder_that_is_not_there_yet(tmp_path, compare):
    store(tmp_path / DB, {}, {"hardware": "cuda"})
    assert compare("--output", "new/analysis.csv")[0] == 0
    assert (tmp_path / "new" / "analysis.csv").exists()
    (tmp_path / "file").touch()
    code, _, err = compare("--output", "file/analysis.csv")
    assert (code, "Writing the file failed" in err) == (3, True)


def test_what_is_quantised_and_not_verified_is_told_below_its_table(tmp_path, compare):
    """It read “int8 … 4.83× (4.62 – 5.04)”, and nothing of its outputs."""
    fine = {"verification": "ok", "verification_error": 0.01}
    store(
        tmp_path / DB,
        *({"latency_p50_ms": 8.0, "launch": n, **fine} for n in range(2)),
        *({"latency_p50_ms": 2.0, "launch": n, "precision": "int8"} for n in range(2)),
        *(
            {"latency_p50_ms": 1.0, "launch": n, "precision": "int4", **fine, **worse}
            for n, worse in enumerate(({}, {"verification_error": 0.5}))
        ),
        *({"latency_p50_ms": 3.0, "launch": n, "precision": "fp8", **fine} for n in range(2)),
    )
    said = compare("--by", "precision")[1].splitlines()
    assert "Not known to be exact: int4 (error 0.5); int8 (outputs not verified)." in said
    told = {
        line["precision"]: (line["verification_error"], line["not_exact"])
        for line in compare.json("--by", "precision")["comparisons"]
    }
    assert told == {
        "fp32": (0.01, ""),
        "fp8": (0.01, ""),
        "int4": (0.5, "error 0.5"),
        "int8": (None, "outputs not verified"),
    }
