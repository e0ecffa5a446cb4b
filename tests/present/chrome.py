"""A real browser, driven by Playwright: pages, keys, screenshots, what it complains of.

It is the Chromium that accelbench finds or has fetched; none of Playwright's own is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self

from playwright.sync_api import Dialog, Error, Page, sync_playwright

from accelbench.hardware.browsers import InstalledPrograms

_PATIENCE = 30.0
#: Nothing is looked up, so nothing is asked of anybody but this machine.
_ALONE = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
_SIZE = {"width": 1280, "height": 900}


def program() -> Path | None:
    """A browser of Chromium's kind, if one is here."""
    found = [one for one in InstalledPrograms().find() if one.engine == "chromium"]
    return Path(found[0].path) if found else None


class Chrome:
    """One tab of one browser."""

    def __init__(self, where: Path) -> None:
        with ExitStack() as held:
            browsers = held.enter_context(sync_playwright()).chromium
            # Scrollbars take room, as they do for people.
            browser = browsers.launch(
                executable_path=where, args=_ALONE, ignore_default_args=["--hide-scrollbars"]
            )
            held.callback(browser.close)
            self._page = browser.new_page(viewport=_SIZE)
            self._held = held.pop_all()
        self._page.set_default_timeout(_PATIENCE * 1000)
        self._devtools = self._page.context.new_cdp_session(self._page)
        #: Since the page was opened: what asked for an answer, stood in the console, was wanted.
        self.dialogs: list[str] = []
        self._complaints: list[str] = []
        self._asked: list[str] = []
        self._page.on("dialog", self._dismissed)
        self._page.on("console", lambda said: self._complaints.append(said.text[:400]))
        self._page.on("pageerror", lambda error: self._complaints.append(str(error)[:400]))
        self._page.on("request", lambda wanted: self._asked.append(wanted.url))

    def _dismissed(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    @property
    def page(self) -> Page:
        """The page itself, to look for things by role and label."""
        return self._page

    def go(self, address: str) -> None:
        """Open an address, and wait until all of it is there."""
        for told in (self.dialogs, self._complaints, self._asked):
            told.clear()
        self._page.goto(address, wait_until="load")

    def js(self, code: str) -> Any:
        """What an expression comes to; of a promise what it brings."""
        return self._page.evaluate(code)

    def until(self, true: Callable[[], object]) -> None:
        """Wait until something is so."""
        for _ in range(int(_PATIENCE * 100)):
            try:
                if true():
                    return
            except Error as error:  # on the way to the next page
                if "context was destroyed" not in str(error):
                    raise
            self.wait(0.01)
        raise AssertionError("it did not come about")

    def wait(self, seconds: float) -> None:
        """Let the page go on."""
        self._page.wait_for_timeout(seconds * 1000)

    def key(self, name: str) -> None:
        """Press a key."""
        self._page.keyboard.press(name)

    def look(self, scheme: Literal["light", "dark"] = "light", wide: int = 1280) -> None:
        """Light or dark, and how wide."""
        self._page.emulate_media(color_scheme=scheme)
        self._page.set_viewport_size({**_SIZE, "width": wide})

    def printed(self, on_paper: bool) -> None:
        """As a printer shows it, or a screen again."""
        self._page.emulate_media(media="print" if on_paper else "null")

    def scripts(self, allowed: bool) -> None:
        """Whether pages may run scripts of their own."""
        self._devtools.send("Emulation.setScriptExecutionDisabled", {"value": not allowed})

    def complaints(self) -> list[str]:
        """Whatever stood in the console since the page was opened."""
        self.js("1")  # what came meanwhile is read
        return self._complaints

    def asked(self) -> list[str]:
        """Every address that the page wanted something from."""
        self.js("1")
        return self._asked

    def screenshot(self, path: Path) -> None:
        """What can be seen."""
        self._page.screenshot(path=path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
