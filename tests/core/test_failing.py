"""What launches that failed say of those beside them: one rule, in Python and in SQL alike."""

from __future__ import annotations

import itertools
import random
from typing import Any

import duckdb
import pytest

from accelbench.core.columns import ASKED
from accelbench.core.worth import (
    FAILED,
    LAUNCHED,
    answered,
    failing_in,
    failing_of,
    failing_sql,
    launches_failed,
    marked,
    of_whole_runs,
    reason_unusable,
    usable,
    whole_runs_sql,
    why_unusable,
)

_KINDS = ("ok", "ok", "ok", "ok", "failed", "out_of_memory", "timeout", "skipped")
_COLUMNS = ("run_id", "case_id", "device_fingerprint", "arm", "model", "status", "reason")
_SAID = ("verification", "quality")


def launches(*statuses: str, **changes: Any) -> list[dict[str, Any]]:
    """Of one configuration and run, each with a status; "wrong" ran, and its outputs are wrong."""
    wrong = {"status": "failed", "reason": "wrong_outputs", "verification": "failed"}
    row = {"run_id": "r", "case_id": "c", "device_fingerprint": "d", "verification": "ok"}
    return [
        {**row, "status": one, **(wrong if one == "wrong" else {}), **changes} for one in statuses
    ]


def test_what_is_wrong_in_one_launch_is_right_in_none_of_its_run() -> None:
    rows = of_whole_runs([*launches("ok", "ok", "wrong"), *launches("ok", run_id="next")])
    assert list(map(answered, rows)) == [False, False, False, True]


@pytest.mark.parametrize(
    ("statuses", "of_use"),
    [
        (("ok", "failed"), True),
        (("ok", "failed", "out_of_memory"), False),
        (("ok", "timeout", "timeout"), False),
        (("ok", "skipped", "skipped"), True),
    ],
)
def test_where_most_launches_failed_the_rest_is_of_no_use(
    statuses: tuple[str, ...], of_use: bool
) -> None:
    first = of_whole_runs(launches(*statuses))[0]
    assert usable(first) is of_use
    assert answered(first)


def test_launches_that_waited_for_other_processes_have_a_reason_of_their_own() -> None:
    wide = {"status": "ok", "quality": "unusable", "cpu_wait_share": 0.2}
    waited = {**wide, "cpu_wait_share": 0.7}
    assert reason_unusable(waited) != reason_unusable(wide)
    assert why_unusable([waited, {**waited, "quality": "fixed"}]) == reason_unusable(waited)
    assert why_unusable([wide, waited]).count(", or ") == 1


def test_how_many_failed_is_said_and_why_it_is_of_no_use() -> None:
    few = of_whole_runs(launches("ok", "ok", "failed"))
    assert launches_failed(few) == "1 of 3 launches failed"
    assert why_unusable(few) == "interval wider than ±25 %"
    assert why_unusable(of_whole_runs(launches("ok", "failed", "failed"))) == (
        "2 of 3 launches failed"
    )


def test_what_was_seen_once_is_not_counted_again() -> None:
    rows = of_whole_runs(launches("ok", "failed", "failed"))
    assert of_whole_runs(rows) == rows


def test_nobody_knows_which_lines_of_an_import_are_launches_of_one_thing() -> None:
    rows = launches("ok", "failed", "failed", "wrong", run_id="import-1")
    assert of_whole_runs(rows) == rows


def test_python_and_sql_see_the_same_of_random_runs() -> None:
    by = random.Random(0)
    rows = [
        {
            "run_id": run,
            "case_id": case,
            "device_fingerprint": device,
            "arm": "",
            "model": model,
            "status": by.choice(_KINDS),
            "reason": by.choice((None, None, None, "wrong_outputs")),
            "verification": by.choice((None, "ok", "ok", "ok", "failed")),
            "quality": by.choice((None, "converged", "unusable")),
        }
        for run, case, device, model in itertools.product(
            ("r1", "r2", "r3", "import-1", None), ("a", "b", None), ("d", None), ("m", "n")
        )
        for _ in range(by.choice((1, 2, 3, 5)))
    ]
    names = (*_COLUMNS, *_SAID)
    with duckdb.connect() as con:
        columns = ", ".join(f"{name} VARCHAR" for name in dict.fromkeys((*names, *ASKED)))
        con.execute(f"CREATE TABLE t (number INTEGER, {columns})")
        marks = ", ".join("?" for _ in range(len(names) + 1))
        con.executemany(
            f"INSERT INTO t (number, {', '.join(names)}) VALUES ({marks})",
            [[number, *(row[name] for name in names)] for number, row in enumerate(rows)],
        )
        told = ", ".join((*_SAID, FAILED, LAUNCHED))
        found = con.execute(f"SELECT {told} FROM {whole_runs_sql('t')} ORDER BY number").fetchall()
        known = failing_in(con.execute(failing_sql("t")).fetchall())
    judged = of_whole_runs(rows)
    some = [
        (new["verification"], new["quality"], new.get(FAILED), new.get(LAUNCHED)) for new in judged
    ]
    good = [answered(row) for row in rows]
    assert [one for one, is_good in zip(found, good, strict=True) if is_good] == [
        one for one, is_good in zip(some, good, strict=True) if is_good
    ]
    assert [one[:2] for one in found] == [one[:2] for one in some]
    assert known == failing_of(rows)
    assert marked(rows, known) == judged
    assert [one[:2] for one in some] != [(row["verification"], row["quality"]) for row in rows]
