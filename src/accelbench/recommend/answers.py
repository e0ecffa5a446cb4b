"""A choice as plain data for Python and JSON, its explanation, and the documents' map. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accelbench.core.devices import sharing_units
from accelbench.core.precision import error_of, why_inexact
from accelbench.core.result_statistics import statistic_name
from accelbench.core.rows import number, text
from accelbench.core.unusable_reasons import failed_launches_text
from accelbench.core.vocabulary import FAMILIES, SINGLE_STREAM, Mode
from accelbench.judge.costs import money
from accelbench.recommend.choosing import WEIGHTS, Choice, ScoredCandidate, decisive
from accelbench.recommend.config import SIZES
from accelbench.recommend.constraints.measurement_candidates import (
    MeasurementTarget,
    Remedy,
    remedy,
)
from accelbench.recommend.evidence.candidates import sentences_of as set_aside
from accelbench.recommend.evidence.cells import (
    BY_FASTEST,
    EvidenceCell,
    FigureOrigin,
    of_machines,
    rounded,
    way_of,
    way_said,
)
from accelbench.recommend.evidence.model_evidence import sentences, without_figure
from accelbench.recommend.pricing import Costs, sign
from accelbench.recommend.query import TASKS
from accelbench.recommend.ranking import percent

#: The outcome of a measurement that an answer uses.
IN_THE_ANSWER = "in the answer"


def remarks(chosen: Choice) -> list[str]:
    """Return notes on failures and unknown settings."""
    return [*_ruled_out(chosen), *_unsaid(chosen), *_failed_since(chosen)]


def _ruled_out(chosen: Choice) -> Iterator[str]:
    """Yield the failed engines of platforms that still can be chosen."""
    for candidate in chosen.ranked:
        if failures := "; ".join(failure.explanation() for failure in candidate.ruled_out):
            yield f"Ruled out on {candidate.name} by its newest run: {failures}."
        wrong = dict.fromkeys(failure.explanation() for failure in candidate.wrong_outputs)
        if wrong:
            yield f"Set aside on {candidate.name}: {'; '.join(wrong)}."


def _unsaid(chosen: Choice) -> Iterator[str]:
    """Yield the settings that an import does not record, which are taken to be as elsewhere."""
    settings = [*chosen.shapes, *(n for n, v in chosen.circumstances.items() if v is not None)]
    for candidate in chosen.ranked:
        row = (
            candidate.figure.cell.row
            if candidate.figure is not None and candidate.figure.measured
            else {}
        )
        unsaid = [name.replace("_", " ") for name in settings if row and row.get(name) is None]
        if unsaid:
            yield f"{candidate.name} does not record: {', '.join(unsaid)}."


def _failed_since(chosen: Choice) -> Iterator[str]:
    """Yield newer runs that failed because of a machine or of the request."""
    for candidate in chosen.ranked:
        if candidate.failed_since:
            yield (
                f"{candidate.name}: a newer run failed ({candidate.failed_since}); its result is of"
                " an older one."
            )


def explained(
    chosen: Choice,
    costs: Sequence[str] = (),
    sign: str = "$",
    measure: str = "",
) -> str:
    """Return the explanation, one sentence a line."""
    return "\n".join(_sentences(chosen, costs, sign, measure))


def data_date(chosen: Choice) -> str | None:
    """Return when the first candidate's result was measured."""
    first = chosen.configurations[0].figure if chosen.configurations else None
    moment = first.cell.row.get("moment") if first else None
    return str(moment) if moment else None


def sharers(chosen: Choice) -> str:
    """Return what several share a step as: devices or processes."""
    return sharing_units(entry.figure.cell.row for entry in chosen.figured if entry.figure)


def cost_notes(chosen: Choice, costs: Costs | None) -> list[str]:
    """Return which prices were used, and what has none."""
    if costs is None:
        return []
    rows = [
        {**entry.figure.cell.row, "throughput": entry.figure.rate}
        for entry in chosen.figured
        if entry.figure and entry.figure.measured
    ]
    bare = dict.fromkeys(entry.name for entry in chosen.figured if entry.cost is None)
    notes = costs.notes(rows) if rows else []
    if bare:
        notes.append(f"Without a price or a rate: {', '.join(bare)}.")
    return notes


def unmeasured(chosen: Choice) -> list[ScoredCandidate]:
    """Return the ranked candidates without a measured result."""
    return [
        candidate
        for candidate in chosen.ranked
        if candidate.figure is None or not candidate.figure.measured
    ]


def _sentences(chosen: Choice, costs: Sequence[str], sign: str, measure: str) -> Iterator[str]:
    query = chosen.asked
    model = query.model or f"any model of the family {query.family}"
    precision = f" in {query.precision}" if query.precision else ""
    what = f"{model} at batch {query.batch}{precision}, {query.mode}"
    if not chosen.configurations:
        yield f"Nothing that was asked about runs {what}."
    else:
        yield _first(chosen, what, sign)
        if len(chosen.compared) == 1 and len(chosen.ranked) > 1:
            yield "No other has a value, so nothing shows that it is the best of them."
        for entry in chosen.configurations[1:4]:
            if entry.tier == chosen.configurations[0].tier:
                yield f"Else {entry.name}. {_figure_said(entry, sign)}"
    yield from elsewhere(chosen)
    yield from _left_out(chosen)
    if chosen.machines:
        yield of_machines(chosen.machines, BY_FASTEST)
    yield from remarks(chosen)
    yield from _together(chosen)
    yield from _ground(chosen)
    yield from costs
    if missing := unmeasured(chosen):
        known = {*(measurement.hardware for measurement in chosen.otherwise), *chosen.inexact}
        known |= {text(entry, "hardware") for entry in chosen.aside}
        yield from without_figure([candidate.name for candidate in missing], known)
    if measure:
        yield measure


def _left_out(chosen: Choice) -> Iterator[str]:
    """Yield what cannot be chosen, and the results that do not count."""
    for contender in chosen.contenders:
        if not contender.compatible:
            yield f"{contender.name} is out: {contender.why_not}."
    yield from sentences(chosen.otherwise)
    yield from set_aside(chosen.aside)
    if mixed := mixed_figures(told_figures(chosen)):
        yield mixed
    for name, cell in chosen.inexact.items():
        yield (
            f"{cell.precision} on {name} ({statistic_name(cell.statistic)}"
            f" {rounded(cell.latency)} ms at batch {cell.batch}) does not count:"
            f" {why_inexact(cell.row)}. A precision that is named counts all the same."
        )
    if chosen.unasked:
        yield f"{browsers_left_out(chosen.unasked)}"


def elsewhere(chosen: Choice) -> Iterator[str]:
    """Yield what the best configuration gives that this machine lacks, if one here is first."""
    known = chosen.figured
    other = next((entry for entry in known if entry.is_elsewhere), None)
    if other is None or other.figure is None or known[0].is_elsewhere:
        return
    figure = other.figure
    place = ", ".join(way_said(figure.cell.row))
    time = f"{'' if figure.measured else '~'}{rounded(figure.latency)}"
    yield (
        f"Not on this machine: {other.name} ({place}) at {time} ms a step,"
        f" {_how(other)}; --anywhere ranks it with the others."
    )


def told_figures(chosen: Choice) -> dict[str, str]:
    """Return the statistic of each candidate's measured time."""
    return {
        entry.name: statistic_name(entry.figure.statistic)
        for entry in chosen.ranked
        if entry.figure is not None and entry.figure.measured
    }


def mixed_figures(by_name: Mapping[str, str]) -> str:
    """Return the note that times have different statistics; "" if all have the same."""
    if len(set(by_name.values())) < 2:
        return ""
    figures = ", ".join(f"{name} {figure}" for name, figure in by_name.items())
    return f"These times are not one figure, and differ by that too: {figures}."


def browsers_left_out(names: Sequence[str]) -> str:
    """Return the note that results of browsers do not count unless they are named."""
    return (
        f"{', '.join(names)} {'has' if len(names) == 1 else 'have'} figures, and a browser is"
        " chosen only when named, or by --deployment browser."
    )


def _first(chosen: Choice, what: str, sign: str) -> str:
    first = chosen.configurations[0]
    if chosen.unclear:
        others = " and ".join(chosen.unclear[1:])
        why = "the rules rate" if first.figure is None else "what is known cannot separate"
        return (
            f"No clear winner for {what}: {why} {first.name} and {others}."
            f" {_figure_said(first, sign)}"
        )
    return f"{first.name} for {what}. {_figure_said(first, sign)}"


def _how(entry: ScoredCandidate) -> str:
    """Return how a value is known, in words."""
    figure = entry.figure
    assert figure is not None
    if figure.predicted is not None:
        return f"predicted {figure.note}"
    by = f" by others ({figure.origin.named})" if figure.origin.by_others else ""
    return f"measured{by}"


def _figure_said(entry: ScoredCandidate, sign: str) -> str:
    figure = entry.figure
    if figure is None:
        # That it is rated so is said already.
        reasons = [why for why in entry.ruled.why if why != f"rated {entry.rating}"]
        why = "; ".join(reasons) or f"{entry.entry.source or 'no rule'} says no more"
        here = ", not on this machine" if entry.is_elsewhere else ""
        return f"By rule alone, rated {entry.rating}{here}: {why}."
    row = figure.cell.row
    how = _how(entry)
    if figure.measured:
        count = len(figure.cell.latencies)
        how += f" in {count} launch{'' if count == 1 else 'es'}"
        failed = failed_launches_text([row])
        how += f", though {failed}" if failed else ""
    rate = "" if figure.rate is None else f", {rounded(figure.rate)} {figure.unit}/s"
    band = f"{rounded(figure.low)} to {rounded(figure.high)}"
    more = [] if entry.probability is None else [f"best with {percent(entry.probability)}"]
    more += [] if entry.fits in (None, 1.0) else [f"fits with {percent(entry.fits or 0.0)}"]
    if entry.cost is not None:
        more.append(f"{sign}{money(entry.cost.middle)} per million")
    known = f"{statistic_name(figure.statistic)} {rounded(figure.latency)} ms a step ({band}){rate}"
    return f"{', '.join(way_said(row))}: {'; '.join([known, *more, how])}."


def _together(chosen: Choice) -> Iterator[str]:
    """Yield the scenario and the number of devices if they are not the default."""
    circumstances = chosen.circumstances
    if (number(circumstances, "world_size") or 1) > 1:
        yield f"The figures are of {circumstances['world_size']} {sharers(chosen)} together."
    if circumstances.get("scenario") not in (None, SINGLE_STREAM):
        yield f"The figures are of requests that come as {circumstances['scenario']}."


def _ground(chosen: Choice) -> Iterator[str]:
    if chosen.objective == WEIGHTS:
        weights = ", ".join(f"{name} {value:.2g}" for name, value in chosen.weights.items())
        task = TASKS.get(chosen.asked.task or "")
        why = f" ({task.why})" if task and task.why else ""
        yield f"Objective: the weights of the configuration: {weights}{why}."
    else:
        yield f"Objective: {chosen.objective}."
    for name, reason in chosen.weights_left_out.items():
        yield f"Left out of them: {name}, {reason}."
    preferences = [
        f"{candidate.name} {name.removesuffix('_factor')} × {value:g}"
        for candidate in chosen.ranked
        for name, value in candidate.factors.items()
        if value != 1.0
    ]
    if preferences:
        yield f"Preferences: {', '.join(preferences)}."
    sizes = ", ".join(f"{name} {value}" for name, value in chosen.sizes.items())
    if sizes:
        yield f"Sizes: {sizes}."
    size = chosen.asked.size
    yield f"Size of the model: {size.name}, by {size.source}."
    if date := data_date(chosen):
        yield f"Data of {date} ({chosen.ranked[0].name})."
    yield f"Compatibility by {chosen.matrix_source}."


#: An answer for Python and JSON; docs/choosing.md has its keys.
Answer = dict[str, Any]


def told(
    chosen: Choice,
    costs: Costs | None = None,
    beside: MeasurementTarget | None = None,
    is_here: Callable[[str, str | None], bool] = lambda *_: True,
) -> Answer:
    """Return the answer for JSON."""
    ranked = chosen.ranked
    scores = {candidate.name: _score_told(candidate, chosen) for candidate in ranked}
    for contender in chosen.contenders:
        if contender.name not in scores:
            scores[contender.name] = _impossible_told(contender)
    missing, beside = unmeasured(chosen), beside or MeasurementTarget(chosen.shapes)
    remedies = {candidate.name: _remedy(chosen, candidate, beside) for candidate in missing}
    measure = _decisive_told(chosen, beside, is_here)
    notes = cost_notes(chosen, costs)
    words = str(measure["text"]) if measure else next(map(str, remedies.values()), "")
    answer: Answer = {
        "primary_recommendation": ranked[0].name if ranked else None,
        "fallback_options": [candidate.name for candidate in ranked[1:]],
        "objective": chosen.objective,
        "configurations": [
            _configuration_told(entry, competes=entry.tier == chosen.group[0].tier)
            for entry in chosen.figured
        ],
        "all_scores": scores,
        "clear_winner": chosen.clear,
        "no_clear_winner_between": list(chosen.unclear),
        "compared": list(chosen.compared),
        "explanation": explained(chosen, notes, sign(costs), words),
        "question": {**chosen.asked.to_dict(), "shapes": dict(chosen.shapes)},
        "sizes": dict(chosen.sizes),
        "weights": dict(chosen.weights),
        "weights_left_out": dict(chosen.weights_left_out),
        "left_out": [_left_out_told(name, cell) for name, cell in chosen.inexact.items()],
        "measured_otherwise": [measurement.to_dict() for measurement in chosen.otherwise],
        "set_aside": list(chosen.aside),
        "browsers_left_out": list(chosen.unasked),
        "remarks": [*elsewhere(chosen), *remarks(chosen)],
        "machines": {name: list(of_it) for name, of_it in chosen.machines.items()},
        "data_date": data_date(chosen),
        "matrix_source": chosen.matrix_source,
        "decisive_measurement": measure,
        "missing": [
            {"hardware": name, "command": fills.command}
            | ({} if fills.command else {"reason": fills.why})
            for name, fills in remedies.items()
        ],
    }
    if costs is not None:
        answer["currency"] = costs.currency
        answer["cost_notes"] = notes
    return answer


def _remedy(chosen: Choice, candidate: ScoredCandidate, beside: MeasurementTarget) -> Remedy:
    """Return what measures a candidate, and on which device if it is not here."""
    figure = candidate.figure
    engine, precision = candidate.other_engine, None
    if figure is not None and not figure.measured:
        usual, runtime = next(iter(candidate.engines), None), figure.cell.row.get("runtime")
        engine = engine or (None if runtime == usual else runtime)
        precision = figure.cell.precision
    advice = remedy(chosen.asked, candidate.candidate, beside, engine, precision)
    if candidate.is_elsewhere and not advice.device:
        device = figure.cell.device if figure is not None else ""
        return replace(advice, device=device or candidate.candidate.platform)
    return advice


def _decisive_told(
    chosen: Choice, beside: MeasurementTarget, is_here: Callable[[str, str | None], bool]
) -> dict[str, Any] | None:
    """Return the one measurement that most likely changes the answer; one here is preferred."""

    def measures(entry: ScoredCandidate) -> bool:
        return _remedy(chosen, entry, beside).command is not None

    def measures_here(entry: ScoredCandidate) -> bool:
        device = entry.figure.cell.device if entry.figure else entry.candidate.device or None
        return is_here(entry.candidate.platform, device) and measures(entry)

    first = next(iter(chosen.configurations), None)
    entry = decisive(chosen, measures_here) or decisive(chosen, measures)
    if entry is None:
        return None
    advice, share = _remedy(chosen, entry, beside), entry.probability
    known = share is not None and entry.tier == chosen.configurations[0].tier
    changes = None if not known or share is None else 1.0 - share if entry is first else share
    return {
        "hardware": entry.name,
        "command": advice.command,
        "device": advice.device or None,
        "changes_with": changes,
        "text": str(advice),
    }


def _configuration_told(entry: ScoredCandidate, *, competes: bool) -> dict[str, Any]:
    figure = entry.figure
    assert figure is not None
    told: dict[str, Any] = {
        "hardware": entry.name,
        **way_of(figure.cell.row),
        "rank": entry.rank,
        "probability": entry.probability if competes else None,
        "fits_probability": entry.fits,
        "basis": figure.basis,
        "provenance": figure.provenance,
        **figure.origin.to_dict(),
        "predictions": figure.to_dict(),
        "told_apart_by": list(entry.apart),
        "present": entry.present,
    }
    if entry.cost is not None:
        told |= _cost_told(entry)
    return told


def _cost_told(entry: ScoredCandidate) -> dict[str, float]:
    cost = entry.cost
    assert cost is not None
    return {
        "cost_per_million": cost.middle,
        "cost_per_million_low": cost.low,
        "cost_per_million_high": cost.high,
    }


def _score_told(candidate: ScoredCandidate, chosen: Choice) -> dict[str, Any]:
    figure = candidate.figure
    origin = figure.origin if figure else FigureOrigin()
    fields: dict[str, Any] = {
        "score": candidate.score,
        "rank": list(dict.fromkeys(e.rank for e in chosen.ranked)).index(candidate.rank) + 1,
        "probability": None if figure is None else chosen.probability(candidate.name),
        "fits_probability": candidate.fits,
        "basis": figure.basis if figure else "rule",
        "provenance": figure.provenance if figure else None,
        **origin.to_dict(),
        "compatible": True,
        "performance_rating": candidate.rating,
        "rating_source": candidate.entry.source if candidate.entry.rating else "the rules",
        "factors": dict(candidate.factors),
    }
    if candidate.ruled_out:
        fields["ruled_out"] = [failure.to_dict() for failure in candidate.ruled_out]
    if candidate.wrong_outputs:
        fields["wrong_outputs"] = [failure.to_dict() for failure in candidate.wrong_outputs]
    if figure is None:
        fields["reasons"] = list(candidate.ruled.why)
    else:
        row = figure.cell.row
        fields |= {
            "predictions": figure.to_dict(),
            **way_of(row),
            "told_apart_by": list(candidate.apart),
            "measured_at": row.get("moment"),
            "run_id": row.get("run_id") if figure.measured else None,
            "note": figure.note,
        }
    if candidate.present is not None:
        fields["present"] = candidate.present
    if figure is None and candidate.runs:
        fields["measured_otherwise"] = True
    if candidate.cost is not None:
        fields |= _cost_told(candidate)
    return fields


def _left_out_told(name: str, cell: EvidenceCell) -> dict[str, object]:
    return {
        "hardware": name,
        **cell.facts(),
        "latency": cell.latency,
        "figure": str(cell.statistic),
        "verification_error": error_of(cell.row),
        "reason": why_inexact(cell.row),
    }


def _impossible_told(candidate: ScoredCandidate) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "score": 0.0,
        "basis": "incompatible",
        "compatible": False,
        "reason": candidate.why_not,
    }
    if candidate.ruled_out:
        fields["ruled_out"] = [failure.to_dict() for failure in candidate.ruled_out]
    if candidate.figure is not None:
        fields["predictions"] = candidate.figure.to_dict()
    return fields


BATCHES = (1, 4, 16, 32, 64)
#: The last fallback, because every machine has it.
LAST_RESORT = "cpu"

#: model family, model name, batch size, mode → an answer.
Select = Callable[[str, str, int, str], Answer]
#: family and size → the models that stand for it: stored ones, else some of the catalogue.
Representatives = Callable[[str, str], Sequence[str]]


def stand_in(family: str, size: str, categories: Mapping[str, float]) -> str:
    """Return the name of a model that does not exist, with its size."""
    millions = f"{categories[size] / 1e6:f}".rstrip("0").rstrip(".")
    return f"any-{family}-{millions}m"


def selection_map(
    select: Select,
    categories: Mapping[str, float],
    timestamp: str,
    representatives: Representatives = lambda *_: (),
) -> dict[str, object]:
    """Return the map of all families: sizes at batch 1, batches for a medium model.

    A cell rests on models of its own size: tiny ones do not decide for large ones.
    """

    def cell(family: str, size: str, batch: int, mode: str) -> dict[str, object]:
        names = representatives(family, size) or (stand_in(family, size, categories),)
        return _kept([select(family, name, batch, mode) for name in names], names)

    modes = [mode.value for mode in Mode]
    families: dict[str, object] = {}
    for family in FAMILIES:
        name = family.value
        sizes = {size: {mode: cell(name, size, 1, mode) for mode in modes} for size in SIZES}
        batches = {
            mode: {"batch_sizes": {str(b): cell(name, "medium", b, mode) for b in BATCHES}}
            for mode in modes
        }
        families[name] = {"model_sizes": sizes, **batches}
    return {"timestamp": timestamp, "model_families": families}


#: The bases of a cell, the best known first.
_BASES = ("measured", "predicted", "rule")


def _kept(answers: Sequence[Answer], names: Sequence[str]) -> dict[str, object]:
    """Return the cell of several models: the hardware with the highest mean probability."""
    shares: dict[str, float] = {}
    bases: dict[str, str] = {}
    for answer in answers:
        scores = answer.get("all_scores") or {}
        order = [answer.get("primary_recommendation"), *(answer.get("fallback_options") or ())]
        for place, name in enumerate(name for name in order if name):
            entry = scores.get(name) or {}
            # What has no probability keeps its place behind what has one.
            share = entry.get("probability")
            shares[name] = shares.get(name, 0.0) + (1e-6 / (1 + place) if share is None else share)
            basis = str(entry.get("basis") or "rule")
            bases[name] = min(bases.get(name, basis), basis, key=_rung)
    ranked = sorted(shares, key=lambda name: -shares[name])
    first = ranked[0] if ranked else None
    return {
        "primary": first,
        "fallbacks": shortened(ranked[1:]),
        "basis": None if first is None else bases[first],
        "models": [name for name in names if not name.startswith("any-")],
    }


def _rung(basis: str) -> int:
    return _BASES.index(basis) if basis in _BASES else len(_BASES)


def shortened(fallbacks: Sequence[str]) -> list[str]:
    """Return the best alternative and the last resort."""
    kept = list(fallbacks[:1])
    return [*kept, LAST_RESORT] if LAST_RESORT in fallbacks[1:] else list(fallbacks[:2])
