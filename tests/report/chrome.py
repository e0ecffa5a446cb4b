"""A real browser that is asked over its own protocol: pages, keys, screenshots, what it complains.

The browser is started as the browser runtime starts it; beside that there is only the protocol.
"""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from websockets.sync.client import connect

from accelbench.hardware.browsers import InstalledPrograms
from accelbench.runtimes.browser.process import BrowserProcess

_PATIENCE = 30.0
#: What says that something is wrong: a script's error, a refusal by the policy, a file not found.
_COMPLAINTS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")


#: What is answered for a page that was left meanwhile.
_LEFT = ("navigated", "Cannot find context", "context was destroyed")


class LeftError(RuntimeError):
    """The page that was asked is not there any more."""


def program() -> Path | None:
    """A browser of Chromium's kind, if one is here."""
    found = [one for one in InstalledPrograms().find() if one.engine == "chromium"]
    return Path(found[0].path) if found else None


class Chrome:
    """One tab of one browser."""

    def __init__(self, where: Path) -> None:
        self._held = ExitStack()
        self._process = BrowserProcess(where, "wasm", "--remote-debugging-port=0", "about:blank")
        try:
            line = connect(self._address(), max_size=None, compression=None)
            self._socket = self._held.enter_context(line)
        except BaseException:
            self._process.close()
            raise
        self._numbers = itertools.count(1)
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{part}.enable")

    def _address(self) -> str:
        said = self._process.folder / "profile" / "DevToolsActivePort"
        until = time.monotonic() + _PATIENCE
        while not (said.exists() and len(words := said.read_text().split()) == 2):
            if self._process.ended is not None:
                self._process.refuse_without_sandbox()
                raise RuntimeError(f"the browser ended: {self._process.last_words()}")
            if time.monotonic() > until:
                raise RuntimeError("the browser does not say where it listens")
            time.sleep(0.02)
        return f"ws://127.0.0.1:{words[0]}{words[1]}"

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask, and wait for the answer; events that come meanwhile are kept."""
        number = next(self._numbers)
        said: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            said["sessionId"] = self._session
        self._socket.send(json.dumps(said))
        while True:
            come = json.loads(self._socket.recv(timeout=_PATIENCE))
            if come.get("id") == number:
                if "error" in come:
                    said_so = str(come["error"])
                    kind = LeftError if any(sign in said_so for sign in _LEFT) else RuntimeError
                    raise kind(f"{method}: {said_so}")
                return come["result"]  # type: ignore[no-any-return]
            self.events.append(come)

    def go(self, address: str) -> None:
        """Open an address, and wait until all of it is there."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        self.until(lambda: self.happened("Page.loadEventFired"))
        self.until(lambda: self.js("document.readyState") == "complete")

    def js(self, code: str) -> Any:
        """What an expression comes to; of a promise what it brings."""
        found = self.send(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def until(self, true: Callable[[], object], seconds: float = _PATIENCE) -> None:
        """Wait until something is so."""
        until = time.monotonic() + seconds
        while True:
            with suppress(LeftError):  # on the way to the next page
                self.js("1")  # what came meanwhile is read
                if true():
                    return
            assert time.monotonic() < until, "it did not come about"
            time.sleep(0.01)

    def happened(self, method: str) -> list[dict[str, Any]]:
        """Events of one kind since the page was opened."""
        return [one for one in self.events if one.get("method") == method]

    def key(self, name: str, code: int = 0, text: str = "") -> None:
        """Press a key."""
        about: Mapping[str, Any] = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self.send("Input.dispatchKeyEvent", type="keyUp", **about)

    def look(self, scheme: str = "light", wide: int = 1280) -> None:
        """Light or dark, and how wide."""
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=wide,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )

    def complaints(self) -> list[str]:
        """Whatever stood in the console since the page was opened."""
        self.js("1")  # what came meanwhile is read
        return [
            json.dumps(e["params"])[:400] for e in self.events if e.get("method") in _COMPLAINTS
        ]

    def asked(self) -> list[str]:
        """Every address that the page wanted something from."""
        self.js("1")
        return [e["params"]["request"]["url"] for e in self.happened("Network.requestWillBeSent")]

    def screenshot(self, path: Path) -> None:
        """What can be seen."""
        found = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        self._held.close()
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
