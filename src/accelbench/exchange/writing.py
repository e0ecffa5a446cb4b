"""Atomic writing of exported files, which never replaces another file."""

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
    """Write a file under its name, or with -2, -3 … before the suffix if that exists."""
    wanted = folder / name
    with explain_os_errors("Writing the file", wanted), _temporary_file(wanted, files) as written:
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
    """Let `write` fill a temporary file that becomes `path`; return its result.

    An existing file is refused.
    """
    refuse_taken(path)
    with explain_os_errors("Writing the file", path), _temporary_file(path, files) as written:
        outcome = write(written)
        fd = files.open_append(written)
        try:
            files.sync(fd)
        finally:
            files.close(fd)
        if not move_to_free_name(files, written, path):
            raise _taken_error(path)
    return outcome


def refuse_taken(path: Path | None) -> None:
    """Refuse an existing file, before minutes of work."""
    if path is not None and path.expanduser().exists():
        raise _taken_error(path.expanduser())


def refuse_suffix(path: Path | None, suffixes: Sequence[str], option: str = "--output") -> None:
    """Raise UsageError if a file's suffix is not one of the formats that can be written."""
    if path is not None and path.suffix.lower() not in suffixes:
        formats = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise UsageError(
            f"{in_quotes(str(path))} cannot be written: its suffix names no known format.",
            f"{option} takes a file that ends with {formats}.",
        )


def replace_file(path: Path, data: bytes, files: Files = REAL_FILES) -> None:
    """Replace a file atomically: readers see the old or the new content."""
    with explain_os_errors("Writing the file", path), _temporary_file(path, files) as written:
        write_synced(files, written, [data])
        files.rename(written, path)
        files.sync_folder(path.parent)


def resolve_inside(folder: Path, name: str) -> Path:
    """Return a folder within one that the user named; refuse a link to another place.

    The content of the named folder must not choose where files are created.
    """
    path = folder / name
    target = path.resolve()
    if not target.is_relative_to(folder.resolve()):
        raise UsageError(
            f"{path} is a link to {target}; accelbench does not write through links.",
            f"Remove the link, or name {target} itself.",
        )
    return path


def _taken_error(path: Path) -> UsageError:
    return UsageError(f"{path} already exists.", "Choose another name, or remove it first.")


@contextmanager
def _temporary_file(path: Path, files: Files) -> Iterator[Path]:
    """Yield a temporary name in the same folder, and remove the file after an error."""
    files.make_folder(path.parent)
    # File systems limit bytes, and a character may have four.
    short = os.fsdecode(os.fsencode(path.name)[:100])
    written = path.with_name(f".{short}.{os.getpid()}-{os.urandom(3).hex()}.part")
    try:
        yield written
    except Exception:
        files.remove(written)
        raise
