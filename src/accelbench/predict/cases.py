"""Cases to predict and cases that were measured: a model at sizes, in a configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from accelbench.core.axes import AXES
from accelbench.core.case import Shapes

#: Platforms whose engines compute on the CPU.
ON_CPUS = ("cpu", "openvino", "wasm")


@dataclass(frozen=True, slots=True)
class CaseConfiguration:
    """Where and how a model runs: everything of a case but the model and its sizes."""

    hardware: str  # platform
    device: str  # the device's name
    runtime: str
    precision: str
    mode: str
    compiled: bool = False
    threads: int | None = None
    options: str = ""

    def __str__(self) -> str:
        parts = [f"{self.runtime}/{self.hardware}", self.precision]
        parts += ["compiled"] if self.compiled else []
        parts += [f"{self.threads} threads"] if self.threads else []
        parts += [self.options] if self.options else []
        return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class PredictedCase:
    """A model at sizes in a configuration."""

    model: str  # the catalogue's name
    family: str
    shapes: Shapes  # settled: with the model's own sizes
    configuration: CaseConfiguration


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """A case with what it was measured to take: the middle of the launches of its newest run."""

    case: PredictedCase
    latency_ms: float | None
    memory_mb: float | None


def sizes_of(shapes: Shapes) -> dict[str, int]:
    """The sizes by their columns, without the batch and without those that the model has not."""
    sizes = {axis.column: getattr(shapes, axis.field) for axis in AXES}
    return {column: size for column, size in sizes.items() if size is not None}


def shapes_from(batch: int, sizes: Mapping[str, int]) -> Shapes:
    """The shapes of a batch and of sizes by their columns."""
    return Shapes(batch, **{axis.field: sizes.get(axis.column) for axis in AXES})
