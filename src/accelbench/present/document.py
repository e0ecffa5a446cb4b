"""A document: the blocks that a command shows, and the same as data. Pure.

A command builds one document. Renderers make a terminal's text, Markdown, HTML, CSV or JSON of it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Tone(StrEnum):
    """The meaning that a terminal shows as a colour and a page as a sign."""

    PLAIN = "plain"
    GOOD = "good"
    FAIR = "fair"
    WARNING = "warning"
    BAD = "bad"
    OPEN = "open"  # not decided
    FAINT = "faint"


@dataclass(frozen=True)
class CellSketch:
    """A small line with a mark, which a page draws in a cell; in the units of `SKETCH_SIZE`."""

    mark: tuple[float, float]
    line: Sequence[tuple[float, float]] = ()
    is_hollow: bool = False
    rule: float | None = None  # where a dashed line crosses it


#: Width, height and margin of a sketch.
SKETCH_SIZE = (160.0, 28.0, 5.0)


class TonedText(str):
    """A text with a tone, with further lines below it, and with what only pages show.

    A plain text is one line, whatever it contains: a name with a line break must forge no row.
    """

    __slots__ = ("details", "further", "sketch", "sort_key", "tone")
    tone: Tone
    further: tuple[str, ...]
    details: Sequence[tuple[str, str]]  # shown when a reader opens the cell
    sketch: CellSketch | None  # drawn instead of the text, which describes it
    sort_key: float | None

    def __new__(
        cls,
        text: str,
        tone: Tone = Tone.PLAIN,
        further: Iterable[str] = (),
        *,
        details: Sequence[tuple[str, str]] = (),
        sketch: CellSketch | None = None,
        sort_key: float | None = None,
    ) -> TonedText:
        made = super().__new__(cls, text)
        made.tone, made.further, made.details = tone, tuple(further), details
        made.sketch, made.sort_key = sketch, sort_key
        return made


def lines_of(text: str) -> list[str]:
    """Return the lines of a cell, a label or a value."""
    return [str(text), *text.further] if isinstance(text, TonedText) else [text]


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; numbers are aligned to the right and never broken."""

    label: str
    is_number: bool = False
    is_whole: bool = False  # its words stand in one line


def columns(labels: Iterable[str], numbers: Container[int] = ()) -> list[TableColumn]:
    """Return columns by their labels; `numbers` are the places of numeric ones."""
    return [TableColumn(label, place in numbers) for place, label in enumerate(labels)]


@dataclass(frozen=True)
class Table:
    """Rows of cells; a column without any text is left out."""

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[str]]
    row_ends: Container[int] = ()  # rows after which there is a line
    repeated: int = 0  # leading columns that stand in each part of a table that is too wide
    #: Columns of intervals → those of their values, below which they stand if there is no room.
    intervals: Mapping[int, int] = field(default_factory=dict)
    is_compact: bool = False  # a terminal has no lines in it, and one space between columns
    caption: str = ""
    command: str = ""  # prints the rows that the table leaves out; ends the caption
    is_folded: bool = False  # a page shows it when a reader opens it
    row_ids: Sequence[str] = ()  # the targets of links to its rows

    @classmethod
    def of_columns(
        cls, described: Iterable[tuple[TableColumn, Sequence[str]]], *, is_compact: bool = False
    ) -> Table:
        """Return a table by its columns, each with its cells."""
        names, cells = zip(*described, strict=True)
        return cls(names, list(zip(*cells, strict=True)), is_compact=is_compact)

    def filled(self) -> list[int]:
        """Return the columns that have a text in any row; all columns of a table without rows."""
        every = range(len(self.columns))
        return [n for n in every if not self.rows or any(row[n] for row in self.rows)]


@dataclass(frozen=True)
class TableGroup:
    """Rows of one subject."""

    title: str
    rows: Sequence[Sequence[str]]
    state: str = ""
    tone: Tone = Tone.PLAIN
    is_minor: bool = False  # a page folds it away


@dataclass(frozen=True)
class GroupedTable:
    """A table in which each subject has its own rows, and its title stands once."""

    subject: str  # the label of the titles
    columns: Sequence[TableColumn]
    groups: Sequence[TableGroup]


@dataclass(frozen=True)
class Notes:
    """Sentences, each a paragraph or an item of its own."""

    sentences: Sequence[str]
    is_list: bool = False
    tone: Tone = Tone.PLAIN
    is_indented: bool = False  # below a heading on a terminal


@dataclass(frozen=True)
class Facts:
    """Names with what is known of them; a value may have several lines."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class ChartBlock:
    """A picture as a Vega-Lite specification, and its data as a table."""

    name: str  # of its file
    title: str
    answers: str  # the question that it answers
    about: Sequence[str]  # the lines below its title
    spec: Mapping[str, Any]
    table: Table


@dataclass(frozen=True)
class EvidenceLink:
    """A link to the section, or to the row of a table, that a finding rests on."""

    text: str
    section: str
    row: str = ""


@dataclass(frozen=True)
class KeyFinding:
    """A conclusion, what it rests on, and the command to run next."""

    text: str
    evidence: Sequence[EvidenceLink] = ()
    command: str = ""


@dataclass(frozen=True)
class KeyFindings:
    """The conclusions at the head of a page."""

    findings: Sequence[KeyFinding]


@dataclass(frozen=True)
class DocumentSection:
    """Blocks under a heading."""

    title: str
    blocks: Sequence[Table | GroupedTable | Notes | Facts | ChartBlock]

    @property
    def anchor(self) -> str:
        """The target of links to it, as Markdown derives it from a heading."""
        words = self.title.lower().replace(" ", "-")
        return "".join(letter for letter in words if letter.isalnum() or letter == "-")


Block = Table | GroupedTable | Notes | Facts | ChartBlock | KeyFindings | DocumentSection


@dataclass(frozen=True)
class Document:
    """What a command shows.

    The data are computed when a renderer for programs asks for them.
    """

    title: str
    blocks: Sequence[Block]
    data: Callable[[], Mapping[str, object]] = dict  # the JSON document
    records: Callable[[], Iterable[Mapping[str, object]]] = list  # the lines of a CSV file
    verdict: str = ""  # the answer in a sentence
    tone: Tone = Tone.PLAIN  # of the verdict

    @property
    def sections(self) -> list[DocumentSection]:
        """The blocks that have a heading."""
        return [block for block in self.blocks if isinstance(block, DocumentSection)]
