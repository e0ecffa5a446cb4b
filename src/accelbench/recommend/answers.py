"""A choice as plain data for Python and JSON, and the selection map of the documents. Pure.

The texts of an answer: the choice, its reasons, and what is not measured. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from accelbench.core.devices import sharing_units
from accelbench.core.precision import error_of, why_inexact
from accelbench.core.result_statistics import Statistic, statistic_name
from accelbench.core.rows import number, text
from accelbench.core.unusable_reasons import failed_launches_text
from accelbench.core.vocabulary import FAMILIES, SINGLE_STREAM, Mode, Provenance
from accelbench.judge.costs import money
from accelbench.measure.launch_verdicts import LEAST_EFFECT
from accelbench.predict.cases import off_held_out
from accelbench.recommend.choosing import Choice, ScoredCandidate
from accelbench.recommend.config import SIZES
from accelbench.recommend.constraints.measurement_candidates import (
    MeasurementTarget,
    Remedy,
    remedy,
)
from accelbench.recommend.evidence.candidates import sentences_of as set_aside
from accelbench.recommend.evidence.cells import (
    BY_FASTEST,
    BY_OTHERS,
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

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures
    from accelbench.recommend.estimated_figures import Figure
    from accelbench.recommend.pricing import Costs


#: The outcome of a measurement that an answer uses.
IN_THE_ANSWER = "in the answer"
#: Criteria that follow from the time of a step.
_OF_TIME = ("latency", "throughput")


def remarks(chosen: Choice) -> list[str]:
    """Return notes on the decision, failures and unknown settings."""
    return [*_decided(chosen), *_ruled_out(chosen), *_unsaid(chosen), *_failed_since(chosen)]


def _decided(chosen: Choice) -> Iterator[str]:
    """Yield the reason why the first is first, if it is not its time."""
    figured = [candidate for candidate in chosen.ranked if candidate.figure is not None]
    if len(figured) < 2:
        return
    first, second = figured[:2]
    assert first.figure is not None
    assert second.figure is not None
    if second.figure.latency > first.figure.latency * (1 + LEAST_EFFECT):
        return
    is_faster = _ends(second.figure)[1] < _ends(first.figure)[0]
    time = "takes less time" if is_faster else "takes as long, as far as is known"
    if not (by := _criterion(first, second, chosen.scored.weights)):
        return
    yield f"{second.name} {time}; {first.name} is first by {by}."


def _ends(figure: Figure) -> tuple[float, float]:
    """Return the interval of a measured result, else its bounds."""
    return (figure.cell.interval if figure.measured else None) or (figure.low, figure.high)


def _criterion(
    first: ScoredCandidate, second: ScoredCandidate, weights: Mapping[str, float]
) -> str:
    """Return the criterion by which the first is ahead of the second, apart from time, or ""."""
    mine, other = first.criteria or {}, second.criteria or {}
    apart = {
        name: weights.get(name, 1.0) * (mine[name] - other[name])
        for name in mine
        if name in other and name not in _OF_TIME
    }
    most = max(apart, key=lambda name: apart[name], default="")
    if most and apart[most] > 0.0:
        weight = f", weight {weights[most]:.2g}" if most in weights else ""
        return f"{most} ({mine[most]:.2g} against {other[most]:.2g} of the best{weight})"
    if first.factors != second.factors:
        return "the preferences of the configuration"
    return ""


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


_LATENCIES: tuple[Literal["latency_low_ms", "latency_ms", "latency_high_ms"], ...] = (
    *("latency_low_ms", "latency_ms", "latency_high_ms"),
)


def explained(
    chosen: Choice, remedies: Sequence[Remedy] = (), sign: str = "$", costs: Sequence[str] = ()
) -> str:
    """Return the explanation, one sentence a line."""
    return "\n".join(_sentences(chosen, remedies, sign, costs))


def data_date(chosen: Choice) -> str | None:
    """Return when the first candidate's result was measured."""
    first = chosen.ranked[0].figure if chosen.ranked else None
    moment = first.cell.row.get("moment") if first else None
    return str(moment) if moment else None


def sharers(chosen: Choice) -> str:
    """Return what several share a step as: devices or processes."""
    return sharing_units(entry.figure.cell.row for entry in chosen.ranked if entry.figure)


def cost_notes(chosen: Choice, costs: Costs | None) -> list[str]:
    """Return which prices were used, what has none, and whether costs count."""
    if costs is None:
        return []
    figured = [candidate for candidate in chosen.ranked if candidate.figure is not None]
    rows = [
        {**candidate.figure.cell.row, "throughput": candidate.figure.rate}
        for candidate in figured
        if candidate.figure
    ]
    bare = [candidate.name for candidate in chosen.ranked if candidate.figure is None]
    notes = costs.notes(rows) if rows else []
    if bare:
        notes.append(f"Without a figure there is no cost: {', '.join(bare)}.")
    if figured and not chosen.scored.by_cost:
        notes.append("Costs do not count in the scores, as not every figure has one.")
    return notes


def unmeasured(chosen: Choice) -> list[ScoredCandidate]:
    """Return the ranked candidates without a measured result."""
    return [
        candidate
        for candidate in chosen.ranked
        if candidate.figure is None or not candidate.figure.measured
    ]


def _sentences(
    chosen: Choice, remedies: Sequence[Remedy], sign: str, costs: Sequence[str]
) -> Iterator[str]:
    query = chosen.asked
    model = query.model or f"any model of the family {query.family}"
    precision = f" in {query.precision}" if query.precision else ""
    what = f"{model} at batch {query.batch}{precision}, {query.mode}"
    if not chosen.ranked:
        yield f"Nothing that was asked about runs {what}."
    else:
        yield _first(chosen, what, sign)
        if len(chosen.compared) == 1 and len(chosen.ranked) > 1:
            yield "No other has a figure, so nothing shows that it is the best of them."
        yield from _alternatives(chosen, sign)
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
            f" {rounded(cell.latency)} ms at"
            f" batch {cell.batch}) does not count: {why_inexact(cell.row)}. A precision that is"
            " named counts all the same."
        )
    if chosen.unasked:
        yield f"{browsers_left_out(chosen.unasked)}"
    if chosen.machines:
        yield of_machines(chosen.machines, BY_FASTEST)
    yield from remarks(chosen)
    yield from _together(chosen)
    yield from _ground(chosen)
    yield from costs
    missing = unmeasured(chosen)
    if missing:
        here = zip(missing, remedies, strict=False)
        able = [
            fills for candidate, fills in here if fills.command and candidate.present is not False
        ]
        able += [fills for fills in remedies if fills.command]
        advice = next(iter([*able, *remedies]), "")
        known = {*(measurement.hardware for measurement in chosen.otherwise), *chosen.inexact}
        known |= {text(entry, "hardware") for entry in chosen.aside}
        names = without_figure([candidate.name for candidate in missing], known)
        yield f"{' '.join(names)} {advice}".strip()


def told_figures(chosen: Choice) -> dict[str, str]:
    """Return the statistic of each candidate's time."""
    return {
        candidate.name: statistic_name(candidate.figure.statistic)
        for candidate in chosen.ranked
        if candidate.figure is not None
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
    first = chosen.ranked[0]
    if chosen.unclear:
        others = " and ".join(chosen.unclear[1:])
        if first.figure is None:
            return (
                f"No clear winner for {what}: the rules rate {first.name} and {others} equally."
                f" {_figure_said(first, sign, chosen)}"
            )
        return (
            f"No clear winner for {what}: {first.name} is ahead of {others} by less than is known."
            f" {_figure_said(first, sign, chosen)}"
        )
    return f"{first.name} for {what}. {_figure_said(first, sign, chosen)}"


def _alternatives(chosen: Choice, sign: str) -> Iterator[str]:
    for candidate in chosen.ranked[1:4]:
        yield f"Else {candidate.name}. {_figure_said(candidate, sign, chosen)}"


def _figure_said(candidate: ScoredCandidate, sign: str, chosen: Choice) -> str:
    figure = candidate.figure
    if figure is None:
        # That it is rated so is said already.
        reasons = [why for why in candidate.ruled.why if why != f"rated {candidate.rating}"]
        why = "; ".join(reasons) or f"{candidate.entry.source or 'no rule'} says no more"
        here = "" if candidate.present is not False else ", not on this machine"
        text = f"By rule alone, rated {candidate.rating}{here}: {why}."
        predicted = chosen.predicted.get(candidate.name)
        return (
            text if predicted is None else f"{text} {_predicted_said(predicted)}; not ranked by it."
        )
    if figure.predicted is not None:
        return f"{_predicted_said(figure.predicted)}, score {candidate.score:.3g}."
    row = figure.cell.row
    where = ", ".join(way_said(row))
    figures = f"{statistic_name(figure.statistic)} {rounded(figure.latency)} ms a step"
    figures += "" if figure.rate is None else f", {rounded(figure.rate)} {figure.unit}/s"
    if figure.measured:
        count = len(figure.cell.latencies)
        failed = failed_launches_text([row])
        by = f" by others ({figure.origin.named})" if figure.origin.by_others else ""
        text = f"Measured{by}: {figures} ({where}; {count} launch{'' if count == 1 else 'es'})"
        text += f", though {failed}" if failed else ""
    else:
        text = (
            f"Estimated ({figure.basis}{_of_others(figure)}): {figures}, from"
            f" {rounded(figure.low)} to {rounded(figure.high)} ms ({where}; {figure.note})"
        )
    cost = "" if candidate.cost is None else f", {sign}{money(candidate.cost)} per million"
    return f"{text}{cost}, score {candidate.score:.3g}."


def _of_others(figure: Figure) -> str:
    """Return that an estimate rests on imported results; "" if it does not."""
    if Provenance.IMPORTED not in figure.origin.rests_on:
        return ""
    partly = "" if figure.origin.by_others else "partly "
    return f", {partly}from figures {BY_OTHERS} ({figure.origin.named})"


def _together(chosen: Choice) -> Iterator[str]:
    """Yield the scenario and the number of devices if they are not the default."""
    circumstances = chosen.circumstances
    if (number(circumstances, "world_size") or 1) > 1:
        yield f"The figures are of {circumstances['world_size']} {sharers(chosen)} together."
    if circumstances.get("scenario") not in (None, SINGLE_STREAM):
        yield f"The figures are of requests that come as {circumstances['scenario']}."


def _ground(chosen: Choice) -> Iterator[str]:
    weights = ", ".join(f"{name} {value:.2g}" for name, value in chosen.scored.weights.items())
    task = TASKS.get(chosen.asked.task or "")
    why = f" ({task.why})" if task and task.why else ""
    yield f"Weights: {weights}{why}."
    for name, reason in chosen.scored.left_out.items():
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
    if chosen.compared and not chosen.ranked[0].figure_is_predicted:
        yield f"Data of {data_date(chosen) or 'no date that is known'} ({chosen.ranked[0].name})."
    yield f"Compatibility by {chosen.matrix_source}."


def _predicted_said(figures: PredictedFigures) -> str:
    low, middle, high = (rounded(figures[name]) for name in _LATENCIES)
    error = figures["held_out_error"]
    held_out = (
        f"; held out, such figures were off in the median by"
        f" {off_held_out(error, figures['held_out_of'] or '')}"
        if error is not None
        else ""
    )
    return (
        f"Predicted from {figures['basis']}: {middle} ms a step, from {low} to {high} ms"
        f" ({figures['device']}, {figures['runtime']}, {figures['precision']}{held_out})"
    )


#: An answer for Python and JSON; docs/choosing.md has its keys.
Answer = dict[str, Any]


def told(
    chosen: Choice, costs: Costs | None = None, beside: MeasurementTarget | None = None
) -> Answer:
    """Return the answer for JSON."""
    ranked = chosen.ranked
    scores = {
        candidate.name: _score_told(candidate, rank, chosen.predicted.get(candidate.name))
        for rank, candidate in enumerate(ranked, 1)
    }
    for contender in chosen.contenders:
        if contender.name not in scores:
            scores[contender.name] = _impossible_told(
                contender, chosen.predicted.get(contender.name)
            )
    missing, beside = unmeasured(chosen), beside or MeasurementTarget(chosen.shapes)
    remedies = [_remedy(chosen, candidate, beside) for candidate in missing]
    notes = cost_notes(chosen, costs)
    answer: Answer = {
        "primary_recommendation": ranked[0].name if ranked else None,
        "fallback_options": [candidate.name for candidate in ranked[1:]],
        "all_scores": scores,
        "clear_winner": chosen.clear,
        "no_clear_winner_between": list(chosen.unclear),
        "compared": list(chosen.compared),
        "explanation": explained(chosen, remedies, sign(costs), notes),
        "question": {**chosen.asked.to_dict(), "shapes": dict(chosen.shapes)},
        "sizes": dict(chosen.sizes),
        "weights": dict(chosen.scored.weights),
        "weights_left_out": dict(chosen.scored.left_out),
        "left_out": [_left_out_told(name, cell) for name, cell in chosen.inexact.items()],
        "measured_otherwise": [measurement.to_dict() for measurement in chosen.otherwise],
        "set_aside": list(chosen.aside),
        "browsers_left_out": list(chosen.unasked),
        "remarks": remarks(chosen),
        "machines": {name: list(of_it) for name, of_it in chosen.machines.items()},
        "data_date": data_date(chosen),
        "matrix_source": chosen.matrix_source,
        "missing": [
            {"hardware": candidate.name, "command": fills.command}
            | ({} if fills.command else {"reason": fills.why})
            for candidate, fills in zip(missing, remedies, strict=True)
        ],
    }
    if costs is not None:
        answer["currency"] = costs.currency
        answer["cost_notes"] = notes
    return answer


def _remedy(chosen: Choice, candidate: ScoredCandidate, beside: MeasurementTarget) -> Remedy:
    """Return what measures a candidate, and on which device if it is not here."""
    advice = remedy(chosen.asked, candidate.candidate, beside, candidate.other_engine)
    if candidate.present is False and not advice.device:
        return replace(advice, device=candidate.candidate.platform)
    return advice


def _score_told(
    candidate: ScoredCandidate, rank: int, predicted: PredictedFigures | None
) -> dict[str, Any]:
    figure = candidate.figure
    origin = figure.origin if figure else FigureOrigin()
    fields: dict[str, Any] = {
        "score": candidate.score,
        "rank": rank,
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
        if predicted is not None:
            fields["predictions"] = _predicted_told(predicted)
    else:
        row = figure.cell.row
        predicted = figure.predicted
        fields |= {
            "predictions": figure.to_dict() if predicted is None else _predicted_told(predicted),
            "criteria": dict(candidate.criteria or {}),
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
    if figure is not None and candidate.cost is not None:
        fields["cost_per_million"] = candidate.cost
    return fields


_AS_PREDICTED = (
    *("memory_mb", "memory_low_mb", "memory_high_mb", "memory_is_least", "provenance", "rests_on"),
    *("basis", "held_out_error", "held_out_of", "device", "runtime", "precision"),
)


def _predicted_told(figures: PredictedFigures) -> dict[str, object]:
    return {
        "latency": figures["latency_ms"],
        "figure": str(Statistic.MEDIAN),
        "throughput": figures["throughput"],
        "throughput_unit": figures["throughput_unit"].removesuffix("/s"),
        "latency_low": figures["latency_low_ms"],
        "latency_high": figures["latency_high_ms"],
        **{name: figures[name] for name in _AS_PREDICTED},  # type: ignore[literal-required]
    }


def _left_out_told(name: str, cell: EvidenceCell) -> dict[str, object]:
    return {
        "hardware": name,
        **cell.facts(),
        "latency": cell.latency,
        "figure": str(cell.statistic),
        "verification_error": error_of(cell.row),
        "reason": why_inexact(cell.row),
    }


def _impossible_told(
    candidate: ScoredCandidate, predicted: PredictedFigures | None
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "score": 0.0,
        "basis": "incompatible",
        "compatible": False,
        "reason": candidate.why_not,
    }
    if candidate.ruled_out:
        fields["ruled_out"] = [failure.to_dict() for failure in candidate.ruled_out]
    if predicted is not None:
        fields["predictions"] = _predicted_told(predicted)
    return fields


BATCHES = (1, 4, 16, 32, 64)
#: The last fallback, because every machine has it.
LAST_RESORT = "cpu"

#: model family, model name, batch size, mode → an answer.
Select = Callable[[str, str, int, str], Answer]


def stand_in(family: str, size: str, categories: Mapping[str, float]) -> str:
    """Return the name of a model that does not exist, with its size."""
    millions = f"{categories[size] / 1e6:f}".rstrip("0").rstrip(".")
    return f"any-{family}-{millions}m"


def selection_map(
    select: Select, categories: Mapping[str, float], timestamp: str
) -> dict[str, object]:
    """Return the map of all families: sizes at batch 1, batches for a medium model."""
    return {
        "timestamp": timestamp,
        "model_families": {
            family.value: _family(family.value, select, categories) for family in FAMILIES
        },
    }


def _family(family: str, select: Select, categories: Mapping[str, float]) -> dict[str, object]:
    modes = [mode.value for mode in Mode]
    sizes = {
        size: {
            mode: _kept(select(family, stand_in(family, size, categories), 1, mode))
            for mode in modes
        }
        for size in SIZES
    }
    usual = stand_in(family, "medium", categories)
    batches = {
        mode: {
            "batch_sizes": {
                str(batch): _kept(select(family, usual, batch, mode)) for batch in BATCHES
            }
        }
        for mode in modes
    }
    return {"model_sizes": sizes, **batches}


def _kept(answer: Answer) -> dict[str, object]:
    return {
        "primary": answer.get("primary_recommendation"),
        "fallbacks": shortened(answer.get("fallback_options") or ()),
    }


def shortened(fallbacks: Sequence[str]) -> list[str]:
    """Return the best alternative and the last resort."""
    kept = list(fallbacks[:1])
    return [*kept, LAST_RESORT] if LAST_RESORT in fallbacks[1:] else list(fallbacks[:2])
