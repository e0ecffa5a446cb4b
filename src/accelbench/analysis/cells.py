"""What a matrix is made of: cells, lines, levels. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Rating(StrEnum):
    """The documents' four levels."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NONE = "n/a"


class Availability(StrEnum):
    """States that a rating alone does not distinguish."""

    COMPATIBLE = "compatible"
    INCOMPATIBLE = "incompatible"
    NOT_AVAILABLE = "not available"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class MatrixCell:
    """One platform for one model or one family."""

    availability: Availability
    rating: Rating = Rating.NONE
    reason: str = ""  # the whole sentence
    token: str = ""  # short and stable, where there is no rating or a low one for want of proof
    advice: str = ""
    speed: float | None = None  # times the CPU's throughput
    batches: tuple[int, ...] = ()  # over which
    runtimes: tuple[str, ...] = ()  # that were fastest, the one that was so most often first
    precisions: tuple[str, ...] = ()  # of these, where each platform is taken in its best
    verification: str = ""
    error: float | None = None
    workarounds: tuple[str, ...] = ()
    emulated: bool = False
    run_id: str = ""
    notes: tuple[str, ...] = ()  # what else happened there: failed launches, other runtimes

    @property
    def runtime(self) -> str:
        """The one that was fastest most often; empty where there is none."""
        return self.runtimes[0] if self.runtimes else ""

    @property
    def compatible(self) -> bool:
        return self.availability is Availability.COMPATIBLE

    @property
    def has_result(self) -> bool:
        """Whether a measurement shows if the platform can execute the model."""
        return self.availability in (Availability.COMPATIBLE, Availability.INCOMPATIBLE)

    @property
    def level_without_rating(self) -> str:
        """The level of a cell that is not compatible: `N/A`, or `untried` if it is not measured."""
        return "untried" if self.availability is Availability.NOT_MEASURED else "N/A"


@dataclass(frozen=True)
class MatrixLine:
    """One model, or one family, across the platforms."""

    name: str
    family: str  # empty where the line is a family itself
    cells: Mapping[str, MatrixCell]


@dataclass(frozen=True)
class Matrix:
    """Models and families down, platforms across."""

    hardware: tuple[str, ...]
    models: tuple[MatrixLine, ...] = ()
    families: tuple[MatrixLine, ...] = ()
    newest: str = ""  # when the newest of its results was measured
