"""Every test that `make test` leaves out is named with its reason."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


def named(test: str) -> bool:
    """Whether the page names a test: itself, its class, or all of its file."""
    file, *names = test.split("::")
    return any(
        f"`{head}{end}" in PAGE
        for head in (file, f"{file}::{names[0]}", test)
        for end in ("`", "[")
    )


def test_each_test_that_is_left_out_is_named_with_its_reason(left_out: frozenset[str]) -> None:
    """Of the tests that were collected: of all, where all are run."""
    assert [test for test in sorted(left_out) if not named(test)] == []


def test_a_name_that_the_page_does_not_have_is_missed() -> None:
    assert not named("run/test_faults.py::test_silent_fallback_is_a_failure")
    assert named("run/test_small_set.py::test_every_null_has_its_reason")
