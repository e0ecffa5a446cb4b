"""`accelbench run`: what is refused with a sentence, before anything is measured or written."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from shells import QUICK

from accelbench.core.errors import UsageError
from accelbench.engines.shared.names import runtimes_named
from accelbench.store.database import Database


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bert-tny"], "bert-tiny"),
        (["bert-tiny", "--batch-sizes", "0"], "--batch-sizes takes numbers from 1"),
        (["bert-tiny", "--batch-sizes", str(10**12)], "--batch-sizes takes numbers from 1"),
        (["bert-tiny", "--batch-sizes", "many"], "whole numbers"),
        (["bert-tiny", "--audio-seconds", "2.5"], "whole numbers, not 2.5."),
        (["bert-tiny", "--precision", "fp7"], "fp32"),
        (["bert-tiny", "--mode", "dreaming"], "inference, training"),
        (["bert-tiny", "--hardware", "abacus"], "cpu"),
        (["bert-tiny", "--framework", "abacus"], "pytorch"),
        (["bert-tiny", "--precision", "fp7"], "int8"),
        (["bert-tiny", "--verify", "never"], "--verify auto or require"),
        (["bert-tiny", "--verify-only", "--benchmark-only"], "contradict each other"),
        (["bert-tiny", "--data", "."], "holds no images, sound or text"),
        (["bert-tiny", "--data", "nowhere"], "There is nothing at nowhere"),
        (["bert-tiny", "--timeout", "soon"], "--timeout takes a duration"),
        (["bert-tiny", "--budget", "-3m"], "--budget takes a duration"),
        (["--resume", "last"], "was cut off"),
        (["--resume", "last", "--iterations", "3"], "--iterations cannot be given anew"),
        (["bert-tiny", "--resume", "last"], "a model cannot be given anew"),
        (["--resume", "last", "--dry-run"], "--dry-run cannot be given anew"),
        (["bert-tiny", "--db", "x.duckdb"], "contradict"),
        (["bert-tiny", "--pure", "--precision", "fp32,amp-bf16"], "--pure and amp-bf16"),
    ],
)
def test_words_that_are_off_are_refused_with_what_to_do(shell, words, said):
    more = [] if "--resume" in words else ["--no-database"]
    assert said in shell.refused(*words, *more, code=2)


def test_the_runtime_of_tests_is_offered_only_where_it_is_scripted(monkeypatch):
    for value, offered in ((None, False), ("script.json", True)):
        monkeypatch.delenv("ACCELBENCH_SCRIPT", raising=False)
        if value:
            monkeypatch.setenv("ACCELBENCH_SCRIPT", value)
        with pytest.raises(UsageError) as caught:
            runtimes_named(["abacus"])
        assert ("scripted" in caught.value.advice) == offered
        assert "later piece" not in caught.value.advice


def test_debug_shows_where_an_error_was_raised(shell):
    process = shell.start("bert-tny", "--debug")
    _, err = process.communicate(timeout=60)
    assert "Traceback" in err
    assert process.returncode != 0


def test_a_result_file_that_exists_is_refused_before_measuring(shell):
    (shell.work / "ci.json").write_text("mine")
    assert "already exists" in shell.refused("bert-tiny", "--output-ci", "ci.json", *QUICK, code=2)


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--output-dir", "a-file"),
        ("--output-dir", "a-file/below"),
        ("--output-dir", "/proc/accelbench"),
        ("--output-ci", "a-file/ci.json"),
        ("--db", "a-file/x.duckdb"),
        ("--db", "a-folder"),
        ("--db", "/proc/accelbench/x.duckdb"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_measuring(shell, option, place):
    (shell.work / "a-file").write_text("mine")
    (shell.work / "a-folder").mkdir()
    (shell.work / "a-folder" / "mine").write_text("mine")  # an empty one would be a lake
    more = () if option == "--db" else ("--no-database",)
    shell.refused("bert-tiny", option, place, *more, *QUICK, code=3)


def foreign(path: Path) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE theirs AS SELECT 42 AS answer")


def corrupt(path: Path) -> None:
    Database(path).ensure()
    path.write_bytes(path.read_bytes()[:5000])


def not_a_database(path: Path) -> None:
    path.write_text("once upon a time")


def newer(path: Path) -> None:
    Database(path).ensure()
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE store_meta SET schema_version = 999")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (foreign, "another program"),
        (corrupt, "x.duckdb"),
        (not_a_database, "not a DuckDB database"),
        (newer, "has schema version 999"),
    ],
)
def test_a_database_that_is_not_ours_to_write_is_left_byte_for_byte(shell, make, said):
    make(shell.work / "x.duckdb")
    assert said in shell.refused("bert-tiny", "--db", "x.duckdb", *QUICK, code=3)


def test_an_unknown_run_cannot_be_resumed(shell):
    said = shell.refused("--resume", "20200101-000000-0000000000", code=3)
    assert "no journal of run" in said
