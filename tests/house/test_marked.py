"""Every test that `make test` leaves out is named with its reason, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


def patterns() -> list[re.Pattern[str]]:
    """The first column of the table: a file, `::` and names, and in brackets a part of parameters.

    `…` stands for any parameters.
    """
    rows = PAGE.partition("## What `make test-full` runs")[2].splitlines()
    found = []
    for row in rows:
        if (match := re.match(r"\| `([^`\[]+)(?:\[([^`]*)\])?`", row)) is not None:
            file, _, name = match[1].partition("::")
            parameters = re.escape(match[2] or "").replace("…", ".*")
            inside = rf"\[.*{parameters}.*\]" if match[2] else r"(?:\[.*\])?"
            found.append(re.compile(rf"{re.escape(file)}::{re.escape(name)}[^\[]*{inside}"))
    return found


def test_tests_that_are_left_out(left_out, request):
    # Of the tests that were collected: of all, where all are run.
    rows = patterns()
    assert rows
    assert [test for test in sorted(left_out) if not any(row.fullmatch(test) for row in rows)] == []
    # Each row is of tests that are left out.
    if len({item.path for item in request.session.items}) < 100:
        return  # only where all are run can it be told
    assert [row.pattern for row in patterns() if not any(map(row.fullmatch, left_out))] == []

    # What the page does not name is missed.
    def named(test: str) -> bool:
        return any(row.fullmatch(test) for row in patterns())

    assert not named("run/test_faults.py::test_silent_fallback_is_a_failure")
    assert not named("run/test_small_set.py::test_every_null_has_its_reason[few]")
    assert named("run/test_small_set.py::test_every_null_has_its_reason[all]")
