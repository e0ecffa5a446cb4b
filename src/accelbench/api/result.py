"""`Result` and `StoredTable`: results to read, compare and draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from accelbench.api.comparing import (
    DrawnChart,
    StoredFilters,
    Words,
    asked_of_store,
    drawn_chart,
    figure_text,
    frame_of,
    words_of,
)
from accelbench.core.columns import BY_NAME, COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.formatting import (
    NO_DATA,
    UNKNOWN_DEVICE,
    format_count,
    format_four_digits,
    suggest,
)
from accelbench.core.result_statistics import common_unit, differing_unit
from accelbench.core.safe_text import in_quotes, visible
from accelbench.core.unusable_reasons import source_of
from accelbench.core.vocabulary import Provenance, Quality, Status
from accelbench.exchange.titles import format_title
from accelbench.store.body_to_row import to_step_ms
from accelbench.store.files import create_temporary_folder

if TYPE_CHECKING:
    from accelbench.api.comparing import ComparisonTable
    from accelbench.present.charts.chart import Subject


_HEADINGS = ("what", "p50 ms", "mean ms", "rate", "peak MB", "verified", "quality")
#: Of columns those that are not one value.
_NESTED = ("samples", "sampling")


@dataclass(frozen=True)
class Result:
    """The results of one run, one for each case and launch."""

    run_id: str  # Of the run
    #: Each result by the columns of the store, with its `samples` in nanoseconds by phase
    rows: Sequence[Mapping[str, Any]]
    #: What the machine was, when it began
    environment: Mapping[str, Any] = field(default_factory=dict, repr=False)
    isolated: bool = True  # Whether it was measured in fresh processes

    @property
    def ok(self) -> bool:
        """Whether every case was measured."""
        return bool(self.rows) and all(row["status"] == Status.OK for row in self.rows)

    @property
    def samples(self) -> list[list[float]]:
        """Milliseconds of a step, every sample of each row; empty where there is none."""
        return [_samples(row) for row in self.rows]

    def __str__(self) -> str:
        table = [_HEADINGS, *(_cells(row, self._unit) for row in self.rows)]
        widths = [max(len(line[place]) for line in table) for place in range(len(_HEADINGS))]
        lines = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in table
        ]
        return "\n".join([*lines, *self._remarks()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from accelbench.present.document import Table, columns
        from accelbench.present.pages.document_page import notebook_table

        rows = [_cells(row, self._unit) for row in self.rows]
        return notebook_table(Table(columns(_HEADINGS), rows), notes=self._remarks())

    @property
    def _unit(self) -> str:
        return common_unit(self.rows)

    def _remarks(self) -> list[str]:
        failed = [
            f"{format_title(row)}: {row['status']}, {row.get('message') or row.get('reason')}"
            for row in self.rows
            if row["status"] != Status.OK
        ]
        warned = [str(text) for row in self.rows for text in row.get("warnings") or ()]
        return [visible(line) for line in dict.fromkeys([*failed, *warned])]

    def to_pandas(self) -> Any:
        """A DataFrame of pandas, a line a row."""
        return frame_of([self._flat(row) for row in self.rows])

    def to_polars(self) -> Any:
        """A DataFrame of polars, a line a row."""
        try:
            import polars
        except ModuleNotFoundError as error:
            raise UsageError(
                "A DataFrame of polars needs polars, which is not installed.",
                "Install it with: pip install polars",
            ) from error
        return polars.DataFrame(
            [self._flat(row) for row in self.rows], infer_schema_length=None, strict=False
        )

    def _flat(self, row: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in row.items() if name not in _NESTED}
        flat = {
            name: str(value) if isinstance(value, (dict, list)) else value
            for name, value in kept.items()
        }
        return {**flat, "samples_ms": _samples(row)}

    def compare(self, other: Result) -> ComparisonTable:
        """Compare this run with another, by the rules of `accelbench compare`; a line a side.

        Raises UsageError if only one of them was measured in fresh processes.
        """
        if self.isolated != other.isolated:
            raise UsageError(
                "A result of isolate=False is not compared with one of fresh processes: what else"
                " ran and was kept there is in its times.",
                "Measure both alike.",
            )
        from accelbench.api.comparing import ComparisonTable
        from accelbench.judge.comparison import compared
        from accelbench.judge.questions import AXES
        from accelbench.judge.run_noise import Histories
        from accelbench.present.comparison import document

        rows = [_bare(row) for result in (other, self) for row in result.rows]
        axis = AXES["run"]
        groups = compared(rows, axis, (other.run_id,), known=Histories())
        return ComparisonTable(document(groups, axis), None, axis.name)

    def plot(self, chart: str = "latency-distribution") -> DrawnChart:
        """A chart of it, by its name: accelbench plot --chart list says which there are."""
        from accelbench.present.chart_data import subject_of
        from accelbench.present.table_export import write_json

        def subject() -> Subject:
            names = [*(column.name for column in COLUMNS), "samples"]
            with create_temporary_folder() as folder:
                file = folder / "results.json"
                about = {self.run_id: {"environment": dict(self.environment)}}
                write_json(file, names, self.rows, about)
                return subject_of([file], {})

        return drawn_chart(chart, subject, "this run")


def _samples(row: Mapping[str, Any]) -> list[float]:
    taken = (row.get("samples") or {}).get("step") or []
    how = (row.get("sampling") or {}).get("step") or {}
    steps = how.get("steps") if isinstance(how, Mapping) else None
    return to_step_ms(taken, steps)


def _bare(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _NESTED}


def _cells(row: Mapping[str, Any], unit: str) -> list[str]:
    median, mean = row.get("latency_p50_ms"), row.get("latency_mean_ms")
    rate = figure_text(row.get("throughput"))
    return [
        visible(format_title(row)),
        figure_text(median),
        figure_text(mean),
        f"{rate} {unit or differing_unit(row, unit)}".rstrip(),
        figure_text(row.get("memory_peak_mb")),
        str(row.get("verification") or NO_DATA),
        str(row.get("quality") or row["status"]),
    ]


Row = Mapping[str, Any]


@dataclass(frozen=True)
class StoredTable:
    """Stored results, one a row."""

    rows: Sequence[Row]  # each result by the columns of the store
    sorted_by: str = "started_at"  # the column that they are in the order of

    def __len__(self) -> int:
        return len(self.rows)

    def sort(
        self, column: str = "latency_mean_ms", *, descending: bool | None = None
    ) -> StoredTable:
        """The same in the order of a column, without a value last."""
        if column not in BY_NAME:
            raise UsageError(f"There is no column {in_quotes(column)}.", suggest(column, BY_NAME))
        about = BY_NAME[column]
        if about.kind in ("json", "list", "floats", "map"):
            raise UsageError(f"The values of {column} have no order.", "Name another column.")
        backwards = about.better == "higher" if descending is None else descending
        known = [row for row in self.rows if row.get(column) is not None]
        unknown = [row for row in self.rows if row.get(column) is None]
        ordered = sorted(known, key=lambda row: row[column], reverse=backwards)
        return replace(self, rows=[*ordered, *unknown], sorted_by=column)

    def to_pandas(self) -> Any:
        """A DataFrame of pandas, a line a row."""

        return Result("", self.rows).to_pandas().drop(columns="samples_ms", errors="ignore")

    def __repr__(self) -> str:

        return str(Result("", self.rows))

    def _repr_html_(self) -> str:
        from accelbench.present.document import Table, columns
        from accelbench.present.pages.document_page import MOST_ROWS, notebook_table

        shown = self.rows[:MOST_ROWS]
        spans = [_span(row) for row in shown]
        longest = max((end for span in spans for end in span[1:] if end is not None), default=0.0)
        rows = [_stored_cells(row, span, longest) for row, span in zip(shown, spans, strict=True)]
        caption = f"{format_count(len(self.rows), 'result')}, by {self.sorted_by}"
        return notebook_table(
            Table(columns(_STORED_HEADS), rows, caption=caption), len(self.rows) - MOST_ROWS
        )


def results(models: Words = (), *, run: Words = (), **which: Unpack[StoredFilters]) -> StoredTable:
    """Return stored results of one machine, the oldest first, as `accelbench report` uses them.

    Args:
        models: filter by model.
        run: filter by run, by id or label.
        which: further filters: `StoredFilters`.
    """
    from accelbench.judge.run_names import only_runs
    from accelbench.judge.stored_results import on_one_machine, rows_of

    asked = asked_of_store("results", models, which)
    database = asked.database
    with database.keep_open():
        filters = {**asked.filters, **only_runs(database, words_of(run))}
        where, values, _, _ = on_one_machine(database, filters, asked.machine, words_of(run))
        rows = rows_of(database, [column.name for column in COLUMNS], where, values)
    return StoredTable(rows)


Span = tuple[str, float | None, float | None, float | None]


def _span(row: Row) -> Span:
    """The figure of a result by its name, and its interval: what it is, low, the figure, high."""
    from accelbench.core.result_statistics import Statistic, best_statistic, statistic_name, step_of
    from accelbench.judge.ratios import interval_within

    statistic = best_statistic(row)
    if row.get("status") != Status.OK or row.get("emulated"):
        return "", None, None, None
    if statistic is None or statistic is Statistic.RATE:
        return "", None, None, None
    low, high = interval_within(row, statistic) or (None, None)
    return statistic_name(statistic), low, step_of(row, statistic), high


_STORED_HEADS = (
    *("configuration", "arm", "device", "time of a step", "95 % interval", "from 0", "rate"),
    *("peak memory", "quality"),
)


def _stored_cells(row: Row, span: Span, longest: float) -> list[str]:
    from accelbench.core.result_statistics import interval_text, throughput_unit
    from accelbench.judge.ratios import mean_beside
    from accelbench.present.pages.document_page import figure_cell, interval_cell

    statistic, low, middle, high = span
    mean = mean_beside([row]) if statistic else None
    provenance = str(row.get("provenance") or "")
    marks = [
        "" if provenance in ("", Provenance.MEASURED) else f"{provenance} {source_of(row)}".strip(),
        "emulated" if row.get("emulated") else "",
    ]
    interval = interval_text(low, middle, high, format_four_digits, " ms")
    name = f"{statistic}, mean {format_four_digits(mean)} ms" if mean else statistic
    time = NO_DATA if middle is None else f"{format_four_digits(middle)} ms"
    hollow = provenance != Provenance.MEASURED or row.get("quality") == Quality.UNUSABLE
    rate = None if row.get("emulated") else row.get("throughput")
    memory = row.get("memory_peak_mb")
    sketched = ", ".join(filter(None, (time, interval)))
    return [
        format_title(row),
        row.get("arm") or "",
        row.get("device_name") or UNKNOWN_DEVICE,
        figure_cell(f"{time} {name}".rstrip(), middle),
        interval or NO_DATA,
        interval_cell(sketched, (low, middle, high), longest, is_hollow=hollow),
        figure_cell(_with_unit(rate, throughput_unit(row)), rate),
        figure_cell(_with_unit(memory, "MB"), memory),
        ", ".join(filter(None, (_worth(row), *marks))),
    ]


def _worth(row: Row) -> str:
    if row.get("status") != Status.OK:
        return f"{row.get('status')}: {row.get('message') or row.get('reason') or 'no reason'}"
    wrong = "outputs are wrong" if row.get("verification") == "failed" else ""
    return ", ".join(filter(None, (str(row.get("quality") or ""), wrong)))


def _with_unit(value: float | None, unit: str) -> str:
    return NO_DATA if value is None else f"{format_four_digits(value)} {unit}"
