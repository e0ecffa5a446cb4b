"""What engines raise, as errors of a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from accelbench.core.errors import CaseError, OutOfMemoryError

#: The advice after a failure that the engine alone can explain.
SEE_LOG = "Run again with --debug for its log."
#: How C++'s allocators, torch's arithmetic on sizes and XLA's allocators say it.
_NO_MEMORY = (
    "bad_alloc", "can't allocate memory", "cannot allocate", "failed to allocate",
    "memoryallocationfailed", "not enough memory", "out of memory", "resource_exhausted",
    "storage size calculation overflowed",
)  # fmt: skip
_LONGEST = 400


def engine_error(
    error: Exception, reason: str, title: str, text: str = "", no_memory: Sequence[str] = ()
) -> CaseError:
    """Return an engine's error as one of the case: out of memory, or with a reason.

    A CaseError is returned as it is. `text` stands for the error's whole text, `no_memory` are
    words by which this engine, besides all others, reports that memory is short.
    """
    if isinstance(error, CaseError):
        return error
    text = (text or " ".join(str(error).split()))[:_LONGEST] or type(error).__name__
    said = text.lower()
    if isinstance(error, MemoryError) or any(words in said for words in (*_NO_MEMORY, *no_memory)):
        return OutOfMemoryError(text)
    return CaseError(reason, f"{title}: {text}", SEE_LOG)


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn every way in which torch and XLA report that memory is short into OutOfMemoryError.

    Torch's CPU allocator raises a plain RuntimeError whose text is all there is.
    """
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError("the host has no memory left") from error
    except RuntimeError as error:
        said = str(error).lower()
        if type(error).__name__ == "OutOfMemoryError" or any(word in said for word in _NO_MEMORY):
            raise OutOfMemoryError(first_line(error)) from error
        raise


def first_line(error: BaseException) -> str:
    """Return an engine's error without its stack."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
