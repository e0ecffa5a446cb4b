"""Column of benchmark_results: its name, kind, unit, and what it can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accelbench.core.ranges import BY_UNIT, Range

Kind = Literal["text", "int", "float", "bool", "time", "json", "list", "floats", "map"]
Role = Literal["identity", "case", "outcome", "metric", "conditions", "other"]


@dataclass(frozen=True)
class Column:
    """One column of benchmark_results."""

    name: str
    kind: Kind
    role: Role
    doc: str
    unit: str = ""
    header: str = ""  # short heading for tables, where it is shown at all
    better: Literal["lower", "higher", ""] = ""
    within: Range | None = None  # where its unit does not say it
    words: tuple[str, ...] = ()  # all that a text can be; any, where there are none

    @property
    def range(self) -> Range | None:
        """What its numbers can be; None of what holds none, and of figures of plugins."""
        return self.within or BY_UNIT.get(self.unit)

    @property
    def is_metric(self) -> bool:
        return self.role == "metric"
