"""Scores of candidates, and their order. Pure.

Each criterion is a share of the best candidate's: 1 is the best. A criterion that is not known of
every candidate with a result is left out, and its weight goes to the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from accelbench.recommend.estimate.figures import Figure
from accelbench.recommend.estimate.platform_rules import RuleAnswer
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import Failure, counted, engines_of
from accelbench.recommend.query.config import FACTORS
from accelbench.recommend.rank.matrices import MatrixEntry

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
    costs = [_cost(other) for other in figured]
    criteria["cost"] = _rounded(min(costs) / _cost(candidate))
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


def _cost(candidate: ScoredCandidate) -> float:
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
