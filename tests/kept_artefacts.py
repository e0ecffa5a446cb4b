"""Exported models of one run of the tests, whichever of its processes made them."""

from __future__ import annotations

import atexit
import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from accelbench.engines.artifacts.cache import Cache

#: A folder that `conftest.py` has made for all processes.
VARIABLE = "TESTS_ARTEFACTS"


@cache
def kept_artefacts() -> Cache:
    """One for all tests, in which nothing is removed."""
    folder = os.environ.get(VARIABLE)
    if folder is None:
        folder = mkdtemp(prefix="accelbench-tests-artefacts-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Cache(Path(folder), cap=2**40)
