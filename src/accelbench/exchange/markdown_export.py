"""Results as a table in Markdown: what people paste into a pull request or a page."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.absent import NO_DATA
from accelbench.core.exactness import not_exact
from accelbench.core.figures import TAILS, Statistic, statistic_of, step_of
from accelbench.core.rates import unit_beside, unit_of_all
from accelbench.core.visible import markdown
from accelbench.core.vocabulary import Quality, Status
from accelbench.core.worth import usable
from accelbench.exchange.left_out import Entries
from accelbench.exchange.titles import title

#: From here on a figure's digits are all before the point.
_LONG = 1e4


def write_markdown(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> Entries:
    """Write a line for each result, and return how many; `runs` have the labels, by id."""
    unit = unit_of_all(rows)
    arms = ("arm",) if any(row.get("arm") for row in rows) else ()
    headings = ("what", "median ms", "mean ms", unit, "peak MB", "launch")
    right = frozenset(headings[1:])
    headings += (*arms, "status", "from", "run")
    lines = table(headings, (_cells(row, unit, bool(arms), runs or {}) for row in rows), right)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Entries(len(rows))


def _cells(
    row: Mapping[str, Any], unit: str, arms: bool, runs: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    status = str(row.get("status") or NO_DATA)
    if status != Status.OK:
        status = f"{status}: {row.get('reason') or row.get('message') or 'no reason'}"
    else:
        useless = "" if usable(row) else Quality.UNUSABLE.value
        status = ", ".join(filter(None, (status, useless, not_exact([row]))))
    notes = [str(row.get("provenance") or ""), "emulated" if row.get("emulated") else ""]
    return [
        title(row),
        _median(row),
        _figure(step_of(row, Statistic.MEAN)),
        f"{_figure(row.get('throughput'))} {unit_beside(row, unit)}".rstrip(),
        _figure(row.get("memory_peak_mb")),
        "" if row.get("launch") is None else str(row["launch"]),
        *([str(row.get("arm") or "")] if arms else []),
        status,
        ", ".join(word for word in notes if word),
        _run(row, runs),
    ]


def _run(row: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the id of the run, with its label if it has one."""
    run = str(row.get("run_id") or "")
    label = runs.get(run, {}).get("label")
    return f"{run} ({label})" if label else run


def _median(row: Mapping[str, Any]) -> str:
    """Return the median step, or a percentile with its name if nothing else is known."""
    statistic = statistic_of(row)
    if statistic in TAILS:
        return f"{_figure(step_of(row, statistic))} ({statistic})"
    return _figure(step_of(row, Statistic.MEDIAN))


def _figure(value: float | None) -> str:
    if value is None:
        return NO_DATA
    return f"{value:,.0f}" if abs(value) >= _LONG else f"{value:.4g}"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Container[str] = ()
) -> list[str]:
    """The lines of a table; figures stand to the right."""
    rule = ["---:" if heading in right else "---" for heading in headings]
    return [_line(headings), f"| {' | '.join(rule)} |", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(markdown(cell) for cell in cells)} |"
