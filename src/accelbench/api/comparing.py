"""`accelbench.compare` and `accelbench.history`: stored results as tables for notebooks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.core.formatting import (
    NO_DATA,
    NOT_KNOWN,
    UNKNOWN_DEVICE,
    format_count,
    format_four_digits,
    suggest,
)
from accelbench.core.result_statistics import SpreadKind
from accelbench.core.safe_text import in_quotes, visible
from accelbench.exchange.titles import format_title
from accelbench.measure.launch_verdicts import LEAST_EFFECT

if TYPE_CHECKING:
    from accelbench.judge.filters import Filters
    from accelbench.present.charts.chart import Picture, Subject
    from accelbench.store.database import Database


#: A word or several, as a call takes them.
Words = Sequence[str] | str
Numbers = Sequence[int] | int


class StoredFilters(TypedDict, total=False):
    """Which results of a store are meant; without a filter, all of its kind."""

    #: the database; else $ACCELBENCH_DB, else ./accelbench.duckdb.
    db: str | os.PathLike[str] | None
    hardware: Words  # platforms
    framework: Words  # engines
    precision: Words  # precisions
    batch_sizes: Numbers  # items of a step
    mode: Words  # inference, training
    machine: str | None  # a host name, an id or a source; else that of the newest result


@dataclass(frozen=True)
class StoreQuestion:
    """Which results of which store are meant."""

    database: Database
    filters: Filters
    machine: str | None

    def drawn(self, chart: str) -> DrawnChart:
        from accelbench.present.chart_data import subject_in

        return drawn_chart(
            chart, lambda: subject_in(self.database, self.filters, self.machine), "it"
        )


def drawn_chart(chart: str, subject: Callable[[], Subject], about: str) -> DrawnChart:
    """Return a chart of a subject, which is found out once the chart is known."""
    from accelbench.present.charts import CHARTS
    from accelbench.present.charts.chart import picture

    if chart not in CHARTS:
        raise UsageError(f"There is no chart {in_quotes(chart)}.", suggest(chart, CHARTS))
    made = picture(CHARTS[chart], subject())
    if made is None:
        needs = CHARTS[chart].needs
        raise UsageError(f"The chart {chart} has nothing to show of {about}.", f"It needs {needs}.")
    return DrawnChart(made)


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a DataFrame of pandas."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingExtraError("pandas", "frames", "A DataFrame") from error
    return pandas.DataFrame(list(rows))


def asked_of_store(call: str, models: Words, which: StoredFilters) -> StoreQuestion:
    """Return the results that a call means, by the filters of the command line."""
    from accelbench.judge.filters import filters_of
    from accelbench.judge.stored_results import filled_if_any

    for name in which.keys() - StoredFilters.__annotations__.keys():
        raise TypeError(f"{call}() has no argument {name}")
    columns = ("hardware", "framework", "precision", "batch_sizes", "mode")
    given: list[Any] = [models, *(which.get(name, ()) for name in columns)]
    filters = filters_of(*map(words_of, given))
    db = which.get("db")
    database = filled_if_any(None if db is None else Path(db), filters)
    return StoreQuestion(database, filters, which.get("machine"))


def words_of(given: Sequence[Any] | str | int) -> list[str]:
    """Each as a word; one alone is one."""
    return [str(given)] if isinstance(given, (str, int)) else [str(word) for word in given]


Line = Mapping[str, Any]


@dataclass(frozen=True)
class TableLines(Sequence[Line]):
    """Lines of a table as the command's --json has them; `asked` is their store, if any."""

    lines: Sequence[Line]
    asked: StoreQuestion | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, at: int) -> Line: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Line]: ...

    def __getitem__(self, at: int | slice) -> Line | Sequence[Line]:
        return self.lines[at]

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def to_pandas(self) -> Any:
        """A DataFrame of pandas, a line a row."""
        return frame_of(self.lines)

    def drawn(self, chart: str) -> DrawnChart:
        if self.asked is None:
            raise UsageError(
                "These lines are of no store, and no chart is drawn of them.",
                "Draw the results that they are of: result.plot().",
            )
        return self.asked.drawn(chart)


def figure_text(value: float | None, unit: str = "") -> str:
    """Return a value with its unit, in four digits; no line ends between the two."""
    if value is None:
        return NO_DATA
    return f"{format_four_digits(value)}\u00a0{unit}" if unit else format_four_digits(value)


#: What is drawn of a comparison, by its axis.
_CHARTS = {"precision": "precision", "runtime": "framework", "batch": "throughput-by-batch"}


@dataclass(frozen=True)
class ComparisonTable(TableLines):
    """Sides with their baselines: a line a side, as `accelbench compare --json` has them."""

    axis: str = "hardware"

    def __repr__(self) -> str:
        return "\n".join(
            visible(f"{format_title(line)}: {_time(line)}, {_speed(line)}{_reason(line)}")
            for line in self.lines
        )

    def _repr_html_(self) -> str:
        from accelbench.present.document import Table, columns
        from accelbench.present.pages.document_page import MOST_ROWS, notebook_table

        ends = [line.get(name) for line in self.lines for name in ("speedup", "speedup_high")]
        most = max((float(end) for end in ends if end), default=1.0)
        rows = [_cells(line, most) for line in self.lines[:MOST_ROWS]]
        count = format_count(len(self.lines), "configuration")
        caption = f"{count}, by {self.axis}; above 1 is more items in the same time"
        table = Table(columns(_HEADS), rows, caption=caption)
        return notebook_table(table, len(self.lines) - MOST_ROWS, "lines")

    def plot(self, chart: str | None = None) -> DrawnChart:
        """A chart of what was compared; which, by the axis where none is named."""
        return self.drawn(chart or _CHARTS.get(self.axis, "hardware-throughput"))


def compare(
    models: Words = (),
    *,
    by: str = "hardware",
    baseline: str | None = None,
    run: Words = (),
    allow: Words = (),
    **which: Unpack[StoredFilters],
) -> ComparisonTable:
    """Compare stored results of one machine along an axis, as `accelbench compare` does.

    Args:
        models: filter by model.
        by: the axis: hardware, runtime, precision, batch, threads, model, mode, run, date.
        baseline: what others are compared with; for hardware, else the CPU.
        run: filter by run, by id or label.
        allow: differences that are accepted.
        which: further filters: `StoredFilters`.
    """
    from accelbench.core.devices import disambiguate_devices
    from accelbench.judge.compared_rows import rows_to_compare
    from accelbench.judge.comparison import REFUSED, compared
    from accelbench.judge.questions import AXES
    from accelbench.present.comparison import document

    if by not in AXES:
        raise UsageError(f"There is no axis named {in_quotes(by)}.", suggest(by, AXES))
    allowed = words_of(allow)
    for word in allowed:
        if word not in REFUSED:
            raise UsageError(
                f"Nothing to allow is named {in_quotes(word)}.", suggest(word, REFUSED)
            )
    axis = AXES[by]
    asked = asked_of_store("compare", models, which)
    with asked.database.keep_open():
        found = rows_to_compare(
            asked.database,
            asked.filters,
            columns=[column.name for column in COLUMNS],
            axis=axis.name,
            baseline=baseline,
            runs=words_of(run),
            machine=asked.machine,
        )
    groups = compared(
        disambiguate_devices(found.rows), axis, found.baseline, allowed, known=found.known
    )
    if not groups:
        raise UsageError(
            f"No configuration on {found.machine} has results at two values of {axis.name}.",
            f"Choose another axis with by: {', '.join(AXES)}.",
        )
    return ComparisonTable(document(groups, axis), asked, axis.name)


_HEADS = (
    *("configuration", "device", "time of a step", "rate", "peak memory", "times as fast"),
    *("95 % interval", "from 0", "to know"),
)


def _cells(line: Line, most: float) -> list[str]:
    from accelbench.present.pages.document_page import figure_cell, interval_cell

    ends = [line.get(name) for name in ("speedup_low", "speedup", "speedup_high")]
    why = line.get("refused") or line.get("cannot_tell") or ""
    about = (line.get("quality"), why, line.get("not_exact"), *line["differs"][:3])
    rate, memory, interval = line.get("throughput"), line.get("memory_mb"), _interval(line)
    sketched = ", ".join(filter(None, (_speed(line), interval)))
    unit = str(line.get("throughput_unit") or "items/s")
    return [
        format_title(line),
        line.get("device_name") or UNKNOWN_DEVICE,
        figure_cell(_time(line), line.get("latency_ms")),
        figure_cell(figure_text(rate, unit), rate),
        figure_cell(figure_text(memory, "MB"), memory),
        figure_cell(_speed(line), line.get("speedup")),
        interval or NO_DATA,
        interval_cell(sketched, ends, most, rule=1.0),
        ", ".join(str(word) for word in about if word),
    ]


def _time(line: Line) -> str:
    if line.get("latency_ms") is not None:
        return f"{figure_text(line['latency_ms'], 'ms')} {line.get('figure')}"
    return NO_DATA


def _reason(line: Line) -> str:
    return f": {line['refused']}" if line.get("refused") else ""


def _speed(line: Line) -> str:
    if line.get("refused"):
        return "not compared"
    if line.get("speedup") is None:
        return str(line["direction"]) if line.get("cannot_tell") else NO_DATA
    return f"{figure_text(line['speedup'])}×"


def _interval(line: Line) -> str:
    low, high = line.get("speedup_low"), line.get("speedup_high")
    if low is None or high is None:
        return ""
    return f"{figure_text(low)} to {figure_text(high)}"


@dataclass(frozen=True)
class HistoryTable(TableLines):
    """Series over time: a line a series, as `accelbench history --all --json` has them."""

    metric: str = "latency"

    def __repr__(self) -> str:
        return "\n".join(visible(f"{line['what']}: {line['said']}") for line in self.lines)

    def _repr_html_(self) -> str:
        from accelbench.present.document import Table, columns
        from accelbench.present.pages.document_page import MOST_ROWS, notebook_table

        rows = list(map(_series_cells, self.lines[:MOST_ROWS]))
        caption = f"{len(self.lines)} series by {self.metric}; drawn from 0, a point a run"
        table = Table(columns(_SERIES_HEADS), rows, caption=caption)
        return notebook_table(table, len(self.lines) - MOST_ROWS, "lines")

    def plot(self) -> DrawnChart:
        """The figures from run to run."""
        return self.drawn("trend")


def history(
    models: Words = (),
    *,
    metric: str = "latency",
    threshold: float = LEAST_EFFECT,
    **which: Unpack[StoredFilters],
) -> HistoryTable:
    """Return how stored results changed over time, as `accelbench history` does.

    Args:
        models: filter by model.
        metric: latency, throughput, memory or energy.
        threshold: the smallest change that is reported, as a share.
        which: further filters: `StoredFilters`.
    """
    from accelbench.judge.stored_results import on_one_machine
    from accelbench.judge.verdicts import METRICS
    from accelbench.present.series import series_in
    from accelbench.present.terminal.history import document

    metrics = {known.name: known for known in METRICS}
    if metric not in metrics:
        raise UsageError(f"No metric is called {in_quotes(metric)}.", suggest(metric, metrics))
    asked = asked_of_store("history", models, which)
    with asked.database.keep_open():
        where, values, here, _ = on_one_machine(asked.database, asked.filters, asked.machine)
        every, _ = series_in(asked.database, metrics[metric], where, values, threshold)
    if not every:
        raise UsageError(
            f"Nothing on {here} was measured twice and more, by {metric}.",
            "A point of a series is a run: measure the same again, for example each night.",
        )
    return HistoryTable([document(series) for series in every], asked, metric)


_SERIES_HEADS = (
    *("configuration", "device", "runs", "first", "newest", "interval of its level"),
    *("from run to run", "what happened"),
)


def _series_cells(line: Line) -> list[str]:
    from accelbench.present.pages.document_page import course_cell, figure_cell

    points: Sequence[Mapping[str, Any]] = line["points"] or [line["newest"]]
    unit, runs = str(line["unit"]), line["point_count"]
    first, newest = points[0]["value"], line["newest"]["value"]
    ends = [figure_text(value, unit) for value in (first, newest)]
    course = course_cell(
        f"from {ends[0]} to {ends[1]} in {runs} runs", [float(point["value"]) for point in points]
    )
    return [
        line["what"],
        line.get("device_name") or UNKNOWN_DEVICE,
        figure_cell(str(runs), runs),
        figure_cell(ends[0], first),
        figure_cell(ends[1], newest),
        _level_interval(line["newest_level"], unit) or NO_DATA,
        course,
        line["said"],
    ]


def _level_interval(level: Mapping[str, Any], unit: str) -> str:
    if level["low"] is None or level["high"] is None:
        return NOT_KNOWN if level.get("ends_are") else ""
    ends = f"{figure_text(level['low'])} to {figure_text(level['high'], unit)}"
    is_range = level.get("ends_are") == SpreadKind.RANGE
    return f"{ends}, range of {format_count(level['runs'], 'run')}" if is_range else ends


@dataclass(frozen=True)
class DrawnChart:
    """A drawn chart: a notebook shows it, and a file takes it."""

    picture: Picture

    def _repr_svg_(self) -> str:
        from accelbench.present.charts.draw import svg

        return svg(self.picture.spec)

    def save(self, path: str) -> None:
        from accelbench.present.charts.draw import png

        if path.lower().endswith(".png"):
            Path(path).write_bytes(png(self.picture.spec))
        else:
            Path(path).write_text(self._repr_svg_(), encoding="utf-8")
