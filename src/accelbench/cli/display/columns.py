"""Columns of words and figures in a terminal: words give way to figures, and figures to nothing."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from accelbench.cli.display.console import console, in_lines
from accelbench.core.visible import visible

#: Words of so many letters are not broken in a table: measured, pytorch.
_WHOLE = 8
#: Blanks that a column takes beside its words.
_BETWEEN = 3


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int],
    ends: Container[int] = (),
) -> Table:
    """The columns of which anything is known; names are broken for want of room, figures never.

    Args:
        heads: of all columns.
        rows: each with a cell of every column.
        right: columns of figures.
        ends: rows after which there is a line.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    kept = [number for number in range(len(heads)) if any(row[number] for row in rows)]
    cells = {number: [heads[number], *(row[number] for row in rows)] for number in kept}
    # Short words stay whole: what is left of the room is the long names'.
    least = {n: _longest(" ".join(cells[n]).split(), _WHOLE) for n in kept if n not in right}
    figures = [_longest("\n".join(cells[n]).splitlines()) for n in kept if n in right]
    taken = sum(figures) + sum(least.values()) + _BETWEEN * len(kept) - 1
    fits = taken <= console().width  # else words give way: a figure cut short is another figure
    for number in kept:
        if number in right:
            made.add_column(_head(heads[number]), justify="right", no_wrap=True)
        else:
            made.add_column(
                _head(heads[number]), overflow="fold", min_width=least[number] if fits else None
            )
    for place, row in enumerate(rows):
        made.add_row(*(text(row[number]) for number in kept), end_section=place in ends)
    return made


def _longest(words: Sequence[str], most: int | None = None) -> int:
    """The letters of the longest; of those with at most so many."""
    return max((len(one) for one in words if most is None or len(one) <= most), default=1)


def _head(said: str) -> Text:
    """A heading may be in two lines."""
    return in_lines(*said.split("\n"))


def text(said: str) -> Text:
    """As a terminal may show it."""
    return Text(visible(said))
