"""Documents as HTML: a file without scripts, and a table in a notebook."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accelbench.core.formatting import NO_DATA
from accelbench.present.document import (
    SKETCH_SIZE,
    CellSketch,
    ChartBlock,
    Document,
    Table,
    Tone,
    TonedText,
)
from accelbench.present.pages.rendering import Drawn, rendered
from accelbench.present.texts import phrase

#: The names within an SVG, which must be unique in a page.
_OWN_NAME = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')
_ARIA = re.compile(r' (?:aria-[a-z]+|role|aria-roledescription)="[^"]*"')
#: Signs of ordinary fonts, as emoji are empty boxes without their font; U+FE0E asks for the plain
#: form.
_SIGNS = {
    **dict.fromkeys(Tone, ""),
    Tone.GOOD: "✓ ",
    Tone.FAIR: "✓ ",
    Tone.WARNING: "⚠\ufe0e ",
    Tone.BAD: "✗ ",
}
#: Rows of a table in a notebook.
MOST_ROWS = 200


def as_html(document: Document, draw: Callable[[Mapping[str, Any]], str] | None = None) -> str:
    """Return the whole file; charts are drawn into it, as SVG."""
    from accelbench.present.charts.draw import still, svg

    def drawn(chart: ChartBlock, name: str) -> Drawn:
        named = _OWN_NAME.sub(rf"\g<1>{name}-\g<2>", (draw or svg)(still(dict(chart.spec))))
        # Without its element's name, which the template writes with a label, and without the words
        # of thousands of marks, which the table below the picture has.
        element, opened, rest = named.partition(">")
        return Drawn(f"{element}{opened}{_ARIA.sub('', rest)}".partition(" ")[2])

    return rendered("document_page.html", document=document, drawn=drawn, signs=_SIGNS)


def notebook_table(
    table: Table, more: int = 0, attribute: str = "rows", notes: Sequence[str] = ()
) -> str:
    """Return the first rows for a notebook; the object's attribute has the `more` others too."""
    left_out = [phrase("report.more-rows", more=more, attribute=attribute)] if more > 0 else []
    return rendered("notebook.html", table=table, notes=[*left_out, *notes], signs=_SIGNS)


def figure_cell(text: str, value: float | None) -> TonedText:
    """Return a cell that is sorted by its value."""
    return TonedText(text, sort_key=value)


def interval_cell(
    text: str,
    ends: Sequence[float | None],
    most: float,
    *,
    is_hollow: bool = False,
    rule: float | None = None,
) -> TonedText:
    """Return the sketch of an interval from 0 to `most`; `ends` are low, value and high."""
    low, value, high = (None if end is None else _across(end, most) for end in ends)
    if value is None:
        return TonedText("")
    y = SKETCH_SIZE[1] / 2
    line = [] if low is None or high is None else [(low, y), (high, y)]
    crossing = None if rule is None else _across(rule, most)
    return TonedText(text or NO_DATA, sketch=CellSketch((value, y), line, is_hollow, crossing))


def course_cell(text: str, values: Sequence[float]) -> TonedText:
    """Return the sketch of values from run to run, from 0 to the largest."""
    _, high, margin = SKETCH_SIZE
    room = high - 2 * margin
    points = [
        (_across(at, len(values) - 1.0), round(high - margin - room * value / max(values), 1))
        for at, value in enumerate(values)
    ]
    return TonedText(text, sketch=CellSketch(points[-1], points))


def _across(at: float, most: float) -> float:
    wide, _, margin = SKETCH_SIZE
    share = at / most if most > 0 else 0.5
    return round(margin + share * (wide - 2 * margin), 1)
