"""What a report is made of: sections of text, tables and pictures. Plain values.

HTML and Markdown are two ways to spell the same contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.report.charts.chart import Picture


@dataclass(frozen=True)
class Text:
    """Paragraphs, or the items of a list."""

    lines: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class Table:
    """A table; figures stand to the right."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: frozenset[int] = frozenset()  # columns that hold figures
    caption: str = ""
    folded: bool = False  # shown where somebody opens it


@dataclass(frozen=True)
class Figure:
    """A picture, and what is drawn in it as a table."""

    picture: Picture
    table: Table


Block = Text | Table | Figure


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """All of it."""

    title: str
    about: Sequence[str]
    sections: Sequence[Section]
