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


#: What brings the lines that a table leaves out.
EXPORT = "accelbench db export csv"


@dataclass(frozen=True)
class Table:
    """A table; figures stand to the right."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: frozenset[int] = frozenset()  # columns that hold figures
    caption: str = ""
    command: str = ""  # what brings the rest: the last words of the caption
    folded: bool = False  # shown where somebody opens it
    anchors: Sequence[str] = ()  # of its lines, what a finding leads to


@dataclass(frozen=True)
class Figure:
    """A picture, and what is drawn in it as a table."""

    picture: Picture
    table: Table


Block = Text | Table | Figure


@dataclass(frozen=True)
class EvidenceLink:
    """A place in the report that a sentence rests on."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Sentence:
    """A finding at the head of a report, what it rests on, and what to do next."""

    text: str
    evidence: Sequence[EvidenceLink] = ()
    command: str = ""


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """What leads to it, in both spellings: as a heading of Markdown is known by."""
        words = self.title.lower().replace(" ", "-")
        return "".join(letter for letter in words if letter.isalnum() or letter == "-")


@dataclass(frozen=True)
class Report:
    """All of it."""

    title: str
    about: Sequence[str]
    sections: Sequence[Section]
    findings: Sequence[Sentence] = ()
