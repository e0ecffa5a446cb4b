"""What is worth measuring under limits: that it fits for all that is known, and may be better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelbench.core.vocabulary import Provenance
from accelbench.select.constraints.case_words import Installed, Words, case, unmeasured
from accelbench.select.constraints.limits import Limits
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
    asked: Query,
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
    fits = sorted((one for one in options if not one.why), key=lambda one: merit(one, rate))
    found = [case(asked, one, here) for one in [*fits[:1], *_promising(options, fits, rate)]]
    if fits:
        return found
    known = {one.hardware for one in options}
    precision = asked.precision or "fp32"
    batch = first_batch(asked, limits, precision, batches)
    unknown = [one for one in candidates if one.name not in known]
    if batch is not None:
        there = [unmeasured(asked, one, precision, batch, here) for one in unknown]
        able = [one for one in there if one["command"]]
        found += able or ([] if found else there[:1])  # which says why there is none
    return found


def first_batch(asked: Query, limits: Limits, precision: str, batches: Sequence[int]) -> int | None:
    """Where to begin with what was never measured; None where memory is counted not to allow any.

    Of a step whose time is limited, a small batch says most: where that is too slow, all are.
    """
    among = sorted(batches or BATCHES)
    sizes = sizes_meant(asked)
    fitting = []
    for batch in among:
        memory = counted_memory(asked, batch, precision, sizes)
        if memory is None:
            return among[0]
        if limits.memory_mb is None or memory <= limits.memory_mb:
            fitting.append(batch)
    if not fitting:
        return None
    return fitting[0] if limits.max_latency_ms is not None else fitting[-1]


def sizes_meant(asked: Query) -> dict[str, int]:
    """The sizes that are asked for, and of the rest the model's own."""
    own = own_shapes(asked.spec)
    if asked.shapes.get("sequence_length") or not asked.shapes.get("new_tokens", 1):
        own = {name: value for name, value in own.items() if name not in GENERATING}
    return {**own, **asked.shapes}


def _promising(options: Sequence[Option], fits: Sequence[Option], rate: Rate) -> Iterator[Option]:
    """Estimates that may be better than the best; without one, what may fit, the most first."""
    least = rate(fits[0]) if fits else 0.0
    able = (one for one in options if one not in fits[:1] and _most(one, rate) > least)
    unmetered = {one.hardware for one in options if _has_no_meter(one)}
    may = [
        one
        for one in able
        if all(why.open for why in one.why)
        and _tells(one)
        and not (one.hardware in unmetered and any(why.limit == "max_power" for why in one.why))
    ]
    may.sort(key=lambda one: (bool(one.why), merit(one, rate)))
    yield from may[:_MOST]


def _most(one: Option, rate: Rate) -> float:
    """What it may do, by the middle of what is known."""
    return rate(one) * one.time / one.latency.middle


def _has_no_meter(one: Option) -> bool:
    """Whether it was measured here, and no power with it: another batch would show none either."""
    imported = one.row.get("provenance") == Provenance.IMPORTED
    return one.measured and not imported and one.power_watts is None


def _tells(one: Option) -> bool:
    """Whether measuring it would say more: what was measured here and is sure says all that it can,
    and what something costs nobody measures."""
    if {why.limit for why in one.why} == {"max_cost"} and one.cost is None:
        return False
    imported = one.row.get("provenance") == Provenance.IMPORTED
    # Of a limit that lies within its interval more launches tell on which side it is.
    is_wide = any(why.limit in _NARROWED and why.open for why in one.why)
    return not one.measured or (imported and bool(one.why)) or is_wide
