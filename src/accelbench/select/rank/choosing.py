"""From a question and what is known to a choice, the same for the same data. Pure.

The first candidate is clearly first if no other is with the shortest time, relative to the first's,
that what is known of both allows. The ratio of two launches and more a side counts; else a single
one counts with the interval of its samples, if it has one, and an estimate with its bounds. Nothing
is known any nearer than 3 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import quantiles
from typing import TYPE_CHECKING

from accelbench.analysis.run_noise import Histories, between_rows
from accelbench.core.rows import Json, Row
from accelbench.measure.launches import LEAST_EFFECT, differ
from accelbench.measure.runs import unpaired_interval
from accelbench.select.estimate.candidate_predictions import (
    Engines,
    PredictedCandidates,
    predicted_figure,
)
from accelbench.select.estimate.figures import (
    Figure,
    FigureQuestion,
    bounded,
    figure,
    from_others,
    has_sizes,
    is_near,
)
from accelbench.select.estimate.platform_rules import (
    RuleSubject,
    able_engines,
    is_generation,
    ruled,
    why_no_engine,
)
from accelbench.select.evidence.candidates import Candidate, set_aside
from accelbench.select.evidence.cells import (
    FEWEST_FITTED,
    EvidenceCell,
    EvidencePlace,
    ModelKnowledge,
    best,
    told_apart_by,
)
from accelbench.select.evidence.failures import engines_of
from accelbench.select.evidence.model_evidence import (
    ModelEvidence,
    OtherMeasurement,
    known_of,
    own_of,
    ran_at_all,
)
from accelbench.select.query.config import Config, size_of
from accelbench.select.query.query import TASKS, Query
from accelbench.select.rank.matrices import Matrices
from accelbench.select.rank.scoring import Encode, Scored, ScoredCandidate, scored

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures
    from accelbench.select.evidence.reader import EmptyStore, EvidenceStore


def no_clear_winner_between(
    ranked: Sequence[ScoredCandidate], weights: dict[str, float], order: Encode, known: Histories
) -> list[str]:
    """Return the names of those that may be first, the first included; none if it is clear.

    Without any figure, those that the rules rate as high as the first may be first too.
    """
    figured = [candidate for candidate in ranked if candidate.figure is not None]
    if not figured:
        tied = [entry.name for entry in ranked if entry.is_rated_as(ranked[0])]
        return tied if len(tied) > 1 else []
    first, *rest = figured
    close = [
        rival.name
        for rival in rest
        if not _is_same(rival, first)
        and scored([*_without(figured, rival), _at_its_best(rival, first, known)], weights, order)
        .ranked[0].name == rival.name
    ]  # fmt: skip
    return [first.name, *close] if close else []


def _is_same(rival: ScoredCandidate, first: ScoredCandidate) -> bool:
    """Whether a device stands beside its own platform: it is one figure under two names."""
    assert rival.figure is not None
    assert first.figure is not None
    return rival.figure.measured and rival.figure.cell is first.figure.cell


def _without(many: Sequence[ScoredCandidate], rival: ScoredCandidate) -> list[ScoredCandidate]:
    return [other for other in many if other is not rival]


def _at_its_best(
    rival: ScoredCandidate, first: ScoredCandidate, known: Histories
) -> ScoredCandidate:
    """One with the shortest time, as against the first's, that is still believable."""
    assert rival.figure is not None
    assert first.figure is not None
    by = _least_ratio(rival.figure, first.figure, known)
    shorter = rival.figure.latency / first.figure.latency / by
    figure = replace(
        rival.figure,
        latency=rival.figure.latency / shorter,
        throughput=rival.figure.throughput * shorter,
        high=rival.figure.latency / shorter,
    )
    # Half the time for each item is half the price.
    cost = None if rival.cost is None else rival.cost / shorter
    return replace(rival, figure=figure, cost=cost)


def _least_ratio(mine: Figure, first: Figure, known: Histories) -> float:
    """The smallest share of the first's time that this one may take."""
    ratio = mine.latency / first.latency
    return min(_by_what_is_known(mine, first, ratio, known), ratio / (1 + LEAST_EFFECT))


def _by_what_is_known(mine: Figure, first: Figure, ratio: float, known: Histories) -> float:
    if mine.measured and first.measured:
        runs = between_rows(first.cell.row, mine.cell.row, known)
        sides = first.cell.latencies, mine.cell.latencies
        interval = unpaired_interval(*sides, runs=runs) if differ(*sides) else None
        return interval.low if interval else ratio / _together(_down(mine), _up(first))
    shared = [mine.scaled[key] / first.scaled[key] for key in mine.scaled if key in first.scaled]
    if len(shared) >= FEWEST_FITTED:  # how the two compare for each of the models they are from
        return quantiles(shared, n=20, method="inclusive")[0]
    down, up = math.log(mine.latency / mine.low), math.log(first.high / first.latency)
    if mine.predicted or first.predicted:  # told apart only where their bands do not meet
        return ratio / math.exp(down + up)
    return ratio / _together(down, up)


def _together(down: float, up: float) -> float:
    """Bounds of two are not reached at once."""
    return math.exp(math.hypot(down, up))


def _down(mine: Figure) -> float:
    """How far below what was measured it may lie, as a logarithm; 0 where nobody knows."""
    known = mine.cell.interval
    return math.log(mine.cell.latency / known[0]) if known else 0.0


def _up(first: Figure) -> float:
    known = first.cell.interval
    return math.log(known[1] / first.cell.latency) if known else 0.0


#: So many figures of other models at the same batch and sizes, and no others are looked for.
_ENOUGH_PEERS = 20


def figures_of(
    question: FigureQuestion,
    candidates: Sequence[Candidate],
    own: ModelEvidence,
    evidence: EvidenceStore | EmptyStore,
    known: ModelKnowledge,
    predicted: PredictedCandidates,
) -> list[Figure | None]:
    """The figure of each candidate.

    Estimates from other models are from the same ones wherever enough were measured on all that are
    estimated: else it would be the models that are compared.
    """
    mine = [own.of(candidate) for candidate in candidates]
    others = [
        [] if subset.cells else _peers(question, candidate, own, evidence, known)
        for candidate, subset in zip(candidates, mine, strict=True)
    ]
    somewhere = [{cell.question for cell in peers} for peers in others if peers]
    if len(somewhere) > 1:
        shared = set.intersection(*somewhere)
        if len(shared) >= FEWEST_FITTED:
            others = [[cell for cell in peers if cell.question in shared] for peers in others]
    # One way for all that can be chosen: two might put platforms in another order.
    by_prediction = predicted.traced and not any(
        from_others(question, peers, known)
        for candidate, peers in zip(candidates, others, strict=True)
        if peers
        and candidate.name not in predicted.ranking
        and candidate.name not in predicted.too_large
    )
    ranking = {
        candidate.name
        for candidate, subset in zip(candidates, mine, strict=True)
        # From its own batches a model's prediction is no other's work.
        if candidate.name in predicted.ranking and (by_prediction or subset.cells)
    }
    figures = [
        figure(
            question, subset.cells, [] if by_prediction else peers, known, subset.failures,
            predicted_figure(predicted.of[candidate.name]) if candidate.name in ranking else None,
        )
        for candidate, subset, peers in zip(candidates, mine, others, strict=True)
    ]  # fmt: skip
    # What was measured needs no bounds; among estimates alone nothing would be clearer by them.
    if not known.flops or not any(prediction and prediction.measured for prediction in figures):
        return figures
    if all(prediction is None or prediction.measured for prediction in figures):
        return figures
    rates = evidence.rates()
    return [
        prediction and bounded(prediction, known.flops, own.cells, rates) for prediction in figures
    ]


def figures_predicted(
    candidates: Sequence[Candidate],
    able: Sequence[Candidate],
    predicted: PredictedCandidates,
    present: Callable[[Sequence[str]], Container[str]] | None,
) -> list[Figure | None]:
    """Return the predictions as figures if every rival has a comparable one, else no figure.

    Platforms that this machine lacks are no rivals if nobody named hardware.
    """
    rivals = [candidate for candidate in able if candidate.name not in predicted.too_large]
    if present is not None:
        here = present([candidate.platform for candidate in rivals])
        rivals = [candidate for candidate in rivals if candidate.platform in here]
    names = {candidate.name for candidate in rivals}
    if len(names) < 2 or not names <= predicted.comparable:
        return [None for _ in candidates]
    return [
        predicted_figure(predicted.of[candidate.name]) if candidate.name in names else None
        for candidate in candidates
    ]


def _peers(
    question: FigureQuestion,
    candidate: Candidate,
    own: ModelEvidence,
    evidence: EvidenceStore | EmptyStore,
    known: ModelKnowledge,
) -> list[EvidenceCell]:
    """What models like it came to on a candidate, asked the same way.

    At about the batch and these sizes, where there is enough of it, else at any.
    """
    failed = engines_of(own.of(candidate).ruled_out(question.batch))
    if None in failed:
        return []
    place = EvidencePlace(
        question.family,
        question.mode,
        candidate.platform,
        candidate.device,
        question.precisions,
        own.cells[0].row.get("scenario") if own.cells else None,
        failed,
    )
    every = [c for c in evidence.peers(place, known) if c.model != question.model]
    near = [cell for cell in every if is_near(cell.batch, question.batch)]
    alike = [cell for cell in near if has_sizes(cell, question.shapes)]
    groups = (group for group in (alike, near) if len(group) >= _ENOUGH_PEERS)
    return next(groups, every)


#: Dollars per million items of a result, or None where no price is known.
Prices = Callable[[Row], float | None]
#: Of a question, candidates, sizes and engines that failed by candidate, what is predicted.
Predict = Callable[
    [Query, Sequence[Candidate], Mapping[str, int], Mapping[str, Engines]], PredictedCandidates
]


@dataclass(frozen=True)
class AnswerBasis:
    """What an answer stands on beside the evidence.

    Attributes:
        matrices: who is believed of what runs where.
        order: of equals.
        prices: dollars per million of a result.
        present: which of some platforms this machine has, where that is to count; it is asked only
            about what has no figure.
        unasked: platforms that nobody named, and that only count when named.
    """

    config: Config
    matrices: Matrices
    order: Encode
    prices: Prices | None = None
    present: Callable[[Sequence[str]], Container[str]] | None = None
    unasked: Container[str] = ()
    predict: Predict = lambda *_: PredictedCandidates()


@dataclass(frozen=True)
class Choice:
    """An answer before it is put in words."""

    asked: Query
    scored: Scored
    contenders: Sequence[ScoredCandidate]
    unclear: Sequence[str]
    data_date: str | None
    matrix_source: str
    shapes: Mapping[str, int] = field(default_factory=dict)
    circumstances: Mapping[str, object] = field(default_factory=dict)  # of the figures there are
    otherwise: Sequence[OtherMeasurement] = ()  # what was measured, and does not answer
    inexact: Mapping[str, EvidenceCell] = field(default_factory=dict)  # by name: quantised, unasked
    unasked: Sequence[str] = ()  # platforms with figures that count only when named
    aside: Sequence[Json] = ()  # what was measured, and has no time to choose by
    #: Where results are of several machines: each with the candidates whose figure is of it.
    machines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Of those without a figure, and those that are predicted not to fit, what they are predicted
    #: to do; none of them is ranked by it.
    predicted: Mapping[str, PredictedFigures] = field(default_factory=dict)

    @property
    def ranked(self) -> Sequence[ScoredCandidate]:
        return self.scored.ranked

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of its figures, or else those of its predictions."""
        of_predictions = (figures["sizes"] for figures in self.predicted.values())
        return self.shapes or next(of_predictions, {})

    @property
    def clear(self) -> bool:
        """Whether the first is shown to be the first: a rule shows nothing, nor does one alone."""
        alone = len(self.ranked) > 1 and len(self.compared) < 2
        wanted = bool(self.ranked) and self.ranked[0].score > 0.0
        return wanted and bool(self.compared) and not alone and not self.unclear

    @property
    def compared(self) -> Sequence[str]:
        """Those that have a figure."""
        return [candidate.name for candidate in self.ranked if candidate.figure is not None]


def choose(
    query: Query,
    candidates: Sequence[Candidate],
    evidence: EvidenceStore | EmptyStore,
    ground: AnswerBasis,
    known: ModelKnowledge | None = None,
) -> Choice:
    """The candidates in order for a question."""
    names = query.names
    own = own_of(
        query, evidence.cells(names), evidence.failures(names), unusable=evidence.unusable(names)
    )
    about = known or known_of(query, (*own.cells, *own.inexact))
    importance = ground.config["model_families"].get(query.family, {})
    question = FigureQuestion(
        query.names[0],
        query.family,
        query.batch,
        query.mode,
        query.precisions,
        own.sizes,
        importance.get("batch_size_importance", "medium"),
        importance.get("model_size_importance", "medium"),
    )
    generates = is_generation(query, own.sizes)
    unable = {
        candidate.name: why_no_engine(candidate.platform, query, generates=generates)
        for candidate in candidates
    }
    able = [
        candidate
        for candidate in candidates
        if not unable[candidate.name] and _is_predicted(query, candidate, own, ground)
    ]
    failed = {
        candidate.name: engines_of(own.of(candidate).ruled_out(query.batch)) for candidate in able
    }
    predicted = ground.predict(query, able, own.sizes, failed)
    figures = figures_of(question, candidates, own, evidence, about, predicted)
    if not any(figures):
        figures = figures_predicted(candidates, able, predicted, ground.present)
    contenders = [
        replace(
            _contender(query, candidate, prediction, own.of(candidate), ground),
            too_large=""
            if ran_at_all(own.otherwise(candidate))
            else predicted.too_large.get(candidate.name, ""),
            unable=unable[candidate.name],
        )
        for candidate, prediction in zip(candidates, figures, strict=True)
    ]
    contenders = _placed_here(contenders, ground)
    weights = weights_of(query, ground.config)
    order = scored(contenders, weights, ground.order)
    used = [candidate.figure.cell for candidate in order.ranked if candidate.figure is not None]
    measured = [
        candidate.figure.cell
        for candidate in order.ranked
        if candidate.figure and candidate.figure.measured
    ]
    histories = evidence.histories(measured)
    unclear = no_clear_winner_between(order.ranked, weights, ground.order, histories)
    moments = [str(cell.row["moment"]) for cell in used if cell.row.get("moment")]
    return Choice(
        query,
        order,
        contenders,
        unclear,
        max(moments, default=None),
        ground.matrices.source,
        own.sizes,
        own.circumstances,
        [measurement for candidate in candidates for measurement in own.otherwise(candidate)],
        _inexact(query, candidates, own),
        sorted({cell.hardware for cell in own.cells if cell.hardware in ground.unasked}),
        set_aside(candidates, own.unusable),
        _machines(
            order.ranked, [cell for candidate in candidates for cell in own.of(candidate).cells]
        ),
        {
            candidate.name: predicted.of[candidate.name]
            for candidate in (*order.ranked, *(c for c in contenders if c.too_large))
            if candidate.name in predicted.of and (candidate.figure is None or candidate.too_large)
        },
    )


def _is_predicted(
    query: Query, candidate: Candidate, own: ModelEvidence, ground: AnswerBasis
) -> bool:
    """Whether something is to be predicted of a candidate that can be chosen.

    It is where it has no figures, or those of smaller batches alone.
    """
    evidence = own.of(candidate)
    beyond = all(cell.batch < query.batch for cell in evidence.cells)
    return beyond and _contender(query, candidate, None, evidence, ground).compatible


def _machines(
    ranked: Sequence[ScoredCandidate], cells: Sequence[EvidenceCell]
) -> dict[str, list[str]]:
    """The machines of all that was looked at, each with those that have their figure of it.

    Nothing where there is one alone: what the same device does on two machines is not one figure,
    and a device of one beside a device of the other is no comparison of devices alone.
    """
    machines: dict[str, list[str]] = {cell.machine: [] for cell in cells if cell.machine}
    for candidate in ranked:
        if candidate.figure is not None and candidate.figure.cell.machine:
            machines.setdefault(candidate.figure.cell.machine, []).append(candidate.name)
    return dict(sorted(machines.items())) if len(machines) > 1 else {}


def _inexact(
    query: Query, candidates: Sequence[Candidate], own: ModelEvidence
) -> dict[str, EvidenceCell]:
    """Of each candidate the best figure that its precision keeps out, at the batch if there is one.

    Only where it would have been the best of the candidate: else nothing is missed.
    """
    by_name = {}
    for candidate in candidates:
        evidence = own.of(candidate)
        at_batch = [cell for cell in evidence.inexact if cell.batch == query.batch]
        counted = [cell for cell in evidence.cells if cell.batch == query.batch]
        if evidence.inexact and best([*(at_batch or evidence.inexact), *counted]).exact is False:
            by_name[candidate.name] = best(at_batch or evidence.inexact)
    return by_name


def _placed_here(
    contenders: Sequence[ScoredCandidate], ground: AnswerBasis
) -> list[ScoredCandidate]:
    """Each that was not measured with whether this machine has it, where that is to count."""
    missing = [
        candidate
        for candidate in contenders
        if not (candidate.figure and candidate.figure.measured)
    ]
    platforms = [candidate.candidate.platform for candidate in missing if candidate.compatible]
    if ground.present is None or not platforms:
        return list(contenders)
    local_platforms = ground.present(platforms)
    return [
        replace(candidate, present=candidate.candidate.platform in local_platforms)
        if candidate in missing
        else candidate
        for candidate in contenders
    ]


def weights_of(query: Query, config: Config) -> dict[str, float]:
    """The criteria and their weights: of the mode, and as the task has it."""
    task = TASKS.get(query.task or "")
    matters = task.matters if task else {}
    return {
        (criterion := name.removesuffix("_weight")): weight * matters.get(criterion, 1.0)
        for name, weight in config["selection_criteria"][query.mode].items()
    }


def _contender(
    query: Query,
    candidate: Candidate,
    prediction: Figure | None,
    own: ModelEvidence,
    ground: AnswerBasis,
) -> ScoredCandidate:
    config = ground.config
    entry = ground.matrices.entry(query.family, candidate.platform, query.mode)
    importance = config["model_families"].get(query.family, {})
    about = RuleSubject(
        query.family,
        query.size.name,
        size_of(query.batch, config["batch_size_thresholds"]),
        query.mode,
        importance.get("model_size_importance", "medium"),
        importance.get("batch_size_importance", "medium"),
    )
    return ScoredCandidate(
        candidate,
        prediction,
        entry,
        ruled(candidate.platform, about, entry.rating),
        config["hardware_preferences"].get(candidate.platform, {}),
        _cost(prediction, ground.prices),
        runs=bool(own.others),
        apart=() if prediction is None else told_apart_by(prediction.cell, own.cells),
        ruled_out=tuple(own.ruled_out(query.batch)),
        engines=tuple(
            able_engines(candidate.platform, query, generates=is_generation(query, own.sizes))
        ),
        failed_since=own.failed_since(prediction.cell)
        if prediction and prediction.measured
        else "",
    )


def _cost(prediction: Figure | None, prices: Prices | None) -> float | None:
    if prediction is None or prices is None or prediction.rate is None:
        return None
    return prices({**prediction.cell.row, "throughput": prediction.rate})
