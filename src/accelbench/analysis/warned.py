"""What the results of a run are warned of, each warning once, with the results it concerns. Pure.

Most cases of a run are warned of the same, and often only a figure differs: then they are one
warning, which says from where to where the figure goes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: A number as our sentences have it: 12, 0.5, 1,024.
_FIGURE = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Warned:
    """A warning, and the results that carry it, in their order."""

    text: str
    rows: tuple[Row, ...]


def warned(rows: Sequence[Row]) -> list[Warned]:
    """Every warning of some results, that of most of them first."""
    found: dict[str, list[tuple[Row, str]]] = {}
    for row in rows:
        # Once a result, whatever it says of it twice.
        for text in dict.fromkeys(map(str, row.get("warnings") or ())):
            found.setdefault(_FIGURE.sub("#", text), []).append((row, text))
    made = [
        Warned(_joined([text for _, text in said]), _each_once([row for row, _ in said]))
        for said in found.values()
    ]
    return sorted(made, key=lambda one: -len(one.rows))


def _each_once(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple({id(row): row for row in rows}.values())


def _joined(texts: Sequence[str]) -> str:
    """Sentences that differ in their figures alone as one."""
    figures = [_FIGURE.findall(text) for text in texts]
    ranges = [_range(several) for several in zip(*figures, strict=True)]
    words = _FIGURE.split(texts[0])
    return "".join(a + b for a, b in zip(words, [*ranges, ""], strict=True))


def _range(figures: Sequence[str]) -> str:
    ordered = sorted(set(figures), key=lambda one: float(one.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
