"""The best batch size and precision of a model under limits, by their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from accelbench.core.result_statistics import statistic_name
from accelbench.core.rows import Json, number, text
from accelbench.core.vocabulary import Provenance
from accelbench.recommend.candidate_predictions import PredictedCandidates
from accelbench.recommend.choosing import AnswerBasis
from accelbench.recommend.constraints.limits import (
    METERED,
    OF_ITEMS,
    PRECISION,
    Limits,
    limits_named,
)
from accelbench.recommend.constraints.measurement_candidates import (
    MeasurementTarget,
    Words,
    are_mixed,
    case,
    compares_memory,
    first_batch,
    pareto,
    searches,
    sizes_meant,
    to_search,
    unit_in,
    why_unmetered,
    worth_measuring,
)
from accelbench.recommend.constraints.options import Option, judged, options
from accelbench.recommend.evidence.candidates import Candidate, sentences_of, set_aside
from accelbench.recommend.evidence.cells import BY_OTHERS, of_machines, rounded, way_said
from accelbench.recommend.evidence.model_evidence import (
    FEW,
    ModelEvidence,
    OtherMeasurement,
    reaching,
    sentences,
    without_figure,
)
from accelbench.recommend.figures import MEASURED, counted_memory
from accelbench.recommend.query import Query
from accelbench.recommend.ranking import percent

__all__ = ["Limits", "limits_named", "under"]


@dataclass(frozen=True)
class LimitSearch:
    """All options of a model with the limits that they keep."""

    asked: Query
    limits: Limits
    options: Sequence[Option]
    candidates: Sequence[Candidate]
    batches: Sequence[int]
    objective: str
    otherwise: Sequence[OtherMeasurement] = ()
    elsewhere: bool = False  # it was measured, but not on the candidates
    aside: Sequence[Json] = ()  # results with unusable times
    not_here: Sequence[Option] = field(default=())  # on devices that this machine lacks

    @cached_property
    def fits(self) -> list[Option]:
        return self._in_order(option for option in self.options if not option.why)

    @cached_property
    def misfits(self) -> list[Option]:
        return self._in_order(option for option in self.options if option.why)

    @cached_property
    def front(self) -> list[Option]:
        return pareto(self.fits)

    @cached_property
    def unmeasured(self) -> list[str]:
        known = {option.hardware for option in self.options}
        return [candidate.name for candidate in self.candidates if candidate.name not in known]

    def _in_order(self, choices: Iterable[Option]) -> list[Option]:
        return sorted(choices, key=lambda option: option.order)


#: An answer under limits for Python and JSON; docs/choosing.md has its keys.
LimitAnswer = dict[str, Any]


def under(
    query: Query,
    limits: Limits,
    own: ModelEvidence,
    candidates: Sequence[Candidate],
    predicted: PredictedCandidates,
    named: Sequence[int],
    ground: AnswerBasis,
    here: MeasurementTarget | None = None,
) -> LimitAnswer:
    """Return the options that keep the limits, the best, and why the rest does not.

    Only the named batch sizes count, if any is named. `here` is where new results are stored.
    """
    every = [
        option
        for option in options(query, own, candidates, predicted.of, ground)
        if not named or option.batch_size in named
    ]
    counts, any_error = unit_in(every), query.precision is not None

    def judge(several: Sequence[Option]) -> list[Option]:
        made = judged(several, limits, ground, predicted.correlation, counts, any_error=any_error)
        return _one_of_each(made)

    # What is here comes first, and in it values that rest on more than a typical device's peaks.
    present = [option for option in every if _is_present(option, ground)]
    strong = [option for option in present if option.figure and not option.figure.is_weak]
    for some in (strong, present, every):
        chosen = judge(some)
        if any(not option.why for option in chosen):
            break
    else:
        chosen = judge(present or every)
    others = judge([option for option in every if option not in chosen and option not in present])
    search = LimitSearch(
        query, limits, chosen, candidates, named, ground.objective,
        [measurement for candidate in candidates for measurement in own.otherwise(candidate)],
        bool(own.cells),
        [entry for entry in set_aside(candidates, own.unusable)
         if not named or entry["batch_size"] in named],
        others,
    )  # fmt: skip
    metered = [name for name in METERED if name in limits.given]
    why = why_unmetered(candidate.name for candidate in candidates) if metered else ""
    unfilled = [f"{name}: {why}" for name in metered if why]
    here = replace(here or MeasurementTarget(), energy=bool(metered))
    # No measurement shows what a configuration without a price costs.
    is_open = not unfilled and (limits.max_cost is None or ground.prices is not None)
    to_verify = (
        worth_measuring(query, limits, search.options, candidates, named, here) if is_open else []
    )

    def entry_of(option: Option) -> dict[str, object]:
        words = case(query, option, here)
        return option.to_dict(words["command"], words.get("unmeasurable"))

    return {
        "model": query.model,
        "mode": query.mode,
        "sizes": dict(own.sizes),
        "limits": limits.given,
        "best": entry_of(search.fits[0]) if search.fits else None,
        "fits": [entry_of(option) for option in search.fits],
        "does_not_fit": [entry_of(option) for option in search.misfits],
        "not_here": [entry_of(option) for option in search.not_here],
        "pareto": [entry_of(option) for option in search.front],
        "pareto_by": ["latency_ms", "throughput", *_by_memory(search)],
        "objective": ground.objective,
        "to_verify": to_verify,
        "to_search": (
            to_search(query, limits, search.options, candidates, named, here)
            if searches(limits) and not unfilled
            else []
        ),
        "unfillable": unfilled,
        "measured_otherwise": [measurement.to_dict() for measurement in search.otherwise],
        "set_aside": list(search.aside),
        "explanation": " ".join(_explained(search, to_verify, unfilled)),
    }


def _is_present(option: Option, ground: AnswerBasis) -> bool:
    own = option.figure is not None and option.figure.provenance == Provenance.MEASURED
    platform = option.hardware.partition(":")[0]
    return ground.present is None or own or ground.present(platform, option.device)


def _one_of_each(judged: Iterable[Option]) -> list[Option]:
    """Return the best option of each name, preferably one that fits."""
    found: dict[tuple[object, ...], Option] = {}
    for option in sorted(judged, key=lambda one: (bool(one.why), one.order)):
        found.setdefault(option.name, option)
    return list(found.values())


def _by_memory(search: LimitSearch) -> list[str]:
    return ["memory_mb"] if compares_memory(search.fits) else []


def _explained(
    search: LimitSearch, to_verify: Sequence[Words], unfilled: Sequence[str]
) -> Iterator[str]:
    what = f" under {search.limits}" if search.limits.given else ""
    yield from sentences(search.otherwise, FEW)
    yield from sentences_of(search.aside, FEW, search.limits.memory_mb)
    if not search.options:
        if _is_room(search):
            yield "Their memory keeps the limit; without usable times none is known to be best."
        else:
            yield f"{_none(search)}, so nothing is known to fit{what}."
            yield from _too_large(search)
    elif search.fits:
        yield _best(search, what)
        yield f"{len(search.fits)} of {len(search.options)} configurations fit."
        yield from _not_here(search)
    else:
        yield f"Nothing fits{what}: {_missed(search)}."
    if search.limits.min_throughput is not None:
        yield from reaching(search.otherwise, search.limits.min_throughput)
    yield from _held_together(search)
    for unkept in unfilled:
        name, _, why = unkept.partition(": ")
        yield f"{name} cannot be shown to be kept by measuring here: {why}."
    if search.options and search.unmeasured:
        known = {measurement.hardware for measurement in search.otherwise}
        known |= {text(entry, "hardware") for entry in search.aside}
        yield from without_figure(search.unmeasured, known)
    # A measured option that fits would only be confirmed.
    open_ones = to_verify[1:] if search.fits and search.fits[0].measured else to_verify
    yield from _unmeasurable([check for check in open_ones if check["command"] is None])


def _is_room(search: LimitSearch) -> bool:
    """Return whether memory is the only limit and results without usable times keep it."""
    limit = search.limits.memory_mb
    taken = [memory for case in search.aside if (memory := number(case, "memory_mb")) is not None]
    return (
        limit is not None
        and len(search.limits.given) == 1
        and min(taken, default=limit + 1) <= limit
    )


def _none(search: LimitSearch) -> str:
    """Return the note that no result answers, or that none counts."""
    if search.otherwise:
        return (
            f"None of it is the time of a step of {_question(search)}, with one request after the"
            " other on one device"
        )
    return f"Nothing that counts is measured of {_question(search)}"


def _unmeasurable(cases: Sequence[Words]) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for check in cases:
        places.setdefault(check["unmeasurable"], []).append(check["hardware"])
    for why, where in places.items():
        yield f"No command measures {', '.join(dict.fromkeys(where))}: {why}."


def _question(search: LimitSearch) -> str:
    query = search.asked
    sizes = ", ".join(f"{name} {value}" for name, value in query.shapes.items())
    phrases = [f"at {sizes}"] if sizes else []
    phrases += [f"in {query.precision}"] if query.precision else []
    phrases += [f"in {query.mode}"] if query.mode != "inference" else []
    phrases += (
        [f"on {', '.join(candidate.name for candidate in search.candidates)}"]
        if search.elsewhere
        else []
    )
    return " ".join([query.model, *phrases])


def _too_large(search: LimitSearch) -> Iterator[str]:
    query, precision = search.asked, search.asked.precision or "fp32"
    least = min(search.batches, default=1)
    memory = counted_memory(query, least, precision, sizes_meant(query))
    none_fits = first_batch(query, search.limits, precision, search.batches) is None
    if none_fits and memory is not None:
        yield f"Batch {least} in {precision} is estimated to take {rounded(memory)} MB."


def _best(search: LimitSearch, what: str) -> str:
    best = search.fits[0]
    step, rate = (
        f"{statistic_name(best.statistic)} {rounded(best.latency.middle)} ms a step",
        f"{rounded(best.rate.middle)} {best.unit}/s, " if best.has_rate else "",
    )
    if best.latency.low < best.latency.high:
        step += f" ({rounded(best.latency.low)} to {rounded(best.latency.high)})"
    whose, of_memory = best.basis, best.memory_basis
    if Provenance.IMPORTED in best.origin.rests_on:
        whose = f"{BY_OTHERS} ({best.origin.named})"
        whose = whose if best.measured else f"{best.basis} from what was {whose}"
        of_memory = BY_OTHERS if of_memory == MEASURED else of_memory
    memory = f", {rounded(best.memory.middle)} MB ({of_memory})" if best.memory else ""
    settings = ", ".join(f"{name}={value}" for name, value in sorted(best.settings.items()))
    where = " · ".join(part for part in (*way_said(best.row), settings) if part)
    sure = f"best {search.objective} with {percent(best.probability)}"
    sure += "" if best.fits == 1.0 else f", fits with {percent(best.fits)}"
    return (
        f"{best.hardware} at batch {best.batch_size} in {best.precision}{what}: {sure}; {whose},"
        f" {rate}{step}{memory} ({where})."
    )


def _not_here(search: LimitSearch) -> Iterator[str]:
    """Yield what the best option gives that this machine lacks."""
    able = [option for option in search.not_here if not option.why]
    if able:
        best = min(able, key=lambda option: option.order)
        rate = f"{'' if best.measured else '~'}{rounded(best.rate.middle)}"
        yield (
            f"Not on this machine: {best.hardware} ({best.device or best.runtime}) at batch"
            f" {best.batch_size} in {best.precision}, {rate} {best.unit}/s;"
            " --anywhere ranks it with the others."
        )


def _missed(search: LimitSearch) -> str:
    """Return the limit that most options miss, and the option that is nearest to it."""
    missed = [(why, option) for option in search.misfits for why in option.why]
    limits = [why.limit for why, _ in missed]
    most = min((*search.limits.given, PRECISION), key=lambda name: -limits.count(name))
    why, way = min(
        ((why, option) for why, option in missed if why.limit == most),
        key=lambda pair: (not pair[0].open, pair[0].by, pair[1].order),
    )
    if most == PRECISION:
        return f"{limits.count(most)} of {len(search.options)} ways are out: {why.text}"
    is_open = any(reason.open for reason, _ in missed if reason.limit == most)
    missed_by = "not known to be kept" if is_open else "missed"
    return (
        f"{most} is {missed_by} by {limits.count(most)} of {len(search.options)} ways;"
        f" the nearest is {way.hardware} {way.runtime} {way.precision} at batch {way.batch_size}:"
        f" {why.text}"
    )


def _held_together(search: LimitSearch) -> Iterator[str]:
    """Yield notes on comparisons of different units, machines or unknown memory."""
    if are_mixed(search.options):
        units = sorted({option.unit for option in search.options})
        yield (
            f"Rates are of {' and of '.join(units)}, which do not compare: the order is by items of"
            " the batch that go through in a second."
        )
        for name in OF_ITEMS:
            if name in search.limits.given:
                yield f"{name} is taken to be of {unit_in(search.options)}."
    machines: dict[str, list[str]] = {}
    for machine, name in sorted(
        {
            (str(option.row["machine"]), option.hardware)
            for option in search.options
            if option.row.get("machine")
        }
    ):
        machines.setdefault(machine, []).append(name)
    if len(machines) > 1:
        yield of_machines(machines)
    unknown = sum(option.memory is None for option in search.fits)
    if unknown and len(search.fits) > 1:
        yield (
            f"The Pareto front leaves memory out: of {unknown} of {len(search.fits)} that fit it is"
            " not known."
        )
