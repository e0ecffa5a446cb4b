"""`check` of a run with arms: its own other arm is what it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accelbench.analysis.arms import checked_arms, names_of_arms
from accelbench.analysis.machines import machine_of
from accelbench.core.devices import named_apart
from accelbench.core.errors import UsageError
from accelbench.core.figures import FEWEST_LAUNCHES
from accelbench.core.rows import Json
from accelbench.core.worth import COMPARABLE
from accelbench.query.conditions import one_of
from accelbench.query.run_names import harmless, labels_of, runs_meant
from accelbench.query.stored_results import rows_of
from accelbench.query.suggestions import command_again, refuse_unknown

if TYPE_CHECKING:
    from accelbench.analysis.checking import Check
    from accelbench.query.baselines import BaselineQuery
    from accelbench.store.database import Database

#: How a baseline is measured that a check can judge by.
_AS_BASELINE = f" --launches {FEWEST_LAUNCHES} --label baseline"
_MEASURED = f"provenance IN ({', '.join(repr(kind.value) for kind in COMPARABLE)})"


def check_of_arms(
    database: Database, sought: BaselineQuery, columns: Sequence[str], threshold: float | None
) -> tuple[Check, dict[str, object]]:
    """Hold the arms of a run against each other.

    Args:
        database: where it is.
        sought: which run, else the newest one with arms; which of its questions; what may differ.
        columns: what is read of each result.
        threshold: what a change has to exceed at least, as a share.

    Raises:
        UsageError: there is none, or what was named has no arms.
    """
    with database.asking():
        run = _run_with_arms(database, sought)
        where: list[str] = [f"{_MEASURED} AND run_id = ?"]
        values: list[object] = [run]
        for column, wanted in sought.filters.items():
            where.append(one_of(column, wanted))
            values += wanted
        rows = named_apart(
            rows_of(database, [*columns, "arm"], " AND ".join(where), values, launches=True)
        )
        labels = labels_of(database, [run])
        environment = _environment(database, run)
    names = names_of_arms(rows)
    if not names:
        raise _nothing(database, sought)
    about: dict[str, object] = {
        "baseline": harmless(names[0]),
        "runs": [run],
        "labels": labels,
        "machine": str(machine_of(run, environment)),
        "threshold": threshold,
        "notes": [],
    }
    return checked_arms(rows, threshold, sought.allow), about


def _run_with_arms(database: Database, sought: BaselineQuery) -> str:
    """The newest of those that were named, or of all."""
    condition, values = "coalesce(arm, '') <> ''", list[object]()
    if sought.runs:
        named = [run for word in sought.runs for run in runs_meant(database, word)]
        condition += f" AND {one_of('run_id', named)}"
        values += named
    _, rows = database.query(
        f"SELECT run_id FROM benchmark_results WHERE {condition}"  # noqa: S608 — our columns
        " ORDER BY started_at DESC, run_id DESC LIMIT 1",
        values,
    )
    if not rows:
        raise _nothing(database, sought)
    return str(rows[0][0])


def _nothing(database: Database, sought: BaselineQuery) -> UsageError:
    """Return the error of a check without a baseline, with the command that measures one."""
    both = "or measure both sides in one run: add --against commit:REVISION."
    with database.asking():
        refuse_unknown(database, sought.filters)
        measure = command_again(database, sought.filters)
    if not measure:
        return UsageError("There is nothing to check against.", f"Name a --baseline, {both}")
    return UsageError(
        "There is nothing to check against.",
        f"Name a --baseline. To measure one before a change: `{measure}{_AS_BASELINE}`, after which"
        f" --baseline baseline names it; {both}",
    )


def _environment(database: Database, run: str) -> Json | None:
    import json

    _, rows = database.query(
        "SELECT environment::VARCHAR FROM benchmark_runs WHERE run_id = ?", [run]
    )
    record: Json | None = json.loads(str(rows[0][0])) if rows and rows[0][0] else None
    return record
