"""The best batch size and precision under limits, of everything known of a model.

What is not known does not fit: a limit that nobody can show to be kept is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from accelbench.core.figures import name_of
from accelbench.select.constraints.batch_search import searches, to_search
from accelbench.select.constraints.case_words import Installed, case, installed
from accelbench.select.constraints.limits import (
    PRECISION,
    UNFILLED,
    Limits,
    batches_named,
    kept,
    limits_named,
)
from accelbench.select.constraints.measurement_candidates import (
    BATCHES,
    first_batch,
    sizes_meant,
    worth_measuring,
)
from accelbench.select.constraints.options import Option, options
from accelbench.select.constraints.pareto import (
    Rate,
    are_mixed,
    compares_memory,
    merit,
    pareto,
    rate_in,
    unit_in,
)
from accelbench.select.estimate.memory_estimate import counted_memory
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.model_evidence import ModelEvidence
from accelbench.select.evidence.other_measurements import (
    FEW,
    OtherMeasurement,
    reaching,
    sentences,
    without_figure,
)
from accelbench.select.evidence.units import rounded
from accelbench.select.evidence.unusable import sentences_of, set_aside
from accelbench.select.evidence.ways import of_machines, way_said
from accelbench.select.query.query import Query
from accelbench.select.rank.choosing import Prices

__all__ = ["Limits", "limits_named", "under"]


@dataclass(frozen=True)
class LimitSearch:
    """Everything that was looked at, and what of it keeps to the limits."""

    asked: Query
    limits: Limits
    options: Sequence[Option]
    candidates: Sequence[Candidate]
    batches: Sequence[int]
    rate: Rate
    otherwise: Sequence[OtherMeasurement] = ()
    elsewhere: bool = False  # it was measured, though not on what is asked about
    aside: Sequence[Mapping[str, Any]] = ()  # what was measured, and has no time to choose by

    @cached_property
    def fits(self) -> list[Option]:
        """What keeps all of them, the best first."""
        return self._in_order(one for one in self.options if not one.why)

    @cached_property
    def misfits(self) -> list[Option]:
        return self._in_order(one for one in self.options if one.why)

    @cached_property
    def front(self) -> list[Option]:
        return pareto(self.fits, self.rate)

    @cached_property
    def unmeasured(self) -> list[str]:
        """Of what was asked about, that without any figure."""
        known = {one.hardware for one in self.options}
        return [one.name for one in self.candidates if one.name not in known]

    def _in_order(self, found: Iterable[Option]) -> list[Option]:
        return sorted(found, key=lambda one: merit(one, self.rate))


def under(
    asked: Query,
    limits: Limits,
    own: ModelEvidence,
    candidates: Sequence[Candidate],
    batches: Iterable[int] = (),
    prices: Prices | None = None,
    here: Installed | None = None,
) -> dict[str, Any]:
    """What keeps to the limits, the best of it, and why the rest does not.

    Args:
        asked: the question; its batch is none of it.
        limits: what has to be kept.
        own: what is known of the model, in one context.
        candidates: the hardware that counts.
        batches: batch sizes that are estimated where they were not measured.
        prices: dollars per million of a result.
        here: what this installation can measure, and where it would put that.

    Raises:
        UsageError: a batch size is none.
    """
    named = batches_named(batches)
    every = list(options(asked, own, candidates, named, prices))
    rate, counts = rate_in(every), unit_in(every)

    def judged(several: Iterable[Option]) -> list[Option]:
        named = asked.precision is not None
        found = (replace(one, why=kept(one, limits, counts, any_error=named)) for one in several)
        return _one_of_each(found, rate)

    aside = [said for one in candidates for said in own.otherwise(one)]
    found = LimitSearch(
        asked, limits, judged(every), candidates, named, rate, aside, bool(own.cells),
        set_aside(candidates, own.unusable),
    )  # fmt: skip
    perhaps = list(found.options)
    if not found.fits and not named:
        # Of what was measured nothing fits, and nobody said at which batches to look further.
        perhaps = judged(options(asked, own, candidates, BATCHES, prices))
    here = here or installed()
    unfilled = [why for name, why in UNFILLED.items() if name in limits.given]
    # What nobody here can measure is as little known afterwards.
    to_verify = (
        [] if unfilled else worth_measuring(asked, limits, perhaps, candidates, named, rate, here)
    )

    def told(one: Option) -> dict[str, Any]:
        words = case(asked, one, here)
        return one.to_dict(words["command"], words.get("unmeasurable"))

    return {
        "model": asked.model,
        "mode": asked.mode,
        "limits": limits.given,
        "best": told(found.fits[0]) if found.fits else None,
        "fits": [told(one) for one in found.fits],
        "does_not_fit": [told(one) for one in found.misfits],
        "pareto": [told(one) for one in found.front],
        "pareto_by": ["latency_ms", "throughput", *_by_memory(found)],
        "to_verify": to_verify,
        "to_search": (
            to_search(asked, limits, found.options, candidates, named, here)
            if searches(limits) and not unfilled
            else []
        ),
        "unfillable": unfilled,
        "measured_otherwise": [one.to_dict() for one in found.otherwise],
        "set_aside": list(found.aside),
        "explanation": " ".join(_explained(found, to_verify)),
    }


def _one_of_each(judged: Iterable[Option], rate: Rate) -> list[Option]:
    """Versions of an engine have one name here: the best counts, and first one that fits."""
    best: dict[tuple[Any, ...], tuple[Any, Option]] = {}
    for one in judged:
        order = (bool(one.why), merit(one, rate))
        if one.name not in best or order < best[one.name][0]:
            best[one.name] = order, one
    return [one for _, one in best.values()]


def _by_memory(found: LimitSearch) -> list[str]:
    return ["memory_mb"] if compares_memory(found.fits) else []


def _explained(found: LimitSearch, to_verify: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Sentences."""
    what = f" under {found.limits}" if found.limits.given else ""
    yield from sentences(found.otherwise, FEW)
    yield from sentences_of(found.aside, FEW, found.limits.memory_mb)
    if not found.options:
        yield f"{_none(found)}, so nothing is known to fit{what}."
        yield from _too_large(found)
    elif found.fits:
        yield _best(found, what)
        yield f"{len(found.fits)} of {len(found.options)} ways fit."
    else:
        yield f"Nothing fits{what}: {_missed(found)}."
    if found.limits.min_throughput is not None:
        yield from reaching(found.otherwise, found.limits.min_throughput)
    yield from _held_together(found)
    for name, why in UNFILLED.items():
        if name in found.limits.given:
            yield f"{name} cannot be shown to be kept by measuring: {why}."
    if found.options and found.unmeasured:
        known = {one.hardware for one in found.otherwise}
        known |= {one["hardware"] for one in found.aside}
        yield from without_figure(found.unmeasured, known)
    # What was measured and fits would only be confirmed.
    open_ones = to_verify[1:] if found.fits and found.fits[0].measured else to_verify
    yield from _unmeasurable([one for one in open_ones if one["command"] is None])


def _none(found: LimitSearch) -> str:
    """That nothing answers: none of what there is, or there is nothing that counts."""
    if found.otherwise:
        return (
            f"None of it is the time of a step of {_question(found)}, with one request after the"
            " other on one device"
        )
    return f"Nothing that counts is measured of {_question(found)}"


def _unmeasurable(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Per reason the places that no command of this machine measures."""
    places: dict[str, list[str]] = {}
    for one in cases:
        places.setdefault(one["unmeasurable"], []).append(one["hardware"])
    for why, where in places.items():
        yield f"No command measures {', '.join(dict.fromkeys(where))}: {why}."


def _question(found: LimitSearch) -> str:
    asked = found.asked
    sizes = ", ".join(f"{name} {value}" for name, value in asked.shapes.items())
    said = [f"at {sizes}"] if sizes else []
    said += [f"in {asked.precision}"] if asked.precision else []
    said += [f"in {asked.mode}"] if asked.mode != "inference" else []
    said += [f"on {', '.join(one.name for one in found.candidates)}"] if found.elsewhere else []
    return " ".join([asked.model, *said])


def _too_large(found: LimitSearch) -> Iterator[str]:
    asked, precision = found.asked, found.asked.precision or "fp32"
    least = min(found.batches, default=1)
    memory = counted_memory(asked, least, precision, sizes_meant(asked))
    none_fits = first_batch(asked, found.limits, precision, found.batches) is None
    if none_fits and memory is not None:
        yield f"Batch {least} in {precision} is estimated to take {rounded(memory)} MB."


def _best(found: LimitSearch, what: str) -> str:
    one = found.fits[0]
    step, rate = (
        f"{name_of(one.statistic)} {rounded(one.latency.middle)} ms a step",
        f"{rounded(one.rate.middle)} {one.unit}/s, " if one.has_rate else "",
    )
    if not one.measured:
        step += f" (at worst {rounded(one.latency.high)})"
    memory = f", {rounded(one.memory.middle)} MB ({one.memory_basis})" if one.memory else ""
    settings = ", ".join(f"{name}={value}" for name, value in sorted(one.settings.items()))
    where = " · ".join(part for part in (*way_said(one.row), settings) if part)
    return (
        f"{one.hardware} at batch {one.batch_size} in {one.precision}{what}: {one.basis},"
        f" {rate}{step}{memory} ({where})."
    )


def _missed(found: LimitSearch) -> str:
    """The limit that most miss, and who comes nearest to it: first what may keep it after all."""
    missed = [(why, one) for one in found.misfits for why in one.why]
    limits = [why.limit for why, _ in missed]
    most = min((*found.limits.given, PRECISION), key=lambda name: -limits.count(name))
    why, one = min(
        ((why, one) for why, one in missed if why.limit == most),
        key=lambda pair: (not pair[0].open, pair[0].by, merit(pair[1], found.rate)),
    )
    if most == PRECISION:
        return f"{limits.count(most)} of {len(found.options)} ways are out: {why.text}"
    is_open = any(one.open for one, _ in missed if one.limit == most)
    missed_by = "not known to be kept" if is_open else "missed"
    return (
        f"{most} is {missed_by} by {limits.count(most)} of {len(found.options)} ways;"
        f" the nearest is {one.hardware} {one.runtime} {one.precision} at batch {one.batch_size}:"
        f" {why.text}"
    )


def _held_together(found: LimitSearch) -> Iterator[str]:
    """How options were held together, where that is not plain."""
    if are_mixed(found.options):
        units = sorted({one.unit for one in found.options})
        yield (
            f"Rates are of {' and of '.join(units)}, which do not compare: the order is by items of"
            " the batch that go through in a second."
        )
        for name in ("min_throughput", "max_cost"):
            if name in found.limits.given:
                yield f"{name} is taken to be of {unit_in(found.options)}."
    machines: dict[str, list[str]] = {}
    for machine, name in sorted(
        {(str(one.row["machine"]), one.hardware) for one in found.options if one.row.get("machine")}
    ):
        machines.setdefault(machine, []).append(name)
    if len(machines) > 1:
        yield of_machines(machines)
    unknown = sum(one.memory is None for one in found.fits)
    if unknown and len(found.fits) > 1:
        yield (
            f"The Pareto front leaves memory out: of {unknown} of {len(found.fits)} that fit it is"
            " not known."
        )
