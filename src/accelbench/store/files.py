"""File operations of journals and stores, and a process's own temporary folder.

Tests replace `Files` by one that loses power.

The temporary folder is removed after the process's death too. A killed process cannot remove it, so
a small process that outlives it does. If that one was killed too, the next folder's owner does: the
kernel has released the lock on a file in there.
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
#: Error codes of file systems without hard links (FAT, some network drives).
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
#: Windows locks byte ranges and makes them unreadable for others, so the locked byte is far beyond
#: the end of every journal.
_WINDOWS_LOCK_AT = 2**62
#: Interval of lock attempts on Windows: its own waiting lock fails after ten tries and ignores
#: Ctrl-C.
_WINDOWS_POLL_SECONDS = 0.05


class NotWritableError(StoreError):
    """The file or folder cannot be written; reading may continue."""


class Files:
    """File operations whose order and durability matter; tests replace them."""

    def open_new(self, path: Path) -> int:
        """Create a file for appending; raise FileExistsError if it exists."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _BINARY, 0o666)

    def open_append(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)

    def write(self, fd: int, data: bytes) -> None:
        """Write all bytes or raise OSError, after which any part of them may be written."""
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Make the file's bytes survive a power loss."""
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
        """Make the folder's names survive a power loss."""
        if sys.platform == "win32":
            return  # Windows cannot open a folder; NTFS journals names itself
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
    # On Windows every lock is exclusive, so shared locks wait for each other.
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
        with contextlib.suppress(OSError):  # it was not locked
            os.lseek(fd, _WINDOWS_LOCK_AT, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(fd, fcntl.LOCK_UN)


def read_from(path: Path, offset: int = 0, length: int = -1) -> bytes:
    """Return a file's current bytes from an offset on."""
    with path.open("rb") as stream:
        stream.seek(offset)
        return stream.read(length)


def write_synced(files: Files, path: Path, chunks: Iterable[bytes]) -> None:
    """Write a new file and sync it; its name is durable only once its folder is synced."""
    fd = files.open_new(path)
    try:
        for chunk in chunks:
            files.write(fd, chunk)
        files.sync(fd)
    finally:
        files.close(fd)


def copy_synced(files: Files, source: Path, target: Path) -> None:
    """Write a synced copy under a new name."""
    with source.open("rb") as stream:
        write_synced(files, target, iter(lambda: stream.read(COPY_CHUNK), b""))


def link_or_copy(files: Files, old: Path, new: Path) -> None:
    """Give a file a further name; copy it if the file system has no links."""
    try:
        files.link(old, new)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        copy_synced(files, old, new)
    files.sync_folder(new.parent)


def move_to_free_name(files: Files, written: Path, target: Path) -> bool:
    """Give a written file its final name; return False, changing nothing, if that is taken."""
    # By link and remove, because rename would replace. Without links the name is reserved by an
    # empty file first.
    try:
        files.link(written, target)
        files.remove(written)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            files.close(files.open_new(target))
        except FileExistsError:
            return False
        files.rename(written, target)
    files.sync_folder(target.parent)
    return True


#: Option for the path of a database or lake.
DB_OPTION = "--db"


def explain_os_error(error: OSError, activity: str, path: Path, option: str = "") -> StoreError:
    """Return an operating system's error as a sentence with the fix.

    `option` is the option that chose the path, if it is known.
    """
    by = f" with {option} PATH" if option else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return StoreError(f"{activity} failed: no room left at {path}.", "Free some space there.")
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return NotWritableError(
            f"{activity} failed: {path} cannot be written.", f"Choose another path{by}."
        )
    if error.errno in {errno.ENOTDIR, errno.EEXIST, errno.EISDIR}:
        return StoreError(
            f"{activity} failed: something else exists at {path}.",
            f"Move it, or choose another path{by}.",
        )
    why = os.strerror(error.errno) if error.errno else str(error)
    return StoreError(f"{activity} failed at {path}: {why}.", "Check the disk it is on.")


@contextmanager
def explain_os_errors(activity: str, path: Path, option: str = "") -> Iterator[None]:
    """Convert OSError from the block to a StoreError that names the activity."""
    try:
        yield
    except OSError as error:
        raise explain_os_error(error, activity, path, option) from error


FOLDER_VARIABLE = "ACCELBENCH_CACHE"


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this user's caches: exported models, engines' caches, browsers."""
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
#: File that is locked as long as the folder's owner lives.
ALIVE = ".accelbench-alive"
#: Longest base folder: a Unix socket's path may have 107 bytes, on macOS 103.
_LONGEST_BASE = 70


class Scratch:
    """Folder that is removed by `close`, or after the death of this process."""

    def __init__(self, base: Path | None = None) -> None:
        self._base = base or _short_base()
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
        _end_remover(self._remover)
        os.close(lock)
        sweep(self._base)


def create_temporary_folder() -> Scratch:
    """Make a folder in the temporary folder for files only, however long its path is."""
    return Scratch(Path(tempfile.gettempdir()))


def sweep(base: Path) -> list[Path]:
    """Remove folders of killed runs; return them."""
    gone = []
    for mark in base.glob(f"{PREFIX}*/{ALIVE}"):
        try:
            lock = os.open(mark, os.O_RDWR)
        except OSError:
            continue  # of another user, or just removed
        try:
            if try_lock(lock):
                shutil.rmtree(mark.parent, ignore_errors=True)
                gone.append(mark.parent)
        finally:
            os.close(lock)
    return gone


def _short_base() -> Path:
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
            _end_remover(remover)
        except BaseException:
            _end_remover(remover)
            raise
        else:
            return folder, remover


def _end_remover(remover: Process | None) -> None:
    if remover is not None:
        remover.kill()
        remover.wait()
