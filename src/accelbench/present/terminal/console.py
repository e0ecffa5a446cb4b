"""The console for all tables: text of others is shown, never obeyed.

Markup and emoji codes are off, so `[red]` in a name stays `[red]`. Long names break at separators.

rich breaks the longest names of a table anywhere. In a `WordTable` text columns shrink to their
longest word. If that is not enough, names stand in a line above their numbers; if even the numbers
do not fit, each one is printed with its heading.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.containers import Lines
from rich.padding import Padding
from rich.segment import Segment
from rich.style import StyleType
from rich.table import Column, Table
from rich.text import Text

from accelbench.core.safe_text import visible
from accelbench.present.terminal.terminal import unguarded

#: Where a name may be broken: bert-|base, distilbert_|base, pytorch/|cpu, openvino:|cpu, hint=|1,
#: LlavaFor|Generation. Not at a dot or a comma, which figures and versions have.
_BREAK = re.compile(r"(?<=[-_/:=])(?=[^-_/:=])|(?<=[a-z])(?=[A-Z])")
#: Columns of what is no terminal, where nobody says how many it has.
_UNBOUNDED = 10_000
_WORD = re.compile(r"\S+")


class Named(Text):
    """Text whose long words are broken behind their separators; rich would break them anywhere."""

    def wrap(self, console: Console, width: int, **how: Any) -> Lines:
        """In lines of that width; a piece that is longer still is broken as rich does."""
        if how.get("no_wrap") or self.no_wrap:
            return super().wrap(console, width, **how)
        places = [place for word in _WORD.finditer(self.plain) for place in _breaks(word, width)]
        if not places:
            return super().wrap(console, width, **how)
        return Text("\n").join(self.divide(places)).wrap(console, width, **how)


def _breaks(word: re.Match[str], width: int) -> Iterable[int]:
    if cell_len(word[0]) <= width:
        return
    used, at = 0, word.start()
    for piece in _BREAK.split(word[0]):
        wide = cell_len(piece)
        if used and used + wide > width:
            yield at
            used = 0
        at += len(piece)
        # Of a piece that fills several lines, what stands in the last one.
        used = used + wide if used + wide <= width else (wide - 1) % width + 1


class Broken(Named):
    """Text in several lines that the program broke itself."""


def in_lines(*lines: str, style: str = "", further: str = "") -> Broken:
    """Lines one below the other in a cell."""
    made = Broken(style=style)
    for number, line in enumerate(lines):
        made.append(f"\n{visible(line)}" if number else visible(line), further if number else None)
    return made


#: A moment, a number with the word after it, or a word.
_UNBROKEN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d\S*|[\d.,]+ [^\W\d]\S*|\S+")


def in_whole_figures(text: str, width: int) -> list[str]:
    """Return lines that end neither between a number and its unit nor within a moment."""
    lines: list[str] = []
    start = end = 0
    for number, piece in enumerate(_UNBROKEN.finditer(text)):
        if number and cell_len(text[start : piece.end()]) > width:
            lines.append(text[start:end])
            start = piece.start()
        end = piece.end()
    return [*lines, text[start:end]]


class TextConsole(Console):
    """A console that shows what it is given."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        return super().render(_shown(renderable), options)


def _shown(renderable: RenderableType) -> RenderableType:
    if isinstance(renderable, str):
        return Named(visible(renderable))
    if not isinstance(renderable, Text) or isinstance(renderable, Named):
        return renderable
    shown, spans = visible(renderable.plain), renderable.spans
    if shown != renderable.plain:  # of a name and its verdict: the verdict's span has to stay
        spans = [
            type(span)(
                len(visible(renderable.plain[: span.start])),
                len(visible(renderable.plain[: span.end])),
                span.style,
            )
            for span in spans
        ]
    made = Named(
        shown,
        renderable.style,
        justify=renderable.justify,
        overflow=renderable.overflow,
        no_wrap=renderable.no_wrap,
        end=renderable.end,
        tab_size=renderable.tab_size,
    )
    made.spans = spans
    return made


def console(stream: IO[str] | None = None, **options: Any) -> TextConsole:
    """The console for a stream; else for standard output.

    What is piped or goes into a file is as wide as it needs: no word of it is broken.
    """
    where = unguarded(stream if stream is not None else sys.stdout)
    if not where.isatty() and "COLUMNS" not in os.environ:
        options = {"width": _UNBOUNDED, **options}
    return TextConsole(file=where, markup=False, emoji=False, highlight=False, **options)


#: Blanks before figures that stand below their names.
_INDENT = 2
#: What stands between names in one line, and between figures that are told with their headings.
_DOT, _GAP = " · ", "   "
Cells = Sequence[RenderableType]


class WordTable(Table):
    """A table of rich's with a layout of its own wherever that one would break a word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width
        every = range(len(self.columns))
        widths = self._widths(every, room)
        if widths is None:
            yield from self._stacked(room)
            return
        own = [column.width for column in self.columns]
        try:
            for column, width in zip(self.columns, widths, strict=True):
                column.width = width
            yield from super().__rich_console__(console, options)
        finally:
            for column, before in zip(self.columns, own, strict=True):
                column.width = before

    def fits(self, room: int) -> bool:
        """Whether its columns stand beside each other in so many cells, with no word broken."""
        return self._widths(range(len(self.columns)), room) is not None

    def fits_parted(self, room: int) -> bool:
        """Whether they do where names stand above their figures."""
        return self._parted(room)[2] is not None

    def _widths(self, places: Sequence[int], room: int, *, drawn: bool = True) -> list[int] | None:
        """Return the width of each column, or None if their longest words do not fit."""
        columns = [self.columns[place] for place in places]
        least = [_least(column, self.show_header) for column in columns]
        left = room - self._between(len(columns), drawn) - sum(least)
        if left < 0:
            return None
        full = [_natural(column, self.show_header) for column in columns]
        wants = [max(most - needed, 0) for needed, most in zip(least, full, strict=True)]
        widths = list(least)
        order = sorted(range(len(columns)), key=wants.__getitem__)
        for served, place in enumerate(order):  # who wants little gets it, the rest is shared
            more = min(wants[place], left // (len(order) - served))
            widths[place] += more
            left -= more
        return widths

    def _between(self, count: int, drawn: bool) -> int:
        _, right, _, left = self.padding
        padding = count * (left + right) - (0 if self.pad_edge else left + right)
        lines = count - 1 + (2 if self.show_edge else 0)
        return padding + (lines if drawn and self.box is not None else 0)

    def _stacked(self, room: int) -> Iterator[RenderableType]:
        above, below, widths = self._parted(room)
        heads = tuple(column.header for column in self.columns)
        rows = list(zip(*(column.cells for column in self.columns), strict=True))
        if widths is None:
            yield from self._told(above, below, heads, rows, room)
            return
        rule = Text("─" * min(room, sum(widths) + self._between(len(below), False) + _INDENT))
        if self.show_header:
            yield _names(heads, above, "bold")
            yield self._line(heads, below, widths, "bold")
        if self.show_header and self.box is not None:
            yield rule
        for at, (cells, row) in enumerate(zip(rows, self.rows, strict=True)):
            yield _names(cells, above, row.style or "")
            yield self._line(cells, below, widths, row.style or "")
            if row.end_section and at + 1 < len(rows):
                yield rule

    def _parted(self, room: int) -> tuple[list[int], list[int], list[int] | None]:
        """Return the columns above and below, and the widths below; None if they do not fit."""
        above: list[int] = []
        below = list(range(len(self.columns)))
        of_words = [
            place
            for place, column in enumerate(self.columns)
            if column.justify == "left" and not column.no_wrap
        ]
        for place in of_words:
            above.append(place)
            below.remove(place)
            widths = self._widths(below, room - _INDENT, drawn=False) if below else None
            if widths is not None:
                return above, below, widths
        return above, below, None

    def _line(
        self, cells: Cells, places: Sequence[int], widths: Sequence[int], style: StyleType
    ) -> Padding:
        line = Table(box=None, show_header=False, pad_edge=False, padding=self.padding)
        for place, width in zip(places, widths, strict=True):
            column = self.columns[place]
            line.add_column(justify=column.justify, no_wrap=column.no_wrap, width=width)
        line.add_row(*(cells[place] for place in places), style=style)
        return Padding(line, (0, 0, 0, _INDENT), expand=False)

    def _told(
        self,
        above: Sequence[int],
        below: Sequence[int],
        heads: Cells,
        rows: Sequence[Cells],
        room: int,
    ) -> Iterator[Text]:
        for cells, row in zip(rows, self.rows, strict=True):
            yield _names(cells, above, row.style or "")
            line = ""
            for figure in self._figures(below, heads, cells):
                if line and cell_len(line) + len(_GAP) + cell_len(figure) > room - _INDENT:
                    yield Text(" " * _INDENT + line)
                    line = ""
                line = f"{line}{_GAP}{figure}" if line else figure
            if line:
                yield Text(" " * _INDENT + line)

    def _figures(self, places: Sequence[int], heads: Cells, cells: Cells) -> Iterator[str]:
        for place in places:
            first, *more = _lines(cells[place])
            head, *further = _lines(heads[place]) if self.show_header else ("",)
            if more and not further:
                first, more = " ".join([first, *more]), []
            elif further and not more:
                head, further = " ".join([head, *further]), []
            for name, figure in ((head, first), (" ".join(further), " ".join(more))):
                if figure:
                    yield f"{name} {figure}".strip()


def _names(cells: Cells, places: Sequence[int], style: StyleType) -> Text:
    return Text(
        _DOT.join(filter(None, (" ".join(_lines(cells[place])) for place in places))), style
    )


def _texts(column: Column, headed: bool) -> list[str]:
    cells = [*([column.header] if headed else []), *column.cells]
    return [line for cell in cells for line in _lines(cell)]


def _lines(cell: RenderableType) -> list[str]:
    if isinstance(cell, Named):
        return cell.plain.split("\n")
    return [visible(cell.plain if isinstance(cell, Text) else str(cell))]


def _least(column: Column, headed: bool) -> int:
    lines = _texts(column, headed)
    words = lines if column.no_wrap else [word for line in lines for word in line.split()]
    return max([1, column.min_width or 0, *map(cell_len, words)])


def _natural(column: Column, headed: bool) -> int:
    widest = max([1, *map(cell_len, _texts(column, headed))])
    return min(widest, column.max_width or widest)
