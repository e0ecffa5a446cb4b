"""Write the columns of the registry into the type of a result row in `core/rows.py`.

    python -m accelbench.core.row_types

A type checker does not execute code, so the registry cannot provide the types. A test compares the
file with the registry.
"""

from __future__ import annotations

import re
from pathlib import Path

from accelbench.core.columns import COLUMNS, Kind

#: Python type of each kind of column.
_TYPES: dict[Kind, str] = {
    "text": "str", "int": "int", "float": "float", "bool": "bool", "time": "str", "json": "Json",
    "list": "list[str]", "floats": "list[float]", "map": "Mapping[str, float]",
}  # fmt: skip

_ROWS = Path(__file__).with_name("rows.py")
_COLUMNS = re.compile(r"(?<=\n)(    \w+: [^\n]+ \| None\n)+")


def source() -> str:
    """Return the text of `core/rows.py` with the columns of the registry."""
    lines = (f"    {column.name}: {_TYPES[column.kind]} | None\n" for column in COLUMNS)
    return _COLUMNS.sub("".join(lines), _ROWS.read_text(encoding="utf-8"), count=1)


if __name__ == "__main__":
    _ROWS.write_text(source(), encoding="utf-8")
