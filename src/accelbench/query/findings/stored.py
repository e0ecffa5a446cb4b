"""What a store says has changed: the newest run against what was measured before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.core.errors import AccelbenchError
from accelbench.query.filters import Value

if TYPE_CHECKING:
    from accelbench.analysis.checking import Check
    from accelbench.store.database import Database

_RUN = "run_id"


def changed_in(
    database: Database, filters: Mapping[str, Sequence[Value]], machine: str | None = None
) -> Check | None:
    """The check of the newest run that was measured here; None where nothing was before it.

    Args:
        database: the store.
        filters: column → the values that count; runs among them are what is checked.
        machine: by its name; else that of the newest run.
    """
    return check_or_why(database, filters, machine)[0]


def check_or_why(
    database: Database, filters: Mapping[str, Sequence[Value]], machine: str | None = None
) -> tuple[Check | None, str]:
    """The same, with why there is none although something was measured before; "" otherwise."""
    from accelbench.query.baselines import BaselineQuery, baseline_for
    from accelbench.query.suggestions import NothingMeasuredError

    runs = tuple(str(run) for run in filters.get(_RUN, ()))
    asked = {name: tuple(values) for name, values in filters.items() if name != _RUN}
    try:
        return baseline_for(database, None, BaselineQuery(asked, runs, machine)).check(None), ""
    except NothingMeasuredError:
        return None, ""  # a first run has nothing before it
    except AccelbenchError as error:
        return None, str(error)
