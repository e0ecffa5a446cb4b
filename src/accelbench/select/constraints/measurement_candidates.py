"""What is worth measuring under limits: that it fits for all that is known, and may be better.

Whether power and energy can be measured here, before anybody is told to measure them.

Options in order, and those that nothing beats. Pure.

An estimate counts by its dear end beside what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from accelbench.core.devices import default_precision
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Provenance
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry.energy import energy_meter
from accelbench.select.constraints.limits import Limits
from accelbench.select.constraints.measure_command import Installed, Words, case, unmeasured
from accelbench.select.constraints.options import Option
from accelbench.select.estimate.memory_estimate import counted_memory
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.cells import ITEMS, counted
from accelbench.select.evidence.select_context import own_shapes
from accelbench.select.query.query import GENERATING, Query

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


#: Limits that only a run with --energy can show to be kept.
METERED = ("max_power", "max_energy")
#: Platforms whose work is the host's CPU.
_OF_THE_HOST = ("cpu", "wasm")


def host_unmetered() -> str:
    """Why energy of the host's CPU cannot be measured; "" where it can."""
    meter = energy_meter(Device("cpu", ""))
    if isinstance(meter, NotAvailable):
        return meter.reason
    meter.close()
    return ""


def why_unmetered(platforms: Iterable[str]) -> str:
    """Why energy can be measured on none of some platforms; "" where it may be on one.

    Of accelerators nobody knows it before a run asks their drivers.
    """
    if all(platform.partition(":")[0] in _OF_THE_HOST for platform in platforms):
        return host_unmetered()
    return ""


#: Tried where nothing was measured and no batch is named: as far as memory is counted to allow.
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
#: Limits of figures that more launches narrow.
_NARROWED = frozenset({"max_latency_ms", "min_throughput"})
#: Beside the best, no more than so many that may be better, or may fit.
_MOST = 3


def worth_measuring(
    query: Query,
    limits: Limits,
    options: Sequence[Option],
    candidates: Sequence[Candidate],
    batches: Sequence[int],
    rate: Rate,
    here: Installed,
) -> list[Words]:
    """The best that fits; what may do more, or may fit for all that is known.

    Where nothing is known at all it is each hardware at the largest batch whose memory is counted
    to fit, or the smallest where a step's time is limited.
    """
    fits = sorted(
        (option for option in options if not option.why), key=lambda option: merit(option, rate)
    )
    cases = [case(query, option, here) for option in [*fits[:1], *_promising(options, fits, rate)]]
    if fits:
        return cases
    known = {option.hardware for option in options}
    others = []
    for candidate in candidates:
        precision = query.precision or default_precision(candidate.platform)
        batch = first_batch(query, limits, precision, batches)
        if candidate.name not in known and batch is not None:
            others.append(unmeasured(query, candidate, precision, batch, here))
    able = [other for other in others if other["command"]]
    return cases + (able or ([] if cases else others[:1]))  # which says why there is none


def first_batch(query: Query, limits: Limits, precision: str, batches: Sequence[int]) -> int | None:
    """Where to begin with what was never measured; None where memory is counted not to allow any.

    Of a step whose time is limited, a small batch says most: where that is too slow, all are.
    """
    among = sorted(batches or BATCHES)
    sizes = sizes_meant(query)
    fitting = []
    for batch in among:
        memory = counted_memory(query, batch, precision, sizes)
        if memory is None:
            return among[0]
        if limits.memory_mb is None or memory <= limits.memory_mb:
            fitting.append(batch)
    if not fitting:
        return None
    return fitting[0] if limits.max_latency_ms is not None else fitting[-1]


def sizes_meant(query: Query) -> dict[str, int]:
    """The sizes that are asked for, and of the rest the model's own."""
    own = own_shapes(query.spec)
    if query.shapes.get("sequence_length") or not query.shapes.get("new_tokens", 1):
        own = {name: value for name, value in own.items() if name not in GENERATING}
    return {**own, **query.shapes}


def _promising(options: Sequence[Option], fits: Sequence[Option], rate: Rate) -> Iterator[Option]:
    """Estimates that may be better than the best; without one, what may fit, the most first."""
    least = rate(fits[0]) if fits else 0.0
    able = (option for option in options if option not in fits[:1] and _most(option, rate) > least)
    may = [option for option in able if all(why.open for why in option.why) and _tells(option)]
    may.sort(key=lambda option: (bool(option.why), merit(option, rate)))
    yield from may[:_MOST]


def _most(option: Option, rate: Rate) -> float:
    """What it may do, by the middle of what is known."""
    return rate(option) * option.time / option.latency.middle


def _tells(option: Option) -> bool:
    """Whether measuring it would say more: what was measured here and is sure says all that it can,
    and what something costs nobody measures."""
    if {why.limit for why in option.why} == {"max_cost"} and option.cost is None:
        return False
    imported = option.row.get("provenance") == Provenance.IMPORTED
    # Of a limit that lies within its interval more launches tell on which side it is.
    is_wide = any(why.limit in _NARROWED and why.open for why in option.why)
    # One without power may have been measured before anybody asked for it.
    is_unmetered = any(why.limit in METERED and why.open for why in option.why)
    return not option.measured or (imported and bool(option.why)) or is_wide or is_unmetered
