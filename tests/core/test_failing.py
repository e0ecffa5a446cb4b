"""How launches that failed change the others of their configuration."""

import itertools
import random

import duckdb
import pytest

from accelbench.core.columns import BY_NAME, SQL_TYPES
from accelbench.core.unusable_reasons import (
    FAILED,
    LAUNCHED,
    UNUSABLE_REASON,
    UnusableReason,
    failed_launches_text,
    why_unusable,
)
from accelbench.evidence.launches import launches_of, launches_sql

_KINDS = ("ok", "ok", "ok", "ok", "failed", "out_of_memory", "timeout", "skipped")
_COLUMNS = ("run_id", "case_id", "device_fingerprint", "arm", "model", "status", "reason")
_SAID = ("verification", "quality")


def launches(*statuses, **changes):
    """Of one configuration and run, each with a status; "wrong" ran, and its outputs are wrong."""
    wrong = {"status": "failed", "reason": "wrong_outputs", "verification": "failed"}
    row = {"run_id": "r", "case_id": "c", "device_fingerprint": "d", "verification": "ok"}
    return [
        {**row, "status": one, **(wrong if one == "wrong" else {}), **changes} for one in statuses
    ]


def test_launches_that_failed():
    rows = launches_of([*launches("ok", "ok", "wrong"), *launches("ok", run_id="next")])
    assert [row["answered"] for row in rows] == [False, False, False, True]

    wide = {"status": "ok", "quality": "unusable", "cpu_wait_share": 0.2}
    rows = launches_of([{**wide, "cpu_wait_share": 0.7}, wide, {**wide, "quality": "fixed"}])
    reasons = [row.get(UNUSABLE_REASON) for row in rows]
    assert reasons == [UnusableReason.WAITED, UnusableReason.TOO_NOISY, None]
    assert why_unusable(rows).count(", or ") == 1

    few = launches_of(launches("ok", "ok", "failed"))
    assert failed_launches_text(few) == "1 of 3 launches failed"
    assert why_unusable(few) == "interval wider than ±25 %"
    assert why_unusable(launches_of(launches("ok", "failed", "failed"))) == (
        "2 of 3 launches failed"
    )

    rows = launches_of(launches("ok", "failed", "failed"))
    assert launches_of(rows) == rows
    rows = launches_of(launches("ok", "failed", "failed", "wrong", run_id="import-1"))
    assert [row["usable"] for row in rows] == [True, False, False, False]


@pytest.mark.parametrize(
    ("statuses", "of_use"),
    [
        (("ok", "failed"), True),
        (("ok", "failed", "out_of_memory"), False),
        (("ok", "timeout", "timeout"), False),
        (("ok", "skipped", "skipped"), True),
    ],
)
def test_where_most_launches_failed_the_rest_is_of_no_use(statuses, of_use):
    first = launches_of(launches(*statuses))[0]
    assert first["times_usable"] is of_use
    assert first["answered"]


def test_rows_in_memory_and_in_a_table_have_the_same_columns():
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
        columns = ", ".join(f"{name} {SQL_TYPES[column.kind]}" for name, column in BY_NAME.items())
        con.execute(f"CREATE TABLE t (number INTEGER, {columns})")
        marks = ", ".join("?" for _ in range(len(names) + 1))
        con.executemany(
            f"INSERT INTO t (number, {', '.join(names)}) VALUES ({marks})",
            [[number, *(row[name] for name in names)] for number, row in enumerate(rows)],
        )
        told = ", ".join((*_SAID, FAILED, LAUNCHED, UNUSABLE_REASON))
        found = con.execute(f"SELECT {told} FROM ({launches_sql('t')}) ORDER BY number").fetchall()
    judged = launches_of(rows)
    names = (*_SAID, FAILED, LAUNCHED, UNUSABLE_REASON)
    some = [tuple(new.get(name) for name in names) for new in judged]
    good = [row["status"] == "ok" and row["verification"] != "failed" for row in rows]
    assert [one for one, is_good in zip(found, good, strict=True) if is_good] == [
        one for one, is_good in zip(some, good, strict=True) if is_good
    ]
    assert [one[:2] for one in found] == [one[:2] for one in some]
    assert [one[:2] for one in some] != [(row["verification"], row["quality"]) for row in rows]
