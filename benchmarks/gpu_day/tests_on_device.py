"""Conformance: the tests that are marked `cuda`, as many as fit into the time."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

from gpu_day.part import NotHereError, Recorder

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "conformance"
#: Seconds that all of them take on a data-centre GPU; in less, those of two models.
ALL = 300.0
SUBSET = "bert-tiny or resnet-tiny"
#: Seconds kept back for pytest to write its report after an interrupt.
BACK = 15.0


def conformance(at: Recorder) -> None:
    if find_spec("pytest") is None:
        raise NotHereError("pytest is not installed")
    if not FOLDER.is_dir():
        raise NotHereError("the tests are not beside the benchmarks")
    chosen = _chosen(at)
    at.figure("chosen", chosen)
    report = at.day.folder / "conformance.xml"
    interrupted = run_pytest(chosen, report, max(1.0, at.seconds_left() - BACK))
    if not report.is_file():
        raise RuntimeError("pytest wrote no report")
    counts = counted(report)
    at.figure("tests", {**counts, "interrupted": interrupted})
    at.at_least("tests passed", counts["passed"], 1)
    at.same("tests failed", counts["failed"], 0)
    at.same("interrupted before the last test", interrupted, False)


def _chosen(at: Recorder) -> list[str]:
    if at.day.hardware != "cuda":  # nothing but the way there: a runtime without an engine
        return ["-m", "not cuda and not full", "-k", "ScriptedRuntime and TestSession"]
    if at.seconds_left() > ALL:
        return ["-m", "cuda"]
    return ["-m", "cuda and not full", "-k", SUBSET]


def run_pytest(chosen: list[str], report: Path, seconds: float) -> bool:
    """Run them; whether they had to be interrupted."""
    command = [sys.executable, "-m", "pytest", str(FOLDER), *chosen, "-q", "--tb=short"]
    # Without the project's own options, which need plugins that a bare machine may lack.
    command += ["-o", "addopts=", "-p", "no:cacheprovider", f"--junitxml={report}"]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
        return True
    return False


def counted(report: Path) -> dict[str, int]:
    """Numbers of tests by what became of them, of a JUnit file that pytest wrote itself."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total = {name: sum(int(suite.get(name, 0)) for suite in suites)
             for name in ("tests", "failures", "errors", "skipped")}  # fmt: skip
    failed = total["failures"] + total["errors"]
    return {
        "passed": total["tests"] - failed - total["skipped"],
        "failed": failed,
        "skipped": total["skipped"],
    }
