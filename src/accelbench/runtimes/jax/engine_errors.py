"""What XLA and torch raise, as errors of the case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from accelbench.core.errors import OutOfMemoryError, UnsupportedError
from accelbench.runtimes.pytorch.engine_errors import first_line
from accelbench.runtimes.pytorch.engine_errors import memory_errors as torch_memory_errors

#: How XLA's allocators say it, whatever they add.
_NO_MEMORY = "RESOURCE_EXHAUSTED"


@contextmanager
def case_errors() -> Iterator[None]:
    """No memory, in every way it is said; and forms of operators that the table refuses."""
    try:
        with torch_memory_errors():
            yield
    except NotImplementedError as error:
        raise UnsupportedError(
            "operator",
            f"the jax runtime has no counterpart of {first_line(error)}",
            "Use --framework pytorch.",
        ) from error
    except RuntimeError as error:
        if _NO_MEMORY in str(error):
            raise OutOfMemoryError(first_line(error)) from error
        raise
