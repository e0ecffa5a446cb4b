"""What did not work when it was last tried, and what that says of a question. Pure.

Only what lies with model, platform, engine and precision counts: that a machine had no such card,
or that time ran out, says nothing of what would happen elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from accelbench.analysis.questions import SHAPES
from accelbench.core.devices import default_precision
from accelbench.core.possible import belongs
from accelbench.core.vocabulary import Belongs, Status
from accelbench.select.evidence.cells import (
    CIRCUMSTANCES,
    EvidenceAttempt,
    EvidenceCell,
    settings_of,
    sizes_of,
)

#: How it was tried; a failure that never came to a device says nothing of some of it.
_WAY = (
    *("hardware", "device_name", "device_fingerprint", "runtime", "precision", "compiled"),
    "options",
)
_WRONG_OUTPUTS = "wrong_outputs"


@dataclass(frozen=True)
class Failure(EvidenceAttempt):
    """The newest attempt at something, which did not work: its status, reason, moment, run_id."""

    @property
    def batch(self) -> int | None:
        """What was tried; None where its source does not say it."""
        size = self.row.get("batch_size")
        return None if size is None else int(size)

    @property
    def reason(self) -> str:
        """A short word; an answer that was compared with the CPU's may have been wrong."""
        known = str(self.row.get("reason") or "")
        return known or (_WRONG_OUTPUTS if self._wrong else str(self.row.get("status") or ""))

    @property
    def _wrong(self) -> bool:
        """Whether it ran: what is asked for failures has no other such."""
        return self.row.get("status") == Status.OK or self.row.get("reason") == _WRONG_OUTPUTS

    @property
    def counts(self) -> bool:
        """Whether it says something of the cell, and not of a machine or of what was asked."""
        return belongs(self.reason) is Belongs.CELL

    @property
    def of_memory(self) -> bool:
        return self.row.get("status") == Status.OUT_OF_MEMORY or "memory" in self.reason

    @property
    def refused(self) -> bool:
        """Whether it was refused whatever the batch."""
        return self.row.get("status") == Status.UNSUPPORTED

    def is_of_way(self, cell: EvidenceCell) -> bool:
        """Whether a figure is of the way that was tried."""
        return all(self.row.get(name) in (None, cell.row.get(name)) for name in _WAY)

    def is_of_question(self, cell: EvidenceCell) -> bool:
        """Whether it was asked the same as a figure, the batch aside."""
        names = ("model", "mode", *SHAPES, *CIRCUMSTANCES)
        return all(self.row.get(name) == cell.row.get(name) for name in names)

    def overtakes(self, cell: EvidenceCell) -> bool:
        """Whether a figure is history: a later run of the same, or of a smaller batch, failed."""
        if not (self.is_of_way(cell) and self.is_of_question(cell) and self._is_later_than(cell)):
            return False
        return self.batch == cell.batch or self._fits_no(cell.batch - 1)

    def is_overtaken_by(self, cell: EvidenceCell) -> bool:
        """Whether the same worked in a later run, or in another launch of its own."""
        same = self.is_of_way(cell) and self.is_of_question(cell)
        worked = cell.batch == self.batch or self._fits_no(cell.batch - 1)
        return same and worked and not self._is_later_than(cell)

    def follows(self, cell: EvidenceCell) -> bool:
        """Whether a newer run of a figure came to nothing, by what lies with machine or question.

        The figure counts all the same, and that it is not of the newest run is said.
        """
        same = self.is_of_way(cell) and self.is_of_question(cell) and self.batch == cell.batch
        return same and not self.counts and self._is_later_than(cell)

    def stands_in_the_way(self, batch: int, cells: Sequence[EvidenceCell]) -> bool:
        """Whether a batch is not to be had by this way.

        Args:
            batch: that is asked for.
            cells: what works by the same way, at whatever batch.
        """
        if self._fits_no(batch):
            return True
        return self.batch == batch or (self.refused and not cells)

    @property
    def engine(self) -> str | None:
        """The runtime that failed; None if its source does not record it."""
        return self.row.get("runtime")

    def is_of_engine(self, precisions: Sequence[str]) -> bool:
        """Return whether its engine failed as it is used unasked: no options, a usual precision.

        Args:
            precisions: that were asked for; without any it is the engine's default.
        """
        usual = precisions or (default_precision(self.hardware, self.engine),)
        return self.row.get("precision") in (None, *usual) and not settings_of(self.row)

    def explanation(self) -> str:
        """In words: out_of_memory at batch 64, sequence length 128 (pytorch, fp32, A card)."""
        parts = (self.engine, self.row.get("precision"), *settings_of(self.row), self.device)
        way = ", ".join(str(part) for part in parts if part)
        batch = "an unknown batch" if self.batch is None else f"batch {self.batch}"
        sizes = (f"{name.replace('_', ' ')} {size}" for name, size in sizes_of(self.row).items())
        return f"{self.reason} at {', '.join((batch, *sizes))} ({way})"

    def to_dict(self) -> dict[str, object]:
        """Return what failed, for JSON."""
        return {
            "runtime": self.engine,
            "device": self.device or None,
            "precision": self.row.get("precision"),
            "batch_size": self.batch,
            "shapes": sizes_of(self.row),
            "options": settings_of(self.row),
            "reason": self.reason,
            "run_id": self.row.get("run_id"),
        }

    def _fits_no(self, batch: int) -> bool:
        """Whether it ran out of memory at this batch, or at a smaller one."""
        return self.of_memory and self.batch is not None and self.batch <= batch

    def _is_later_than(self, cell: EvidenceCell) -> bool:
        if self.row.get("run_id") == cell.row.get("run_id"):
            # Once out of memory may be chance; what is wrong in one launch is right in none.
            return self._wrong
        return str(self.row.get("moment") or "") > str(cell.row.get("moment") or "")


def lasting(cells: Sequence[EvidenceCell], failures: Sequence[Failure]) -> list[EvidenceCell]:
    """The figures that no later failure has made history."""
    return [cell for cell in cells if not any(failure.overtakes(cell) for failure in failures)]


def standing(failures: Iterable[Failure], cells: Sequence[EvidenceCell]) -> list[Failure]:
    """The failures that nothing has made history since."""
    return [
        failure
        for failure in failures
        if failure.counts and not any(failure.is_overtaken_by(cell) for cell in cells)
    ]


def in_the_way(
    batch: int, cells: Sequence[EvidenceCell], failures: Sequence[Failure]
) -> tuple[list[EvidenceCell], list[Failure]]:
    """The figures of ways by which a batch may be had, and what speaks against the others."""
    against = [
        failure
        for failure in failures
        if failure.stands_in_the_way(batch, [cell for cell in cells if failure.is_of_way(cell)])
    ]
    free = [cell for cell in cells if not any(failure.is_of_way(cell) for failure in against)]
    return free, against


def engines_of(failures: Iterable[Failure]) -> frozenset[str | None]:
    """Return the engines that failed."""
    return frozenset(failure.engine for failure in failures)


def ruled_out(against: Sequence[Failure], precisions: Sequence[str]) -> list[Failure]:
    """Return the newest failure of each engine that a batch is not to be had by.

    A failure of one engine decides nothing for another one, nor one in int8 for fp32.
    """
    newest: dict[str | None, Failure] = {}
    for failure in sorted(against, key=lambda each: str(each.row.get("moment") or "")):
        if failure.is_of_engine(precisions):
            newest[failure.engine] = failure
    return [newest[engine] for engine in sorted(newest, key=str)]
