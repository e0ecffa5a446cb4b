"""A chart's page in a real browser: what it said, what it fetched, what is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chrome import Chrome

#: How long a page that has drawn may still say or fetch something.
_QUIET = 1.0
_MARKS = "document.querySelectorAll('#chart svg path')"


@dataclass
class Shown:
    """What became of a page."""

    said: list[str]
    fetched: list[str]
    text: str
    fills: list[str]  # of each mark


def shown(tab: Chrome, page: Path) -> Shown:
    """Opens a file and waits until it has drawn and is quiet."""
    tab.go(page.as_uri())
    tab.until(lambda: tab.js(f"{_MARKS}.length"))
    tab.wait(_QUIET)
    return Shown(
        tab.complaints(),
        tab.asked(),
        tab.js("document.body.innerText"),
        tab.js(f"[...{_MARKS}].map((one) => one.getAttribute('fill'))"),
    )
