"""What an input may hold by its type and name, and by the rows of a table that it reads."""

from __future__ import annotations

import re
from typing import Any

_MASK = re.compile(r"(^|[_./])mask|mask$|attention_mask", re.IGNORECASE)
_WHOLE = {"int8": (-128, 128), "uint8": (0, 256)}


def drawn_of_type(name: str, dtype: str, rows: int | None) -> dict[str, Any]:
    """What an input may hold: `low` and `high` or a `constant`, and `drawn`, how it is known.

    Empty where nothing tells it: of whole numbers that name no row of a table.

    Args:
        name: of the input; one that is called a mask lets everything through.
        dtype: NumPy's name of its type.
        rows: of the smallest table that is read at its numbers.
    """
    if _MASK.search(name):
        return {"constant": 1, "drawn": "ones: by its name it is a mask"}
    if dtype == "bool":
        return {"drawn": "true and false alike"}
    if dtype.startswith("float"):
        return {"drawn": "normal, mean 0 and deviation 1"}
    if rows is not None:
        return {"low": 0, "high": rows, "drawn": f"0 to {rows - 1:,}: rows of the table it reads"}
    if dtype in _WHOLE:
        low, high = _WHOLE[dtype]
        return {"low": low, "high": high, "drawn": f"{low} to {high - 1}: all of its type"}
    return {}
