"""Why an artefact could not be made: the cell's own fault, or the place it was to be kept in."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accelbench.core.errors import CaseError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST})

#: What engines written in C++ say of it, in errors that are no OSError.
_FULL_WORDS = ("no space left on device", "disk quota exceeded")

#: All that OpenVINO says where it cannot write a whole model; what it wrote of it is gone then.
_UNSAID = "iostream error"

ELSEWHERE = "Put the cache elsewhere with ACCELBENCH_CACHE"


@contextmanager
def of_the_folder(folder: Path) -> Iterator[None]:
    """Say of what cannot be written there that it is the folder's trouble, not the model's.

    Raises:
        CaseError: disk_full or cache_unwritable.
    """
    try:
        yield
    except CaseError:
        raise
    except Exception as error:
        trouble = place_trouble(error, folder)
        if trouble is None:
            raise
        raise trouble from error


def place_trouble(error: BaseException, folder: Path, need: int = 0) -> CaseError | None:
    """What an error says of the place to write to; None where it says nothing of it.

    Args:
        error: what was raised.
        folder: the place.
        need: the bytes that were to be written, roughly.
    """
    for cause in _chain(error):
        words = str(cause).lower()
        full = any(phrase in words for phrase in _FULL_WORDS)
        full = full or (_UNSAID in words and shutil.disk_usage(folder).free < need)
        if full or (isinstance(cause, OSError) and cause.errno in _FULL):
            return CaseError(
                "disk_full",
                f"the disk of the cache {folder} is full",
                "Free some of it (accelbench's own artefacts there can go), or lower"
                f" ACCELBENCH_CACHE_GB. {ELSEWHERE}, on another disk.",
            )
        if isinstance(cause, OSError) and cause.errno in _FORBIDDEN and _within(cause, folder):
            return CaseError(
                "cache_unwritable",
                f"the cache {folder} cannot be written: {cause.strerror or cause}",
                f"Make it writable. {ELSEWHERE}.",
            )
    return None


def _within(error: OSError, folder: Path) -> bool:
    """Whether it is of that folder, something in it, or what it lies in."""
    if error.filename is None:
        return True
    path = Path(str(error.filename)).absolute()
    return path.is_relative_to(folder) or folder.is_relative_to(path)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it came of."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def failed(reason: str, message: str, error: Exception, others: str) -> CaseError:
    """A step that some exporter or converter did not get through, in one sentence."""
    lines = str(error).strip().splitlines() or [""]
    return CaseError(
        reason,
        f"{message}: {type(error).__name__}: {lines[0][:300]}",
        f"Other {others} were tried, or --no-fix kept them from it.",
    )
