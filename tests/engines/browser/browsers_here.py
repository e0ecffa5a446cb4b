"""Whether there is a browser to test with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from accelbench.engines.browser.assets import engine_folder
from fetched import fetched_browser

#: Where npm is, `make test` has fetched both: what is missing then is a failure.
needs_browser = pytest.mark.skipif(
    engine_folder() is None and shutil.which("npm") is None,
    reason="npm is not here to fetch onnxruntime-web and a browser",
)


def program() -> Path:
    """The browser that was fetched, else one that is installed."""
    found = fetched_browser()
    if found is not None:
        return found
    from accelbench.hardware.browsers import InstalledPrograms

    (first, *_) = [one for one in InstalledPrograms().find() if one.engine == "chromium"]
    return Path(first.path)
