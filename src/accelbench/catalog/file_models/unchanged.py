"""Whether a model's file is still the one that was looked at, without reading it.

A digest tells files apart, and to find it the whole file is read: before each opening that would
have it in the page cache, and `load_ms` would be that of another case. What the file system says of
a file is compared instead: its size, the times of its last changes, and which file it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from accelbench.core.errors import CaseError
from accelbench.core.identity import digest
from accelbench.core.model import ModelFile

REASON = "file_changed"
_AT_ONCE = 1 << 24


def stamp_of(files: Iterable[Path]) -> str:
    """A mark of some files that is another one once one of them is written or replaced.

    The time of a file's last change of status stands beside that of its contents, which a copy that
    keeps times sets back.

    Raises:
        OSError: one of them cannot be read.
    """
    stats = [path.stat() for path in files]
    return digest([[s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino] for s in stats])


def as_here(file: ModelFile) -> ModelFile:
    """A file that another process, or another machine, has looked at, with the mark of this one.

    A copy of it has other times. It is read whole once, and where its bytes are others, or it is
    not here, it keeps its mark, and is refused where it is opened.
    """
    try:
        stamp = stamp_of(files_of(file))
    except OSError:
        return file
    same = stamp == file.stamp or _digest(file.path, file.beside, stamp) == file.digest
    return replace(file, stamp=stamp) if same else file


@cache
def _digest(path: str, beside: tuple[str, ...], _stamp: str) -> str:
    return digest_of([Path(path), *map(Path, beside)])


def digest_of(files: Iterable[Path]) -> str:
    """The SHA-256 of some files, one after the other."""
    whole = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while part := file.read(_AT_ONCE):
                whole.update(part)
    return whole.hexdigest()


def refuse_changed(file: ModelFile) -> None:
    """Refuse a file that was written or replaced since it was looked at.

    Raises:
        CaseError: it was, or it is no longer there.
    """
    try:
        same = stamp_of(files_of(file)) == file.stamp
    except OSError as error:
        raise CaseError(
            REASON, f"{file.path} cannot be read: {error.strerror}", "Run it again."
        ) from error
    if not same:
        raise CaseError(
            REASON,
            f"{file.path} was changed after the run had looked at it",
            "Run it again, and leave the file as it is meanwhile.",
        )


def files_of(file: ModelFile) -> list[Path]:
    """The file, and what lies beside it, in the order of its digest."""
    return [Path(file.path), *map(Path, file.beside)]
