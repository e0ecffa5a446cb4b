"""What engines raise, as errors of a case."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.errors import CaseError, OutOfMemoryError

#: The advice after a failure that the engine alone can explain.
SEE_LOG = "Run again with --debug for its log."
_NO_MEMORY = (
    "bad_alloc",
    "cannot allocate",
    "failed to allocate",
    "memoryallocationfailed",
    "out of memory",
)
_LONGEST = 400


def engine_error(
    error: Exception, reason: str, title: str, text: str = "", no_memory: Sequence[str] = ()
) -> CaseError:
    """Return an engine's error as one of the case: out of memory, or with a reason.

    Args:
        error: what was raised; a CaseError is returned as it is.
        reason: why the case failed, unless memory was short.
        title: the engine as people write it.
        text: what the error says, if that is not its whole text.
        no_memory: how this engine says that memory is short, beside what all say.
    """
    if isinstance(error, CaseError):
        return error
    text = (text or " ".join(str(error).split()))[:_LONGEST] or type(error).__name__
    said = text.lower()
    if isinstance(error, MemoryError) or any(words in said for words in (*_NO_MEMORY, *no_memory)):
        return OutOfMemoryError(text)
    return CaseError(reason, f"{title}: {text}", SEE_LOG)
