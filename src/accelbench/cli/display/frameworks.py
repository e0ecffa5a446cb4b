"""Two frameworks side by side: a line for each model and size that both have measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from accelbench.cli.display.terminal import print_lines
from accelbench.cli.display.words import shapes
from accelbench.core.columns import step_ms
from accelbench.core.worth import usable
from accelbench.run.simulating import measured_of

#: Fewer launches a side say nothing sure of a difference.
_FOR_A_VERDICT = 5

Row = Mapping[str, Any]


def print_frameworks(rows: Sequence[Row], stream: IO[str], pair: Sequence[str]) -> None:
    """How long the second takes in terms of the first."""
    lines = list(compared(rows, pair))
    if lines:
        print_lines(["", *lines], stream)


def compared(rows: Sequence[Row], pair: Sequence[str]) -> Iterator[str]:
    """A sentence a model and size, by the geometric mean of the launches' medians."""
    first, second = pair
    found: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for row in measured_of(rows):
        counts = row["status"] == "ok" and not row.get("emulated") and usable(row)
        taken = step_ms(row) if counts else None
        if row["runtime"] in pair and taken:
            key = (row["model"], row["hardware"], row["precision"], row["mode"], _size(row))
            found.setdefault(key, {}).setdefault(row["runtime"], []).append(taken)
    for (model, hardware, precision, mode, size), times in found.items():
        if first not in times or second not in times:
            continue
        ratio = _middle(times[second]) / _middle(times[first])
        least = min(len(times[first]), len(times[second]))
        sure = "" if least >= _FOR_A_VERDICT else "; too few for a verdict"
        launches = "1 launch" if least == 1 else f"{least} launches"
        yield (
            f"{model} {hardware} {precision} {mode} {size}: {second} takes {ratio:.2f} times as"
            f" long as {first} ({launches} a side{sure})"
        )


def _size(row: Row) -> str:
    return f"batch {row['batch_size']} {shapes(row)}".strip()


def _middle(times: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, times)) / len(times))
