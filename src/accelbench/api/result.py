"""`Result`: what a call of `accelbench.benchmark` measured, to be read, compared and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accelbench.api.drawn_chart import DrawnChart
from accelbench.core.absent import NO_DATA
from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.core.rates import unit_beside, unit_of_all
from accelbench.core.visible import in_quotes, visible
from accelbench.core.vocabulary import Status
from accelbench.exchange.titles import title
from accelbench.store.samples import step_ms
from accelbench.store.scratch import temporary_folder

if TYPE_CHECKING:
    from accelbench.api.comparing import ComparisonTable

_HEADINGS = ("what", "p50 ms", "mean ms", "rate", "peak MB", "verified", "quality")
#: Of columns those that are not one value.
_NESTED = ("samples", "sampling")


@dataclass(frozen=True)
class Result:
    """The results of one run, one for each case and launch.

    Attributes:
        run_id: Of the run.
        rows: Each result by the columns of the store, with its `samples` in nanoseconds by phase.
        environment: What the machine was, when it began.
        isolated: Whether it was measured in fresh processes.
    """

    run_id: str
    rows: Sequence[Mapping[str, Any]]
    environment: Mapping[str, Any] = field(default_factory=dict, repr=False)
    isolated: bool = True

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
        """As a notebook shows it."""
        from accelbench.report.pages.rendering import rendered

        cells = [_cells(row, self._unit) for row in self.rows]
        return rendered("result_table.html", headings=_HEADINGS, rows=cells, notes=self._remarks())

    @property
    def _unit(self) -> str:
        return unit_of_all(self.rows)

    def _remarks(self) -> list[str]:
        """Why there is no figure, and what is warned of: each once."""
        failed = [
            f"{title(row)}: {row['status']}, {row.get('message') or row.get('reason')}"
            for row in self.rows
            if row["status"] != Status.OK
        ]
        warned = [str(text) for row in self.rows for text in row.get("warnings") or ()]
        return [visible(line) for line in dict.fromkeys([*failed, *warned])]

    def to_pandas(self) -> Any:
        """A DataFrame of pandas, a line a row."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise MissingExtraError("pandas", "frames", "A DataFrame") from error
        return pandas.DataFrame([self._flat(row) for row in self.rows])

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
        """One value a column; of those that are lists or mappings their text."""
        kept = {name: value for name, value in row.items() if name not in _NESTED}
        flat = {
            name: str(value) if isinstance(value, (dict, list)) else value
            for name, value in kept.items()
        }
        return {**flat, "samples_ms": _samples(row)}

    def compare(self, other: Result) -> ComparisonTable:
        """This run beside another, question by question, by the rules of `accelbench compare`.

        Returns:
            A line a side: `speedup` with its interval beside the other run, which comes first, and
            why where they are not compared.

        Raises:
            UsageError: one was measured in fresh processes, and the other was not.
        """
        if self.isolated != other.isolated:
            raise UsageError(
                "A result of isolate=False is not compared with one of fresh processes: what else"
                " ran and was kept there is in its times.",
                "Measure both alike.",
            )
        from accelbench.analysis.comparison import compared
        from accelbench.analysis.questions import AXES
        from accelbench.analysis.run_noise import Histories
        from accelbench.api.comparing import ComparisonTable
        from accelbench.report.comparison import document

        rows = [_bare(row) for result in (other, self) for row in result.rows]
        axis = AXES["run"]
        groups = compared(rows, axis, (other.run_id,), known=Histories())
        return ComparisonTable(document(groups, axis), None, axis.name)

    def plot(self, chart: str = "latency-distribution") -> DrawnChart:
        """A chart of it, by its name: accelbench plot --chart list says which there are.

        Raises:
            UsageError: there is no such chart, or nothing that it could show.
        """
        from accelbench.core.columns import COLUMNS
        from accelbench.core.near import meant
        from accelbench.exchange.json_export import write_json
        from accelbench.report.chart_data import subject_of
        from accelbench.report.charts import CHARTS
        from accelbench.report.charts.chart import picture

        if chart not in CHARTS:
            raise UsageError(f"There is no chart {in_quotes(chart)}.", meant(chart, CHARTS))
        names = [*(column.name for column in COLUMNS), "samples"]
        with temporary_folder() as folder:
            file = folder / "results.json"
            about = {self.run_id: {"environment": dict(self.environment)}}
            write_json(file, names, self.rows, about)
            subject = subject_of([file], {})
        made = picture(CHARTS[chart], subject)
        if made is None:
            raise UsageError(
                f"The chart {chart} has nothing to show of this run.",
                f"It needs {CHARTS[chart].needs}.",
            )
        return DrawnChart(made)


def _samples(row: Mapping[str, Any]) -> list[float]:
    taken = (row.get("samples") or {}).get("step") or []
    how = (row.get("sampling") or {}).get("step") or {}
    steps = how.get("steps") if isinstance(how, Mapping) else None
    return step_ms(taken, steps)


def _bare(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _NESTED}


def _cells(row: Mapping[str, Any], unit: str) -> list[str]:
    median, mean = row.get("latency_p50_ms"), row.get("latency_mean_ms")
    rate = _figure(row.get("throughput"))
    return [
        visible(title(row)),
        _figure(median),
        _figure(mean),
        f"{rate} {unit or unit_beside(row, unit)}".rstrip(),
        _figure(row.get("memory_peak_mb")),
        str(row.get("verification") or NO_DATA),
        str(row.get("quality") or row["status"]),
    ]


def _figure(value: float | None) -> str:
    return NO_DATA if value is None else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
