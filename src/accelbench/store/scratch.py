"""A process's own folder, removed after its death too.

A killed process cannot remove it: a small process that outlives it does. If that one was killed
too, the next folder's owner does: the kernel released the lock on a file in there.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from accelbench.core.processes import Process, remove_if_killed
from accelbench.store.files import try_lock

PREFIX = "accelbench-"
#: Held locked as long as the folder's owner lives.
ALIVE = ".accelbench-alive"
#: A Unix socket's path may have no more than 107 bytes, on macOS 103.
_LONGEST_BASE = 70


class Scratch:
    """A folder that is gone after `close` or after the death of this process."""

    def __init__(self, base: Path | None = None) -> None:
        self._base = base or _base()
        sweep(self._base)
        self.folder, self._remover = _new_folder(self._base)
        # Locked before it gets the name that sweepers look for.
        starting = self.folder / "starting"
        lock = os.open(starting, os.O_RDWR | os.O_CREAT, 0o600)
        try_lock(lock)
        self._lock: int | None = lock
        starting.rename(self.folder / ALIVE)

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder, and those of processes that were killed."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        _end(self._remover)
        os.close(lock)
        sweep(self._base)


def temporary_folder() -> Scratch:
    """Make a folder for files alone, in the temporary folder however long its path is."""
    return Scratch(Path(tempfile.gettempdir()))


def sweep(base: Path) -> list[Path]:
    """Remove folders of killed runs; return them."""
    gone = []
    for mark in base.glob(f"{PREFIX}*/{ALIVE}"):
        try:
            lock = os.open(mark, os.O_RDWR)
        except OSError:
            continue  # another user's, or gone this moment
        try:
            if try_lock(lock):
                shutil.rmtree(mark.parent, ignore_errors=True)
                gone.append(mark.parent)
        finally:
            os.close(lock)
    return gone


def _base() -> Path:
    folder = tempfile.gettempdir()
    return Path(folder if len(os.fsencode(folder)) <= _LONGEST_BASE else "/tmp")  # noqa: S108


def _new_folder(base: Path) -> tuple[Path, Process | None]:
    """Make a folder of this process; its remover is there first, so that no kill comes between."""
    while True:
        folder = base / f"{PREFIX}{secrets.token_hex(5)}"
        remover = remove_if_killed(folder)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            _end(remover)
        except BaseException:
            _end(remover)
            raise
        else:
            return folder, remover


def _end(remover: Process | None) -> None:
    if remover is not None:
        remover.kill()
        remover.wait()
