"""What holds for every test: Ctrl-C is heard, and engines take one thread each."""

from __future__ import annotations

import os
import signal

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

_LEFT_OUT = pytest.StashKey[frozenset[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember which tests are marked `full`, before those are left out that were not asked for."""
    config.stash[_LEFT_OUT] = frozenset(
        item.nodeid.partition("[")[0].removeprefix("tests/")
        for item in items
        if item.get_closest_marker("full") and not item.get_closest_marker("cuda")
    )


@pytest.fixture(scope="session")
def left_out(request: pytest.FixtureRequest) -> frozenset[str]:
    """`folder/test_file.py::name` of every collected test that `make test` leaves out."""
    return request.config.stash[_LEFT_OUT]
