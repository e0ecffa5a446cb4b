"""The table at the end of a run, within 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from accelbench.cli.display.words import figure, latency, marks, shapes, spread


def print_summary(rows: Sequence[Mapping[str, Any]], stream: IO[str]) -> None:
    """Every result in a line."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream, highlight=False)
    # One space between columns: with two, a model and its precision would be broken in two.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("model", overflow="fold")
    table.add_column("where", overflow="fold")
    for heading in ("batch", "size", "p50 ms", "", "items/s", "MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("quality", overflow="fold")
    for row in rows:
        ok = row["status"] == "ok"
        place = row["hardware"]
        if row["runtime"] not in ("pytorch", "none"):
            place = f"{row['runtime']}/{place}"
        table.add_row(
            _safe(str(row["model"])),
            _safe(f"{place} {row['precision']}{marks(row)}"),
            str(row["batch_size"]),
            shapes(row),
            figure(latency(row)) if ok else "–",
            spread(row) if ok else "",
            figure(row.get("throughput")) if ok else "–",
            figure(row.get("memory_peak_mb")) if ok else "–",
            str(row.get("quality") if ok else row["status"]).replace("_", " "),
        )
    console.print(table)


def _safe(text: str) -> str:
    """Names may hold what a table would read as markup."""
    from rich.markup import escape

    return escape(text)
