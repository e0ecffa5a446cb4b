"""Task accuracies of a store: of each place the newest that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelbench.analysis.accuracies import AccuracyPlace, accuracy_places
from accelbench.core.accuracy_columns import OF_ACCURACY
from accelbench.core.rows import Row
from accelbench.query.stored_results import rows_of

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: What tells two accuracies of a model apart; of each the newest is read, as scores are many.
_APART = (
    *("model", "runtime", "hardware", "precision", "weights_digest"),
    *("accuracy_digest", "accuracy_metric"),
)
_READ = (*_APART, *OF_ACCURACY, "result_id", "run_id", "started_at")


def accuracies_in(
    database: Database, where: str, values: Sequence[object], machine: str
) -> dict[AccuracyPlace, list[Row]]:
    """Results that have an accuracy, by their places, at each the newest first.

    Args:
        database: where they are.
        where: which results count, in SQL: those of one machine.
        values: its parameters.
        machine: its name.
    """
    apart = ", ".join(f'"{name}"' for name in _APART)
    newest = (
        f"result_id IN (SELECT result_id FROM benchmark_results WHERE {where}"  # noqa: S608
        f" AND accuracy IS NOT NULL QUALIFY row_number() OVER (PARTITION BY {apart}"
        " ORDER BY started_at DESC, result_id DESC) = 1)"
    )
    rows = rows_of(database, list(dict.fromkeys(_READ)), newest, values)
    return accuracy_places(rows, {str(row.get("run_id")): machine for row in rows})
