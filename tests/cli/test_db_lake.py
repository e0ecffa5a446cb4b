"""A folder as --db: every question is asked of it as of a database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shells import SCRIPTED, Shell
from stored_rows import store


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


def test_questions_are_asked_of_a_lake_unchanged(lake, command, monkeypatch):
    times = (8.0, 8.01, 7.99, 8.02, 7.98, 8.0)
    for number, factor in enumerate((1.0, 1.5)):
        rows = [
            {"case_id": "c", "series_key": "s", "launch": n, "latency_p50_ms": ms * factor,
             "latency_mean_ms": ms * factor, "throughput": 1e3 / ms / factor,
             "started_at": f"2026-01-0{number + 1}T00:00:00Z"}
            for n, ms in enumerate(times)
        ]  # fmt: skip
        store(lake, *rows, {"hardware": "cuda", "latency_p50_ms": 2.0}, run=f"r{number}")
        found = command("db").json("status", "--db", lake)
        assert found["tables"]["benchmark_results"] == 7 * (number + 1)
    # Another machine, which has seen nothing of it yet.
    monkeypatch.setenv("ACCELBENCH_CACHE", str(lake.parent / "another"))
    status = command("db").json("status", "--db", lake)
    assert (status["database"], status["lake_files"]) == (str(lake), 2)
    assert status["results_by_provenance"] == {"measured": 14}
    code, out, _ = command("compare")("--db", lake)
    assert (code, "times as fast" in out) == (0, True)
    assert command("check")("--hardware", "cpu", "--baseline", "r0", "--db", lake)[0] == 1
    assert command("check")("--hardware", "cpu", "--baseline", lake, "--db", lake)[0] == 1
    assert command("db").json("compact", "--db", lake) == {
        "database": str(lake), "files": 2, "removed": 0,
    }  # fmt: skip
    assert command("db")("export", lake.parent / "all.csv", "--db", lake)[0] == 0
    assert (lake.parent / "all.csv").read_text().count("\n") == 15


def test_where_nothing_is_there_is_no_lake_to_compact(lake, command):
    for place in (lake, "nolake"):
        code, _, err = command("db")("compact", "--db", place)
        assert code != 0
        assert "There is no lake at" in err
        assert "one file already" not in err
    store(lake.parent / "a.duckdb", {})
    err = command("db")("compact", "--db", lake.parent / "a.duckdb")[2]
    assert "one file already" in err


def test_every_answer_is_that_of_a_database(lake, command):
    database = lake.parent / "a.duckdb"
    for place in (lake, database):
        for day in range(12):
            rows = [
                {"case_id": hardware, "series_key": hardware, "hardware": hardware, "launch": n,
                 "verification": "ok", "latency_p50_ms": base * (1.2 if day > 6 else 1.0) + n / 1e3,
                 "started_at": f"2026-01-{day + 1:02d}T00:00:00Z"}
                for hardware, base in (("cpu", 8.0), ("cuda", 2.0))
                for n in range(5)
            ]  # fmt: skip
            store(place, *rows, run=f"r{day}", about={"label": f"night {day}"})
    questions = [
        ("compare",),
        ("compare", "--by", "run"),
        ("check", "--run", "r11", "--baseline", "r0"),
        ("check", "--run", "r11", "--baseline", "night 10"),
        ("history",),
        ("matrix",),
    ]
    for name, *more in questions:
        answers = []
        for place in (lake, database):
            code, out, err = command(name)(*more, "--json", "--db", place)
            assert out, err
            answers.append((code, {**json.loads(out), "timestamp": None}))
        assert answers[0] == answers[1]


def test_a_run_goes_into_a_lake(tmp_path):
    shell = Shell(tmp_path)
    shell.environment["ACCELBENCH_CACHE"] = str(tmp_path / "cache")
    (shell.work / "lake").mkdir()
    how = ("bert-tiny", *SCRIPTED, "--batch-sizes", "1,8", "--iterations", "5", "--warmup", "1")
    done = shell(*how, "--db", "lake")
    assert f"Database: {shell.work / 'lake'}" in done.stdout
    assert len(list((shell.work / "lake" / "results").iterdir())) == 1


def test_a_database_becomes_a_lake(lake, command):
    store(lake.parent / "a.duckdb", {"latency_p50_ms": 2.0})
    merged = command("db").json("merge", lake.parent / "a.duckdb", "--db", lake)["merged"]
    assert [one["results"] for one in merged] == [1]
    assert command("db").json("status", "--db", lake)["results_by_provenance"] == {"measured": 1}


def test_only_a_lake_is_compacted(tmp_path, command):
    assert command("db")("init", "--db", tmp_path / "a.duckdb")[0] == 0
    code, _, err = command("db")("compact", "--db", tmp_path / "a.duckdb")
    assert (code, "one file already" in err) == (2, True)


def test_a_folder_with_other_things_stays_as_it_is(tmp_path, command):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    for words in (("init",), ("status",)):
        code, _, err = command("db")(*words, "--db", tmp_path / "mine")
        assert code == 3
        assert "Traceback" not in err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
