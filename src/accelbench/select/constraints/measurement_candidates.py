"""What is worth measuring under limits: that it fits for all that is known, and may be better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelbench.core.cards import default_precision
from accelbench.core.vocabulary import Provenance
from accelbench.select.constraints.case_words import Installed, Words, case, unmeasured
from accelbench.select.constraints.limits import Limits
from accelbench.select.constraints.metering import METERED
from accelbench.select.constraints.options import Option
from accelbench.select.constraints.pareto import Rate, merit
from accelbench.select.estimate.memory_estimate import counted_memory
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.select_context import own_shapes
from accelbench.select.query.query import GENERATING, Query

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
