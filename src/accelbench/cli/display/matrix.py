"""The compatibility matrix in a terminal, within 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from accelbench.analysis.matrix import (
    RULE,
    UNRATED,
    Availability,
    Matrix,
    MatrixCell,
    MatrixLine,
    Rating,
)
from accelbench.cli.display.console import console as made_for
from accelbench.cli.display.console import in_lines
from accelbench.cli.display.word_table import WordTable
from accelbench.core.nouns import digits, listed
from accelbench.core.visible import visible
from accelbench.report.matrix import MatrixHeader, precisions, tells

_STYLES = {Rating.HIGH: "green", Rating.MEDIUM: "green", Rating.LOW: "yellow", Rating.NONE: "dim"}
_LEGEND = (
    "✗ incompatible · N/A not available · untried: not measured · emulated: right, its times mean"
    " nothing · not verified: its outputs were not compared · not sure: measured too roughly ·"
    " runs: compatible, not rated"
)
#: What nobody has shown is neither good nor bad.
_UNPROVEN = "magenta"
#: Models of a page, and names of models that share a reason.
PAGE = 40
_NAMED = 6
_NAME_WIDTH = 20


def show(
    matrix: Matrix,
    about: MatrixHeader,
    *,
    explain: bool,
    page: int = 1,
    console: Console | None = None,
) -> None:
    """The tables and what is behind them, a page of models at a time."""
    console = console or made_for()
    total = len(matrix.models)
    models = matrix.models[(page - 1) * PAGE : page * PAGE]
    matrix = replace(matrix, models=models)
    console.print(Text(visible(str(about)), style="bold"))
    if len(models) < total:
        console.print(Text(_page(page, total), style="dim"))
    for heading, lines in (("family", matrix.families), ("model", matrix.models)):
        for hardware in _portions(lines, matrix.hardware, console.width):
            console.print()
            console.print(_table(heading, lines, hardware))
    console.print()
    console.print(Text(_LEGEND, style="dim"))
    if explain:
        _exvisible(matrix, console)
    else:
        _briefly(matrix, console)
    for machine in about.others:
        sentence = f"Not in it, another machine: {machine}: --machine {machine.id}"
        console.print(Text(visible(sentence), style="dim"))


def _page(page: int, total: int) -> str:
    first, last, pages = (page - 1) * PAGE + 1, min(page * PAGE, total), -(-total // PAGE)
    more = f"--page {page + 1} has the next" if page < pages else "they are the last"
    return (
        f"Models {first:,} to {last:,} of {total:,}, page {page} of {pages}: {more}; names narrow"
        " it, and --output matrix.html has all."
    )


def _portions(
    lines: Sequence[MatrixLine], hardware: Sequence[str], width: int
) -> Iterator[tuple[str, ...]]:
    """The platforms, as many at a time as stand beside the names."""
    names = [line.name for line in lines]
    whole = max((len(word) for name in names for word in name.split()), default=0)
    room = width - max(whole, min(_NAME_WIDTH, max(map(len, names), default=0)))
    now: list[str] = []
    used = 0
    for name in hardware:
        wide = 1 + max([len(name), *(len(part) for line in lines for part in _short(name, line))])
        if now and used + wide > room:
            yield tuple(now)
            now, used = [], 0
        now.append(name)
        used += wide
    yield tuple(now)


def _table(heading: str, lines: Sequence[MatrixLine], hardware: Sequence[str]) -> WordTable:
    table = WordTable(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(heading, max_width=_NAME_WIDTH)
    for name in hardware:
        table.add_column(Text(visible(name)), no_wrap=True)
    for line in lines:
        cells = [_text(name, line) for name in hardware]
        table.add_row(Text(visible(line.name)), *cells)
    return table


def _text(hardware: str, line: MatrixLine) -> Text:
    level, *rest = _short(hardware, line)
    cell = line.cells[hardware]
    style = "red" if cell.availability is Availability.INCOMPATIBLE else _STYLES[cell.rating]
    if cell.token in UNRATED and cell.compatible and not cell.emulated:
        style = _UNPROVEN
    return in_lines(level, *rest, style=style, further="dim")


def _short(hardware: str, line: MatrixLine) -> list[str]:
    cell = line.cells[hardware]
    level = _level(cell)
    ways = list(map(visible, precisions(cell)))
    if hardware == "cpu" and cell.runtimes and line.family:
        return [level, *map(visible, cell.runtimes), *ways]
    return [level, *([] if cell.speed is None else [f"{digits(cell.speed)}×"]), *ways]


def _level(cell: MatrixCell) -> str:
    if cell.rating is not Rating.NONE:
        return cell.rating.value.capitalize()
    if cell.compatible:
        return "emulated" if cell.emulated else UNRATED.get(cell.token, "runs")
    return "✗ N/A" if cell.availability is Availability.INCOMPATIBLE else cell.level_without_rating


def _briefly(matrix: Matrix, console: Console) -> None:
    """Each reason for a missing or low rating once."""
    pairs = [
        (f"{hardware}: {cell.reason}", line.name)
        for line in matrix.models
        for hardware, cell in line.cells.items()
        if cell.rating in (Rating.NONE, Rating.LOW)
    ]
    for reason, group in groupby(sorted(pairs), key=lambda pair: pair[0]):
        names = [name for _, name in group]
        every = len(names) == len(matrix.models)
        where = "every model" if every else listed(names, _NAMED)
        _hanging(console, f"{reason} ({where})")
    console.print("The rule, and the reason behind every cell: --explain")


def _exvisible(matrix: Matrix, console: Console) -> None:
    console.print(Text("The rule", style="bold"))
    for sentence in RULE:
        _hanging(console, sentence)
    for line in (*matrix.families, *matrix.models):
        console.print()
        kind = "" if line.family else "family "
        console.print(Text(f"{kind}{visible(line.name)}", style="bold"))
        for hardware, cell in line.cells.items():
            known = "" if cell.compatible else f" ({cell.availability})"
            rest = "".join(f"; {name}: {text}" for name, text in tells(cell)[1:])
            _hanging(console, f"{hardware}: {_level(cell)}{known}: {cell.reason}{rest}")


def _hanging(console: Console, text: str) -> None:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("·", Text(visible(text)))
    console.print(grid)
