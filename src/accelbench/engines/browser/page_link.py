"""The page as something that can be asked: one question, one answer, or why there is none.

A message is a line of JSON and the arrays that it names, with types and shapes, under "arrays":

    4 bytes: length of the JSON │ JSON, padded to 8 │ array │ padding │ array │ …

Arrays begin at multiples of eight, so that the page can look at them where they lie.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import queue
import struct
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.core.errors import CaseError, OutOfMemoryError
from accelbench.core.safe_text import in_quotes
from accelbench.engines.browser.process import BrowserProcess
from accelbench.engines.browser.server import Server
from accelbench.hardware.hostmemory import ProcessesMemory

Arrays = Mapping[str, np.ndarray[Any, Any]]

_ALIGNED = 8
_LONGEST = 2**31  # side of an array: no page holds more
#: What both sides know; the page's list is in wire.mjs.
DTYPES = frozenset({"float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"})


def _padding(length: int) -> bytes:
    return b"\0" * (-length % _ALIGNED)


def packed(body: Mapping[str, Any], arrays: Arrays | None = None) -> bytes:
    """Return a message as bytes; raise ValueError if the page knows no such type or number."""
    named = {name: _plain(name, array) for name, array in (arrays or {}).items()}
    described = [
        {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in named.items()
    ]
    head = json.dumps({**body, "arrays": described}, allow_nan=False).encode()
    # Arrays as they are: a model's inputs are copied once.
    parts: list[Any] = [struct.pack("<I", len(head)), head, _padding(4 + len(head))]
    for array in named.values():
        parts += [array, _padding(array.nbytes)]
    return b"".join(parts)


def _plain(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.name not in DTYPES:
        raise ValueError(f"a page cannot be given {name}: it is of {array.dtype}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return a message's body and its arrays, which lie in `data`; raise ValueError if none."""
    if len(data) < 4:
        raise ValueError("a message of the page ends before its length")
    (length,) = struct.unpack_from("<I", data)
    at = 4 + length
    if len(data) < at:
        raise ValueError("a message of the page ends before its words")
    body = json.loads(data[4:at])
    described = body.pop("arrays", []) if isinstance(body, dict) else None
    if not isinstance(described, list):
        raise ValueError("a message of the page has no words")
    arrays = {}
    for entry in described:
        name, dtype, shape = _described(entry)
        at += -at % _ALIGNED
        count = math.prod(shape)
        if at + count * dtype.itemsize > len(data):
            raise ValueError(f"a message of the page ends before {name} does")
        arrays[name] = np.frombuffer(data, dtype, count, at).reshape(shape)
        at += count * dtype.itemsize
    return body, arrays


def _described(entry: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    try:
        name, dtype, shape = str(entry["name"]), entry["dtype"], tuple(entry["shape"])
        # A size of −1 would stand for all that is left.
        known = dtype in DTYPES and all(type(s) is int and 0 <= s < _LONGEST for s in shape)
    except (TypeError, KeyError) as error:
        raise ValueError("a message of the page describes an array badly") from error
    if not known:
        raise ValueError(f"a message of the page has {name} of {dtype} and shape {shape}")
    return name, np.dtype(dtype), shape


#: A browser's first start from a cold disk has been seen to take ten seconds.
START_SECONDS = 60.0
_LEAVE_SECONDS = 10.0
_LOOK_SECONDS = 0.25
#: A browser that computes, compiles or fetches takes processor time. One that was asked, answers
#: nothing and takes none for so long never will (seen: WebNN opening clap-tiny, seven minutes).
_STILL_SECONDS = 60.0
_STILL_LOOK_SECONDS = 5.0
#: What one that does nothing takes meanwhile.
_STILL_CPU_SECONDS = 0.5
#: Where a page finds the model.
MODEL = "model/"

#: The last is what a tensor beyond the 4 GiB that WebAssembly can address comes to.
_NO_ROOM = (
    "out of memory",
    "bad_alloc",
    "allocation failed",
    "array buffer allocation",
    "safeintonoverflow",
)
_NO_DEVICE = (
    "device is lost",
    "device lost",
    "external instance reference",
    "device was destroyed",
)


class Page:
    """A browser with our page in it."""

    def __init__(self, program: Path, engine: Path, provider: str, switches: str = "") -> None:
        self.kind = (program, engine, provider, switches)
        self.closed = False
        #: Whether no model has been brought to where the page is.
        self.empty = True
        self._memory: ProcessesMemory | None = None
        self._numbers = itertools.count(1)
        self.server = self._site()
        self._hall: Server | None = None
        try:
            self.browser = BrowserProcess(
                program, provider, switches, f"{self.server.address}index.html"
            )
        except BaseException:
            self.server.close()
            raise

    def _site(self) -> Server:
        site = _with_page(Server())
        for path in self.kind[1].iterdir():
            site.give(f"ort/{path.name}", path)
        return site

    def ask(
        self, what: str, arrays: Arrays | None = None, seconds: float | None = None, **body: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the page's answer to an action of page.mjs, and its arrays, or raise CaseError.

        Without `seconds` the wait is left to whoever watches this worker.
        """
        number = next(self._numbers)
        self.server.commands.put(packed({"do": what, "id": number, **body}, arrays))
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            data = self._answer(what, until)
            answer, given = unpacked(data)
            if answer.get("id") == number:  # one that came too late is passed over
                break
        if "error" in answer:
            raise understood(answer["error"], what)
        return answer, given

    def come_again(self) -> None:
        """Leave the page and visit it again, in the same browser.

        From a site to itself a browser stays in one process, which holds what the page before
        had until it finds time to tidy up: seen, hundreds of MiB. So the way leads over another.
        """
        if self._hall is None:
            self._hall = _with_page(Server())
        here = self.server
        self._go(self._hall)
        self._go(here)

    def come_anew(self) -> None:
        """Leave for a site that this browser has never seen, without a model."""
        before, site = self.server, self._site()
        try:
            self._go(site)
        except CaseError:
            site.close()
            raise
        before.close()
        self.empty = True

    def _go(self, site: Server) -> None:
        """Have the page leave for another site, and its process end."""
        left = self.browser.renderers()
        self.browser.cpu_seconds()  # while they can still be asked
        self.server.leave()
        self.ask("go", seconds=_LEAVE_SECONDS, address=site.address)
        self.server = site
        site.gone.clear()  # whoever went from there before
        if not self.browser.gone_within(left, _LEAVE_SECONDS):
            raise CaseError(
                "browser_hung",
                "a page that was left is still there",
                "The next case gets a fresh browser.",
            )

    def give_model(self, folder: Path) -> None:
        self.empty = False
        for path in folder.iterdir():
            self.server.give(f"{MODEL}{path.name}", path)

    def _answer(self, what: str, until: float | None) -> bytes:
        stillness = Stillness(self.browser.cpu_seconds)
        while True:
            try:
                data = self.server.answers.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                data = None
            if data is not None:
                return data
            trouble = self._trouble(what)
            if trouble is not None:
                # What it said before it went may have come meanwhile.
                with contextlib.suppress(queue.Empty):
                    return self.server.answers.get_nowait()
                raise trouble
            late = until is not None and time.monotonic() > until
            if late or stillness.lasted(time.monotonic()):
                still = "" if late else f" and did nothing for {_STILL_SECONDS:.0f} s"
                raise CaseError(
                    "browser_hung",
                    f"the browser's page did not answer {in_quotes(what)}{still}"
                    f"{self._last_words()}",
                    "Try another browser: --browser PATH",
                )

    def _trouble(self, what: str) -> CaseError | None:
        """Return why there will be no answer; None as long as there may be one."""
        gone = self.server.gone.is_set()
        if gone:
            # The connection of a browser that ends breaks a moment before its process is gone.
            self.browser.ended_within(1.0)
        if self.browser.ended is not None:
            self.browser.refuse_without_sandbox()
            return CaseError(
                "browser_ended",
                f"the browser ended ({self.browser.ended}) at {in_quotes(what)}"
                f"{self._last_words()}",
                "Start it by hand to see what is wrong with it, or use another: --browser PATH",
            )
        if not gone:
            return None
        return CaseError(
            "tab_crashed",
            f"the browser's tab crashed at {in_quotes(what)}",
            "It may have run out of memory: use a smaller model or batch.",
        )

    def memory(self) -> ProcessesMemory:
        """Return a reader of what the browser has beyond what it had when this was first asked.

        One baseline for all models: a GPU's process keeps what one has freed for the next,
        and of three equal ones the second and third then seemed to need a fifth less.
        """
        if self._memory is None:
            self._memory = ProcessesMemory(self.browser.processes, "the browser's processes")
        return self._memory

    def _last_words(self) -> str:
        words = self.browser.last_words()
        return f": {words}" if words else ", without a word"

    def close(self) -> None:
        self.closed = True
        self.browser.close()
        self.server.close()
        if self._hall is not None:
            self._hall.close()


class Stillness:
    """A watch for a browser that takes no processor time."""

    def __init__(self, cpu_seconds: Callable[[], float]) -> None:
        self._cpu_seconds = cpu_seconds
        self._next_look: float | None = None
        self._since: float | None = None
        self._taken = 0.0

    def lasted(self, now: float) -> bool:
        """Return whether it has lasted so long that nothing will come; asked again and again."""
        if self._next_look is None:
            self._next_look = now + _STILL_LOOK_SECONDS  # most answers come before
        if now < self._next_look:
            return False
        self._next_look = now + _STILL_LOOK_SECONDS
        taken = self._cpu_seconds()
        if self._since is None or taken - self._taken > _STILL_CPU_SECONDS:
            self._since, self._taken = now, taken
        return now - self._since >= _STILL_SECONDS


def _with_page(site: Server) -> Server:
    for name in ("index.html", "page.mjs", "engine.mjs", "surroundings.mjs", "wire.mjs"):
        site.give(name, Path(str(files(__package__) / "page" / name)))
    return site


def understood(error: Mapping[str, str | None], what: str) -> CaseError:
    """Return a page's error as a case's."""
    message = " ".join(str(error["message"]).split())[:500]
    text = message.lower()
    if any(words in text for words in _NO_ROOM):
        return OutOfMemoryError(f"the browser's tab has no memory left: {message}")
    if error.get("lost") or any(words in text for words in _NO_DEVICE):
        return CaseError(
            "device_lost",
            f"the browser lost its GPU at {in_quotes(what)}: {message}",
            "Its GPU process crashed or the driver was reset; the next case gets a fresh browser.",
        )
    reason = "session_failed" if what in ("open", "traced") else "run_failed"
    refused = error["name"] == "NotSupportedError"
    advice = "Measure it with --hardware wasm: the browser refuses this graph." if refused else ""
    return CaseError(reason, f"{error['name']}: {message}", advice)
