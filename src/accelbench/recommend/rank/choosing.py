"""From a question and its evidence to a choice. Pure.

The first candidate is a clear winner if no other would be first with the shortest time, relative to
the first's, that the intervals of both allow. These are the interval of the ratio if both have
several launches, else those of their samples or estimates, and at least 3 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accelbench.core.rows import Json, Row
from accelbench.judge.run_noise import Histories, between_rows
from accelbench.measure.launch_verdicts import LEAST_EFFECT, differ
from accelbench.measure.runs import unpaired_interval
from accelbench.recommend.estimate.candidate_predictions import (
    Engines,
    PredictedCandidates,
    predicted_figure,
)
from accelbench.recommend.estimate.figures import Figure, figure
from accelbench.recommend.estimate.platform_rules import (
    RuleSubject,
    able_engines,
    is_generation,
    ruled,
    why_no_engine,
)
from accelbench.recommend.evidence.candidates import Candidate, set_aside
from accelbench.recommend.evidence.cells import EvidenceCell, best, engines_of, told_apart_by
from accelbench.recommend.evidence.model_evidence import (
    ModelEvidence,
    OtherMeasurement,
    own_of,
    ran_at_all,
)
from accelbench.recommend.query.config import Config, size_of
from accelbench.recommend.query.query import TASKS, Query
from accelbench.recommend.rank.matrices import Matrices
from accelbench.recommend.rank.scoring import Encode, Scored, ScoredCandidate, scored

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures
    from accelbench.recommend.evidence.reader import EvidenceStore


def no_clear_winner_between(
    ranked: Sequence[ScoredCandidate], weights: dict[str, float], order: Encode, known: Histories
) -> list[str]:
    """Return the names of those that may be first, the first included; none if it is clear.

    Without any result, those that the rules rate as high as the first may be first too.
    """
    figured = [candidate for candidate in ranked if candidate.figure is not None]
    if not figured:
        tied = [entry.name for entry in ranked if entry.is_rated_as(ranked[0])]
        return tied if len(tied) > 1 else []
    first, *rest = figured
    assert first.figure is not None
    # From one item, a phone's 256 would be known within a factor of five: it rivals no measurement.
    rivals = [
        rival
        for rival in rest
        if rival.figure and not (first.figure.measured and rival.figure.is_far)
    ]
    close = [
        rival.name
        for rival in rivals
        if not _is_same(rival, first)
        and scored([*_without(figured, rival), _at_its_best(rival, first, known)], weights, order)
        .ranked[0].name == rival.name
    ]  # fmt: skip
    return [first.name, *close] if close else []


def _is_same(rival: ScoredCandidate, first: ScoredCandidate) -> bool:
    """Return whether a device and its own platform share one cell."""
    assert rival.figure is not None
    assert first.figure is not None
    return rival.figure.measured and rival.figure.cell is first.figure.cell


def _without(many: Sequence[ScoredCandidate], rival: ScoredCandidate) -> list[ScoredCandidate]:
    return [other for other in many if other is not rival]


def _at_its_best(
    rival: ScoredCandidate, first: ScoredCandidate, known: Histories
) -> ScoredCandidate:
    """Return a candidate with the shortest time, relative to the first's, that is possible."""
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
    """Return the smallest ratio to the first's time that is possible."""
    ratio = mine.latency / first.latency
    return min(_by_what_is_known(mine, first, ratio, known), ratio / (1 + LEAST_EFFECT))


def _by_what_is_known(mine: Figure, first: Figure, ratio: float, known: Histories) -> float:
    if mine.measured and first.measured:
        runs = between_rows(first.cell.row, mine.cell.row, known)
        sides = first.cell.latencies, mine.cell.latencies
        interval = unpaired_interval(*sides, runs=runs) if differ(*sides) else None
        return interval.low if interval else ratio / _together(_down(mine), _up(first))
    down, up = math.log(mine.latency / mine.low), math.log(first.high / first.latency)
    if mine.predicted or first.predicted:  # they differ only if their intervals do not overlap
        return ratio / math.exp(down + up)
    return ratio / _together(down, up)


def _together(down: float, up: float) -> float:
    """Return the joint bound of two, which are not reached at once."""
    return math.exp(math.hypot(down, up))


def _down(mine: Figure) -> float:
    """Return how far below its value a result may be, as a logarithm; 0 if that is unknown."""
    known = mine.cell.interval
    return math.log(mine.cell.latency / known[0]) if known else 0.0


def _up(first: Figure) -> float:
    known = first.cell.interval
    return math.log(known[1] / first.cell.latency) if known else 0.0


def figures_of(
    batch: int,
    candidates: Sequence[Candidate],
    own: ModelEvidence,
    predicted: PredictedCandidates,
    importance: str,
) -> list[Figure | None]:
    """Return the figure of each candidate, or None if nothing was measured or predicted there."""
    figures = []
    for candidate in candidates:
        evidence, name = own.of(candidate), candidate.name
        prediction = predicted_figure(predicted.of[name]) if name in predicted.ranking else None
        figures.append(figure(batch, evidence.cells, evidence.failures, prediction, importance))
    return figures


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


#: Dollars per million items of a result, or None if no price is known.
Prices = Callable[[Row], float | None]
#: Question, candidates, sizes, failed engines by candidate → predictions.
Predict = Callable[
    [Query, Sequence[Candidate], Mapping[str, int], Mapping[str, Engines]], PredictedCandidates
]


@dataclass(frozen=True)
class AnswerBasis:
    """What an answer rests on next to the evidence.

    Attributes:
        matrices: the compatibility.
        order: of equals.
        prices: dollars per million items of a result.
        present: returns which of some platforms this machine has, if that counts.
        unasked: platforms that only count if they are named.
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
    """An answer as data, without texts."""

    asked: Query
    scored: Scored
    contenders: Sequence[ScoredCandidate]
    unclear: Sequence[str]
    matrix_source: str
    shapes: Mapping[str, int] = field(default_factory=dict)
    circumstances: Mapping[str, object] = field(default_factory=dict)  # of the results
    otherwise: Sequence[OtherMeasurement] = ()  # results that do not answer
    inexact: Mapping[str, EvidenceCell] = field(default_factory=dict)  # by name: quantised, unasked
    unasked: Sequence[str] = ()  # platforms with results that count only if they are named
    aside: Sequence[Json] = ()  # results with unusable times
    #: If results are of several machines: each with the candidates whose result is of it.
    machines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Predictions of candidates without a result, and of those that are predicted not to fit; they
    #: rank nothing.
    predicted: Mapping[str, PredictedFigures] = field(default_factory=dict)

    @property
    def ranked(self) -> Sequence[ScoredCandidate]:
        return self.scored.ranked

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of its results, or else of its predictions."""
        of_predictions = (figures["sizes"] for figures in self.predicted.values())
        return self.shapes or next(of_predictions, {})

    @property
    def clear(self) -> bool:
        """Whether the first is a clear winner; rules or a single result show none."""
        alone = len(self.ranked) > 1 and len(self.compared) < 2
        wanted = bool(self.ranked) and self.ranked[0].score > 0.0
        return wanted and bool(self.compared) and not alone and not self.unclear

    @property
    def compared(self) -> Sequence[str]:
        """The candidates with a result or an estimate."""
        return [candidate.name for candidate in self.ranked if candidate.figure is not None]


def choose(
    query: Query, candidates: Sequence[Candidate], evidence: EvidenceStore, ground: AnswerBasis
) -> Choice:
    """Return the candidates in order for a question."""
    names = query.names
    own = own_of(
        query, evidence.cells(names), evidence.failures(names), unusable=evidence.unusable(names)
    )
    importance = ground.config["model_families"].get(query.family, {})
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
    figures = figures_of(
        query.batch, candidates, own, predicted, importance.get("batch_size_importance", "medium")
    )
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
    measured = [
        candidate.figure.cell
        for candidate in order.ranked
        if candidate.figure and candidate.figure.measured
    ]
    histories = evidence.histories(measured)
    unclear = no_clear_winner_between(order.ranked, weights, ground.order, histories)
    return Choice(
        query,
        order,
        contenders,
        unclear,
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
    """Return whether a candidate can be chosen and has only results of smaller batches."""
    evidence = own.of(candidate)
    beyond = all(cell.batch < query.batch for cell in evidence.cells)
    return beyond and _contender(query, candidate, None, evidence, ground).compatible


def _machines(
    ranked: Sequence[ScoredCandidate], cells: Sequence[EvidenceCell]
) -> dict[str, list[str]]:
    """Return the machines of the cells with the candidates whose result is of them.

    It is empty for a single machine. Devices of two machines do not compare by themselves.
    """
    machines: dict[str, list[str]] = {cell.machine: [] for cell in cells if cell.machine}
    for candidate in ranked:
        if candidate.figure is not None and candidate.figure.cell.machine:
            machines.setdefault(candidate.figure.cell.machine, []).append(candidate.name)
    return dict(sorted(machines.items())) if len(machines) > 1 else {}


def _inexact(
    query: Query, candidates: Sequence[Candidate], own: ModelEvidence
) -> dict[str, EvidenceCell]:
    """Return the best cell that its precision keeps out, if it would be the candidate's best."""
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
    """Return the candidates, those without results with whether this machine has them."""
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
    """Return the weights of the criteria by mode and task."""
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
        wrong_outputs=tuple(own.wrong_outputs(query.batch)),
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
