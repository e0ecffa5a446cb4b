"""Results as a table in Markdown: what people paste into a pull request or a page."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.visible import markdown
from accelbench.core.words import Quality, Status
from accelbench.core.worth import usable
from accelbench.exchange.titles import title

_HEADINGS = ("what", "p50 ms", "items/s", "peak MB", "launch", "status", "from")
_RIGHT = frozenset({"p50 ms", "items/s", "peak MB", "launch"})


def write_markdown(path: Path, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write a line a result, and say how many; a table of all columns would help nobody."""
    lines = table(_HEADINGS, map(_cells, rows), _RIGHT)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(rows)


def _cells(row: Mapping[str, Any]) -> list[str]:
    p50, mean = row.get("latency_p50_ms"), row.get("latency_mean_ms")
    status = str(row.get("status") or "unknown")
    if status != Status.OK:
        status = f"{status}: {row.get('reason') or row.get('message') or 'no reason'}"
    elif not usable(row):
        status = f"{status}, {Quality.UNUSABLE.value}"
    notes = [str(row.get("provenance") or ""), "emulated" if row.get("emulated") else ""]
    return [
        title(row),
        f"{_figure(mean)} (mean)" if p50 is None and mean is not None else _figure(p50),
        _figure(row.get("throughput")),
        _figure(row.get("memory_peak_mb")),
        "" if row.get("launch") is None else str(row["launch"]),
        status,
        ", ".join(word for word in notes if word),
    ]


def _figure(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.4g}"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Container[str] = ()
) -> list[str]:
    """The lines of a table; figures stand to the right."""
    rule = ["---:" if heading in right else "---" for heading in headings]
    return [_line(headings), f"| {' | '.join(rule)} |", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(markdown(cell) for cell in cells)} |"
