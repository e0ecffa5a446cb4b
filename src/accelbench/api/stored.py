"""`accelbench.results`: stored results as a table that a notebook shows, sorts and hands on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accelbench.api.store_question import asked_of_store, words_of
from accelbench.core.absent import NO_DATA, UNKNOWN_DEVICE
from accelbench.core.columns import BY_NAME, COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.near import meant
from accelbench.core.provenance import source_of
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import Provenance, Status

Row = Mapping[str, Any]

#: Rows that a notebook shows; what is beyond is counted.
_SHOWN = 200
#: Width of the picture of an interval, in its own units.
_WIDE = 160.0
#: Room at its ends, for a mark.
_EDGE = 5.0


@dataclass(frozen=True)
class StoredTable:
    """Stored results, one a row.

    Attributes:
        rows: each result by the columns of the store.
        sorted_by: the column that they are in the order of.
    """

    rows: Sequence[Row]
    sorted_by: str = "started_at"

    def __len__(self) -> int:
        return len(self.rows)

    def sort(
        self, column: str = "latency_mean_ms", *, descending: bool | None = None
    ) -> StoredTable:
        """The same in the order of a column, without a value last.

        Args:
            column: of the store.
            descending: the largest first; else the better ones first, where the column has such.

        Raises:
            UsageError: there is no such column, or its values have no order.
        """
        if column not in BY_NAME:
            raise UsageError(f"There is no column {in_quotes(column)}.", meant(column, BY_NAME))
        about = BY_NAME[column]
        if about.kind in ("json", "list", "floats", "map"):
            raise UsageError(f"The values of {column} have no order.", "Name another column.")
        backwards = about.better == "higher" if descending is None else descending
        known = [row for row in self.rows if row.get(column) is not None]
        unknown = [row for row in self.rows if row.get(column) is None]
        ordered = sorted(known, key=lambda row: row[column], reverse=backwards)
        return replace(self, rows=[*ordered, *unknown], sorted_by=column)

    def to_pandas(self) -> Any:
        """A DataFrame of pandas, a line a row.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from accelbench.api.result import Result

        return Result("", self.rows).to_pandas().drop(columns="samples_ms", errors="ignore")

    def __repr__(self) -> str:
        from accelbench.api.result import Result

        return str(Result("", self.rows))

    def _repr_html_(self) -> str:
        """As a notebook shows it, in whatever colours it has."""
        from accelbench.report.pages.rendering import rendered

        shown = self.rows[:_SHOWN]
        spans = [_span(row) for row in shown]
        longest = max((end for span in spans for end in span[1:] if end is not None), default=0.0)
        return rendered(
            "stored_table.html",
            lines=[_line(row, span, longest) for row, span in zip(shown, spans, strict=True)],
            arms=any(row.get("arm") for row in shown),
            sorted_by=self.sorted_by,
            count=len(self.rows),
            more=len(self.rows) - len(shown),
            wide=_WIDE,
        )


def results(
    models: Sequence[str] | str = (),
    *,
    db: str | os.PathLike[str] | None = None,
    hardware: Sequence[str] | str = (),
    framework: Sequence[str] | str = (),
    precision: Sequence[str] | str = (),
    batch_sizes: Sequence[int] | int = (),
    mode: Sequence[str] | str = (),
    run: Sequence[str] | str = (),
    machine: str | None = None,
) -> StoredTable:
    """Stored results of one machine, the oldest first, as `accelbench report` takes them.

    Args:
        models: only these; all where none is named. So of the other filters.
        db: the database; else $ACCELBENCH_DB, else ./accelbench.duckdb.
        hardware: platforms.
        framework: engines.
        precision: precisions.
        batch_sizes: items of a step.
        mode: inference, training.
        run: runs by id or label.
        machine: a host name, an id or a source; else that of the newest result.

    Raises:
        UsageError: a word is known nowhere.
        SurroundingsError: there is no database, or nothing in it that was asked for.
    """
    from accelbench.query.run_names import only_runs
    from accelbench.query.stored_results import on_one_machine, rows_of

    asked = asked_of_store(db, machine, models, hardware, framework, precision, batch_sizes, mode)
    database = asked.database
    with database.asking():
        filters = {**asked.filters, **only_runs(database, words_of(run))}
        where, values, _, _ = on_one_machine(database, filters, machine, words_of(run))
        rows = rows_of(database, [column.name for column in COLUMNS], where, values)
    return StoredTable(rows)


Span = tuple[str, float | None, float | None, float | None]


def _span(row: Row) -> Span:
    """The figure of a result by its name, and its interval: what it is, low, the figure, high."""
    from accelbench.analysis.launch_intervals import interval_within
    from accelbench.core.figures import Statistic, name_of, statistic_of, step_of

    statistic = statistic_of(row)
    if row.get("status") != Status.OK or row.get("emulated"):
        return "", None, None, None
    if statistic is None or statistic is Statistic.RATE:
        return "", None, None, None
    low, high = interval_within(row, statistic) or (None, None)
    return name_of(statistic), low, step_of(row, statistic), high


def _line(row: Row, span: Span, longest: float) -> dict[str, Any]:
    """What the template shows of a result."""
    from accelbench.analysis.launch_intervals import mean_beside
    from accelbench.core.spreads import interval_text
    from accelbench.core.worth import usable
    from accelbench.exchange.titles import title

    statistic, low, middle, high = span
    mean = mean_beside([row]) if statistic else None
    across = [None if at is None else _across(at, longest) for at in (low, middle, high)]
    provenance = str(row.get("provenance") or "")
    source = source_of(row)
    marks = [
        "" if provenance in ("", Provenance.MEASURED) else f"{provenance} {source}".strip(),
        "emulated" if row.get("emulated") else "",
    ]
    interval = interval_text(low, middle, high, _figure, " ms")
    return {
        "what": title(row),
        "arm": row.get("arm") or "",
        "device": row.get("device_name") or UNKNOWN_DEVICE,
        "time": NO_DATA if middle is None else f"{_figure(middle)} ms",
        "statistic": f"{statistic}, mean {_figure(mean)} ms" if mean else statistic,
        "interval": interval,
        "low": across[0],
        "middle": across[1],
        "high": across[2],
        "hollow": provenance != Provenance.MEASURED or not usable(row),
        "step": middle,
        "rate": _rate(row),
        "throughput": None if row.get("emulated") else row.get("throughput"),
        "memory_mb": row.get("memory_peak_mb"),
        "memory": _with_unit(row.get("memory_peak_mb"), "MB"),
        "worth": ", ".join(filter(None, (_worth(row), *marks))),
    }


def _across(at: float, longest: float) -> str:
    """Where a time is drawn: the axis begins at zero."""
    share = at / longest if longest else 0.0
    return f"{_EDGE + share * (_WIDE - 2 * _EDGE):.1f}"


def _worth(row: Row) -> str:
    """The quality of what was measured, or why there is nothing."""
    if row.get("status") != Status.OK:
        return f"{row.get('status')}: {row.get('message') or row.get('reason') or 'no reason'}"
    wrong = "outputs are wrong" if row.get("verification") == "failed" else ""
    return ", ".join(filter(None, (str(row.get("quality") or ""), wrong)))


def _rate(row: Row) -> str:
    from accelbench.core.rates import unit_of

    emulated = row.get("emulated")
    return _with_unit(None if emulated else row.get("throughput"), unit_of(row))


def _with_unit(value: float | None, unit: str) -> str:
    return NO_DATA if value is None else f"{_figure(value)} {unit}"


def _figure(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
