"""A process's own folder: for a conductor's socket and logs, for a worker's browser or ranks.

A process that is killed cannot remove it. It held a lock on a file in there,
which the kernel gave back when it died: whoever makes or closes another one can take
that lock, knows by it that nobody is left, and removes the folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from accelbench.store.files import try_lock

PREFIX = "accelbench-"
#: Held locked as long as the folder's owner lives.
ALIVE = ".accelbench-alive"
#: A Unix socket's path may have no more than 107 bytes, on macOS 103.
_LONGEST_BASE = 70


class Scratch:
    """A folder that is gone after `close`, or when another one is made or closed here."""

    def __init__(self, base: Path | None = None) -> None:
        self._base = base or _base()
        sweep(self._base)
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._base))
        # Locked before it gets the name that sweepers look for.
        starting = self.folder / "starting"
        lock = os.open(starting, os.O_RDWR | os.O_CREAT, 0o600)
        try_lock(lock)
        self._lock: int | None = lock
        starting.rename(self.folder / ALIVE)

    def close(self) -> None:
        """Leave nothing behind, nor what a worker that was killed has left; once is enough."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(lock)
        sweep(self._base)


def sweep(base: Path) -> list[Path]:
    """Remove what runs that were killed have left in a folder; what was removed."""
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
