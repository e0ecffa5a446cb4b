"""The files that tests/conftest.py has run first are there."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_each_file_that_is_to_come_first_is_there():
    listed = (TESTS / "conftest.py").read_text(encoding="utf-8").partition("LONGEST = (")[2]
    files = re.findall(r'"(.+)"', listed.partition(")")[0])
    assert len(files) == len(set(files)) > 5
    assert [file for file in files if not (TESTS / file).is_file()] == []
