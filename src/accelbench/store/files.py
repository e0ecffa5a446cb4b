"""File operations of journals and stores; tests replace `Files` by one that loses power.

A process's own folder, removed after its death too.

A killed process cannot remove it: a small process that outlives it does. If that one was killed
too, the next folder's owner does: the kernel released the lock on a file in there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from accelbench.core.errors import StoreError
from accelbench.core.processes import Process, remove_if_killed

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

COPY_CHUNK = 2**20
#: What file systems without hard links (FAT, some network drives) answer.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
#: Windows locks byte ranges and makes the locked bytes unreadable for others, so the byte
#: locked lies far beyond what a journal will ever hold.
_WINDOWS_LOCK_AT = 2**62
#: Its lock that waits gives up after ten tries, and Ctrl-C does not end it.
_WINDOWS_POLL_SECONDS = 0.05


class ReadOnlyPlaceError(StoreError):
    """A place that cannot be written; reading may go on."""


class Files:
    """The file operations whose order and durability matter; tests replace them."""

    def open_new(self, path: Path) -> int:
        """Create a file for appending; raise FileExistsError if it exists."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _BINARY, 0o666)

    def open_append(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)

    def write(self, fd: int, data: bytes) -> None:
        """Write all of it or raise OSError, after which any part of it may be there."""
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Make the file's bytes survive a power cut."""
        os.fsync(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents durably, if it does not exist."""
        if path.is_dir():
            return
        self.make_folder(path.parent)
        path.mkdir(exist_ok=True)
        self.sync_folder(path.parent)

    def sync_folder(self, path: Path) -> None:
        """Make the folder's names survive a power cut."""
        if sys.platform == "win32":
            return  # a folder cannot be opened there; NTFS journals its names itself
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        """Rename atomically; replace a file at `new`."""
        old.replace(new)

    def link(self, old: Path, new: Path) -> None:
        """Give a file a second name; raise FileExistsError if `new` exists."""
        os.link(old, new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


_BINARY = getattr(os, "O_BINARY", 0)
REAL_FILES = Files()


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file against other processes until it is closed; return False if it is held."""
    # On Windows every lock is exclusive: sharers wait for each other a little longer.
    try:
        if sys.platform == "win32":
            os.lseek(fd, _WINDOWS_LOCK_AT, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}:
            return False
        raise
    return True


def wait_for_lock(fd: int, *, shared: bool = False) -> None:
    """Lock an open file as `try_lock` does, after waiting. Ctrl-C ends it."""
    if sys.platform == "win32":
        while not try_lock(fd):
            time.sleep(_WINDOWS_POLL_SECONDS)
    else:
        fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def unlock(fd: int) -> None:
    """Release a lock before its file is closed: a forked child may hold the file open."""
    if sys.platform == "win32":
        with contextlib.suppress(OSError):  # it has none
            os.lseek(fd, _WINDOWS_LOCK_AT, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(fd, fcntl.LOCK_UN)


def read_from(path: Path, offset: int = 0, length: int = -1) -> bytes:
    """Return a file's bytes from an offset on, as they are at this moment."""
    with path.open("rb") as stream:
        stream.seek(offset)
        return stream.read(length)


def write_whole(files: Files, path: Path, chunks: Iterable[bytes]) -> None:
    """Write a new file and sync it; its name is durable only once its folder is synced."""
    fd = files.open_new(path)
    try:
        for chunk in chunks:
            files.write(fd, chunk)
        files.sync(fd)
    finally:
        files.close(fd)


def copy_whole(files: Files, source: Path, target: Path) -> None:
    """Write a synced copy under a new name."""
    with source.open("rb") as stream:
        write_whole(files, target, iter(lambda: stream.read(COPY_CHUNK), b""))


def second_name(files: Files, old: Path, new: Path) -> None:
    """Keep a file under another name too; a copy if the file system has no links."""
    try:
        files.link(old, new)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        copy_whole(files, old, new)
    files.sync_folder(new.parent)


def place(files: Files, written: Path, wanted: Path) -> bool:
    """Give a written file its final name; return False, changing nothing, if that is taken."""
    # By link and remove, because rename would replace. Without links the name is reserved by an
    # empty file first.
    try:
        files.link(written, wanted)
        files.remove(written)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            files.close(files.open_new(wanted))
        except FileExistsError:
            return False
        files.rename(written, wanted)
    files.sync_folder(wanted.parent)
    return True


#: The option that says where a database, its journals or a lake lie.
DB_OPTION = "--db"


def explain(error: OSError, doing: str, path: Path, option: str = "") -> StoreError:
    """Return an operating system's error as a sentence with what to do next.

    `option` is the option that chose the place, if it is known.
    """
    by = f" with {option} PATH" if option else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return StoreError(f"{doing} failed: no room left at {path}.", "Free some space there.")
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return ReadOnlyPlaceError(
            f"{doing} failed: {path} cannot be written.", f"Choose a place of your own{by}."
        )
    if error.errno in {errno.ENOTDIR, errno.EEXIST, errno.EISDIR}:
        return StoreError(
            f"{doing} failed: something else is in the way at {path}.",
            f"Move it, or choose another place{by}.",
        )
    why = os.strerror(error.errno) if error.errno else str(error)
    return StoreError(f"{doing} failed at {path}: {why}.", "Check the disk it is on.")


@contextmanager
def explained(doing: str, path: Path, option: str = "") -> Iterator[None]:
    """Turn OSError from the block into a StoreError that names what was being done."""
    try:
        yield
    except OSError as error:
        raise explain(error, doing, path, option) from error


FOLDER_VARIABLE = "ACCELBENCH_CACHE"


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this user's caches: artefacts, engines' own caches, browsers."""
    named = environment.get(FOLDER_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(environment.get("XDG_CACHE_HOME") or "~/.cache")
    return base.expanduser() / "accelbench"


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
