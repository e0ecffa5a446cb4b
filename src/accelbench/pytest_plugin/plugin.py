"""What pytest asks of a plugin: options, the mark, the fixture, and the end of a run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.pytest_plugin import NEW_BASELINE

if TYPE_CHECKING:
    from accelbench.pytest_plugin.fixture import BenchmarkFixture

NAME = "accelbench"
#: What "can't tell" does to a test.
ANSWERS = ("warn", "fail", "skip")
#: pytest-xdist sets it in each of its test processes.
_XDIST = "PYTEST_XDIST_WORKER"
#: What was measured in a test, as plain values that travel with its report.
MEASURED = pytest.StashKey[list[dict[str, Any]]]()
#: Whether a test passed.
PASSED = pytest.StashKey[bool]()
_MARK = (
    "accelbench(**arguments): what the fixture accelbench is called with where a test does not say"
    " otherwise, such as launches=10; every test that uses the fixture has the mark, so that -m"
    " accelbench chooses them"
)
_PARALLEL = (
    "accelbench measures nothing beside other tests: run it with -n 0, or say --accelbench-parallel"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and settings, all of one prefix."""
    group = parser.getgroup(NAME, "accelbench: models measured by tests")
    group.addoption(
        "--accelbench-compare",
        nargs="?",
        const="",
        metavar="NAME",
        help="Show below the tests what changed since a baseline: a run, label, branch, file or"
        " database; without a name, since what each test measured last.",
    )
    group.addoption(
        "--accelbench-db",
        metavar="PATH",
        help="The database or lake of results; else accelbench_db, $ACCELBENCH_DB,"
        " ./accelbench.duckdb.",
    )
    group.addoption("--accelbench-label", metavar="NAME", help="A name for the runs of this time.")
    group.addoption(
        NEW_BASELINE,
        action="store_true",
        help="Label what a test measures with the name of its baseline if that does not exist yet;"
        " else the test fails.",
    )
    group.addoption(
        "--accelbench-cant-tell",
        choices=ANSWERS,
        help='What "can\'t tell" does to a test: warn, and let it pass; fail; skip.',
    )
    group.addoption(
        "--accelbench-parallel",
        action="store_true",
        help="Measure in processes of pytest-xdist, too, where tests disturb each other.",
    )
    parser.addini("accelbench_db", "The database or lake of results, from the root folder.")
    parser.addini(
        "accelbench_cant_tell", 'What "can\'t tell" does: warn, fail or skip.', default=""
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and refuse settings that mean nothing."""
    config.addinivalue_line("markers", _MARK)
    word = str(config.getini("accelbench_cant_tell"))
    if word and word not in ANSWERS:
        raise _refused("accelbench_cant_tell takes warn, fail or skip, not {}.", word)
    if config.getoption(NEW_BASELINE) and config.getoption("--accelbench-label"):
        raise pytest.UsageError(
            f"{NEW_BASELINE} labels runs with the names of their baselines: leave out"
            " --accelbench-label."
        )
    baseline = config.getoption("--accelbench-compare")
    if baseline and _names_tests(baseline):
        raise _refused(
            "--accelbench-compare took {} for a baseline. Write --accelbench-compare=NAME, or put"
            " it behind the tests.",
            baseline,
        )


def _refused(sentence: str, word: str) -> pytest.UsageError:
    from accelbench.core.safe_text import in_quotes  # nothing of ours before there is need of it

    return pytest.UsageError(sentence.format(in_quotes(word)))


def _names_tests(word: str) -> bool:
    """Whether a word that was taken for a baseline is one of pytest's own."""
    path = Path(word)
    is_lake = (path / "accelbench-lake.json").is_file()
    return "::" in word or path.suffix == ".py" or (path.is_dir() and not is_lake)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the fixture, before -m chooses."""
    for item in items:
        if NAME in getattr(item, "fixturenames", ()):
            item.add_marker(NAME)


@pytest.fixture(name=NAME)
def _accelbench(request: pytest.FixtureRequest) -> Iterator[BenchmarkFixture]:
    """Measure a model in fresh processes, as accelbench.benchmark does, and hold it to limits.

    accelbench(model, inputs, max_latency_ms=5, baseline="main") gives a Result.
    """
    if _XDIST in os.environ and not request.config.getoption("--accelbench-parallel"):
        pytest.skip(_PARALLEL)
    from accelbench.pytest_plugin.fixture import BenchmarkFixture

    fixture = BenchmarkFixture(request.node, request.node.stash.setdefault(MEASURED, []))
    yield fixture
    if not fixture.called and request.node.stash.get(PASSED, False):
        from accelbench.pytest_plugin import CannotTellWarning

        warnings.warn(
            CannotTellWarning("It never called its fixture accelbench: nothing was measured."),
            stacklevel=1,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the report of a phase have what was measured in it."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    if lines := item.stash.get(MEASURED, []):
        report.accelbench = list(lines)  # type: ignore[attr-defined]  # pytest-xdist passes it on
        lines.clear()
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show what was measured, and what changed since a baseline that is named."""
    lines = [
        line
        for reports in terminalreporter.stats.values()
        for report in reports
        for line in getattr(report, NAME, ())
    ]
    if lines:
        from accelbench.pytest_plugin.gate import show

        show(terminalreporter, lines, config.getoption("--accelbench-compare"))
