"""A comparison for people: a table a question, and below all of them what was not alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from accelbench.analysis.cost_words import money
from accelbench.analysis.questions import ComparisonAxis
from accelbench.cli.display.compare_cells import (
    Lines,
    accuracies,
    accuracy_title,
    engines,
    places,
    rate,
    rate_unit,
    speed,
    submissions,
    threads,
    time_heading,
    times,
)
from accelbench.cli.display.compare_notes import below, of_one_figure, under_table
from accelbench.cli.display.headings import headings
from accelbench.cli.display.words import figure
from accelbench.core.absent import NO_DATA
from accelbench.core.visible import markdown
from accelbench.exchange.markdown_export import table as markdown_table
from accelbench.exchange.prices import USUAL_CURRENCY, Prices, sign_of

if TYPE_CHECKING:
    from accelbench.cli.display.word_table import WordTable

#: Longer units would take the room that devices need.
_LONGEST_UNIT = 9


def show(
    tables: Sequence[Lines],
    axis: ComparisonAxis,
    machine: str = "",
    others: Sequence[str] = (),
    stream: IO[str] | None = None,
    labels: Mapping[str, str] | None = None,
    prices: Prices | None = None,
) -> None:
    """Print it; `labels` are of runs, by their ids; costs are in the currency of `prices`."""
    from rich.text import Text

    from accelbench.cli.display.console import console as made_for

    console = made_for(stream)
    console.print(Text(_title(axis, machine)))
    sign = _sign(prices)
    of_one = of_one_figure(tables)
    titles = headings([[line.side.row for line in lines] for lines in tables], axis)
    for heading, lines in zip(titles, tables, strict=True):
        console.print()
        console.print(Text(heading, style="bold"))
        console.print(_table(lines, axis, labels or {}, console.width, sign))
        for sentence in under_table(lines, axis, labels or {}, alone=of_one):
            console.print(Text(sentence))
    for sentence in below(tables, axis, others, prices):
        console.print(Text(sentence))


def markdown_text(
    tables: Sequence[Lines],
    axis: ComparisonAxis,
    machine: str,
    others: Sequence[str],
    labels: Mapping[str, str],
    prices: Prices | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return what `show` prints as a page in Markdown, with further notes below it."""
    of_one = of_one_figure(tables)
    titles = headings([[line.side.row for line in lines] for lines in tables], axis)
    blocks = [[f"# {markdown(_title(axis, machine))}"]]
    for heading, lines in zip(titles, tables, strict=True):
        heads, rows, words = _columns(lines, axis, labels, _sign(prices))
        heads = [head.replace("\n", "") for head in heads]
        blocks.append([f"## {markdown(heading)}"])
        blocks.append(markdown_table(heads, rows, heads[words:]))
        blocks += [[markdown(note)] for note in under_table(lines, axis, labels, alone=of_one)]
    blocks += [[markdown(note)] for note in (*below(tables, axis, others, prices), *notes)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _title(axis: ComparisonAxis, machine: str) -> str:
    return f"By {axis.name}" + (f", on {machine}" if machine else "")


def _sign(prices: Prices | None) -> str:
    return sign_of(USUAL_CURRENCY) if prices is None else prices.sign


def _table(
    lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str], width: int, sign: str
) -> WordTable:
    from accelbench.cli.display.columns import table

    heads, rows, words = _columns(lines, axis, labels, sign)
    return table(heads, rows, right=range(words, len(heads)), width=width)


def _columns(
    lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str], sign: str
) -> tuple[list[str], list[tuple[str, ...]], int]:
    """Return the heads and rows of the columns with values, and how many columns are words."""
    every = (
        ("threads", threads(lines, axis)),
        (time_heading(lines), times(lines)),
        (_in_lines(unit := rate_unit(lines)), [rate(line, unit) for line in lines]),
        (accuracy_title(lines), accuracies(lines)),
        ("MB", [figure(line.side.memory_mb) for line in lines]),
        ("J/item", [figure(line.side.energy_per_item) for line in lines]),
        ("W", [figure(line.side.power_watts) for line in lines]),
        (f"{sign}/M", [money(line.side.cost) for line in lines]),
        (f"{sign}/step", [money(line.side.step_cost) for line in lines]),
        ("times as fast", [speed(line, axis) for line in lines]),
    )
    figures = [(name, cells) for name, cells in every if any(cell != NO_DATA for cell in cells)]
    columns = [places(lines, axis, labels)]
    heads = [axis.name]
    if "runtime" in axis.along:
        columns.append(engines(lines))
        heads.append("by")
    submitted = submissions(lines)
    if any(cell != NO_DATA for cell in submitted):
        columns.append(submitted)
        heads.append("submission")
    words = len(heads)
    heads += [name for name, _ in figures]
    rows = list(zip(*columns, *(cells for _, cells in figures), strict=True))
    return heads, rows, words


def _in_lines(unit: str) -> str:
    """A heading of a rate; a long unit in two lines, since devices need the room."""
    return unit if len(unit) <= _LONGEST_UNIT else unit.replace("/s", "\n/s")
