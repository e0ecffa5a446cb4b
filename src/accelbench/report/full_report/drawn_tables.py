"""What a picture shows as a table, for whoever cannot see it. Pure."""

from __future__ import annotations

from accelbench.report.charts.chart import Picture
from accelbench.report.full_report.contents import Table

#: More lines of what a chart shows are in the database, and in `db export`.
_MOST_DRAWN = 200


def drawn_table(drawing: Picture) -> Table:
    """The figures of a picture."""
    records = [
        {name: value for name, value in record.items() if name not in ("paint", "panel", "place")}
        for record in drawing.records[:_MOST_DRAWN]
    ]
    # In the order of the fields, whichever record is the first to have a value in one.
    names = dict.fromkeys(name for record in records for name in record)
    headers = [n for n in names if any(record.get(n) not in (None, "") for record in records)]
    rows = [[told(record.get(name)) for name in headers] for record in records]
    numbers = frozenset(
        i for i, name in enumerate(headers) if any(isinstance(r.get(name), float) for r in records)
    )
    more = len(drawing.records) - len(records)
    caption = (
        f"Figures of {drawing.chart.title}"
        f"{f' (the first {len(records)} of {len(drawing.records)})' if more else ''}"
    )
    return Table(headers or ["nothing"], rows, numbers, caption, folded=True)


def told(value: object) -> str:
    """A value in a field; nothing of what is absent."""
    if value is None:
        return ""
    return digits(value) if isinstance(value, float) else str(value)


def digits(value: float) -> str:
    """Four digits, as many as such figures carry, or all of a large number: 0.1234, 23,960."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
