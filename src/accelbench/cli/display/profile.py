"""Where each case's time goes: a short table a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from accelbench.cli.display.terminal import print_lines
from accelbench.cli.display.words import figure, marks, shapes

#: Operators in a table; the JSON document and the files have all of them.
TOP = 10

_LONGEST = 44

_APART = "Profiled apart from what was measured: these times carry the profiler's cost."

#: Steps that differ by more were not of one kind.
_ALIKE = 2.0


def print_profiles(profiles: Sequence[Mapping[str, Any]], stream: IO[str]) -> None:
    """A heading and a table for each, or why there is none."""
    for profile in profiles:
        print_lines(["", *heading(profile)], stream)
        if profile["why_not"] is None:
            _print_table(profile, stream)
            print_lines([profile["remark"]] if profile["remark"] else [], stream)
    if any(profile["why_not"] is None for profile in profiles):
        print_lines(("", _APART), stream)


def heading(row: Mapping[str, Any]) -> list[str]:
    """Which case, and what is known of it as a whole, in lines."""
    size = f"batch {row['batch_size']} {shapes(row)}".strip()
    case = (
        f"{row['model']} {row['runtime']}/{row['hardware']} {row['precision']}{marks(row)} {size}"
    )
    if row["why_not"] is not None:
        return [f"No profile of {case}: {row['why_not']}"]
    steps = "1 step" if row["steps"] == 1 else f"{row['steps']} steps"
    emulated = ", on an emulation" if row["emulated"] else ""
    return [
        f"Where the time goes: {case}{emulated}",
        (
            f"{row['profiler']}, mean of {steps}: {figure(row['wall_ms'])} ms, of which operators"
            f" explain {row['explained']:.0%}"
        ),
        *_unlike(row["walls_ms"]),
    ]


def _unlike(walls: Sequence[float]) -> list[str]:
    """Steps that had the machine to themselves are alike."""
    low, high = min(walls), max(walls)
    if high <= _ALIKE * low:
        return []
    return [
        (
            f"! The steps took from {figure(low)} to {figure(high)} ms: something else had the"
            " machine, or the engine waited."
        )
    ]


def _print_table(profile: Mapping[str, Any], stream: IO[str]) -> None:
    from accelbench.cli.display.console import console
    from accelbench.cli.display.word_table import WordTable

    table = WordTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("operator", max_width=_LONGEST)
    for title in ("calls", "ms", "share"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("where")
    for kind in profile["kinds"][:TOP]:
        table.add_row(*_cells(kind))
    rest = profile["kinds"][TOP:]
    if rest:
        took, share = (sum(kind[name] for kind in rest) for name in ("total_ms", "share"))
        others = "1 other" if len(rest) == 1 else f"{len(rest)} others"
        table.add_row(others, "", figure(took), f"{share:.1%}", "")
    console(stream).print(table)


def _cells(kind: Mapping[str, Any]) -> tuple[str, ...]:
    calls = f"{kind['calls']:g}"
    took, share = figure(kind["total_ms"]), f"{kind['share']:.1%}"
    return (kind["kind"], calls, took, share, kind["where"])
