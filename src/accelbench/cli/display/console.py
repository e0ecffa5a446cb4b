"""The console that all tables are drawn on: names in it are text, whatever they look like.

Markup and emoji codes are off, so `[red]` and `:smile:` in a name are what they are; and each text
is made visible where it is rendered, so no table has to think of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from accelbench.cli.display.terminal import unguarded
from accelbench.core.visible import visible


class Broken(Text):
    """Text in several lines that the program broke itself."""


def in_lines(*lines: str, style: str = "", further: str = "") -> Broken:
    """Lines one below the other in a cell.

    Args:
        lines: the lines; what is invisible in one is shown.
        style: of all of them.
        further: of those after the first.
    """
    made = Broken(style=style)
    for number, line in enumerate(lines):
        made.append(f"\n{visible(line)}" if number else visible(line), further if number else None)
    return made


class TextConsole(Console):
    """A console that shows what it is given."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        return super().render(_shown(renderable), options)


def _shown(renderable: RenderableType) -> RenderableType:
    if isinstance(renderable, str):
        return Text(visible(renderable))
    if isinstance(renderable, Text) and not isinstance(renderable, Broken):
        shown = visible(renderable.plain)
        if shown != renderable.plain:
            made = renderable.blank_copy(shown)
            if renderable.spans:  # of a name and its verdict: that of the verdict has to stay
                made.spans = [
                    type(one)(
                        len(visible(renderable.plain[: one.start])),
                        len(visible(renderable.plain[: one.end])),
                        one.style,
                    )
                    for one in renderable.spans
                ]
            return made
    return renderable


def console(stream: IO[str] | None = None, **options: Any) -> TextConsole:
    """The console for a stream; else for standard output.

    Args:
        stream: Where it draws.
        options: rich's.
    """
    where = unguarded(stream if stream is not None else sys.stdout)
    return TextConsole(file=where, markup=False, emoji=False, highlight=False, **options)
