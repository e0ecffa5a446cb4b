"""A check for people: a table of what was judged, and below it what has to be known of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from accelbench.analysis.checking import BAD, Check, Outcome
from accelbench.analysis.judging import Judgement
from accelbench.cli.display.words import figure
from accelbench.exchange.titles import title
from accelbench.report.check import (
    answer,
    change,
    headline,
    ordered,
    outcome_text,
    sentences,
    shown,
    sides,
    unusable_times,
)

_STYLES = {**dict.fromkeys(BAD, "red"), Outcome.CANNOT_TELL: "yellow", Outcome.BETTER: "green"}


def show(check: Check, about: Mapping[str, Any], stream: IO[str] | None = None) -> None:
    """Print it."""
    from rich.table import Table
    from rich.text import Text

    from accelbench.cli.display.console import console as made_for

    console = made_for(stream)
    console.print(Text(sides(about)))
    for sentence in unusable_times(check):
        console.print(Text(sentence))
    for question in ordered(check):
        console.print()
        heading = Text(title(question.row), style="bold")
        heading.append(f": {outcome_text(question)}", style=_STYLES.get(question.outcome, ""))
        console.print(heading)
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        for _ in range(3):
            table.add_column(justify="right", no_wrap=True)
        table.add_column(overflow="fold")
        # Whatever else has to break for want of room: the answer stands.
        table.add_column(no_wrap=True, min_width=max(map(len, Judgement)))
        for judged in shown(question):
            table.add_row(
                f"  {judged.metric.title}, {judged.metric.header}",
                figure(judged.before),
                "→",
                figure(judged.now),
                change(judged),
                answer(judged),
            )
        console.print(table)
    console.print()
    for sentence in sentences(check, about):
        console.print(Text(sentence))
    console.print(Text(f"{headline(check)}.", style="bold"))
