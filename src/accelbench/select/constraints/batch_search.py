"""Which batch to measure next, so that the largest that keeps the limits is found soon. Pure.

Memory and the time of a step grow with the batch: where one batch keeps a limit of theirs and a
larger one does not, the largest that does lies between them. It is bracketed from where memory is
counted to allow, by at most doubling, and then the bracket is halved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from accelbench.core.vocabulary import Provenance
from accelbench.select.constraints.limits import Limits
from accelbench.select.constraints.measure_command import Installed, Words, case, unmeasured
from accelbench.select.constraints.measurement_candidates import sizes_meant
from accelbench.select.constraints.options import Option
from accelbench.select.estimate.memory_estimate import counted_memory
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.query.query import Query

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
