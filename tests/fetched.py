"""The browser that `accelbench setup browser` has fetched."""

from __future__ import annotations

from pathlib import Path

from accelbench.engines.browser import assets


def fetched_browser(base: Path | None = None) -> Path | None:
    """Its program, if it was fetched."""
    program = assets.folder_of(assets.CHROMIUM, base) / "chromium"
    return program if program.is_file() else None
