"""A document as Markdown, and the lines of a table in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accelbench.core.visible import markdown as escaped
from accelbench.present.document import (
    Block,
    Document,
    DocumentSection,
    Facts,
    GroupedTable,
    Notes,
    TableColumn,
    TableGroup,
    Tone,
    TonedText,
    lines_of,
)

_SIGNS = {Tone.GOOD: "✅ ", Tone.WARNING: "⚠️ ", Tone.BAD: "❌ "}
_OF_VERDICTS = {**_SIGNS, Tone.OPEN: "❔ "}


def as_markdown(document: Document, level: int = 1) -> str:
    """Return the document as Markdown.

    Args:
        document: what is shown.
        level: of its heading, which is its verdict if it has one.
    """
    paragraphs = [*_heading(document, level)]
    for block in document.blocks:
        paragraphs += _paragraphs(block, level + 1)
    return "\n\n".join(paragraphs) + "\n"


def _heading(document: Document, level: int) -> Iterator[str]:
    marks = "#" * level
    if document.verdict:
        yield f"{marks} {_OF_VERDICTS.get(document.tone, '')}{escaped(document.verdict)}"
        yield f"{escaped(document.title, begins=True)}."
    else:
        yield f"{marks} {escaped(document.title)}"


def _paragraphs(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, DocumentSection):
        yield f"{'#' * level} {escaped(block.title)}"
        for inner in block.blocks:
            yield from _paragraphs(inner, level + 1)
    elif isinstance(block, Notes):
        sentences = [escaped(sentence, begins=True) for sentence in block.sentences]
        if block.is_list and sentences:
            yield "\n".join(f"- {sentence}" for sentence in sentences)
        else:
            yield from sentences
    elif isinstance(block, Facts):
        yield "\n".join(
            f"- {escaped(name)}: {escaped(' '.join(lines_of(value)))}"
            for name, value in block.pairs
        )
    elif isinstance(block, GroupedTable):
        yield from _grouped(block)
    else:
        kept = block.filled()
        rows = ([row[n] for n in kept] for row in block.rows)
        yield "\n".join(table_lines([block.columns[n] for n in kept], rows))


def _grouped(table: GroupedTable) -> Iterator[str]:
    minor = [group for group in table.groups if group.is_minor]
    major = [group for group in table.groups if not group.is_minor]
    if major:
        yield _group_table(table, major)
    if minor:
        count = f"{len(minor)} {'other' if len(minor) == 1 else 'others'}"
        yield f"<details><summary>{count}</summary>"
        yield _group_table(table, minor)
        yield "</details>"


def _group_table(table: GroupedTable, groups: Sequence[TableGroup]) -> str:
    blank = [""] * (len(table.columns) - 1)
    rows = (
        ["" if number else group.title, *row]
        for group in groups
        for number, row in enumerate(group.rows or [[*blank, group.state]])
    )
    return "\n".join(table_lines([TableColumn(table.subject), *table.columns], rows))


def table_lines(columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return the lines of a table; numbers are aligned to the right."""
    yield _line(["".join(lines_of(column.label)) for column in columns])
    yield f"| {' | '.join('---:' if column.is_number else '---' for column in columns)} |"
    yield from map(_line, rows)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    sign = _SIGNS.get(text.tone, "") if isinstance(text, TonedText) else ""
    return sign + "<br>".join(map(escaped, lines_of(text)))
