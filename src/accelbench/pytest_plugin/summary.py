"""What tests measured, below them: a table, and what changed since a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from accelbench.core.errors import AccelbenchError
from accelbench.core.figures import spread_in
from accelbench.core.nouns import NO_DATA, counted, figure
from accelbench.core.safe_text import visible
from accelbench.pytest_plugin.gate import BaselineQuestion, GateAnswer, checked_against, told

Line = Mapping[str, Any]

_COLOURS = {GateAnswer.FAILED: "red", GateAnswer.CANNOT_TELL: "yellow"}


def show(
    terminal: pytest.TerminalReporter, lines: Sequence[Line], baseline: str | None = None
) -> None:
    """Write both.

    Args:
        terminal: where to.
        lines: what was measured, as the fixture leaves it.
        baseline: what all of it is compared with; "" for what was measured before, None for
            nothing.
    """
    lines = sorted(lines, key=lambda line: (line["started_at"], line["what"]))
    terminal.section("accelbench", sep="=")
    heading, *rows = _table(lines)
    terminal.write_line(heading, bold=True)
    for line, row in zip(lines, rows, strict=True):
        colour = _COLOURS.get(GateAnswer(line["answer"]))
        terminal.write_line(row, **({colour: True} if colour else {}))
    databases = list(dict.fromkeys(line["database"] for line in lines if line["database"]))
    runs = len({line["run_id"] for line in lines if line["database"]})
    if runs:
        terminal.write_line(f"{counted(runs, 'run')} in {', '.join(map(visible, databases))}")
    if baseline is not None:
        for database in databases:
            own = [line for line in lines if line["database"] == database]
            _compare(terminal, own, database, baseline or None)


def _compare(
    terminal: pytest.TerminalReporter, lines: Sequence[Line], database: str, baseline: str | None
) -> None:
    """Every test against a baseline, as `accelbench check` says it; no test's outcome changes."""
    terminal.section(
        f"accelbench: against {visible(baseline or 'what was measured before')}", sep="-"
    )
    models = sorted({line["model"] for line in lines})
    runs = list(dict.fromkeys(line["run_id"] for line in lines))
    try:
        checked = checked_against(BaselineQuestion(baseline), database, models, runs)
    except AccelbenchError as error:
        checked = str(error)
    if isinstance(checked, str):
        terminal.write_line(f"Can't tell: {checked}", yellow=True)
        return
    for text in told(*checked).splitlines():
        terminal.write_line(text)


def _table(lines: Sequence[Line]) -> list[str]:
    """Its lines, the heading first; figures stand to the right."""
    times = {f"{line['statistic']} ms" for line in lines if line.get("statistic")}
    heading = times.pop() if len(times) == 1 else "ms"
    rows = [
        ("measured", heading, "95 %", "rate", "peak MB", "launches", "answer"),
        *(_cells(line) for line in lines),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if place in (0, last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cells(line: Line) -> tuple[str, ...]:
    latency, rate, memory = (line.get(name) for name in ("latency", "rate", "memory"))
    return (
        line["what"],
        figure(latency[1]) if latency else NO_DATA,
        _interval(line),
        f"{figure(rate[1])} {line['unit']}" if rate else NO_DATA,
        figure(memory[1]) if memory else NO_DATA,
        str(line["launches"]),
        "; ".join(map(visible, line["verdicts"])),
    )


def _interval(line: Line) -> str:
    """Return the interval of launches, or of the samples of one; "no data" without any."""
    spread = spread_in(line.get("latency_spread"))
    return spread.text(line["latency"][1], figure) if spread else NO_DATA
