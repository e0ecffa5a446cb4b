"""The results that a comparison is made of, for the command and for the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.judge.older_runs import histories_on
from accelbench.judge.run_names import runs_meant
from accelbench.judge.stored_results import on_one_machine, rows_of

if TYPE_CHECKING:
    from accelbench.core.rows import Row
    from accelbench.judge.filters import Filters
    from accelbench.judge.machines import Machine
    from accelbench.judge.run_noise import Histories
    from accelbench.store.database import Database


@dataclass(frozen=True)
class ComparedRows:
    """Results of one machine.

    Attributes:
        filters: values of columns that count, runs included.
        rows: the results.
        baseline: the value of the axis that others are compared with; empty for the usual one.
        machine: the machine that they are of.
        others: further machines that have such results.
        known: older runs of the same series.
    """

    filters: Filters
    rows: Sequence[Row]
    baseline: tuple[str, ...]
    machine: Machine
    others: Sequence[Machine]
    known: Histories


def rows_to_compare(
    database: Database,
    filters: Filters,
    *,
    columns: Sequence[str],
    axis: str,
    baseline: str | None,
    runs: Sequence[str],
    machine: str | None,
) -> ComparedRows:
    """Read the results of a comparison.

    Args:
        database: the store, at one moment.
        filters: values of columns that count.
        columns: what is read.
        axis: the name of the axis.
        baseline: a value of it; for runs an id or a label.
        runs: ids or labels of the only runs that count; of all, if it is empty.
        machine: a host name, an id or a source; None for that of the newest result.
    """
    if runs:
        named = [run for word in runs for run in runs_meant(database, word)]
        filters = {**filters, "run_id": tuple(dict.fromkeys(named))}
    held: tuple[str, ...] = () if baseline is None else (baseline,)
    if axis == "run":
        held = tuple(dict.fromkeys(run for word in held for run in runs_meant(database, word)))
    of_runs = held if axis == "run" else ()
    where, values, chosen, others = on_one_machine(database, filters, machine, of_runs)
    rows: Sequence[Row] = rows_of(database, columns, where, values, launches=True)
    known = histories_on(database, rows, chosen)
    return ComparedRows(filters, rows, held, chosen, others, known)
