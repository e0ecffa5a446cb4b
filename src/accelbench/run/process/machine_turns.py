"""Turns at a machine: runs that would disturb each other's times measure one after the other.

A turn is one launch of a group of cases. Two files are locked; the kernel releases both if a
process dies. `queue` is held while a run waits, so that a run that has had its turn gets in line
behind it. `turn` is held while it measures, and names it. Launches on the host's processor exclude
all others; those on accelerators exclude these, but not each other: a machine may measure on all of
its GPUs.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accelbench.core.facts import utc_now
from accelbench.store.files import try_lock, unlock, wait_for_lock

_log = logging.getLogger(__name__)

LOCK_VARIABLE = "ACCELBENCH_LOCK"
WAIT_VARIABLE = "ACCELBENCH_WAIT"
#: A condition of results that were measured without waiting.
BESIDE = "measured_beside"
_LONGEST_TEXT = 4096
#: A run locks the file, then writes its name: both took less than 1 ms on two busy CPUs.
_NAMING_SECONDS, _PAUSE_SECONDS = 0.02, 0.001


@dataclass(frozen=True)
class TurnHolder:
    """The run that has the turn, and since when it measures; no run if its name is not known."""

    pid: int = 0
    run_id: str = ""
    since: str = ""

    @property
    def name(self) -> str:
        return f"run {self.run_id}" if self.pid else "another run"

    def __str__(self) -> str:
        if not self.pid:
            return self.name
        since = self.since[:19].replace("T", " ")
        return f"{self.name} (process {self.pid}, measuring since {since} UTC)"


def lock_path() -> Path:
    """Return the file that every run on this machine locks."""
    # Not in the user's own folder for temporary files: other users' runs disturb as well.
    named = os.environ.get(LOCK_VARIABLE)
    if named:
        return Path(named)
    folder = tempfile.gettempdir() if sys.platform == "win32" else "/tmp"  # noqa: S108
    return Path(folder) / "accelbench-measuring.lock"


def waits() -> bool:
    """Return whether a run waits for its turn, as it does unless ACCELBENCH_WAIT is 0."""
    return os.environ.get(WAIT_VARIABLE, "1") != "0"


@contextlib.contextmanager
def machine_turn(
    run_id: str,
    *,
    shared: bool,
    on_wait: Callable[[TurnHolder], None],
    on_turn: Callable[[TurnHolder, float], None] = lambda *_: None,
) -> Iterator[TurnHolder | None]:
    """Take a turn at the machine; yield the run that measures meanwhile, if this one does not wait.

    `shared` lets launches on accelerators measure at the same time. `on_wait` is called before
    waiting, with the run that has the turn; `on_turn` after it, with that run and the seconds
    waited.
    """
    path = lock_path()
    with contextlib.ExitStack() as held:
        turn, queue = (_opened(held, name) for name in (path, path.with_suffix(".queue")))
        if turn is None or queue is None:  # no such folder, or no right to it
            yield None
            return
        if not (try_lock(queue) and try_lock(turn, shared=shared)):
            holder = _holder(turn)
            if not waits():
                unlock(queue)
                yield holder
                return
            on_wait(holder)
            start = time.monotonic()
            wait_for_lock(queue)
            wait_for_lock(turn, shared=shared)
            on_turn(holder, time.monotonic() - start)
        unlock(queue)
        _write(turn, TurnHolder(os.getpid(), run_id, utc_now()))
        try:
            yield None
        finally:
            if not shared:  # another run that has the turn at the same time keeps its name
                _clear(turn)
            unlock(turn)


def other_run_of(conditions: Mapping[str, Any]) -> str:
    """Return the run that measured at the same time, as the subject of a sentence; or nothing."""
    beside = conditions.get(BESIDE)
    if not beside:
        return ""
    text = str(TurnHolder(**beside))
    return text[0].upper() + text[1:]


def condition_of(holder: TurnHolder | None) -> dict[str, Any]:
    """Return what a result stores of a run that measured at the same time."""
    return {} if holder is None else {BESIDE: asdict(holder)}


def _opened(held: contextlib.ExitStack, path: Path) -> int | None:
    """Open a file that every user may lock; None if that is not possible here."""
    # Without O_CREAT at first: where /tmp is sticky, Linux refuses that of another user's file.
    follow = getattr(os, "O_NOFOLLOW", 0)
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR):
        with contextlib.suppress(OSError):
            handle = os.open(path, flags | follow, 0o666)
            held.callback(os.close, handle)
            if flags & os.O_CREAT and hasattr(os, "fchmod"):
                os.fchmod(handle, 0o666)  # whatever the umask
            return handle
    _log.debug("no turns: %s cannot be opened", path)
    return None


def _holder(handle: int) -> TurnHolder:
    end = time.monotonic() + _NAMING_SECONDS
    while (holder := _read(handle)) is None:
        if time.monotonic() > end:
            return TurnHolder()
        time.sleep(_PAUSE_SECONDS)
    return holder


def _read(handle: int) -> TurnHolder | None:
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        body = json.loads(os.read(handle, _LONGEST_TEXT))
        return TurnHolder(int(body["pid"]), str(body["run_id"]), str(body["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(handle: int, holder: TurnHolder) -> None:
    _clear(handle)
    with contextlib.suppress(OSError):
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, json.dumps(asdict(holder)).encode())


def _clear(handle: int) -> None:
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
