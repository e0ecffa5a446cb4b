"""The view `launches`: which results may decide anything, and why the others may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from accelbench.core.unusable_reasons import UnusableReason
from accelbench.store.database import Database
from accelbench.store.duck import connect

WIDE = {"latency_p50_ms": 4.0, "latency_ci_low_ms": 1.0, "latency_ci_high_ms": 9.0}
UNUSABLE = {"quality": "unusable"}
CASES: list[tuple[dict[str, Any], UnusableReason | None]] = [
    ({}, None),
    ({"quality": "noise_limited"}, None),
    ({"provenance": "imported"}, None),
    ({"status": "skipped", "reason": "time_budget"}, UnusableReason.SKIPPED),
    ({"status": "failed", "reason": "wrong_outputs"}, UnusableReason.WRONG_OUTPUTS),
    ({"status": "timeout", "reason": "timeout"}, UnusableReason.FAILED),
    ({"emulated": True}, UnusableReason.EMULATED),
    ({"provenance": "simulated"}, UnusableReason.SIMULATED),
    ({"provenance": "predicted"}, UnusableReason.PREDICTED),
    ({**UNUSABLE, **WIDE}, UnusableReason.TOO_NOISY),
    ({**UNUSABLE, **WIDE, "unexplained_share": 0.7}, UnusableReason.TOO_NOISY),
    ({**UNUSABLE, "unexplained_share": 0.7}, UnusableReason.UNACCOUNTED),
    ({**UNUSABLE, **WIDE, "cpu_wait_share": 0.7}, UnusableReason.WAITED),
    ({**UNUSABLE, "implausible_rate": {"operations": 1.0}}, UnusableReason.IMPLAUSIBLE),
]


def reasons(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[tuple[bool, str | None]]:
    """Store rows and read what the view records of each."""
    database = Database(path)
    database.ensure()
    names = sorted({name for row in rows for name in row})
    with connect(path, write=True) as con:
        marks = ", ".join("?" * len(names))
        con.executemany(
            f"INSERT INTO fact_result ({', '.join(names)}) VALUES ({marks})",
            [[row.get(name) for name in names] for row in rows],
        )
    found = database.query("SELECT usable, unusable_reason FROM launches ORDER BY result_id")[1]
    return [(bool(usable), None if reason is None else str(reason)) for usable, reason in found]


def launch(number: int = 0, **changes: Any) -> dict[str, Any]:
    row = {"result_id": f"r-{number}", "run_id": "r", "case_id": "c", "status": "ok"}
    return {**row, "provenance": "measured", "launch": number + 1, **changes}


@pytest.mark.parametrize(("changes", "reason"), CASES, ids=lambda one: str(one)[:50])
def test_each_reason(changes, reason, tmp_path):
    assert reasons(tmp_path / "a.duckdb", [launch(**changes)]) == [(reason is None, reason)]


@pytest.mark.parametrize(("failed", "usable"), [(0, True), (1, True), (2, False)])
def test_launches_left_of_mostly_failed_ones_are_unusable(failed, usable, tmp_path):
    lost = [launch(number, status="failed", reason="crash") for number in range(failed)]
    found = reasons(tmp_path / "a.duckdb", [*lost, launch(failed)])
    assert found[-1] == (usable, None if usable else UnusableReason.MOST_LAUNCHES_FAILED)


def test_wrong_outputs_of_a_launch_are_those_of_its_configuration(tmp_path):
    wrong = launch(0, status="failed", reason="wrong_outputs")
    found = reasons(tmp_path / "a.duckdb", [wrong, launch(1), launch(2, case_id="d")])
    wrong_outputs = (False, UnusableReason.WRONG_OUTPUTS)
    assert found == [wrong_outputs, wrong_outputs, (True, None)]


def test_every_reason_is_tested():
    tested = {reason for _, reason in CASES} | {UnusableReason.MOST_LAUNCHES_FAILED}
    assert tested == {*UnusableReason, None}
