"""Each case that was once shown wrong is named with a test, and that test is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "named-cases.md").read_text(encoding="utf-8")
CASES = re.findall(r"^\| (.+) \| `([^`]+)` \|$", PAGE, re.MULTILINE)


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of a file's tests."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_there_are_many_and_each_is_named_once():
    assert len(CASES) >= 20
    assert len({said for said, _ in CASES}) == len(CASES)
    assert len(CASES) == len([line for line in PAGE.splitlines() if line.startswith("| ")]) - 2


@pytest.mark.parametrize("test", sorted({test for _, test in CASES}))
def test_its_test_is_there(test):
    file, _, name = test.partition("::")
    assert name in names_in(file)
