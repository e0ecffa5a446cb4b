"""A page in a real browser, asked over a pipe: what it said, what it fetched, what is drawn."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fetched import fetched_browser

_PATIENCE = 40.0
#: How long a page that has drawn may still say or fetch something.
_QUIET = 1.0


@dataclass
class Shown:
    """What became of a page."""

    said: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    marks: int = 0
    text: str = ""
    fills: list[str] = field(default_factory=list)
    png: bytes = b""


class _Pipe:
    """The DevTools protocol on a browser's descriptors 3 and 4: a zero byte ends a message."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._number, self._left = 0, b""
        self.events: list[dict[str, Any]] = []
        os.set_blocking(read, False)

    def next(self, until: float) -> dict[str, Any] | None:
        while b"\0" not in self._left:
            if time.monotonic() > until:
                return None
            try:
                self._left += os.read(self._read, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)
        whole, _, self._left = self._left.partition(b"\0")
        return dict(json.loads(whole))

    def ask(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": params}
        os.write(
            self._write, json.dumps(asked | ({"sessionId": session} if session else {})).encode()
        )
        os.write(self._write, b"\0")
        until = time.monotonic() + _PATIENCE
        while (answer := self.next(until)) is not None:
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)
        raise AssertionError(f"no answer to {method}")


@contextmanager
def _browser(folder: Path) -> Iterator[_Pipe]:
    program = fetched_browser()
    assert program is not None
    to_it, from_us = os.pipe()
    to_us, from_it = os.pipe()

    def placed() -> None:
        high = [os.dup2(to_it, 103), os.dup2(from_it, 104)]
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    words += ["--disable-background-networking", "--no-first-run", f"--user-data-dir={folder}"]
    process = subprocess.Popen(
        [program, *words, "about:blank"],
        preexec_fn=placed,
        close_fds=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    os.close(to_it)
    os.close(from_it)
    try:
        yield _Pipe(to_us, from_us)
    finally:
        process.kill()
        process.wait()
        os.close(to_us)
        os.close(from_us)


_SEEN = """JSON.stringify({
  marks: document.querySelectorAll('#chart svg path').length,
  text: document.body ? document.body.innerText : '',
  fills: [...document.querySelectorAll('#chart svg path')].map(one => one.getAttribute('fill')),
})"""


def shown(page: Path, folder: Path) -> Shown:
    """Opens a file and waits until it has drawn and is quiet."""
    found = Shown()
    with _browser(folder) as pipe:
        target = pipe.ask("Target.createTarget", url="about:blank", width=1000, height=1400)
        session = str(
            pipe.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)[
                "sessionId"
            ]
        )
        for domain in ("Page", "Runtime", "Log", "Network"):
            pipe.ask(f"{domain}.enable", session)
        pipe.ask("Page.navigate", session, url=page.as_uri())
        until = time.monotonic() + _PATIENCE
        while not found.marks and time.monotonic() < until:
            said = pipe.ask("Runtime.evaluate", session, expression=_SEEN)["result"]["value"]
            seen = json.loads(said)
            found.marks, found.text, found.fills = seen["marks"], seen["text"], seen["fills"]
            time.sleep(0.1)
        quiet = time.monotonic() + _QUIET
        while (event := pipe.next(quiet)) is not None:
            pipe.events.append(event)
        found.png = base64.b64decode(pipe.ask("Page.captureScreenshot", session)["data"])
        for event in pipe.events:
            _noted(event, found)
    return found


def _noted(event: dict[str, Any], found: Shown) -> None:
    method, params = event.get("method"), event.get("params", {})
    if method == "Network.requestWillBeSent":
        found.fetched.append(params["request"]["url"])
    elif method == "Runtime.exceptionThrown":
        found.said.append(json.dumps(params["exceptionDetails"])[:500])
    elif method == "Runtime.consoleAPICalled":
        found.said.append(json.dumps([one.get("value") for one in params["args"]])[:500])
    elif method == "Log.entryAdded":
        found.said.append(str(params["entry"].get("text")))
