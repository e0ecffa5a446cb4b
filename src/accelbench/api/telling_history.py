"""`accelbench.history`: what became of stored figures, as a table that a notebook shows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accelbench.api.store_question import Numbers, Words, asked_of_store
from accelbench.api.table_lines import (
    EDGE,
    HIGH,
    SHOWN,
    WIDE,
    Line,
    TableLines,
    across,
    figure_text,
)
from accelbench.core.absent import NOT_KNOWN, UNKNOWN_DEVICE
from accelbench.core.errors import UsageError
from accelbench.core.near import meant
from accelbench.core.nouns import counted
from accelbench.core.spreads import SpreadKind
from accelbench.core.visible import in_quotes, visible
from accelbench.measure.launches import LEAST_EFFECT

if TYPE_CHECKING:
    from accelbench.api.drawn_chart import DrawnChart


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
            lines=[_told(line) for line in self.lines[:SHOWN]],
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
    db: str | os.PathLike[str] | None = None,
    hardware: Words = (),
    framework: Words = (),
    precision: Words = (),
    batch_sizes: Numbers = (),
    mode: Words = (),
    machine: str | None = None,
) -> HistoryTable:
    """What became of stored figures over time, by the rules of `accelbench history`.

    Args:
        models: only these; all where none is named. So of the other filters.
        metric: latency, throughput, memory or energy.
        threshold: changes below this share are not told.
        db: the database; else $ACCELBENCH_DB, else ./accelbench.duckdb.
        hardware: platforms.
        framework: engines.
        precision: precisions.
        batch_sizes: items of a step.
        mode: inference, training.
        machine: a host name, an id or a source; else that of the newest result.

    Raises:
        UsageError: a word is known nowhere, or nothing was measured twice.
        SurroundingsError: there is no database, or nothing in it that was asked for.
    """
    from accelbench.analysis.judging import METRICS
    from accelbench.query.stored_results import on_one_machine
    from accelbench.report.all_series import series_in
    from accelbench.report.history import document

    metrics = {known.name: known for known in METRICS}
    if metric not in metrics:
        raise UsageError(f"No metric is called {in_quotes(metric)}.", meant(metric, metrics))
    asked = asked_of_store(db, machine, models, hardware, framework, precision, batch_sizes, mode)
    with asked.database.asking():
        where, values, here, _ = on_one_machine(asked.database, asked.filters, machine)
        every, _ = series_in(asked.database, metrics[metric], where, values, threshold)
    if not every:
        raise UsageError(
            f"Nothing on {here} was measured twice and more, by {metric}.",
            "A point of a series is a run: measure the same again, for example each night.",
        )
    return HistoryTable([document(series) for series in every], asked, metric)


def _told(line: Line) -> dict[str, Any]:
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
        "interval": _interval(level, unit),
        "path": _path([float(point["value"]) for point in points]),
        "dots": _dots([float(point["value"]) for point in points]),
        "answer": line["answer"] or "",
        "said": line["said"],
    }


def _interval(level: Mapping[str, Any], unit: str) -> str:
    if level["low"] is None or level["high"] is None:
        return NOT_KNOWN if level.get("ends_are") else ""
    ends = f"{figure_text(level['low'])} to {figure_text(level['high'], unit)}"
    is_range = level.get("ends_are") == SpreadKind.RANGE
    return f"{ends}, range of {counted(level['runs'], 'run')}" if is_range else ends


def _dots(values: Sequence[float]) -> list[tuple[float, float]]:
    """Where each run stands: along by its number, up from zero to the largest."""
    most = max(values)
    room = HIGH - 2 * EDGE
    return [
        (across(at, len(values) - 1.0), round(HIGH - EDGE - room * value / most, 1))
        for at, value in enumerate(values)
    ]


def _path(values: Sequence[float]) -> str:
    return " ".join(f"{x},{y}" for x, y in _dots(values))
