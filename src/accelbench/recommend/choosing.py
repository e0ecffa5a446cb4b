"""From a question and its evidence to a choice. Pure.

The first candidate is a clear winner if no other would be first with the shortest time, relative to
the first's, that the intervals of both allow. These are the interval of the ratio if both have
several launches, else those of their samples or estimates, and at least 3 %.

Scores of candidates, and their order. Pure.

Each criterion is a share of the best candidate's: 1 is the best. A criterion that is not known of
every candidate with a result is left out, and its weight goes to the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accelbench.core.rows import Json, Row
from accelbench.judge.run_noise import Histories, between_rows
from accelbench.measure.launch_verdicts import LEAST_EFFECT, all_differ
from accelbench.measure.run_to_run_noise import unpaired_interval
from accelbench.recommend.candidate_predictions import (
    Engines,
    PredictedCandidates,
    predicted_figure,
)
from accelbench.recommend.config import FACTORS, Config, size_of
from accelbench.recommend.estimated_figures import Figure, figure
from accelbench.recommend.evidence.candidates import Candidate, set_aside
from accelbench.recommend.evidence.cells import (
    EvidenceCell,
    Failure,
    best,
    counted,
    engines_of,
    told_apart_by,
)
from accelbench.recommend.evidence.model_evidence import (
    ModelEvidence,
    OtherMeasurement,
    own_of,
    ran_at_all,
)
from accelbench.recommend.matrices import Matrices, MatrixEntry
from accelbench.recommend.platform_rules import (
    RuleAnswer,
    RuleSubject,
    able_engines,
    is_generation,
    ruled,
    why_no_engine,
)
from accelbench.recommend.query import TASKS, Query

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures
    from accelbench.recommend.evidence.reader import EvidenceStore


#: The value of a level as a criterion.
COMPATIBILITY: Mapping[str, float] = {"high": 1.0, "medium": 0.7, "low": 0.4}
#: Precisions in which training converges as in fp32, unless a curve shows otherwise.
_CONVERGES = frozenset({"fp32", "bf16", "amp-bf16"})
#: Each point of a rule doubles a score, up to 1.
_MOST_POINTS = 5.0


@dataclass(frozen=True)
class ScoredCandidate:
    """A candidate with its evidence for a question."""

    candidate: Candidate
    figure: Figure | None
    entry: MatrixEntry
    ruled: RuleAnswer
    factors: Mapping[str, float]
    cost: float | None = None  # of a million items, if a price is known
    score: float = 0.0
    criteria: Mapping[str, float] | None = None
    cautious: bool = False  # scored by the slow end of its bounds
    present: bool | None = None  # on this machine, if that matters
    runs: bool = False  # it has other measurements, which do not answer
    apart: tuple[str, ...] = ()  # the settings in which other cells there differ
    ruled_out: tuple[Failure, ...] = ()  # of each engine whose newest attempt failed
    wrong_outputs: tuple[Failure, ...] = ()  # of ways that were set aside for others
    engines: tuple[str, ...] = ()  # that can run it, the platform's default one first
    failed_since: str = ""  # why newer runs of its cell failed
    too_large: str = ""  # why it is predicted not to fit
    unable: str = ""  # why no engine of the platform can run it

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def compatible(self) -> bool:
        """Whether it can be chosen: measured results count more than any matrix."""
        if self.figure is not None and self.figure.measured:
            return True
        able = self.entry.compatible and self.ruled.compatible
        return able and not (self.all_failed or self.too_large or self.unable)

    @property
    def all_failed(self) -> bool:
        """Whether every engine failed; an unrecorded engine stands for all."""
        failed = engines_of(self.ruled_out)
        return bool(failed) and (None in failed or failed.issuperset(self.engines))

    @property
    def other_engine(self) -> str | None:
        """The first engine that did not fail, if the platform's default engine did."""
        failed = engines_of(self.ruled_out)
        if not self.engines or self.engines[0] not in failed:
            return None
        return next((engine for engine in self.engines if engine not in failed), None)

    @property
    def standing(self) -> tuple[bool, bool, bool, bool]:
        """The sort key before the score: what its place rests on."""
        bare, failed = self.figure is None, bool(self.ruled_out)
        return bare, bare and not self.runs, bare and self.present is False, bare and failed

    def is_rated_as(self, other: ScoredCandidate) -> bool:
        """Return whether both have the same score on the same ground."""
        return (self.standing, _rounded(self.score)) == (other.standing, _rounded(other.score))

    @property
    def figure_is_predicted(self) -> bool:
        return self.figure is not None and self.figure.predicted is not None

    @property
    def rating(self) -> str:
        return self.entry.rating or self.ruled.rating

    @property
    def why_not(self) -> str:
        if self.all_failed:
            failures = "; ".join(failure.explanation() for failure in self.ruled_out)
            return f"it failed in its newest run: {failures}"
        if self.unable:
            return self.unable
        if self.too_large and self.entry.compatible and self.ruled.compatible:
            return self.too_large
        if not self.entry.compatible:
            return self.entry.reason or f"{self.entry.source or 'a matrix'} says so"
        return "; ".join(self.ruled.why)


@dataclass(frozen=True)
class Scored:
    """Candidates in order, and the weights used."""

    ranked: Sequence[ScoredCandidate]
    weights: Mapping[str, float]  # they add up to 1
    left_out: Mapping[str, str]  # a criterion → why
    by_cost: bool = False


Encode = Callable[[str], float]


def scored(
    contenders: Sequence[ScoredCandidate], weights: Mapping[str, float], order: Encode
) -> Scored:
    """Return the candidates that can be chosen, the best first.

    Those with a result come first, by their scores. The others follow by the rules: platforms that
    are known to run the model first, then those that are present. Equals follow `order`, then their
    names.
    """
    able = [candidate for candidate in contenders if candidate.compatible]
    figured = [candidate for candidate in able if candidate.figure is not None]
    # An estimate comes before a measured result only if its slow end does.
    cautious = any(candidate.figure.measured for candidate in figured if candidate.figure)
    figured = [
        replace(
            candidate,
            cautious=cautious and candidate.figure is not None and not candidate.figure.measured,
        )
        for candidate in figured
    ]
    used, left_out = _usable(figured, weights)
    # Costs of a million tokens and of a million images do not compare.
    kinds = {counted(candidate.figure.unit) for candidate in figured if candidate.figure}
    by_cost = len(kinds) == 1 and all(candidate.cost for candidate in figured)
    rated = [_rated(candidate, figured, used, by_cost) for candidate in figured]
    ruled = [
        replace(candidate, score=_by_rules(candidate.ruled.points) * _factor(candidate, FACTORS))
        for candidate in able
        if candidate.figure is None
    ]

    def place(candidate: ScoredCandidate) -> tuple[bool, bool, bool, bool, float, float, str]:
        score, equals = -_rounded(candidate.score), order(candidate.candidate.platform)
        return *candidate.standing, score, equals, candidate.name

    return Scored(tuple(sorted((*rated, *ruled), key=place)), used, left_out, by_cost)


def _rounded(score: float) -> float:
    """Round to twelve digits: 0.4, not 0.4000000000000001; equals are equal in any order."""
    return float(f"{score:.12g}")


def _usable(
    figured: Sequence[ScoredCandidate], weights: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the weights of criteria that are known of all, and why others are left out."""
    left_out = {}
    for name, weight in weights.items():
        unknown = [candidate.name for candidate in figured if _amount(candidate, name) is None]
        if unknown and weight:
            left_out[name] = f"not known of {', '.join(sorted(unknown))}"
    units = {
        counted(candidate.figure.unit): candidate.figure.unit
        for candidate in figured
        if candidate.figure
    }
    if len(units) > 1 and "throughput" in weights:
        left_out["throughput"] = f"of {' here and of '.join(sorted(units.values()))} there"
    kept = {name: weight for name, weight in weights.items() if name not in left_out and weight}
    if not sum(kept.values()):
        kept = {"compatibility": 1.0}
    total = sum(kept.values())
    return {name: _rounded(weight / total) for name, weight in kept.items()}, left_out


def _rated(
    candidate: ScoredCandidate,
    figured: Sequence[ScoredCandidate],
    weights: Mapping[str, float],
    by_cost: bool,
) -> ScoredCandidate:
    criteria = {}
    for name in weights:
        mine = _amount(candidate, name)
        assert mine is not None
        if name in ("compatibility", "convergence"):
            criteria[name] = mine
        else:
            best = max(_amount(other, name) or 0.0 for other in figured)
            criteria[name] = _rounded(mine / best)
    total = math.fsum(weights[name] * value for name, value in criteria.items())
    if not by_cost:
        score = _rounded(total * _factor(candidate, FACTORS))
        return replace(candidate, score=score, criteria=criteria)
    costs = [_scoring_cost(other) for other in figured]
    criteria["cost"] = _rounded(min(costs) / _scoring_cost(candidate))
    rest = _factor(candidate, [name for name in FACTORS if name != "cost_factor"])
    return replace(candidate, score=_rounded(total * criteria["cost"] * rest), criteria=criteria)


def _amount(candidate: ScoredCandidate, criterion: str) -> float | None:
    """Return the value of a criterion, the more the better; None if it is unknown."""
    figure = candidate.figure
    assert figure is not None
    slower = _slower(candidate)
    if criterion == "latency":
        return 1.0 / (figure.latency * slower)
    if criterion == "throughput":
        return None if figure.rate is None else figure.rate / slower
    if criterion == "memory":
        memory = _memory(candidate)
        return 1.0 / memory if memory else None
    if criterion == "convergence":
        return _convergence(figure)
    return COMPATIBILITY[candidate.rating]


def _slower(candidate: ScoredCandidate) -> float:
    """Return how many times longer a step may take, if that counts."""
    assert candidate.figure is not None
    return candidate.figure.high / candidate.figure.latency if candidate.cautious else 1.0


def _memory(candidate: ScoredCandidate) -> float | None:
    """Return megabytes, measured or predicted, at most if that counts."""
    figure = candidate.figure
    assert figure is not None
    if figure.predicted is not None:
        return figure.predicted["memory_high_mb" if candidate.cautious else "memory_mb"]
    return figure.cell.row.get("memory_peak_mb") if figure.measured else None


def _scoring_cost(candidate: ScoredCandidate) -> float:
    assert candidate.cost is not None
    return candidate.cost * _slower(candidate)


def _convergence(figure: Figure) -> float | None:
    known = figure.cell.row.get("convergence") if figure.measured else None
    if known is not None:
        return float(min(max(known, 0.0), 1.0))
    return 1.0 if figure.cell.precision in _CONVERGES else None


def _factor(candidate: ScoredCandidate, names: Sequence[str]) -> float:
    return math.prod(max(candidate.factors.get(name, 1.0), 0.0) for name in names)


def _by_rules(points: float) -> float:
    return float(2.0 ** (min(points, _MOST_POINTS) - _MOST_POINTS))


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
        interval = unpaired_interval(*sides, runs=runs) if all_differ(*sides) else None
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
    """What an answer rests on next to the evidence."""

    config: Config
    matrices: Matrices  # the compatibility
    order: Encode  # of equals
    prices: Prices | None = None  # dollars per million items of a result
    #: returns which of some platforms this machine has, if that counts
    present: Callable[[Sequence[str]], Container[str]] | None = None
    unasked: Container[str] = ()  # platforms that only count if they are named
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
