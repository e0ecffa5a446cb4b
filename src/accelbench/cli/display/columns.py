"""Columns of words and figures in a terminal: words give way to figures, and figures to nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from accelbench.cli.display.console import console, in_lines
from accelbench.core.visible import visible

#: Words of so many letters are not broken in a table: onnxruntime; where that leaves no room, of
#: so many: measured, pytorch.
_WHOLE, _WHOLE_IF_NARROW = 11, 8
#: Blanks that a column takes beside its words.
_BETWEEN = 3
#: What stands between the ends of an interval.
_TO = " … "
Lines = Sequence[str]


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int],
    ends: Container[int] = (),
    below: Mapping[int, int] | None = None,
) -> Table:
    """The columns of which anything is known; names are broken for want of room, figures never.

    Args:
        heads: of all columns.
        rows: each with a cell of every column.
        right: columns of figures.
        ends: rows after which there is a line.
        below: columns of intervals → those of their figures, below which they stand for want of
            room.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    lines = [[[cell] for cell in row] for row in rows]
    headed = [head.split("\n") for head in heads]
    kept = [number for number in range(len(heads)) if any(row[number] for row in rows)]
    least, fits = _fitting(headed, lines, kept, right)
    if not fits and below:
        for interval, figure in below.items():
            for row in (headed, *lines):
                row[figure] = [*row[figure], *_ends(row[interval])]
        kept = [number for number in kept if number not in below]
        least, fits = _fitting(headed, lines, kept, right)
    for number in kept:
        head = in_lines(*headed[number])
        if number in right:
            made.add_column(head, justify="right", no_wrap=True)
        else:
            # Words give way where it still does not fit: a figure cut short is another figure.
            made.add_column(head, overflow="fold", min_width=least[number] if fits else None)
    for place, row in enumerate(lines):
        made.add_row(*(in_lines(*row[number]) for number in kept), end_section=place in ends)
    return made


def _ends(interval: Sequence[str]) -> list[str]:
    """Both ends of an interval in lines of their own; nothing of none."""
    low, *high = " ".join(interval).split(_TO)
    return [f"{low} …", *high] if high else [low] if low else []


def _fitting(
    heads: Sequence[Lines],
    rows: Sequence[Sequence[Lines]],
    kept: Sequence[int],
    right: Sequence[int],
) -> tuple[dict[int, int], bool]:
    """The letters that each column of words has at least, and whether a line has room for them."""
    wide = console().width
    least, taken = _room(heads, rows, kept, right, _WHOLE)
    if taken > wide:
        least, taken = _room(heads, rows, kept, right, _WHOLE_IF_NARROW)
    return least, taken <= wide


def _room(
    heads: Sequence[Lines],
    rows: Sequence[Sequence[Lines]],
    kept: Sequence[int],
    right: Sequence[int],
    whole: int,
) -> tuple[dict[int, int], int]:
    """The letters that each column of words needs, and all columns with that.

    Short words stay whole: what is left of the room is the long names'.
    """
    cells = {n: [line for row in (heads, *rows) for line in row[n]] for n in kept}
    least = {n: _longest(" ".join(cells[n]).split(), whole) for n in kept if n not in right}
    figures = [_longest(cells[n]) for n in kept if n in right]
    return least, sum(figures) + sum(least.values()) + _BETWEEN * len(kept) - 1


def _longest(words: Sequence[str], most: int | None = None) -> int:
    """The letters of the longest; of those with at most so many."""
    return max((len(word) for word in words if most is None or len(word) <= most), default=1)


def text(string: str) -> Text:
    """As a terminal may show it."""
    return Text(visible(string))
