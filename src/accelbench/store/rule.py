"""A rule of results: a condition in SQL, and why a row that does not meet it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

There = Callable[[str], bool]


class Rule(NamedTuple):
    """A condition that must hold of every row; it is never NULL."""

    column: str
    condition: str
    why: str  # why a row that does not meet it is wrong, for `describe_misfit`
    other: str = ""  # SQL of the value that the column contradicts; empty if there is none


#: Condition of a result of this program.
OWN = "protocol_version IS NOT NULL"
#: A file may hold a value in single precision.
EXACT = 1e-6
#: Other programs round their summaries.
ROUNDED = 1e-3
