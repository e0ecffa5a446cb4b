"""What was just measured for an answer, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from accelbench.cli.display.columns import text
from accelbench.cli.display.console import console as made_for
from accelbench.core.figures import Statistic, name_of
from accelbench.select.answer.remarks import IN_THE_ANSWER
from accelbench.select.evidence.units import rounded

Measured = Mapping[str, Any]


def show_measured(measured: Sequence[Measured], console: Console | None = None) -> None:
    """What was just measured, and whether it is in the answers above."""
    console = console or made_for()
    for one in measured:
        console.print(text(_sentence(one)))


def _sentence(one: Measured) -> str:
    """What was measured, and whether it is in the answer."""
    where = f"{one['hardware']} ({one['device']})" if one["device"] else one["hardware"]
    way = " ".join(str(one[name]) for name in ("runtime", "precision") if one[name])
    time = (
        ""
        if one["latency"] is None
        else f", {name_of(Statistic(one['figure']))} {rounded(one['latency'])} ms"
    )
    said = one["outcome"]
    verdict = said if said == IN_THE_ANSWER else f"not in the answer: {said}"
    return f"Measured now: {where} {way}, batch {one['batch_size']}{time}; {verdict}."
