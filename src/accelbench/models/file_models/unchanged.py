"""Check of whether a model's file is unchanged, without reading it."""

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
    """Return a mark of files that changes once one of them is written or replaced.

    It includes the change of status, because a copy that keeps times sets back that of contents.
    Raises OSError if one cannot be read.
    """
    stats = [path.stat() for path in files]
    return digest([[s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino] for s in stats])


def as_here(file: ModelFile) -> ModelFile:
    """Return a file that was looked at elsewhere with this machine's mark; copies have other times.

    It is read whole once. If its bytes differ, or it is not here, it keeps its mark and is refused
    when it is opened.
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
    """Return the SHA-256 of files, one after the other."""
    whole = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while part := file.read(_AT_ONCE):
                whole.update(part)
    return whole.hexdigest()


def refuse_changed(file: ModelFile) -> None:
    """Raise CaseError if a file was changed or removed since it was looked at."""
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
    """Return the file, and those next to it, in the order of its digest."""
    return [Path(file.path), *map(Path, file.beside)]
