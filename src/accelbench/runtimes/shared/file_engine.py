"""Engines that open one format of model file on the CPU and make forward passes. Imports none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from accelbench.artifacts.recipe import format_of_file
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
from accelbench.runtimes.shared.refusals import (
    beyond_forward,
    missing,
    no,
    not_listed,
    not_quantised,
)


class FileEngine(ABC):
    """An engine of the first format that its card lists, which nothing is converted to.

    Attributes:
        needs: import names of the packages without which nothing can be opened.
        suffix: how its files are called.
        quantised_by: advice for whoever asks for int8 of a file in floats.
    """

    info: RuntimeInfo
    needs: ClassVar[tuple[str, ...]]
    suffix: ClassVar[str]
    quantised_by: ClassVar[str]

    def probe(self) -> list[Device | Absent]:
        """Return the CPU."""
        return [Device("cpu", f"{self.info.title}'s CPU")]

    def supports(self, case: Case, device: Device) -> Support:
        name, info = self.info.name, self.info
        options = {"threads", *(option.name for option in info.options)}
        return (
            missing(name, self.needs, info.extra)
            or self._refuse_no_file(case)
            or beyond_forward(name, case, options, "its files are never compiled")
            or not_listed(name, case, info.precisions)
            or not_quantised(case, self.quantised_by)
            or self.refused(case)
            or SUPPORTED
        )

    def refused(self, case: Case) -> Support | None:
        """Return what only this engine refuses."""
        return None

    def _refuse_no_file(self, case: Case) -> Support | None:
        if case.model.graph is not None:
            return None
        kind = self.info.files[0].graph
        return no(
            "format",
            f"{self.info.title} opens a file with its {kind}, and {case.model.id} is not converted"
            " to one",
            f"Name a {self.suffix} file, or use --framework pytorch, onnxruntime or openvino.",
        )

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat(format_of_file(self.info.files[0]))

    def clock(self) -> Clock:
        return MonotonicClock()

    @abstractmethod
    def open(self, job: Job) -> Session:
        """Return a session; only here is the engine imported."""
