"""Rankings of models for a task in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from accelbench.cli.display.columns import table, text
from accelbench.cli.display.console import console as made_for
from accelbench.cli.display.recommend import Answer
from accelbench.cli.display.recommend_cells import (
    MIXED,
    counts,
    figures,
    in_a_word,
    rate_head,
    time_head,
    units_of,
    where,
)
from accelbench.core.axes import size_labels
from accelbench.core.nouns import counted
from accelbench.select.evidence.origins import of_others

#: Models of a ranking that are shown.
_MOST_RANKED = 20
_ORDER = (
    "Each on the hardware that is first for it. What counts the same stands together, what most"
    " models count first: measured before estimated, and among them the most a second. What only a"
    " rule speaks for comes last."
)


def show_ranking(
    ranked: Sequence[Answer],
    task: str,
    batch: int,
    explain: bool,
    unknown: Sequence[str] = (),
    console: Console | None = None,
) -> None:
    """Models in order for a task; of the unknown nobody says what they are for."""
    console = console or made_for()
    for line in _unknown(unknown, task):
        console.print(text(line))
    if not ranked:
        which = "that says what it is for " if unknown else ""
        console.print(text(f"No model with results {which}is for {task}."))
        return
    console.print(text(f"For {task} at batch {batch}"), style="bold")
    shown = ranked if explain else ranked[:_MOST_RANKED]
    answers = [{"predictions": entry} for entry in shown]
    units, time = units_of(answers), time_head(answers)
    rows = [
        (
            str(place),
            entry["model"],
            ", ".join(size_labels(entry["sizes"])),
            where(entry["hardware"], entry),
            *figures({"predictions": entry}, time == MIXED),
            counts({"predictions": entry}, units),
            in_a_word(entry),
        )
        for place, entry in enumerate(shown, 1)
    ]
    heads = ("", "model", "sizes", "on", time, "within", rate_head(units), "counts", "by")
    console.print(table(heads, rows, right=(0, 4, 5, 6), below={2: 1, 5: 4}))
    if whose := of_others(shown):
        console.print(text(whose))
    if len(shown) < len(ranked):
        console.print(text(f"and {len(ranked) - len(shown)} more: --explain shows all."))
    if explain:
        console.print(text(_ORDER))


def _unknown(names: Sequence[str], task: str) -> Iterator[str]:
    if names:
        listed = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
        yield (
            f"{counted(len(names), 'model')} of no known family may be for {task} too, and"
            f" {'is' if len(names) == 1 else 'are'} left out: {listed}"
        )
