"""The browser that `accelbench setup browser` has fetched."""

from __future__ import annotations

from pathlib import Path

from accelbench.runtimes.browser.assets import folder_of
from accelbench.runtimes.browser.pins import CHROMIUM


def fetched_browser(base: Path | None = None) -> Path | None:
    """Its program, if it was fetched."""
    program = folder_of(CHROMIUM, base) / "chromium"
    return program if program.is_file() else None
