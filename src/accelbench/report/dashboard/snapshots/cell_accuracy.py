"""What the outputs of a cell are worth against labels, and what its precision costs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.analysis.accuracies import (
    TaskAccuracy,
    accuracy_against,
    accuracy_of,
    cost_sentence,
    like_for_like,
    place_of,
)
from accelbench.core.rows import Row, text
from accelbench.query.accuracies import accuracies_in
from accelbench.query.conditions import marks

if TYPE_CHECKING:
    from accelbench.report.dashboard.snapshots.cells import Cell
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot
    from accelbench.store.database import Database

_BASE = "fp32"
_WHERE = "model = ? AND runtime = ? AND hardware = ? AND precision IN (?, ?) AND provenance = ?"


@dataclass(frozen=True)
class CellAccuracy:
    """The newest accuracy of a cell's model, engine and precision.

    Attributes:
        known: the figure.
        cost: what it is above or below that of fp32, as a sentence; "" where nobody can say.
        run_id: the run that measured it, where that is not the cell's own; else "".
        other_weights: whether its weights are not those of the cell's launches.
    """

    known: TaskAccuracy
    cost: str = ""
    run_id: str = ""
    other_weights: bool = False


def cell_accuracy(
    database: Database, snapshot: Snapshot, cell: Cell, rows: Sequence[Row]
) -> CellAccuracy | None:
    """The accuracy of a cell; None where none was measured.

    Args:
        database: the store.
        snapshot: which run was on which machine.
        cell: which.
        rows: its launches; one of them that has an accuracy comes first.
    """
    if not rows:
        return None
    first = rows[0]
    runs = [run for run, machine in snapshot.ran.items() if machine == cell["machine"]]
    asked = [text(first, name) for name in ("model", "runtime", "hardware", "precision")]
    own = {text(row, "result_id") for row in rows}
    # Where nobody says which machine it was, its own launches alone are of that machine.
    column, among = ("run_id", runs) if runs else ("result_id", sorted(own))
    where = f"{_WHERE} AND {column} IN ({marks(among)})"
    values = [*asked, _BASE, text(first, "provenance"), *among]
    places = accuracies_in(database, where, values, "")
    place = place_of(first, "")
    of_place = sorted(places.get(place, ()), key=lambda row: text(row, "result_id") not in own)
    if not of_place:
        return None
    chosen = of_place[0]
    known = accuracy_of(chosen)
    assert known is not None  # else it were not among them
    base = like_for_like(chosen, places.get(place.as_fp32(), ()))
    cost = None
    if base is not None and place.precision != _BASE:
        cost = accuracy_against([chosen], [base])
    run = text(chosen, "run_id")
    return CellAccuracy(
        known,
        cost_sentence(place.precision, _BASE, cost) if cost is not None else "",
        "" if run in {text(row, "run_id") for row in rows} else run,
        chosen.get("weights_digest") not in {row.get("weights_digest") for row in rows},
    )
