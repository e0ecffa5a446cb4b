"""What a call asks of a store: its filters, the machine, and what of that is drawn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import UsageError
from accelbench.core.near import meant
from accelbench.core.visible import in_quotes

if TYPE_CHECKING:
    from accelbench.api.drawn_chart import DrawnChart
    from accelbench.query.filters import Filters
    from accelbench.store.database import Database

#: A word or several, as a call takes them.
Words = Sequence[str] | str
Numbers = Sequence[int] | int


@dataclass(frozen=True)
class StoreQuestion:
    """Which results of which store are meant.

    Attributes:
        filters: column → the values that count.
        machine: a host name, an id or a source; None for that of the newest result.
    """

    database: Database
    filters: Filters
    machine: str | None

    def drawn(self, chart: str) -> DrawnChart:
        """A chart of it, as `accelbench plot` draws it.

        Raises:
            UsageError: there is no such chart, or nothing that it could show.
        """
        from accelbench.api.drawn_chart import DrawnChart
        from accelbench.report.chart_data import subject_in
        from accelbench.report.charts import CHARTS
        from accelbench.report.charts.chart import picture

        if chart not in CHARTS:
            raise UsageError(f"There is no chart {in_quotes(chart)}.", meant(chart, CHARTS))
        subject = subject_in(self.database, self.filters, self.machine)
        made = picture(CHARTS[chart], subject)
        if made is None:
            needs = CHARTS[chart].needs
            raise UsageError(f"The chart {chart} has nothing to show of it.", f"It needs {needs}.")
        return DrawnChart(made)


def asked_of_store(
    db: str | os.PathLike[str] | None,
    machine: str | None,
    models: Words,
    hardware: Words,
    framework: Words,
    precision: Words,
    batch_sizes: Numbers,
    mode: Words,
) -> StoreQuestion:
    """What a call means, by the filters of the command line.

    Raises:
        UsageError: a word is known nowhere.
        SurroundingsError: there is no database.
    """
    from accelbench.query.filters import filters_of
    from accelbench.query.stored_results import filled_if_any

    given = (models, hardware, framework, precision, batch_sizes, mode)
    filters = filters_of(*map(words_of, given))
    database = filled_if_any(None if db is None else Path(db), filters)
    return StoreQuestion(database, filters, machine)


def words_of(given: Sequence[Any] | str | int) -> list[str]:
    """Each as a word; one alone is one."""
    return [str(given)] if isinstance(given, (str, int)) else [str(word) for word in given]
