"""Documents on a terminal, and in the form that the options of a command ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, Literal

from accelbench.core.safe_text import visible
from accelbench.present.document import (
    Block,
    ChartBlock,
    Document,
    DocumentSection,
    Facts,
    GroupedTable,
    KeyFindings,
    Notes,
    Table,
    TableColumn,
    Tone,
    TonedText,
    lines_of,
)
from accelbench.present.terminal.terminal import deliver, json_text, print_document, print_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from accelbench.present.terminal.console import WordTable

#: The suffixes of files that hold a document.
SUFFIXES = (".csv", ".json", ".md")
_STYLES = {
    Tone.GOOD: "green",
    Tone.FAIR: "green",
    Tone.WARNING: "yellow",
    Tone.BAD: "red",
    Tone.OPEN: "magenta",
    Tone.FAINT: "dim",
}
#: Signs before cells, for those who do not see the colours.
_SIGNS = {Tone.BAD: "✗ "}
_INDENT = 2
#: The longest line of a value if there is more room.
_LINE = 100
#: What stands between the ends of an interval.
_TO = " … "


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

        from accelbench.present.table_export import write_lines

        stream = io.StringIO(newline="")
        records = list(document.records())
        write_lines(stream, records[0], (record.values() for record in records))
        return stream.getvalue()
    from accelbench.present.markdown import as_markdown

    return as_markdown(document)


def show(document: Document, stream: IO[str] | None = None, width: int | None = None) -> None:
    """Print the document for people, within a width if one is given."""
    from rich.text import Text

    from accelbench.present.terminal.console import console as made_for

    console = made_for(stream, **({"width": width} if width else {}))
    if document.title:
        _say(document.title, console)
    before: Block | None = None
    for block in document.blocks:
        is_next = document.title or before is not None
        if isinstance(block, DocumentSection) and is_next:
            console.print()
        if isinstance(block, Notes) and _is_open_below(before):
            console.print()
        _print(block, console)
        before = block
    if document.verdict:
        console.print(Text(f"{document.verdict}.", style="bold"))


def _is_open_below(block: Block | None) -> bool:
    """Return whether a block ends without a blank line that sets it apart from notes."""
    last = block.blocks[-1] if isinstance(block, DocumentSection) else block
    if isinstance(last, Table):
        return last.is_compact
    if isinstance(last, Notes):
        return last.is_indented
    return isinstance(last, (GroupedTable, Facts))


def _say(text: str, console: Console, style: str = "", indent: int = 0) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from accelbench.present.terminal.console import in_whole_figures

    # Laying out thousands of lines takes ten times as long as finding them.
    if not console.is_terminal and 2 * len(text) < console.width:
        print_lines([" " * indent + text], console.file)
        return
    for line in in_whole_figures(text, console.width - indent) if text.strip() else [text]:
        shown = Text(line, style)
        console.print(Padding(shown, (0, 0, 0, indent), expand=False) if indent else shown)


def _print(block: Block, console: Console) -> None:
    if isinstance(block, DocumentSection):
        if block.title:
            _say(block.title, console, "bold")
        for inner in block.blocks:
            _print(inner, console)
    elif isinstance(block, Notes):
        _print_notes(block, console)
    elif isinstance(block, Facts):
        console.print(_pairs(block, console.width))
    elif isinstance(block, GroupedTable):
        _print_groups(block, console)
    elif isinstance(block, KeyFindings):
        _print(Notes([finding.text for finding in block.findings], is_list=True), console)
    else:
        for part in _parts(block.table if isinstance(block, ChartBlock) else block, console.width):
            console.print(part)


def _print_notes(notes: Notes, console: Console) -> None:
    from rich.text import Text

    style = _STYLES.get(notes.tone, "")
    for sentence in notes.sentences:
        if notes.is_list:
            console.print(_hanging(Text(sentence, style)))
        else:
            _say(sentence, console, style, _INDENT if notes.is_indented else 0)


def _hanging(text: Text) -> WordTable:
    grid = _grid(1)
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row("·", text)
    return grid


def _grid(gap: int, **look: Any) -> WordTable:
    from accelbench.present.terminal.console import WordTable

    padding = (0, gap, 0, 0)
    return WordTable(box=None, pad_edge=False, padding=padding, **{"show_header": False, **look})


def _pairs(facts: Facts, width: int) -> Padding:
    from rich.padding import Padding
    from rich.text import Text

    from accelbench.present.terminal.console import in_lines

    grid = _grid(2)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in facts.pairs:
        grid.add_row(Text(name), in_lines(*_wrapped(value, width)))
    return Padding(grid, (0, 0, 0, _INDENT), expand=False)


def _wrapped(value: str, width: int) -> list[str]:
    """Return the lines of a value; piped text is wrapped too, so that people can read it."""
    lines = lines_of(value)
    if width <= _LINE:
        return lines
    return [
        part
        for line in lines
        for part in wrap(visible(line), _LINE, break_long_words=False, break_on_hyphens=False)
    ]


def _print_groups(table: GroupedTable, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    for group in table.groups:
        console.print()
        heading = Text(group.title, style="bold")
        if group.state:
            heading.append(f": {group.state}", style=_STYLES.get(group.tone, ""))
        console.print(heading)
        made = _grid(2)
        for column in table.columns:
            _add_column(made, column, "")
        for row in group.rows:
            made.add_row(*map(Text, row))
        if group.rows:
            console.print(Padding(made, (0, 0, 0, _INDENT), expand=False))


def _parts(table: Table, width: int) -> Iterator[WordTable]:
    """Yield the table, in parts with the repeated columns if not all columns fit."""
    kept = table.filled()
    repeated = [n for n in kept if n < table.repeated]
    if not repeated:
        yield fitted(table, width)
        return

    def draw(chosen: Sequence[int]) -> WordTable:
        return _drawn(table, chosen, width)

    part: list[int] = []
    for number in kept[len(repeated) :]:
        wider = draw([*repeated, *part, number])
        if part and not wider.fits(width) and draw([*repeated, *part]).fits(width):
            yield draw([*repeated, *part])
            part = []
        part.append(number)
    yield draw([*repeated, *part])


def _drawn(table: Table, kept: Sequence[int], width: int) -> WordTable:
    """Return a table with the intervals below their values if they do not fit next to them."""
    below = {
        interval: value
        for interval, value in table.intervals.items()
        if interval in kept and value in kept and not table.is_compact
    }
    heads = [lines_of(column.label) for column in table.columns]
    rows = [[lines_of(cell) for cell in row] for row in table.rows]
    made = _made(table, heads, rows, kept)
    if not below or made.fits(width):
        return made
    for interval, value in below.items():
        for row in (heads, *rows):
            row[value] = [*row[value], *_ends(row[interval])]
    narrow = _made(table, heads, rows, [number for number in kept if number not in below])
    return made if not narrow.fits(width) and made.fits_parted(width) else narrow


def _made(
    table: Table,
    heads: Sequence[Sequence[str]],
    rows: Sequence[Sequence[Sequence[str]]],
    kept: Sequence[int],
) -> WordTable:
    from rich import box

    from accelbench.present.terminal.console import WordTable, in_lines

    if table.is_compact:
        made = _grid(1, show_header=any(map(any, heads)), header_style="bold")
    else:
        made = WordTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for number in kept:
        _add_column(made, table.columns[number], in_lines(*heads[number]))
    for place, row in enumerate(rows):
        cells = []
        for number in kept:
            first, *more = row[number]
            text = table.rows[place][number]
            is_toned = table.is_compact and isinstance(text, TonedText)
            tone: Tone = getattr(text, "tone", Tone.PLAIN) if is_toned else Tone.PLAIN
            style, further = _STYLES.get(tone, ""), "dim" if table.is_compact else ""
            first = f"{_SIGNS.get(tone, '')}{first}"
            cells.append(in_lines(first, *more, style=style, further=further))
        made.add_row(*cells, end_section=place in table.row_ends)
    return made


def _add_column(made: WordTable, column: TableColumn, head: str | Text) -> None:
    justify: Literal["right", "left"] = "right" if column.is_number else "left"
    made.add_column(head, justify=justify, no_wrap=column.is_number or column.is_whole)


def _ends(interval: Sequence[str]) -> list[str]:
    low, *high = " ".join(interval).split(_TO)
    return [f"{low} …", *high] if high else [low] if low else []


def fitted(table: Table, width: int) -> WordTable:
    """Return a table for a terminal of that width, in one part."""
    return _drawn(table, table.filled(), width)
