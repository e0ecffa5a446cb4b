"""What the cards of engines have in common: refusals in order, and a monotonic clock.

What engines raise, as errors of a case.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.errors import CaseError, OutOfMemoryError
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    ArtifactFormat,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.engines.artifacts.recipe import format_of_file
from accelbench.engines.shared.refusals import (
    beyond_forward,
    missing,
    not_listed,
    not_quantised,
    refuse,
)


class Engine(ABC):
    """An engine by its card, readable without importing it."""

    info: RuntimeInfo
    # import names of the packages without which nothing can be opened
    needs: ClassVar[tuple[str, ...]] = ()

    def supports(self, case: Case, device: Device) -> Support:
        return next(filter(None, self.refusals(case, device)), SUPPORTED)

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        """Yield the refusals of a case, the first of which counts, or None."""
        yield missing(self.info.name, self.needs, self.info.extra)

    def clock(self) -> Clock:
        return MonotonicClock()

    @abstractmethod
    def open(self, job: Job) -> Session:
        """Return a session; only here is the engine imported."""


class ForwardEngine(Engine):
    """An engine that makes forward passes alone."""

    remark: ClassVar[str]  # what a reader should know of its options, as the end of a sentence

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        yield from super().refusals(case, device)
        yield self._beyond_forward(case)

    def _beyond_forward(self, case: Case) -> Support | None:
        options = {"threads", *(option.name for option in self.info.options)}
        return beyond_forward(self.info.name, case, options, self.remark)


class FileEngine(ForwardEngine):
    """An engine of the first format that its card lists, on the CPU; nothing is converted to it."""

    remark = "its files are never compiled"
    quantised_by: ClassVar[str]  # advice to users who ask for int8 of a file in floats

    def probe(self) -> list[Device | Absent]:
        return [Device("cpu", f"{self.info.title}'s CPU")]

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        own = self.info.files[0]
        yield missing(self.info.name, self.needs, self.info.extra)
        if case.model.graph is None:
            facts = {"title": self.info.title, "kind": own.graph, "suffix": own.suffix}
            yield refuse("format", model=case.model.id, **facts)
        yield self._beyond_forward(case)
        yield not_listed(self.info.name, case, self.info.precisions)
        yield not_quantised(case, self.quantised_by)
        yield self.refused(case)

    def refused(self, case: Case) -> Support | None:
        return None

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat(format_of_file(self.info.files[0]))


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
