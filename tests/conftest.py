"""What holds for every test: Ctrl-C is heard, PyTorch takes one thread, no cache is found."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# A shell gives the commands that it starts in the background SIGINT ignored, and every program
# that a test starts would inherit that: the tests of Ctrl-C would wait for an end that never comes.
# A handler, unlike SIG_IGN, does not survive exec.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Two test processes share two cores. PyTorch with a thread a core in each waits at every step for
# threads that do not run: four times the time was seen. Tests of threads take these away again.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")


# Tests in several processes do not wait for each other's runs, nor for a run on this machine.
os.environ["ACCELBENCH_LOCK"] = str(Path(tempfile.gettempdir()) / f"tests-{os.getpid()}.lock")


def _cache_of_its_own() -> None:
    """What a run of the tests exports serves that run alone; the fetched browser is not copied."""
    real = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "accelbench"
    (real / "browser").mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix="cache-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    (own / "accelbench").mkdir()
    (own / "accelbench" / "browser").symlink_to(real / "browser")
    os.environ["XDG_CACHE_HOME"] = str(own)
    os.environ["TESTS_ARTEFACTS"] = str(own / "tests")  # as `kept_artefacts` has them


def _folders_in_memory() -> None:
    """Have pytest's folders in memory: a sync takes 1 µs, on a disk 4 ms."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or os.statvfs(memory).f_flag & os.ST_NOEXEC:
        return  # tests start programs that they have written
    if shutil.disk_usage(memory).free > 4 * 2**30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


# A process of pytest-xdist's has the environment of the one that started it.
if sys.platform == "linux" and "PYTEST_XDIST_WORKER" not in os.environ:
    _cache_of_its_own()
    _folders_in_memory()

#: What takes longest, first: begun last, one of them was still going on when all else had ended.
LONGEST = (
    "docs/test_guides_map.py",
    "conformance/test_conformance.py",
    "conformance/test_conformance_browser.py",
    "present/dashboard/test_dashboard_browser.py",
    "engines/browser/test_browser_session.py",
    "cli/test_run_distributed.py",
    "run/test_reduced_grid.py",
    "store/test_lake.py",
    "cli/test_recommend_limits.py",
    "cli/test_run_output.py",
    "run/test_fleet_ray.py",
    "engines/test_ranks.py",
)

_LEFT_OUT = pytest.StashKey[frozenset[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember which tests are marked `full`, before what was not asked for is left out; order."""
    config.stash[_LEFT_OUT] = frozenset(
        item.nodeid.removeprefix("tests/")
        for item in items
        if item.get_closest_marker("full") and not item.get_closest_marker("cuda")
    )
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """When a test's file has its turn; of those that are not named, in the order of the folders."""
    file = item.nodeid.partition("::")[0].removeprefix("tests/")
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


@pytest.fixture(scope="session", autouse=True)
def made_once() -> Iterator[None]:
    """Ask each question about this machine once, and build an empty store once."""
    # Not above: accelbench is not to be imported yet.
    from empty_store import copied_empty_stores
    from looked_once import looked_once

    with looked_once(), copied_empty_stores():
        yield


@pytest.fixture(scope="session")
def left_out(request: pytest.FixtureRequest) -> frozenset[str]:
    """Every collected test that `make test` leaves out: `folder/test_file.py::name[parameters]`."""
    return request.config.stash[_LEFT_OUT]


def pytest_collection_finish() -> None:
    """Pass over what ten thousand collected tests are made of wherever garbage is looked for.

    A measurement collects it before memory is read, and a second of a core was spent on looking at
    tests that wait for their turn.
    """
    gc.collect()
    gc.freeze()


#: How many modules were imported when garbage was last looked for.
_imported = 0


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The same of what a file has kept, once its tests are done, and of what a test imported."""
    global _imported
    if nextitem is not None and (nextitem.path != item.path or len(sys.modules) > _imported + 50):
        gc.collect()
        gc.freeze()
        _imported = len(sys.modules)


def pytest_sessionfinish() -> None:
    """Let the end of the process find all again: what is passed over seems to have been lost."""
    gc.unfreeze()
