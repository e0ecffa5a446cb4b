"""What is worth measuring under limits: it may fit, for all that is known, and may be better.

In comparisons with measured options an estimate counts by its worse end.

Memory and the time of a step grow with the batch: if one batch keeps a limit of theirs and a larger
one does not, the largest that does lies between them. It is bracketed from where memory is counted
to allow, by at most doubling, and then the bracket is halved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from accelbench.core.devices import default_precision
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Provenance
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry.energy import energy_meter
from accelbench.select.constraints.limits import Limits
from accelbench.select.constraints.measure_command import Installed, Words, case, unmeasured
from accelbench.select.constraints.options import Option
from accelbench.select.estimate.figures import counted_memory
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


#: Precisions that are tried where none is named: the documents', pure.
PRECISIONS = ("fp32", "fp16", "bf16", "int8")
#: No larger batch is tried.
LARGEST = 4096
#: A bracket is narrow enough at a sixteenth of the batch: launches differ by about as much.
NARROW = 16


def next_batch(tried: Mapping[int, float], first: int, among: Sequence[int] = ()) -> int | None:
    """The batch to measure next; None where the largest that fits is known, or that none does.

    Args:
        tried: batch → how much of its tightest limit it takes: up to 1 it keeps all of them.
        first: where to begin.
        among: the only batches that are asked about, if some are.
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
    # Below the first that does not fit nothing is known yet: it is halved as a bracket from 0.
    return (most + least) // 2


def largest(tried: Mapping[int, float]) -> int | None:
    """The largest batch that kept the limits, whatever became of a smaller one.

    A time that met a bad moment may miss a limit that a larger batch keeps.
    """
    return max((batch for batch, takes in tried.items() if takes <= 1.0), default=None)


def _beyond(batch: int, takes: float) -> int:
    """A batch that should not fit, by what a smaller one takes, and be little larger than does."""
    bracket = 1.0 + 1.0 / NARROW
    growth = min(max(bracket / takes, bracket), 2.0) if takes > 0.0 else 2.0
    return max(batch + 1, round(batch * growth))


def _next_of(tried: Mapping[int, float], among: Sequence[int]) -> int | None:
    """The middle one of those of which neither is known yet."""
    most = largest(tried) or 0
    missed = min((b for b, takes in tried.items() if takes > 1.0 and b > most), default=None)
    open_ones = [
        batch
        for batch in among
        if batch > most and batch not in tried and (missed is None or batch < missed)
    ]
    return open_ones[len(open_ones) // 2] if open_ones else None


def searches(limits: Limits) -> bool:
    """Whether a limit is of what grows with the batch."""
    return limits.memory_mb is not None or limits.max_latency_ms is not None


def to_search(
    query: Query,
    limits: Limits,
    options: Sequence[Option],
    candidates: Sequence[Candidate],
    among: Sequence[int],
    here: Installed,
) -> list[Words]:
    """Each way that a search goes through, as words of its first case.

    It is every candidate by its own engine in each precision, and by those that measured the model
    there before.
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
    """Where memory is counted to end; a step whose time is limited begins with one item."""
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
