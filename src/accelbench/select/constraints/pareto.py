"""Options in order, and those that nothing beats. Pure.

An estimate counts by its dear end beside what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from accelbench.select.constraints.options import Option
from accelbench.select.evidence.units import ITEMS, counted

#: What an option surely does in a second, in a unit that all have.
Rate = Callable[[Option], float]


def are_mixed(options: Iterable[Option]) -> bool:
    """Whether some count what others do not: tokens beside items."""
    return len({counted(option.unit) for option in options}) > 1


def rate_in(options: Iterable[Option]) -> Rate:
    """How these are held together: by their rates; where those count different things, by the
    items of the batch that go through in a second, which all have."""
    return _pace if are_mixed(options) else _rate


def unit_in(options: Iterable[Option]) -> str:
    """What most of them count: what a limited rate, or cost, is taken to be of."""
    units = [counted(option.unit) for option in options]
    return min(
        set(units), key=lambda unit: (-units.count(unit), unit != ITEMS, unit), default=ITEMS
    )


def merit(option: Option, rate: Rate) -> tuple[object, ...]:
    """The most a second first; the same order every time."""
    return (-rate(option), not option.measured, option.time, *option.name)


def compares_memory(options: Iterable[Option]) -> bool:
    """Whether all know theirs."""
    return all(option.memory is not None for option in options)


def pareto(options: Sequence[Option], rate: Rate | None = None) -> list[Option]:
    """Those that no other beats in latency, rate, and memory where all know theirs.

    Equals do not beat each other.
    """
    held = rate or rate_in(options)
    by_memory = compares_memory(options)

    def figures(option: Option) -> tuple[float, ...]:
        memory = (option.memory.high,) if by_memory and option.memory else ()
        return (option.time, -held(option), *memory)

    every = [figures(option) for option in options]

    def beaten(mine: tuple[float, ...]) -> bool:
        return any(
            all(a <= b for a, b in zip(theirs, mine, strict=True)) and theirs != mine
            for theirs in every
        )

    front = [option for option, mine in zip(options, every, strict=True) if not beaten(mine)]
    return sorted(front, key=lambda option: (option.time, merit(option, held)))


def _rate(option: Option) -> float:
    return option.throughput


def _pace(option: Option) -> float:
    return option.pace
