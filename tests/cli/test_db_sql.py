"""`accelbench db sql` where the words are off: what may have been meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shells import Command
from stored_rows import store


@pytest.fixture
def shell(command: Callable[..., Command], tmp_path: Path) -> Command:
    store(tmp_path / "accelbench.duckdb", {})
    return command("db")


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("SELECT latency_p50 FROM benchmark_results", "Did you mean latency_p50_ms,"),
        ("SELECT r.latencyp50 FROM benchmark_results r", "Did you mean latency_p50_ms,"),
        ("SELECT Modell FROM benchmark_results", "Did you mean model,"),
        ("SELECT git_comit FROM benchmark_runs", "Did you mean git_commit"),
        ("SELECT driver_version FROM hardware_info", "runtime_version"),
        ("WITH x AS (SELECT 1 AS ours) SELECT hours FROM x", "Did you mean ours?"),
        ("FROM benchmark_result", 'Did you mean "benchmark_results"?'),
    ],
)
def test_what_may_have_been_meant_is_named(query, meant, shell):
    code, out, err = shell("sql", query)
    assert (code, out) == (2, "")
    assert meant in err


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select 1; select 2", "These are 2 statements"),
        ("", "There is no SQL in that."),
        (" ; ", "There is no SQL in that."),
        ("/* nothing */", "There is no SQL in that."),
    ],
)
def test_one_statement_is_answered(query, said, shell):
    code, out, err = shell("sql", query)
    assert (code, out) == (2, "")
    assert said in err


def test_a_semicolon_at_the_end_or_in_a_word_is_no_second_statement(shell):
    assert shell.json("sql", "SELECT 'a;b';")["rows"] == [{"'a;b'": "a;b"}]


def test_a_column_like_no_other_is_answered_with_how_to_list_them(shell):
    err = shell("sql", "SELECT zzz FROM benchmark_results")[2]
    assert err.endswith(
        "accelbench: There is no column 'zzz' in benchmark_results."
        " `accelbench db sql 'DESCRIBE benchmark_results'` lists all.\n"
    )
    assert shell("sql", "DESCRIBE benchmark_results")[0] == 0
