"""Conditions in SQL: results that count, and have certain values in certain columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accelbench.core.worth import COMPARABLE_SQL
from accelbench.query.hardware_words import named_sql

#: What may be compared at all: what nobody measured is not among it.
_COUNTS = f"{COMPARABLE_SQL} AND model IS NOT NULL AND status IS NOT NULL"
#: OpenVINO is a platform of its own in a store, and on the machine's processor one of its engines.
_ON_THE_CPU = (
    "hardware = 'openvino' AND device_name IN (SELECT environment->>'cpu' FROM benchmark_runs)"
)


def where_of(
    filters: Mapping[str, Sequence[object]], counting: str = _COUNTS
) -> tuple[str, list[object]]:
    """Results that count and have these values in these columns: SQL and its parameters."""
    parts: list[str] = [counting]
    values: list[object] = []
    for column, wanted in filters.items():
        parts.append(one_of(column, wanted))
        values += wanted
    return " AND ".join(parts), values


def one_of(column: str, wanted: Sequence[object]) -> str:
    """That a column has one of so many values, in SQL with a parameter for each.

    What runs on the CPU is all its engines.
    """
    if column != "hardware":
        return f"{column} IN ({marks(wanted)})"
    clause = " OR ".join(named_sql(str(word)) for word in wanted)
    return f"({clause} OR {_ON_THE_CPU})" if "cpu" in wanted else f"({clause})"


def marks(values: Sequence[object]) -> str:
    """What stands in SQL for so many parameters."""
    return ", ".join("?" * len(values))
