"""Who watches a run: the command line, a log, a test. Called only between blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from accelbench.core.case import Case
from accelbench.core.protocols import Absent, Device


@dataclass(frozen=True)
class Progress:
    """Where the case in hand stands."""

    phase: str
    samples: int = 0
    median_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None


class Observer(Protocol):
    """Hears what happens, in order."""

    def devices(self, entries: Sequence[Device | Absent]) -> None:
        """What the run will use, before anything else."""
        ...

    def started(self, run_id: str, launches: int, estimate: tuple[float, float] | None) -> None:
        """The run begins; it takes between so many seconds, very roughly, where that is known."""
        ...

    def note(self, text: str) -> None:
        """Something the reader should know."""
        ...

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        """A case begins."""
        ...

    def progress(self, progress: Progress) -> None:
        """The case moves on."""
        ...

    def case_finished(self, row: Mapping[str, Any]) -> None:
        """A result that is already durable."""
        ...


class SilentObserver:
    """Hears everything and says nothing."""

    def devices(self, entries: Sequence[Device | Absent]) -> None:
        return None

    def started(self, run_id: str, launches: int, estimate: tuple[float, float] | None) -> None:
        return None

    def note(self, text: str) -> None:
        return None

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        return None

    def progress(self, progress: Progress) -> None:
        return None

    def case_finished(self, row: Mapping[str, Any]) -> None:
        return None
