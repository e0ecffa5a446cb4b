"""Test times: how long does the test suite take, and which files take it?

Reads the JUnit files that pytest wrote and keeps seconds by file and the slowest tests. Times of
tests that ran beside one another overlap: their sum is what the suite asks of the machine, the
wall time what a person waits for. `make test-times` runs the suite and calls this.

    python benchmarks/test_times.py --name test_times --wall 812 build/tests-*.xml
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from keeping import keep

SLOWEST = 25


def file_of(classname: str) -> str:
    """Path of the test file in pytest's dotted name of a class or module."""
    parts = classname.split(".")
    last = max(i for i, part in enumerate(parts) if part.startswith("test_") or i == 0)
    return "/".join(parts[: last + 1]) + ".py"


def figures(reports: Iterable[Path]) -> dict[str, Any]:
    """Seconds by file, the slowest tests and the counts of some JUnit files."""
    seconds: Counter[str] = Counter()
    tests: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            file = file_of(case.attrib["classname"])
            took = float(case.attrib["time"])
            seconds[file] += took
            name = f"{file}::{case.attrib['name']}"
            tests[name] = tests.get(name, 0.0) + took
            counts[outcome(case)] += 1
    slowest = sorted(tests, key=lambda name: -tests[name])[:SLOWEST]
    return {
        "tests": dict(counts),
        "seconds_of_tests": round(sum(seconds.values()), 1),
        "seconds_by_file": {file: round(took, 1) for file, took in seconds.most_common()},
        "slowest": {name: round(tests[name], 1) for name in slowest},
    }


def outcome(case: ElementTree.Element) -> str:
    """What became of one test."""
    for word in ("failure", "error", "skipped"):
        if case.find(word) is not None:
            return word
    return "passed"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--name", default="test_times")
    parser.add_argument("--wall", type=float, help="seconds from the start to the end")
    parser.add_argument("--beside", default="nothing", help="what else the machine was doing")
    asked = parser.parse_args()
    found = figures(asked.reports)
    keep(asked.name, {"wall_seconds": asked.wall, "beside": asked.beside, **found})
    print(f"{found['seconds_of_tests']} s of tests, {asked.wall} s of waiting: {found['tests']}")


if __name__ == "__main__":
    main()
