"""The console for all tables: text of others is shown, never obeyed.

Markup and emoji codes are off, so `[red]` in a name stays `[red]`. Long names break at separators.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.containers import Lines
from rich.segment import Segment
from rich.text import Text

from accelbench.core.visible import visible
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
