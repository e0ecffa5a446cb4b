"""Documents on a terminal, and in the form that the options of a command ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from accelbench.cli.display.terminal import deliver, json_text, print_document
from accelbench.present.document import Block, Document, GroupedTable, Notes, Section, Table, Tone

if TYPE_CHECKING:
    from rich.console import Console

    from accelbench.cli.display.word_table import WordTable

#: The suffixes of files that hold a document.
SUFFIXES = (".csv", ".json", ".md")
_STYLES = {Tone.GOOD: "green", Tone.BAD: "red", Tone.OPEN: "yellow", Tone.FAINT: "dim"}
_INDENT = 2


def present(document: Document, output: Path | None, as_json: bool) -> None:
    """Write the document to a file by its suffix, or print it."""
    if output is not None:
        deliver(_file_text(document, output.suffix.lower()), output)
    if as_json:
        print_document(document.data())
    elif output is None:
        show(document)


def _file_text(document: Document, suffix: str) -> str:
    if suffix == ".json":
        return json_text(document.data())
    if suffix == ".csv":
        import io

        from accelbench.present.delimited import write_lines

        stream = io.StringIO(newline="")
        records = list(document.records())
        write_lines(stream, records[0], (record.values() for record in records))
        return stream.getvalue()
    from accelbench.present.markdown import as_markdown

    return as_markdown(document)


def show(document: Document, stream: IO[str] | None = None) -> None:
    """Print the document for people."""
    from rich.text import Text

    from accelbench.cli.display.console import console as made_for

    console = made_for(stream)
    if document.title:
        console.print(Text(document.title))
    before: Block | None = None
    for block in document.blocks:
        if isinstance(before, GroupedTable) and isinstance(block, Notes):
            console.print()
        _print(block, console)
        before = block
    if document.verdict:
        console.print(Text(f"{document.verdict}.", style="bold"))


def _print(block: Block, console: Console) -> None:
    from rich.text import Text

    if isinstance(block, Section):
        console.print()
        console.print(Text(block.title, style="bold"))
        for inner in block.blocks:
            _print(inner, console)
    elif isinstance(block, Notes):
        for sentence in block.sentences:
            console.print(Text(sentence))
    elif isinstance(block, GroupedTable):
        _print_groups(block, console)
    else:
        for part in _parts(block, console.width):
            console.print(part)


def _print_groups(table: GroupedTable, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from accelbench.cli.display.word_table import WordTable

    for group in table.groups:
        console.print()
        heading = Text(group.title, style="bold")
        if group.state:
            heading.append(f": {group.state}", style=_STYLES.get(group.tone, ""))
        console.print(heading)
        made = WordTable(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for column in table.columns:
            justify: Literal["right", "left"] = "right" if column.is_number else "left"
            made.add_column(justify=justify, no_wrap=column.is_number or column.is_whole)
        for row in group.rows:
            made.add_row(*map(Text, row))
        if group.rows:
            console.print(Padding(made, (0, 0, 0, _INDENT), expand=False))


def _parts(table: Table, width: int) -> Iterator[WordTable]:
    """Yield the table, in parts with the repeated columns if not all columns fit."""
    kept = table.filled()
    repeated = [n for n in kept if n < table.repeated]
    if not repeated:
        yield _drawn(table, kept, width)
        return
    part: list[int] = []
    for number in kept[len(repeated) :]:
        wider = _drawn(table, [*repeated, *part, number], width)
        if part and not wider.fits(width) and _drawn(table, [*repeated, *part], width).fits(width):
            yield _drawn(table, [*repeated, *part], width)
            part = []
        part.append(number)
    yield _drawn(table, [*repeated, *part], width)


def _drawn(table: Table, kept: Sequence[int], width: int) -> WordTable:
    from accelbench.cli.display.columns import table as drawn

    columns = [table.columns[n] for n in kept]
    rows = [[row[n] for n in kept] for row in table.rows]
    right = [place for place, column in enumerate(columns) if column.is_number]
    return drawn([c.label for c in columns], rows, right, table.row_ends, width=width)
