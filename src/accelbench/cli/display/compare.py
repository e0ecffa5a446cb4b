"""A comparison for people: a table a question, and below all of them what was not alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO

from accelbench.analysis.comparison import Compared
from accelbench.analysis.questions import Axis
from accelbench.cli.display.words import figure, shapes

_ONE_LAUNCH = (
    "One launch says nothing of how far another would differ: for intervals measure with"
    " --launches 5 or more."
)


def show(
    found: Sequence[Sequence[Compared]],
    axis: Axis,
    machine: str = "",
    others: Sequence[str] = (),
    stream: IO[str] | None = None,
) -> None:
    """Print it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, file=stream)
    console.print(Text(f"By {axis.name}" + (f", on {machine}" if machine else "")))
    for lines in found:
        console.print()
        console.print(Text(_heading(lines, axis), style="bold"))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column(axis.name, overflow="fold")
        if axis.name != "runtime":
            table.add_column("by", overflow="fold")
        for heading in ("p50 ms", "items/s", "MB", "times as fast"):
            table.add_column(heading, justify="right", no_wrap=True)
        for one in lines:
            table.add_row(*(Text(cell) for cell in _cells(one, axis)))
        console.print(table)
    for sentence in _below(found, axis, others):
        console.print(Text(sentence))


def _heading(lines: Sequence[Compared], axis: Axis) -> str:
    """What all its sides have in common."""
    row = lines[0].side.row
    alike = {"model", "precision", "batch", "mode"} - {axis.name}
    parts = [
        str(row.get("model")) if "model" in alike else "",
        str(row.get("precision") or "") if "precision" in alike else "",
        f"batch {row['batch_size']}" if "batch" in alike and row.get("batch_size") else "",
        shapes(row) if axis.name not in ("model", "mode") else "",
        "training" if "mode" in alike and row.get("mode") == "training" else "",
        "" if axis.name in ("hardware", "runtime") else str(row.get("hardware") or ""),
    ]
    return " · ".join(part for part in parts if part)


def _cells(one: Compared, axis: Axis) -> list[str]:
    return [
        _place(one, axis),
        *([] if axis.name == "runtime" else [str(one.side.row.get("runtime") or "")]),
        figure(one.side.latency_ms),
        figure(one.side.throughput),
        figure(one.side.memory_mb),
        _speed(one, axis),
    ]


def _place(one: Compared, axis: Axis) -> str:
    known = [str(value) for value in one.side.value if value is not None]
    return axis.value(one.side.row)[0] if axis.name == "date" else " ".join(known) or "n/a"


def _speed(one: Compared, axis: Axis) -> str:
    if one.refused:
        return "refused" if one.baseline else "n/a"
    if one.baseline is one.side:
        return "baseline"
    said = f"{figure(one.speedup)}×"
    if one.interval is not None:
        said += f" ({figure(one.interval.low)} – {figure(one.interval.high)})"
    if axis.name == "batch" and one.efficiency is not None:
        said += f", {one.efficiency:.0%}"
    return f"{said} knee" if one.knee else said


def _below(found: Sequence[Sequence[Compared]], axis: Axis, others: Sequence[str]) -> Iterable[str]:
    every = [one for lines in found for one in lines]
    if axis.name == "batch":
        yield (
            "Percent: of the batch's own growth. The knee is the smallest batch within a tenth of"
            " the best."
        )
    compared = [one for one in every if one.speedup is not None and one.baseline is not one.side]
    if compared and any(one.interval is None for one in compared):
        yield _ONE_LAUNCH
    for refused in sorted({one.refused for one in every if one.refused}):
        count = sum(one.refused == refused for one in every)
        yield f"{count} not compared, {refused}. --allow compares what is not alike."
    differs = sorted({text for one in every for text in one.differs})
    if differs:
        shown = "; ".join(differs[:8])
        more = f"; and {len(differs) - 8} more, see --json" if len(differs) > 8 else ""
        yield f"Not alike: {shown}{more}."
    slower = sorted({name for one in every for name in one.side.others})
    if slower:
        yield f"The fastest runtime stands for a place; slower there: {', '.join(slower)}."
    if others:
        yield f"Other machines, by --machine: {'; '.join(others)}."
