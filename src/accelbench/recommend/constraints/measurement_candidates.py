"""Measurements that are worthwhile under limits: options that may fit and may be better.

Memory and the time of a step grow with the batch. The largest batch that keeps their limits is
bracketed by at most doubling, starting where the counted memory ends, then by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from accelbench.core.devices import default_precision
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Provenance
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry.energy import energy_meter
from accelbench.recommend.constraints.limits import Limits
from accelbench.recommend.constraints.measure_command import (
    MeasurementTarget,
    Words,
    case,
    unmeasured,
)
from accelbench.recommend.constraints.options import Option
from accelbench.recommend.estimate.figures import counted_memory
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import ITEMS, counted
from accelbench.recommend.evidence.select_context import own_shapes
from accelbench.recommend.query.query import GENERATING, Query

#: The rate of an option, at least, in a unit that all options have.
Rate = Callable[[Option], float]


def are_mixed(options: Iterable[Option]) -> bool:
    """Return whether rates have units that do not compare, such as tokens and items."""
    return len({counted(option.unit) for option in options}) > 1


def rate_in(options: Iterable[Option]) -> Rate:
    """Return how options compare: by their rates, else by items of the batch a second."""
    return _pace if are_mixed(options) else _rate


def unit_in(options: Iterable[Option]) -> str:
    """Return the unit of most options, which limited rates and costs are taken to have."""
    units = [counted(option.unit) for option in options]
    return min(
        set(units), key=lambda unit: (-units.count(unit), unit != ITEMS, unit), default=ITEMS
    )


def merit(option: Option, rate: Rate) -> tuple[object, ...]:
    """Return the sort key: the highest rate first."""
    return (-rate(option), not option.measured, option.time, *option.name)


def compares_memory(options: Iterable[Option]) -> bool:
    """Return whether the memory of all options is known."""
    return all(option.memory is not None for option in options)


def pareto(options: Sequence[Option], rate: Rate | None = None) -> list[Option]:
    """Return the options that no other beats in latency, rate, and memory if all know theirs."""
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


#: Limits that require a run with --energy.
METERED = ("max_power", "max_energy")
#: Platforms that compute on the host's CPU.
_OF_THE_HOST = ("cpu", "wasm")


def host_unmetered() -> str:
    """Return why the energy of the host's CPU cannot be measured; "" if it can."""
    meter = energy_meter(Device("cpu", ""))
    if isinstance(meter, NotAvailable):
        return meter.reason
    meter.close()
    return ""


def why_unmetered(platforms: Iterable[str]) -> str:
    """Return why energy can be measured on none of some platforms; "" if it may be on one.

    For accelerators only a run can find out, by their drivers.
    """
    if all(platform.partition(":")[0] in _OF_THE_HOST for platform in platforms):
        return host_unmetered()
    return ""


#: Batches that are considered if none is named, as far as the counted memory allows.
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
#: Limits of values whose intervals more launches narrow.
_NARROWED = frozenset({"max_latency_ms", "min_throughput"})
#: So many options that may be better, or may fit, next to the best.
_MOST = 3


def worth_measuring(
    query: Query,
    limits: Limits,
    options: Sequence[Option],
    candidates: Sequence[Candidate],
    batches: Sequence[int],
    rate: Rate,
    here: MeasurementTarget,
) -> list[Words]:
    """Return the best option that fits, and those that may be better or may fit.

    If none fits, each hardware without results is added at its first batch.
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
    return cases + (able or ([] if cases else others[:1]))  # it has the reason


def first_batch(query: Query, limits: Limits, precision: str, batches: Sequence[int]) -> int | None:
    """Return the first batch to measure; None if the counted memory allows none.

    It is the largest that fits; the smallest if the time of a step is limited, because all batches
    are too slow if that is.
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
    """Return the named sizes, completed by the model's own."""
    own = own_shapes(query.spec)
    if query.shapes.get("sequence_length") or not query.shapes.get("new_tokens", 1):
        own = {name: value for name, value in own.items() if name not in GENERATING}
    return {**own, **query.shapes}


def _promising(options: Sequence[Option], fits: Sequence[Option], rate: Rate) -> Iterator[Option]:
    """Yield options that may be better than the best, or else may fit, the fastest first."""
    least = rate(fits[0]) if fits else 0.0
    able = (option for option in options if option not in fits[:1] and _most(option, rate) > least)
    may = [option for option in able if all(why.open for why in option.why) and _tells(option)]
    may.sort(key=lambda option: (bool(option.why), merit(option, rate)))
    yield from may[:_MOST]


def _most(option: Option, rate: Rate) -> float:
    """Return the rate by the middle of the latency."""
    return rate(option) * option.time / option.latency.middle


def _tells(option: Option) -> bool:
    """Return whether measuring an option would add something."""
    if {why.limit for why in option.why} == {"max_cost"} and option.cost is None:
        return False
    imported = option.row.get("provenance") == Provenance.IMPORTED
    # More launches narrow an interval that contains the limit.
    is_wide = any(why.limit in _NARROWED and why.open for why in option.why)
    # It may have been measured without --energy.
    is_unmetered = any(why.limit in METERED and why.open for why in option.why)
    return not option.measured or (imported and bool(option.why)) or is_wide or is_unmetered


#: Precisions that are tried if none is named.
PRECISIONS = ("fp32", "fp16", "bf16", "int8")
#: No larger batch is tried.
LARGEST = 4096
#: The bracket ends at a sixteenth of the batch: launches differ by about as much.
NARROW = 16


def next_batch(tried: Mapping[int, float], first: int, among: Sequence[int] = ()) -> int | None:
    """Return the batch to measure next; None if the search has ended.

    Args:
        tried: batch → the share of its tightest limit; up to 1 it keeps all limits.
        first: the batch to begin with.
        among: the only batches, if some are named.
    """
    if among:
        return _next_of(tried, sorted(among))
    if not tried:
        return first
    most = largest(tried) or 0
    least = min((b for b, takes in tried.items() if takes > 1.0 and b > most), default=None)
    if least is None:
        return min(_beyond(most, tried[most]), LARGEST) if most < LARGEST else None
    if least - most <= max(1, most // NARROW):
        return None
    # If nothing fits yet, the bracket starts at 0.
    return (most + least) // 2


def largest(tried: Mapping[int, float]) -> int | None:
    """Return the largest batch that kept the limits; a smaller one may miss them by noise."""
    return max((batch for batch, takes in tried.items() if takes <= 1.0), default=None)


def _beyond(batch: int, takes: float) -> int:
    """Return a batch that should just not fit, by the share of a smaller one."""
    bracket = 1.0 + 1.0 / NARROW
    growth = min(max(bracket / takes, bracket), 2.0) if takes > 0.0 else 2.0
    return max(batch + 1, round(batch * growth))


def _next_of(tried: Mapping[int, float], among: Sequence[int]) -> int | None:
    """Return the middle one of the open batches."""
    most = largest(tried) or 0
    missed = min((b for b, takes in tried.items() if takes > 1.0 and b > most), default=None)
    open_ones = [
        batch
        for batch in among
        if batch > most and batch not in tried and (missed is None or batch < missed)
    ]
    return open_ones[len(open_ones) // 2] if open_ones else None


def searches(limits: Limits) -> bool:
    """Return whether a limit concerns what grows with the batch."""
    return limits.memory_mb is not None or limits.max_latency_ms is not None


def to_search(
    query: Query,
    limits: Limits,
    options: Sequence[Option],
    candidates: Sequence[Candidate],
    among: Sequence[int],
    here: MeasurementTarget,
) -> list[Words]:
    """Return the first measurement of each way to search.

    These are each candidate's default engine in each precision, and the ways that were measured.
    """
    cases: dict[tuple[str, ...], Words] = {}
    precisions = (query.precision,) if query.precision else PRECISIONS
    for candidate in candidates:
        for precision in precisions:
            batch = _first(query, limits, precision, among)
            words = unmeasured(query, candidate, precision, batch, here)
            cases.setdefault((candidate.name, precision, ""), words)
    for option in _measured_here(options):
        batch = _first(query, limits, option.precision, among)
        words = case(query, replace(option, batch_size=batch), here)
        key = (
            option.hardware,
            option.precision,
            option.runtime,
            str(sorted(option.settings.items())),
        )
        cases.setdefault(key, words)
    return list(cases.values())


def _measured_here(options: Sequence[Option]) -> Iterator[Option]:
    for option in options:
        if option.measured and option.row.get("provenance") == Provenance.MEASURED:
            yield option


def _first(query: Query, limits: Limits, precision: str, among: Sequence[int]) -> int:
    """Return the largest batch of the counted memory; 1 if the time of a step is limited."""
    if among:
        return _next_of({}, sorted(among)) or among[0]
    if limits.memory_mb is None or limits.max_latency_ms is not None:
        return 1
    sizes, low, high = sizes_meant(query), 1, LARGEST
    if counted_memory(query, 1, precision, sizes) is None:
        return 1
    while low < high:
        middle = (low + high + 1) // 2
        memory = counted_memory(query, middle, precision, sizes)
        if memory is not None and memory <= limits.memory_mb:
            low = middle
        else:
            high = middle - 1
    return low
