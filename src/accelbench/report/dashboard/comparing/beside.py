"""Chosen cells beside one of them, by the launches of each. Pure.

As `accelbench compare`: what was not measured alike is listed, what are figures of different
things is not compared with each other, and what nobody measured never is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accelbench.analysis.accuracies import TaskAccuracy, accuracy_among
from accelbench.analysis.comparison import (
    NO_FIGURE,
    differing,
    doubtful,
    nearest_axis,
    refused_along,
    unlike,
)
from accelbench.analysis.ratios import Ratio, ratio
from accelbench.analysis.run_noise import Histories
from accelbench.analysis.sides import Side
from accelbench.core.columns import ASKED
from accelbench.core.exactness import not_exact
from accelbench.core.figures import statistic_of
from accelbench.core.launch_failures import Failing, why_unusable
from accelbench.core.provenance import comparable
from accelbench.core.rows import Row
from accelbench.core.worth import answered, counting_launches

if TYPE_CHECKING:
    from accelbench.report.dashboard.snapshots.cells import Cell


@dataclass(frozen=True)
class ComparedCell:
    """One cell beside the base."""

    cell: Cell
    ratio: Ratio | None = None  # items in the same time
    memory: float | None = None
    refused: str = ""
    #: What was asked otherwise: here, and of the base.
    asked: Sequence[tuple[str, object, object]] = ()
    differs: Sequence[str] = ()
    doubts: Sequence[str] = ()  # of both, what makes a ratio doubtful: it has a mark
    first: bool = False  # what the others are compared with
    of_other_runs: bool = False  # than the base's launches, all of them
    not_exact: str = ""  # why its outputs are not known to be those of a float precision
    accuracy: TaskAccuracy | None = None  # of its outputs against labels

    @property
    def speedup(self) -> float | None:
        """Items in the same time; None where nothing can be told."""
        if self.ratio is not None:
            return self.ratio.value if self.ratio.told else None
        return 1.0 if self.first and not self.refused else None


def beside(
    chosen: Sequence[tuple[Cell, Sequence[Row]]], known: Histories, at: int = 0
) -> list[ComparedCell]:
    """Each of the cells beside one of them; that itself is once as fast.

    Args:
        chosen: cells with their launches.
        known: the older runs of these.
        at: which of them the others are compared with.
    """
    if not chosen:
        return []
    first = chosen[at]
    base = _side(*first)
    alone = ComparedCell(first[0], refused=_why_not(first[0], base), first=True)
    sides = [
        alone if n == at else _beside(cell, _side(cell, rows), first[0], base, known)
        for n, (cell, rows) in enumerate(chosen)
    ]
    return [
        replace(side, not_exact=not_exact(rows), accuracy=accuracy_among(rows))
        for side, (_, rows) in zip(sides, chosen, strict=True)
    ]


def _side(cell: Cell, rows: Sequence[Row]) -> Side | None:
    """The launches of a cell; what failed before it had a device is not among them, but counted."""
    if cell.get("failed"):
        failing = Failing(cell["launches"], cell["failed"], cell["wrong"])
        rows = [failing.of(row) for row in rows]
    known = [row for row in rows if answered(row) and statistic_of(row) is not None]
    return Side((), counting_launches(known)) if known else None


def _beside(
    cell: Cell,
    side: Side | None,
    first: Cell,
    base: Side | None,
    known: Histories,
) -> ComparedCell:
    questions = [
        (name, cell.get(name), first.get(name))
        for name in ASKED
        if str(cell.get(name)) != str(first.get(name))
    ]
    why = _why_not(cell, side) or _why_not(first, base)
    if why or side is None or base is None:
        return ComparedCell(cell, refused=why, asked=questions)
    axis, otherwise = nearest_axis(base.row, side.row)
    differs = differing(base, side, axis)
    other_work = next((name for name in ("model", "mode") if cell.get(name) != first.get(name)), "")
    why_not = unlike(base.rows, side.rows, other_work)
    why = f"not alike: {', '.join(why_not)}" if why_not else refused_along(otherwise)
    if why:
        return ComparedCell(cell, refused=why, asked=questions, differs=differs)
    speedup = ratio(side.rows, base.rows, known)
    if speedup is None:
        return ComparedCell(cell, refused=NO_FIGURE, asked=questions, differs=differs)
    return ComparedCell(
        cell,
        speedup,
        side.memory_mb / base.memory_mb if side.memory_mb and base.memory_mb else None,
        asked=questions,
        differs=differs,
        doubts=[*(name.replace("_", " ") for name in otherwise), *doubtful(differs)],
        of_other_runs=_runs(side).isdisjoint(_runs(base)),
    )


def _runs(side: Side) -> set[str]:
    return {str(row.get("run_id")) for row in side.rows}


def _why_not(cell: Cell, side: Side | None) -> str:
    """Why a cell is compared with nothing."""
    if cell["kind"] == "emulated":
        return "emulated: such times mean nothing"
    if not comparable(cell):
        return f"{cell['kind']}: not measured"
    if side is None:
        return "there are no figures"
    return "" if side.usable else f"unusable: {why_unusable(side.rows)}"
