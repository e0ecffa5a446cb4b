"""What holds for every test: Ctrl-C is heard, and engines take one thread each."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

import pytest

# A shell gives the commands that it starts in the background SIGINT ignored, and every program
# that a test starts would inherit that: the tests of Ctrl-C would wait for an end that never comes.
# A handler, unlike SIG_IGN, does not survive exec.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Two test processes share two cores. Engines with a thread a core each wait at every step for
# threads that do not run: four times the time was seen.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

_TESTS_OF = pytest.StashKey[Mapping[str, frozenset[str]]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember which tests have a mark before those are left out that were not asked for."""
    names: dict[str, set[str]] = {"full": set(), "serial": set()}
    for item in items:
        for mark in names:
            if item.get_closest_marker(mark) and not item.get_closest_marker("cuda"):
                names[mark].add(item.nodeid.partition("[")[0].removeprefix("tests/"))
    config.stash[_TESTS_OF] = {mark: frozenset(tests) for mark, tests in names.items()}


@pytest.fixture(scope="session")
def tests_of(request: pytest.FixtureRequest) -> Mapping[str, frozenset[str]]:
    """`folder/test_file.py::name` of every collected test with a mark."""
    return request.config.stash[_TESTS_OF]
