"""What a whole series is of is what each of its runs is of, or is read of each run."""

from __future__ import annotations

import duckdb
import pytest

from accelbench.judge.verdicts import METRICS
from accelbench.present.series import KindReader

_COLUMNS = (
    "weights",
    "weights_digest",
    "workarounds",
    "provenance",
    "verification",
    "verification_error",
)
_METRIC = next(metric for metric in METRICS if not metric.rated)
_READING = KindReader(_METRIC)
_ALIKE = "('file', 'a', []::VARCHAR[], 'measured', 'ok', 0.1)"


def _of_series(rows: str) -> tuple[object, list[object]]:
    """What is said of all runs together, and of each by itself."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) v({', '.join(_COLUMNS)})")
    count, *series = con.execute(f"SELECT count(*), {_READING.sql_of_all} FROM t").fetchone() or ()
    runs = con.execute(f"SELECT {_READING.sql} FROM t GROUP BY rowid").fetchall()
    return _READING.of_all(count, series), [_READING.of(run) for run in runs]


@pytest.mark.parametrize(
    "row",
    [
        _ALIKE,
        "('file', 'a', ['relu as max']::VARCHAR[], 'imported', 'failed', 0.1)",
        "('file', NULL, NULL::VARCHAR[], 'measured', NULL, NULL)",
    ],
)
def test_what_all_runs_have_is_read_once(row):
    whole, runs = _of_series(f"{row}, {row}")
    assert whole is not None
    assert runs == [whole, whole]


@pytest.mark.parametrize(
    "other",
    [
        "('file', 'b', []::VARCHAR[], 'measured', 'ok', 0.1)",
        "('file', NULL, []::VARCHAR[], 'measured', 'ok', 0.1)",
        "('file', 'a', ['relu as max']::VARCHAR[], 'measured', 'ok', 0.1)",
        "('file', 'a', []::VARCHAR[], 'imported', 'ok', 0.1)",
        "('file', 'a', []::VARCHAR[], 'measured', 'failed', 0.1)",
        "('file', 'a', []::VARCHAR[], 'measured', NULL, 0.1)",
        "('file', 'a', []::VARCHAR[], 'measured', 'ok', 0.2)",
        "('file', 'a', []::VARCHAR[], 'measured', 'ok', NULL)",
    ],
)
def test_runs_that_differ_are_read_each(other):
    whole, _ = _of_series(f"{_ALIKE}, {other}")
    assert whole is None


def test_own_code_that_is_changed_is_of_one_kind():
    changed = _ALIKE.replace("file", "code"), _ALIKE.replace("'file', 'a'", "'code', 'b'")
    whole, runs = _of_series(", ".join(changed))
    assert whole is not None
    assert runs == [whole, whole]
