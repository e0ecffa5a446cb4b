"""Configurations that failed when they were last tried, and what they rule out. Pure.

Only failures of model, platform, engine and precision count: a missing card or a timeout says
nothing about other machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from accelbench.core.devices import default_precision
from accelbench.core.possible import belongs
from accelbench.core.vocabulary import Belongs, Status
from accelbench.judge.questions import SHAPES
from accelbench.recommend.evidence.cells import (
    CIRCUMSTANCES,
    EvidenceAttempt,
    EvidenceCell,
    settings_of,
    sizes_of,
)

#: How it was tried. A failure before there was a device records only some of it.
_WAY = (
    *("hardware", "device_name", "device_fingerprint", "runtime", "precision", "compiled"),
    "options",
)
_WRONG_OUTPUTS = "wrong_outputs"


@dataclass(frozen=True)
class Failure(EvidenceAttempt):
    """The newest failed attempt at a configuration."""

    @property
    def batch(self) -> int | None:
        size = self.row.get("batch_size")
        return None if size is None else int(size)

    @property
    def reason(self) -> str:
        """The reason in a word."""
        known = str(self.row.get("reason") or "")
        return known or (
            _WRONG_OUTPUTS if self.has_wrong_outputs else str(self.row.get("status") or "")
        )

    @property
    def has_wrong_outputs(self) -> bool:
        """Whether it ran, and its outputs were wrong."""
        return self.row.get("status") == Status.OK or self.row.get("reason") == _WRONG_OUTPUTS

    @property
    def counts(self) -> bool:
        """Whether the configuration caused it, not a machine or the request."""
        return belongs(self.reason) is Belongs.CELL

    @property
    def of_memory(self) -> bool:
        return self.row.get("status") == Status.OUT_OF_MEMORY or "memory" in self.reason

    @property
    def refused(self) -> bool:
        """Whether it was refused at any batch."""
        return self.row.get("status") == Status.UNSUPPORTED

    def is_of_way(self, cell: EvidenceCell) -> bool:
        """Return whether a cell ran in the same way."""
        return all(self.row.get(name) in (None, cell.row.get(name)) for name in _WAY)

    def is_of_question(self, cell: EvidenceCell) -> bool:
        """Return whether a cell answers the same question, apart from the batch."""
        names = ("model", "mode", *SHAPES, *CIRCUMSTANCES)
        return all(self.row.get(name) == cell.row.get(name) for name in names)

    def overtakes(self, cell: EvidenceCell) -> bool:
        """Return whether it is newer than a cell of the same or, for memory, a larger batch."""
        if not (self.is_of_way(cell) and self.is_of_question(cell) and self._is_later_than(cell)):
            return False
        return self.batch == cell.batch or self._fits_no(cell.batch - 1)

    def is_overtaken_by(self, cell: EvidenceCell) -> bool:
        """Return whether the same worked in a later run, or in another launch of its run."""
        same = self.is_of_way(cell) and self.is_of_question(cell)
        worked = cell.batch == self.batch or self._fits_no(cell.batch - 1)
        return same and worked and not self._is_later_than(cell)

    def follows(self, cell: EvidenceCell) -> bool:
        """Return whether it is a newer run of a cell that failed because of machine or request.

        The cell counts nevertheless, with a note.
        """
        same = self.is_of_way(cell) and self.is_of_question(cell) and self.batch == cell.batch
        return same and not self.counts and self._is_later_than(cell)

    def stands_in_the_way(self, batch: int, cells: Sequence[EvidenceCell]) -> bool:
        """Return whether it rules out a batch, given the cells of the same way at any batch."""
        if self._fits_no(batch):
            return True
        return self.batch == batch or (self.refused and not cells)

    @property
    def engine(self) -> str | None:
        """The engine that failed; None if it is not recorded."""
        return self.row.get("runtime")

    def is_of_engine(self, precisions: Sequence[str]) -> bool:
        """Return whether its engine failed without options in one of these precisions.

        Without any, it is the default precision of the engine.
        """
        usual = precisions or (default_precision(self.hardware, self.engine),)
        return self.row.get("precision") in (None, *usual) and not settings_of(self.row)

    def explanation(self) -> str:
        """Return a text: out_of_memory at batch 64, sequence length 128 (pytorch, fp32, A card)."""
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
        return self.of_memory and self.batch is not None and self.batch <= batch

    def _is_later_than(self, cell: EvidenceCell) -> bool:
        if self.row.get("run_id") == cell.row.get("run_id"):
            # Out of memory once may be chance; wrong outputs of one launch concern all.
            return self.has_wrong_outputs
        return str(self.row.get("moment") or "") > str(cell.row.get("moment") or "")


def lasting(cells: Sequence[EvidenceCell], failures: Sequence[Failure]) -> list[EvidenceCell]:
    """Return the cells that no later failure overtakes."""
    return [cell for cell in cells if not any(failure.overtakes(cell) for failure in failures)]


def standing(failures: Iterable[Failure], cells: Sequence[EvidenceCell]) -> list[Failure]:
    """Return the failures that no later cell overtakes."""
    return [
        failure
        for failure in failures
        if failure.counts and not any(failure.is_overtaken_by(cell) for cell in cells)
    ]


def in_the_way(
    batch: int, cells: Sequence[EvidenceCell], failures: Sequence[Failure]
) -> tuple[list[EvidenceCell], list[Failure]]:
    """Return the cells of ways that may run a batch, and the failures of the others."""
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
    """Return the newest failure of each engine that cannot run a batch.

    A failure of one engine does not affect another one, nor one in int8 fp32.
    """
    newest: dict[str | None, Failure] = {}
    for failure in sorted(against, key=lambda each: str(each.row.get("moment") or "")):
        if failure.is_of_engine(precisions):
            newest[failure.engine] = failure
    return [newest[engine] for engine in sorted(newest, key=str)]
