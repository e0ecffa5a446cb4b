"""Errors of torch as CaseErrors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from accelbench.core.errors import OutOfMemoryError

#: How torch's allocators and its arithmetic on sizes say it, on Linux, Windows and macOS.
_NO_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "storage size calculation overflowed",
)


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn every way in which PyTorch says 'no memory' into OutOfMemoryError.

    The CPU allocator raises a plain RuntimeError whose text is all there is.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OutOfMemoryError(first_line(error)) from error
    except MemoryError as error:
        raise OutOfMemoryError("the host has no memory left") from error
    except RuntimeError as error:
        text = str(error)
        if any(words in text.lower() for words in _NO_MEMORY):
            raise OutOfMemoryError(first_line(error)) from error
        raise


def first_line(error: BaseException) -> str:
    """What an engine's error says, without its stack."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
