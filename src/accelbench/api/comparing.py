"""`accelbench.compare`: stored results side by side, as a table that a notebook shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accelbench.api.store_question import Numbers, Words, asked_of_store, words_of
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
from accelbench.core.absent import NO_DATA, UNKNOWN_DEVICE
from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.near import meant
from accelbench.core.visible import in_quotes, visible
from accelbench.exchange.titles import title

if TYPE_CHECKING:
    from accelbench.api.drawn_chart import DrawnChart
    from accelbench.core.rows import Row

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
            visible(f"{title(line)}: {_time(line)}, {_speed(line)}") for line in self.lines
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
    db: str | os.PathLike[str] | None = None,
    hardware: Words = (),
    framework: Words = (),
    precision: Words = (),
    batch_sizes: Numbers = (),
    mode: Words = (),
    run: Words = (),
    machine: str | None = None,
    allow: Words = (),
) -> ComparisonTable:
    """Stored results of one machine along an axis, by the rules of `accelbench compare`.

    Args:
        models: only these; all where none is named. So of the other filters.
        by: the axis: hardware, runtime, precision, batch, threads, model, mode, run, date.
        baseline: what others are compared with; of hardware else the CPU.
        db: the database; else $ACCELBENCH_DB, else ./accelbench.duckdb.
        hardware: platforms.
        framework: engines.
        precision: precisions.
        batch_sizes: items of a step.
        mode: inference, training.
        run: runs by id or label.
        machine: a host name, an id or a source; else that of the newest result.
        allow: what is compared although it is not alike.

    Raises:
        UsageError: a word is known nowhere, or nothing was measured alike.
        SurroundingsError: there is no database, or nothing in it that was asked for.
    """
    from accelbench.analysis.comparison import REFUSED, compared
    from accelbench.analysis.questions import AXES
    from accelbench.core.devices import named_apart
    from accelbench.query.histories import histories_on
    from accelbench.query.run_names import runs_meant
    from accelbench.query.stored_results import on_one_machine, rows_of
    from accelbench.report.comparison import document

    if by not in AXES:
        raise UsageError(f"There is no axis named {in_quotes(by)}.", meant(by, AXES))
    allowed = words_of(allow)
    for word in allowed:
        if word not in REFUSED:
            raise UsageError(f"Nothing to allow is named {in_quotes(word)}.", meant(word, REFUSED))
    axis = AXES[by]
    asked = asked_of_store(db, machine, models, hardware, framework, precision, batch_sizes, mode)
    database, filters = asked.database, dict(asked.filters)
    with database.asking():
        if run:
            named = [one for word in words_of(run) for one in runs_meant(database, word)]
            filters["run_id"] = tuple(dict.fromkeys(named))
        held: tuple[str, ...] = () if baseline is None else (baseline,)
        if baseline is not None and axis.name == "run":
            held = tuple(runs_meant(database, baseline))
        of_runs = held if axis.name == "run" else ()
        where, values, chosen, _ = on_one_machine(database, filters, machine, of_runs)
        names = [column.name for column in COLUMNS]
        rows: Sequence[Row] = rows_of(database, names, where, values)
        known = histories_on(database, rows, chosen)
    groups = compared(named_apart(rows), axis, held, allowed, known=known)
    if not groups:
        raise UsageError(
            f"Nothing on {chosen} was measured alike at two values of the axis {axis.name}.",
            f"Axes: {', '.join(AXES)}.",
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
