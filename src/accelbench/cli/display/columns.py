"""Columns of words and figures in a terminal: words give way to figures, and figures to nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from rich import box
from rich.text import Text

from accelbench.cli.display.console import console, in_lines
from accelbench.cli.display.word_table import WordTable
from accelbench.core.visible import visible

#: What stands between the ends of an interval.
_TO = " … "
Lines = Sequence[str]


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[int],
    ends: Container[int] = (),
    below: Mapping[int, int] | None = None,
    width: int | None = None,
) -> WordTable:
    """The columns of which anything is known; no word of them is broken, and no figure.

    Args:
        below: columns of intervals → those of their figures, below which they stand for want of
            room.
        width: cells of the terminal; without it those of standard output.
    """
    lines = [[[cell] for cell in row] for row in rows]
    headed = [head.split("\n") for head in heads]
    kept = [number for number in range(len(heads)) if any(row[number] for row in rows)]
    made = _table(headed, lines, kept, right, ends)
    room = console().width if width is None else width
    if not below or made.fits(room):
        return made
    for interval, figure in below.items():
        for row in (headed, *lines):
            row[figure] = [*row[figure], *_ends(row[interval])]
    kept = [number for number in kept if number not in below]
    narrow = _table(headed, lines, kept, right, ends)
    return made if not narrow.fits(room) and made.fits_parted(room) else narrow


def _table(
    heads: Sequence[Lines],
    rows: Sequence[Sequence[Lines]],
    kept: Sequence[int],
    right: Sequence[int],
    ends: Container[int],
) -> WordTable:
    made = WordTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for number in kept:
        is_figure = number in right
        head = in_lines(*heads[number])
        made.add_column(head, justify="right" if is_figure else "left", no_wrap=is_figure)
    for place, row in enumerate(rows):
        made.add_row(*(in_lines(*row[number]) for number in kept), end_section=place in ends)
    return made


def _ends(interval: Sequence[str]) -> list[str]:
    """Both ends of an interval in lines of their own; nothing of none."""
    low, *high = " ".join(interval).split(_TO)
    return [f"{low} …", *high] if high else [low] if low else []


def text(string: str) -> Text:
    """As a terminal may show it."""
    return Text(visible(string))
