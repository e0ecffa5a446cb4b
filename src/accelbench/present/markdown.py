"""A document as Markdown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from accelbench.core.safe_text import escape_markdown as escaped
from accelbench.core.safe_text import visible
from accelbench.present.document import (
    Block,
    ChartBlock,
    Document,
    DocumentSection,
    Facts,
    GroupedTable,
    KeyFinding,
    KeyFindings,
    Notes,
    Table,
    TableColumn,
    TableGroup,
    Tone,
    TonedText,
    lines_of,
)

_SIGNS = {Tone.GOOD: "✅ ", Tone.FAIR: "✅ ", Tone.WARNING: "⚠️ ", Tone.BAD: "❌ "}
_OF_VERDICTS = {**_SIGNS, Tone.OPEN: "❔ "}


def as_markdown(
    document: Document, level: int = 1, pictures: Mapping[str, str] | None = None
) -> str:
    """Return the document as Markdown.

    Args:
        document: what is shown.
        level: of its heading, which is its verdict if it has one.
        pictures: the files of charts by their names; charts without a file are only tables.
    """
    paragraphs = [*_heading(document, level)]
    for block in document.blocks:
        paragraphs += _paragraphs(block, level + 1, pictures or {})
    return "\n\n".join(paragraphs) + "\n"


def _heading(document: Document, level: int) -> Iterator[str]:
    marks = "#" * level
    if document.verdict:
        yield f"{marks} {_OF_VERDICTS.get(document.tone, '')}{escaped(document.verdict)}"
        yield f"{escaped(document.title, begins_line=True)}."
    else:
        yield f"{marks} {escaped(document.title)}"


def _paragraphs(block: Block, level: int, pictures: Mapping[str, str]) -> Iterator[str]:
    if isinstance(block, DocumentSection):
        yield f"{'#' * level} {escaped(block.title)}"
        for inner in block.blocks:
            yield from _paragraphs(inner, level + 1, pictures)
    elif isinstance(block, Notes):
        sentences = [escaped(sentence, begins_line=True) for sentence in block.sentences]
        if block.is_list and sentences:
            yield "\n".join(f"- {sentence}" for sentence in sentences)
        else:
            yield from sentences
    elif isinstance(block, Facts):
        yield "\n".join(
            f"- {escaped(name)}: {escaped(' '.join(lines_of(value)))}"
            for name, value in block.pairs
        )
    elif isinstance(block, KeyFindings):
        yield f"{'#' * level} Findings"
        yield "\n".join(map(_finding, block.findings))
    elif isinstance(block, GroupedTable):
        yield from _grouped(block)
    elif isinstance(block, ChartBlock):
        if file := pictures.get(block.name):
            yield f"![{escaped(block.title)}: {escaped(block.answers)}]({file})"
        yield from _table(block.table)
    else:
        yield from _table(block)


def _finding(finding: KeyFinding) -> str:
    """Return a line: a pull request shows these, whatever else it folds."""
    links = dict.fromkeys(f"[{escaped(link.text)}](#{link.section})" for link in finding.evidence)
    evidence = f" Evidence: {', '.join(links)}." if links else ""
    command = f" Next: {_code(finding.command)}" if finding.command else ""
    return f"- {escaped(finding.text, begins_line=True)}{evidence}{command}"


def _code(command: str) -> str:
    """Return a command between more backticks than it contains: a model's name may have some."""
    shown = visible(command)
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    room = " " if "`" in (shown[:1], shown[-1:]) else ""
    return f"{fence}{room}{shown}{room}{fence}"


def _table(table: Table) -> Iterator[str]:
    if table.is_folded:
        # Within an element of HTML there is no Markdown.
        command = f" <code>{escaped(table.command)}</code>" if table.command else ""
        yield f"<details><summary>{escaped(table.caption or 'Table')}{command}</summary>"
    elif table.caption:
        command = f" {_code(table.command)}" if table.command else ""
        yield f"**{escaped(table.caption)}**{command}"
    kept = table.filled()
    rows = ([row[n] for n in kept] for row in table.rows)
    yield "\n".join(table_lines([table.columns[n] for n in kept], rows))
    if table.is_folded:
        yield "</details>"


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
