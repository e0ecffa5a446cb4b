"""`accelbench.compare` and `accelbench.history`: stored results as tables for notebooks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.core.figures import SpreadKind
from accelbench.core.nouns import NO_DATA, NOT_KNOWN, UNKNOWN_DEVICE, counted, meant
from accelbench.core.visible import in_quotes, visible
from accelbench.exchange.titles import title
from accelbench.measure.launches import LEAST_EFFECT

if TYPE_CHECKING:
    from accelbench.query.filters import Filters
    from accelbench.report.charts.chart import Picture, Subject
    from accelbench.store.database import Database


#: A word or several, as a call takes them.
Words = Sequence[str] | str
Numbers = Sequence[int] | int


class StoredFilters(TypedDict, total=False):
    """Which results of a store are meant; without a filter, all of its kind.

    Attributes:
        db: the database; else $ACCELBENCH_DB, else ./accelbench.duckdb.
        hardware: platforms.
        framework: engines.
        precision: precisions.
        batch_sizes: items of a step.
        mode: inference, training.
        machine: a host name, an id or a source; else that of the newest result.
    """

    db: str | os.PathLike[str] | None
    hardware: Words
    framework: Words
    precision: Words
    batch_sizes: Numbers
    mode: Words
    machine: str | None


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
        from accelbench.report.chart_data import subject_in

        return drawn_chart(chart, lambda: subject_in(self.database, self.filters, self.machine))


def drawn_chart(chart: str, subject: Callable[[], Subject]) -> DrawnChart:
    """Draw a chart of a subject.

    Raises:
        UsageError: there is no such chart, or nothing that it could show.
    """
    from accelbench.report.charts import CHARTS
    from accelbench.report.charts.chart import picture

    if chart not in CHARTS:
        raise UsageError(f"There is no chart {in_quotes(chart)}.", meant(chart, CHARTS))
    made = picture(CHARTS[chart], subject())
    if made is None:
        needs = CHARTS[chart].needs
        raise UsageError(f"The chart {chart} has nothing to show.", f"It needs {needs}.")
    return DrawnChart(made)


def asked_of_store(call: str, models: Words, which: StoredFilters) -> StoreQuestion:
    """Return the results that a call means, by the filters of the command line.

    Raises:
        TypeError: there is no such filter.
        UsageError: a word is known nowhere.
        SurroundingsError: there is no database.
    """
    from accelbench.query.filters import filters_of
    from accelbench.query.stored_results import filled_if_any

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
#: Width and height of a picture in a line, and the room at its ends.
WIDE, HIGH, EDGE = 160.0, 28.0, 5.0
#: Lines that a notebook shows; what is beyond is counted.
SHOWN = 200


@dataclass(frozen=True)
class TableLines(Sequence[Line]):
    """Lines of a table: a sequence of mappings, as the command's --json has them.

    Attributes:
        lines: each by the names of a document of the command.
        asked: of which store it is; None of what is in no store.
    """

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
        """A DataFrame of pandas, a line a row.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise MissingExtraError("pandas", "frames", "A DataFrame") from error
        return pandas.DataFrame(list(self.lines))

    def drawn(self, chart: str) -> DrawnChart:
        """A chart of what they are of.

        Raises:
            UsageError: they are of no store, there is no such chart, or nothing to show.
        """
        if self.asked is None:
            raise UsageError(
                "These lines are of no store, and no chart is drawn of them.",
                "Draw the results that they are of: result.plot().",
            )
        return self.asked.drawn(chart)


def figure_text(value: float | None, unit: str = "") -> str:
    """A figure with its unit, in four digits; no line ends between the two."""
    if value is None:
        return NO_DATA
    shown = f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{shown}\u00a0{unit}" if unit else shown


def across(at: float, most: float, least: float = 0.0) -> float:
    """Where a value stands in the width of a picture."""
    share = (at - least) / (most - least) if most > least else 0.5
    return round(EDGE + share * (WIDE - 2 * EDGE), 1)


#: What is drawn of a comparison, by its axis.
_CHARTS = {"precision": "precision", "runtime": "framework", "batch": "throughput-by-batch"}


@dataclass(frozen=True)
class ComparisonTable(TableLines):
    """Sides beside their baselines: a line a side, as `accelbench compare --json` has them.

    Attributes:
        axis: along which they were compared.
    """

    axis: str = "hardware"

    def __repr__(self) -> str:
        return "\n".join(
            visible(f"{title(line)}: {_time(line)}, {_speed(line)}{_reason(line)}")
            for line in self.lines
        )

    def _repr_html_(self) -> str:
        """As a notebook shows it, in whatever colours it has."""
        from accelbench.report.pages.rendering import rendered

        ends = [line.get(name) for line in self.lines for name in ("speedup", "speedup_high")]
        most = max((float(end) for end in ends if end), default=1.0)
        return rendered(
            "compared_table.html",
            lines=[_told(line, most) for line in self.lines[:SHOWN]],
            more=max(0, len(self.lines) - SHOWN),
            axis=self.axis,
            count=len(self.lines),
            wide=WIDE,
            high=HIGH,
            once=across(1.0, most),
        )

    def plot(self, chart: str | None = None) -> DrawnChart:
        """A chart of what was compared; which, by the axis where none is named.

        Raises:
            UsageError: there is no such chart, or nothing that it could show.
        """
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

    Raises:
        UsageError: a word is known nowhere, or nothing was measured alike.
        SurroundingsError: there is no database, or nothing in it that was asked for.
    """
    from accelbench.analysis.comparison import REFUSED, compared
    from accelbench.analysis.questions import AXES
    from accelbench.core.devices import named_apart
    from accelbench.query.comparisons import rows_to_compare
    from accelbench.report.comparison import document

    if by not in AXES:
        raise UsageError(f"There is no axis named {in_quotes(by)}.", meant(by, AXES))
    allowed = words_of(allow)
    for word in allowed:
        if word not in REFUSED:
            raise UsageError(f"Nothing to allow is named {in_quotes(word)}.", meant(word, REFUSED))
    axis = AXES[by]
    asked = asked_of_store("compare", models, which)
    with asked.database.asking():
        found = rows_to_compare(
            asked.database,
            asked.filters,
            columns=[column.name for column in COLUMNS],
            axis=axis.name,
            baseline=baseline,
            runs=words_of(run),
            machine=asked.machine,
        )
    groups = compared(named_apart(found.rows), axis, found.baseline, allowed, known=found.known)
    if not groups:
        raise UsageError(
            f"No configuration on {found.machine} has results at two values of {axis.name}.",
            f"Choose another axis with by: {', '.join(AXES)}.",
        )
    return ComparisonTable(document(groups, axis), asked, axis.name)


def _told(line: Line, most: float) -> dict[str, Any]:
    """What the template shows of a side."""
    ends = [line.get(name) for name in ("speedup_low", "speedup", "speedup_high")]
    low, middle, high = (None if end is None else across(float(end), most) for end in ends)
    why = line.get("refused") or line.get("cannot_tell") or ""
    return {
        "what": title(line),
        "device": line.get("device_name") or UNKNOWN_DEVICE,
        "time": _time(line),
        "latency_ms": line.get("latency_ms"),
        "rate": figure_text(line.get("throughput"), str(line.get("throughput_unit") or "items/s")),
        "throughput": line.get("throughput"),
        "memory": figure_text(line.get("memory_mb"), "MB"),
        "memory_mb": line.get("memory_mb"),
        "speed": _speed(line),
        "speedup": line.get("speedup"),
        "interval": _interval(line),
        "low": low,
        "middle": middle,
        "high": high,
        "edge": EDGE,
        "worth": ", ".join(
            str(word)
            for word in (line.get("quality"), why, line.get("not_exact"), *line["differs"][:3])
            if word
        ),
    }


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
    """Series over time: a line a series, as `accelbench history --all --json` has them.

    Attributes:
        metric: of which figure.
    """

    metric: str = "latency"

    def __repr__(self) -> str:
        return "\n".join(visible(f"{line['what']}: {line['said']}") for line in self.lines)

    def _repr_html_(self) -> str:
        """As a notebook shows it, in whatever colours it has."""
        from accelbench.report.pages.rendering import rendered

        return rendered(
            "history_table.html",
            lines=[_telling_history_told(line) for line in self.lines[:SHOWN]],
            more=max(0, len(self.lines) - SHOWN),
            metric=self.metric,
            count=len(self.lines),
            wide=WIDE,
            high=HIGH,
        )

    def plot(self) -> DrawnChart:
        """The figures from run to run.

        Raises:
            UsageError: nothing was measured twice.
        """
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

    Raises:
        UsageError: a word is known nowhere, or nothing was measured twice.
        SurroundingsError: there is no database, or nothing in it that was asked for.
    """
    from accelbench.analysis.judging import METRICS
    from accelbench.query.stored_results import on_one_machine
    from accelbench.report.history import document
    from accelbench.report.series import series_in

    metrics = {known.name: known for known in METRICS}
    if metric not in metrics:
        raise UsageError(f"No metric is called {in_quotes(metric)}.", meant(metric, metrics))
    asked = asked_of_store("history", models, which)
    with asked.database.asking():
        where, values, here, _ = on_one_machine(asked.database, asked.filters, asked.machine)
        every, _ = series_in(asked.database, metrics[metric], where, values, threshold)
    if not every:
        raise UsageError(
            f"Nothing on {here} was measured twice and more, by {metric}.",
            "A point of a series is a run: measure the same again, for example each night.",
        )
    return HistoryTable([document(series) for series in every], asked, metric)


def _telling_history_told(line: Line) -> dict[str, Any]:
    """What the template shows of a series."""
    points: Sequence[Mapping[str, Any]] = line["points"] or [line["newest"]]
    unit, level = str(line["unit"]), line["newest_level"]
    return {
        "what": line["what"],
        "device": line.get("device_name") or UNKNOWN_DEVICE,
        "runs": line["point_count"],
        "first": figure_text(points[0]["value"], unit),
        "first_value": points[0]["value"],
        "newest": figure_text(line["newest"]["value"], unit),
        "newest_value": line["newest"]["value"],
        "interval": _telling_history_interval(level, unit),
        "path": _path([float(point["value"]) for point in points]),
        "dots": _dots([float(point["value"]) for point in points]),
        "answer": line["answer"] or "",
        "said": line["said"],
    }


def _telling_history_interval(level: Mapping[str, Any], unit: str) -> str:
    if level["low"] is None or level["high"] is None:
        return NOT_KNOWN if level.get("ends_are") else ""
    ends = f"{figure_text(level['low'])} to {figure_text(level['high'], unit)}"
    is_range = level.get("ends_are") == SpreadKind.RANGE
    return f"{ends}, range of {counted(level['runs'], 'run')}" if is_range else ends


def _dots(values: Sequence[float]) -> list[tuple[float, float]]:
    most = max(values)
    room = HIGH - 2 * EDGE
    return [
        (across(at, len(values) - 1.0), round(HIGH - EDGE - room * value / most, 1))
        for at, value in enumerate(values)
    ]


def _path(values: Sequence[float]) -> str:
    return " ".join(f"{x},{y}" for x, y in _dots(values))


@dataclass(frozen=True)
class DrawnChart:
    """A drawn chart: a notebook shows it, and a file takes it."""

    picture: Picture

    def _repr_svg_(self) -> str:
        from accelbench.report.charts.draw import svg

        return svg(self.picture.spec)

    def save(self, path: str) -> None:
        """Write it, as PNG or SVG by the path's suffix."""
        from accelbench.report.charts.draw import png

        if path.lower().endswith(".png"):
            Path(path).write_bytes(png(self.picture.spec))
        else:
            Path(path).write_text(self._repr_svg_(), encoding="utf-8")
