"""From figures and ratings to an order of candidates. Pure, and the same for the same data.

Every criterion is a share of the best candidate's: 1 is the best there is. A criterion that is not
known of every candidate with a figure is left out and its weight goes to the others, since nobody
can be better by what nobody knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from accelbench.select.estimate.figures import Figure
from accelbench.select.estimate.platform_rules import RuleAnswer
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.cells import counted
from accelbench.select.evidence.failures import Failure, engines_of
from accelbench.select.query.config import FACTORS
from accelbench.select.rank.matrices import MatrixEntry

#: What a level is worth as a criterion.
COMPATIBILITY: Mapping[str, float] = {"high": 1.0, "medium": 0.7, "low": 0.4}
#: Precisions in which training falls as far as in fp32, where no curve says otherwise.
_CONVERGES = frozenset({"fp32", "bf16", "amp-bf16"})
#: Each point of a rule doubles a score, up to 1.
_MOST_POINTS = 5.0


@dataclass(frozen=True)
class ScoredCandidate:
    """A candidate with all that is known of it for a question."""

    candidate: Candidate
    figure: Figure | None
    entry: MatrixEntry
    ruled: RuleAnswer
    factors: Mapping[str, float]
    cost: float | None = None  # of a million items, where a price is known
    score: float = 0.0
    criteria: Mapping[str, float] | None = None
    cautious: bool = False  # scored by the slow end of its bounds
    present: bool | None = None  # on this machine, where nothing was measured and that counts
    runs: bool = False  # without a figure, though measured there in another way than is asked
    apart: tuple[str, ...] = ()  # the settings that tell its way from others that were measured
    ruled_out: tuple[Failure, ...] = ()  # of each engine whose newest attempt failed
    engines: tuple[str, ...] = ()  # that can run it, the platform's default one first
    failed_since: str = ""  # why a newer run than its figure's came to nothing
    too_large: str = ""  # why it is predicted not to fit, where nothing was measured
    unable: str = ""  # why no engine of the platform can run it

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def compatible(self) -> bool:
        """What was measured runs, whatever a matrix says of its family."""
        if self.figure is not None and self.figure.measured:
            return True
        able = self.entry.compatible and self.ruled.compatible
        return able and not (self.all_failed or self.too_large or self.unable)

    @property
    def all_failed(self) -> bool:
        """Whether no engine is left; an engine that is not recorded stands for all."""
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
        """What goes before its score: the order of what it stands on."""
        bare, failed = self.figure is None, bool(self.ruled_out)
        return bare, bare and not self.runs, bare and self.present is False, bare and failed

    def is_rated_as(self, other: ScoredCandidate) -> bool:
        """Return whether both have the same score on the same ground."""
        return (self.standing, _rounded(self.score)) == (other.standing, _rounded(other.score))

    @property
    def figure_is_predicted(self) -> bool:
        """Whether its figure is a prediction, which is of no date."""
        return self.figure is not None and self.figure.predicted is not None

    @property
    def rating(self) -> str:
        return self.entry.rating or self.ruled.rating

    @property
    def why_not(self) -> str:
        """Why it cannot be chosen, in words."""
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
    """Contenders in order, and by what."""

    ranked: Sequence[ScoredCandidate]
    weights: Mapping[str, float]  # as they were used: of one, in all
    left_out: Mapping[str, str]  # a criterion and why
    by_cost: bool = False


Encode = Callable[[str], float]


def scored(
    contenders: Sequence[ScoredCandidate], weights: Mapping[str, float], order: Encode
) -> Scored:
    """The contenders that can be chosen, the best first.

    Those with a figure come first, by their scores; the others follow by the rules: what is known
    to run the model before what is not, and what is present before what is not. Equals follow
    `order`, then their names.
    """
    able = [candidate for candidate in contenders if candidate.compatible]
    figured = [candidate for candidate in able if candidate.figure is not None]
    # An estimate stands before what was measured only if it would at its slow end as well.
    cautious = any(candidate.figure.measured for candidate in figured if candidate.figure)
    figured = [
        replace(
            candidate,
            cautious=cautious and candidate.figure is not None and not candidate.figure.measured,
        )
        for candidate in figured
    ]
    used, left_out = _usable(figured, weights)
    # A million tokens and a million images have no price in common.
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
    """The weights of what is known of all, together one."""
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
    """A candidate with its score, and what that is made of."""
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
    """A criterion's amount, the more the better; None where it is not known."""
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
    """How many times as long a step may take as its figure says, where that is to count."""
    assert candidate.figure is not None
    return candidate.figure.high / candidate.figure.latency if candidate.cautious else 1.0


def _memory(candidate: ScoredCandidate) -> float | None:
    """Megabytes, measured or predicted: where that is to count, as many as it may take."""
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
