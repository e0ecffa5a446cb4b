"""Writing an exported file: whole or not at all, and never over another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes
from accelbench.store.files import (
    REAL_FILES,
    Files,
    explain_os_errors,
    move_to_free_name,
    write_synced,
)

T = TypeVar("T")


def write_new(folder: Path, name: str, data: bytes, files: Files = REAL_FILES) -> Path:
    """Write a file under its name, or with -2, -3 … before the suffix if that is taken."""
    wanted = folder / name
    with explain_os_errors("Writing the file", wanted), _beside(wanted, files) as written:
        fd = files.open_new(written)
        try:
            files.write(fd, data)
            files.sync(fd)
        finally:
            files.close(fd)
        number = 1
        while not move_to_free_name(files, written, wanted):
            number += 1
            wanted = folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
    return wanted


def write_exactly(path: Path, write: Callable[[Path], T], files: Files = REAL_FILES) -> T:
    """Let `write` fill a temporary file that then becomes `path`; return its result.

    A name that is taken is refused.
    """
    refuse_taken(path)
    with explain_os_errors("Writing the file", path), _beside(path, files) as written:
        outcome = write(written)
        fd = files.open_append(written)
        try:
            files.sync(fd)
        finally:
            files.close(fd)
        if not move_to_free_name(files, written, path):
            raise _taken(path)
    return outcome


def refuse_taken(path: Path | None) -> None:
    """Refuse a name that is taken, before minutes of work."""
    if path is not None and path.expanduser().exists():
        raise _taken(path.expanduser())


def refuse_suffix(path: Path | None, suffixes: Sequence[str], option: str = "--output") -> None:
    """Raise UsageError if a file's suffix names no format that can be written."""
    if path is not None and path.suffix.lower() not in suffixes:
        formats = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise UsageError(
            f"{in_quotes(str(path))} cannot be written: its suffix names no known format.",
            f"{option} takes a file that ends with {formats}.",
        )


def write_over(path: Path, data: bytes, files: Files = REAL_FILES) -> None:
    """Write a file that is renewed each time: readers see the old one or the new one, whole."""
    with explain_os_errors("Writing the file", path), _beside(path, files) as written:
        write_synced(files, written, [data])
        files.rename(written, path)
        files.sync_folder(path.parent)


def inside(folder: Path, name: str) -> Path:
    """Return a folder within one that the user named; refuse a link to elsewhere.

    The user named that folder: its content must not choose where files are made.
    """
    path = folder / name
    leads_to = path.resolve()
    if not leads_to.is_relative_to(folder.resolve()):
        raise UsageError(
            f"{path} is a link to {leads_to}; nothing is written through it.",
            f"Remove the link, or name {leads_to} itself.",
        )
    return path


def _taken(path: Path) -> UsageError:
    return UsageError(f"{path} exists already.", "Choose another name, or remove it first.")


@contextmanager
def _beside(path: Path, files: Files) -> Iterator[Path]:
    """Yield a temporary name in the same folder, and remove what is left under it."""
    files.make_folder(path.parent)
    # File systems count bytes, of which a letter may have four.
    short = os.fsdecode(os.fsencode(path.name)[:100])
    written = path.with_name(f".{short}.{os.getpid()}-{os.urandom(3).hex()}.part")
    try:
        yield written
    except Exception:
        files.remove(written)
        raise
