"""What a run warns of, below its table: each warning once, with the cases that it concerns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accelbench.analysis.warned import Warned, warned
from accelbench.cli.display.words import case_name, shapes

#: As many cases are named; of more, how many.
_MOST_NAMED = 4
Row = Mapping[str, Any]


def warning_lines(rows: Sequence[Row]) -> Iterable[str]:
    """The lines; none where nothing was warned of."""
    warnings = warned(rows)
    if warnings:
        yield "Warnings"
    for warning in warnings:
        yield f"  ! {warning.text}"
        yield f"      {_concerned(warning, rows)}"


def _concerned(warning: Warned, rows: Sequence[Row]) -> str:
    """Which cases, short: those that differ in their batch alone are one name."""
    if len(warning.rows) == len(rows) > 1:
        return f"all {len(rows)} results"
    launches, totals = Counter(map(_case, warning.rows)), Counter(map(_case, rows))
    batches: dict[str, dict[str, None]] = {}
    for row in warning.rows:
        # A launch is named where not all launches of its case are warned.
        whole = launches[_case(row)] == totals[_case(row)]
        launch = "" if whole else f" (launch {row.get('launch')})"
        name = f"{case_name(row)} {shapes(row)}".strip()
        batches.setdefault(name, {})[f"{row['batch_size']}{launch}"] = None
    named = [f"{name}: batch {', '.join(these)}" for name, these in batches.items()]
    more = len(named) - _MOST_NAMED
    return "; ".join([*named[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _case(row: Row) -> tuple[Any, Any]:
    return row.get("case_id"), row.get("device")


def told(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same for machines: each warning with the ids of its results."""
    return [
        {"text": warning.text, "results": [row["result_id"] for row in warning.rows]}
        for warning in warned(rows)
    ]
