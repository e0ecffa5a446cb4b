"""Source of `core/rows.py`: the type of a result row, written from the registry of columns.

    python -m accelbench.core.row_types > src/accelbench/core/rows.py

A type checker reads files and runs none, so the registry alone can't tell it what a row holds; a
test holds the file and the registry together.
"""

from __future__ import annotations

import sys

from accelbench.core.column import Kind
from accelbench.core.columns import COLUMNS

#: What Python holds of each kind of column, where it holds anything.
_TYPES: dict[Kind, str] = {
    "text": "str",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "time": "str",
    "json": "Json",
    "list": "list[str]",
    "floats": "list[float]",
    "map": "Mapping[str, float]",
}

_HEAD = '''"""Result row: the columns of benchmark_results as a type; `core/row_types.py` writes it.

`row["threads"]` and `row.get("threads")` have the column's own type, and a name that is no column
is an error of the type checker. A name that is only known at run time gives `object`: `number`,
`text`, `texts` and `record` read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

Json = Mapping[str, object]


class ResultRow(TypedDict, total=False):
    """A result as the store gives it. Views add columns of their own in subclasses."""

'''

_TAIL = '''

#: Any row of named values, of which no column is asked for by a name in the code.
Row = Mapping[str, object]


def number(row: Row, name: str) -> float | None:
    """The number of a column that is named at run time; None where it holds none."""
    value = row.get(name)
    if isinstance(value, float):  # charts ask a million times: what is most frequent comes first
        return value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(row: Row, name: str) -> str:
    """The text of such a column; empty where it holds none."""
    value = row.get(name)
    return "" if value is None else str(value)


def texts(row: Row, name: str) -> list[str]:
    """The texts of a column that lists them; none where it holds no list."""
    value = row.get(name)
    return [str(part) for part in value] if isinstance(value, list | tuple) else []


def record(row: Row, name: str) -> Json:
    """The JSON object of a column, itself and no copy; an empty one where it holds none."""
    value = row.get(name)
    return value if isinstance(value, Mapping) else {}
'''


def source() -> str:
    """The text of `core/rows.py`."""
    lines = (f"    {column.name}: {_TYPES[column.kind]} | None\n" for column in COLUMNS)
    return _HEAD + "".join(lines) + _TAIL


if __name__ == "__main__":
    sys.stdout.write(source())
