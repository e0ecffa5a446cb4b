"""What was just measured for an answer, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from accelbench.cli.display.columns import text
from accelbench.cli.display.console import console as made_for
from accelbench.core.figures import Statistic, name_of
from accelbench.select.answer.explanation import IN_THE_ANSWER
from accelbench.select.evidence.cells import rounded

Measured = Mapping[str, Any]


def show_measured(measured: Sequence[Measured], console: Console | None = None) -> None:
    """What was just measured, and whether it is in the answers above."""
    console = console or made_for()
    for result in measured:
        console.print(text(_sentence(result)))


def _sentence(result: Measured) -> str:
    """What was measured, and whether it is in the answer."""
    where = f"{result['hardware']} ({result['device']})" if result["device"] else result["hardware"]
    way = " ".join(str(result[name]) for name in ("runtime", "precision") if result[name])
    time = (
        ""
        if result["latency"] is None
        else f", {name_of(Statistic(result['figure']))} {rounded(result['latency'])} ms"
    )
    outcome = result["outcome"]
    verdict = outcome if outcome == IN_THE_ANSWER else f"not in the answer: {outcome}"
    return f"Measured now: {where} {way}, batch {result['batch_size']}{time}; {verdict}."
