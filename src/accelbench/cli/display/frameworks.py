"""Two frameworks side by side: a line for each model and size that both have measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from accelbench.analysis.ratios import CANNOT_TELL, LAUNCHES, Faster, Ratio, ratio
from accelbench.analysis.run_noise import Histories
from accelbench.cli.display.terminal import print_lines
from accelbench.cli.display.words import shapes
from accelbench.core.figures import statistic_of
from accelbench.core.launch_failures import of_whole_runs
from accelbench.core.nouns import counted
from accelbench.core.spreads import FEWEST_LAUNCHES
from accelbench.core.worth import answered, usable_launches
from accelbench.run.plan.simulated_cases import measured_of

Row = Mapping[str, Any]


def print_frameworks(rows: Sequence[Row], stream: IO[str], pair: Sequence[str]) -> None:
    """How long the second takes in terms of the first."""
    lines = list(compared(rows, pair))
    if lines:
        print_lines(["", *lines], stream)


def compared(rows: Sequence[Row], pair: Sequence[str]) -> Iterator[str]:
    """A sentence a model and size, by the ratio that every comparison gives."""
    first, second = pair
    groups: dict[tuple[Any, ...], dict[str, list[Row]]] = {}
    for row in of_whole_runs(measured_of(rows)):
        counts = answered(row) and not row.get("emulated") and statistic_of(row) is not None
        if row["runtime"] in pair and counts:
            key = (row["model"], row["hardware"], row["precision"], row["mode"], _size(row))
            groups.setdefault(key, {}).setdefault(str(row["runtime"]), []).append(row)
    for (model, hardware, precision, mode, size), launched in groups.items():
        if first not in launched or second not in launched:
            continue
        ours, theirs = (usable_launches(launched[runtime]) for runtime in pair)
        if not ours or not theirs:
            continue
        known = ratio(ours, theirs, Histories())
        if known is None:
            continue
        about = f"{model} {hardware} {precision} {mode} {size}"
        yield f"{about}: {_said(known, first, second)}"


def _said(known: Ratio, first: str, second: str) -> str:
    """Return which framework is faster, or that the launches do not decide it."""
    least = min(known.launches)
    few = "" if least >= FEWEST_LAUNCHES else f", {FEWEST_LAUNCHES} decide"
    launches = f"{counted(least, 'launch', 'launches')} a side{few}"
    if not known.told:
        why = f"{CANNOT_TELL}; {launches}"
        if known.direction is Faster.UNSURE:
            return f"which of {first} and {second} is faster cannot be told; {why}"
        slower = second if known.direction is Faster.FASTER else first
        return f"{slower} takes longer, by how much cannot be told; {why}"
    about = [launches, known.otherwise] if known.otherwise else [launches]
    if known.of == LAUNCHES and known.low is not None and known.high is not None:
        about = [f"95 % interval {known.ends_text('{:.2f}'.format, ' … ')}", *about]
        if known.direction is Faster.UNSURE:
            return f"which of {first} and {second} is faster cannot be told ({'; '.join(about)})"
    return f"{second} takes {known.value:.2f} times as long as {first} ({'; '.join(about)})"


def _size(row: Row) -> str:
    return f"batch {row['batch_size']} {shapes(row)}".strip()
