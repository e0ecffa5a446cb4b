"""What the cards of engines have in common: refusals in order, and a monotonic clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
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
