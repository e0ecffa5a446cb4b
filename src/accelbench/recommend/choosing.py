"""From a question and its evidence to configurations in the order of their probability. Pure.

Rules decide which candidates can run a model. Measured and predicted configurations are then
ordered by the probability of being the best under the objective.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.core.rows import Json, Row
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import MIB, Provenance
from accelbench.judge.verdicts import METRICS
from accelbench.predict.questions import memory_words
from accelbench.recommend.candidate_predictions import Engines, PredictedCandidates
from accelbench.recommend.config import DEFAULTS, FACTORS, Config, size_of
from accelbench.recommend.evidence.candidates import Candidate, set_aside
from accelbench.recommend.evidence.cells import (
    EvidenceCell,
    Failure,
    best,
    counted,
    engines_of,
    settings_of,
    told_apart_by,
)
from accelbench.recommend.evidence.model_evidence import (
    ModelEvidence,
    OtherMeasurement,
    own_of,
    ran_at_all,
)
from accelbench.recommend.figures import Bounds, Figure, measured_figures
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
from accelbench.recommend.ranking import RankedOption, place_of, probabilities

if TYPE_CHECKING:
    from accelbench.predict.signatures import Floats
    from accelbench.recommend.evidence.reader import EvidenceStore


LATENCY, THROUGHPUT, COST, ENERGY = "latency", "throughput", "cost", "energy"
OBJECTIVES = (LATENCY, THROUGHPUT, COST, ENERGY)
#: The objective of a configuration file with weights of its own.
WEIGHTS = "weights"
#: The value of a rating as a criterion.
COMPATIBILITY: Mapping[str, float] = {"high": 1.0, "medium": 0.7, "low": 0.4}
#: Precisions in which training converges as in fp32, unless a curve shows otherwise.
_CONVERGES = frozenset({"fp32", "bf16", "amp-bf16"})
#: Each point of a rule doubles a score, up to 1.
_MOST_POINTS = 5.0
#: The first is a clear winner with this probability; others with less than the rest are no rivals.
CLEAR = 0.95
#: A measurement that changes the answer with less is not worth its time.
_LEAST_CHANGE = 0.005
#: A prediction with a smaller probability of fitting its device is left out.
_LEAST_FIT = 0.05


def objective_named(word: str | None, config: Config, *, has_prices: bool) -> str:
    """Return an objective by its name; refuse others, and costs without prices."""
    if word is None:
        own = config["selection_criteria"] != DEFAULTS["selection_criteria"]
        return WEIGHTS if own else LATENCY
    name = word.strip().lower() if isinstance(word, str) else ""
    if name not in OBJECTIVES:
        raise UsageError(
            f"{in_quotes(word)} is not an objective.", f"Objectives: {', '.join(OBJECTIVES)}."
        )
    if name == COST and not has_prices:
        raise UsageError("The objective cost needs prices.", "Name a price file with --prices.")
    return name


@dataclass(frozen=True)
class ScoredCandidate:
    """A configuration of a candidate, or a candidate that only rules speak of."""

    candidate: Candidate
    figure: Figure | None
    entry: MatrixEntry
    ruled: RuleAnswer
    factors: Mapping[str, float]
    cost: Bounds | None = None  # of a million items, if a price is known
    score: float = 0.0  # its value relative to the best one's; by rules alone their points
    rank: int = 0
    probability: float | None = None  # of being the best configuration
    is_weak: bool = False  # it does not compete with values that rest on more
    fits: float | None = None  # the probability that it fits its device
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
    def is_elsewhere(self) -> bool:
        return self.present is False

    @property
    def tier(self) -> tuple[bool, bool]:
        """What competes with what: first what is here, and in it values that are not weak."""
        return self.is_elsewhere, self.is_weak

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


#: Dollars per million items of a result, or None if no price is known.
Prices = Callable[[Row], float | None]
Encode = Callable[[str], float]
#: Question, candidates, sizes, failed engines by candidate, batches → predictions.
Predict = Callable[
    [Query, Sequence[Candidate], Mapping[str, int], Mapping[str, Engines], Sequence[int]],
    PredictedCandidates,
]


def _no_predictions(*_: object) -> PredictedCandidates:
    return PredictedCandidates()


@dataclass(frozen=True)
class AnswerBasis:
    """What an answer rests on next to the evidence."""

    config: Config
    matrices: Matrices  # the compatibility
    order: Encode  # of equals
    prices: Prices | None = None  # dollars per million items of a result
    #: returns whether this machine has a platform or a device of it, if that counts
    present: Callable[[str, str | None], bool] | None = None
    unasked: Container[str] = ()  # platforms that only count if they are named
    predict: Predict = _no_predictions
    objective: str = LATENCY
    #: the megabytes of a device
    room: Callable[[str, str], float | None] = lambda *_: None


@dataclass(frozen=True)
class Choice:
    """An answer as data, without texts.

    Attributes:
        configurations: every configuration that can be chosen, the best first, then the
            candidates that only rules speak of.
        contenders: one entry for each candidate, whether or not it can be chosen.
    """

    asked: Query
    configurations: Sequence[ScoredCandidate]
    contenders: Sequence[ScoredCandidate]
    matrix_source: str
    objective: str = LATENCY
    weights: Mapping[str, float] = field(default_factory=dict)
    weights_left_out: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, int] = field(default_factory=dict)
    circumstances: Mapping[str, object] = field(default_factory=dict)  # of the results
    otherwise: Sequence[OtherMeasurement] = ()  # results that do not answer
    inexact: Mapping[str, EvidenceCell] = field(default_factory=dict)  # by name: quantised, unasked
    unasked: Sequence[str] = ()  # platforms with results that count only if they are named
    aside: Sequence[Json] = ()  # results with unusable times
    #: If results are of several machines: each with the candidates whose result is of it.
    machines: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def ranked(self) -> Sequence[ScoredCandidate]:
        """The candidates in order, each with its best configuration."""
        return _first_of_each(self.configurations)

    @property
    def figured(self) -> list[ScoredCandidate]:
        return [entry for entry in self.configurations if entry.figure is not None]

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of its results, or else of its predictions."""
        predicted = (e.figure.predicted for e in self.figured if e.figure and e.figure.predicted)
        return self.shapes or next((figures["sizes"] for figures in predicted), {})

    @property
    def group(self) -> list[ScoredCandidate]:
        """The configurations that compete with the first: those here, or those elsewhere."""
        known = self.figured
        return [entry for entry in known if entry.tier == known[0].tier]

    def probability(self, name: str) -> float | None:
        """Return the probability that the best configuration is one of a candidate."""
        shares = [e.probability for e in self.group if e.name == name and e.probability is not None]
        return math.fsum(shares) if shares else None

    @property
    def clear(self) -> bool:
        """Whether the first is a clear winner; rules or a single result show none."""
        alone = len(self.ranked) > 1 and len(self.compared) < 2
        return bool(self.compared) and not alone and not self.unclear

    @property
    def unclear(self) -> list[str]:
        """The candidates that may be the best, the first included; none if that is clear."""
        if not self.configurations:
            return []
        first = self.configurations[0]
        if first.figure is None:
            tied = [entry.name for entry in self.ranked if entry.rank == first.rank]
            return tied if len(tied) > 1 else []
        if (self.probability(first.name) or 0.0) >= CLEAR:
            return []
        rivals = dict.fromkeys(entry.name for entry in self.group if entry.name != first.name)
        close = [name for name in rivals if (self.probability(name) or 0.0) > 1.0 - CLEAR]
        return [first.name, *close] if close else []

    @property
    def compared(self) -> list[str]:
        return list(dict.fromkeys(entry.name for entry in self.figured))


def _first_of_each(entries: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Return the first entry of each candidate."""
    found: dict[str, ScoredCandidate] = {}
    for entry in entries:
        found.setdefault(entry.name, entry)
    return list(found.values())


def choose(
    query: Query, candidates: Sequence[Candidate], evidence: EvidenceStore, ground: AnswerBasis
) -> Choice:
    """Return the configurations of candidates in order for a question."""
    names = query.names
    own = own_of(
        query, evidence.cells(names), evidence.failures(names), unusable=evidence.unusable(names)
    )
    plain = [_contender(query, candidate, own.of(candidate), ground) for candidate in candidates]
    able = [entry.candidate for entry in plain if entry.compatible]
    failed = {name.name: engines_of(own.of(name).ruled_out(query.batch)) for name in able}
    predicted = ground.predict(query, able, own.sizes, failed, ())
    contenders, configurations = [], []
    found = {
        entry.name: figures_of(
            query.batch, own.of(entry.candidate), predicted.of.get(entry.name, ())
        )
        for entry in plain
    }
    found = _with_run_noise(found, evidence)
    for entry in plain:
        evidence_here, figures = own.of(entry.candidate), found[entry.name]
        fitting = [figure for figure in figures if _fit(figure, ground) >= _LEAST_FIT]
        reason = predicted.too_large.get(entry.name, "")
        if figures and not fitting:
            reason = _too_large(figures, ground)
        if fitting or ran_at_all(own.otherwise(entry.candidate)):
            reason = ""
        entry = replace(entry, too_large=reason)
        among = [*evidence_here.cells, *(figure.cell for figure in figures)]
        entries = [_with_figure(entry, f, evidence_here, among, ground) for f in fitting]
        contenders.append(next(iter(entries), replace(entry, figure=next(iter(figures), None))))
        if entries:
            configurations += entries
        elif entry.compatible:
            configurations.append(_placed(entry, ground))
    weights, left_out = _weights(query, configurations, ground)
    if ground.objective == COST and not any(entry.cost for entry in configurations):
        raise UsageError(
            "The price file has no price of these devices.",
            "Name them as the results do: accelbench hardware, or --objective latency --json.",
        )
    ranked = ranked_configurations(configurations, predicted.correlation, ground, weights)
    return Choice(
        query, ranked, contenders, ground.matrices.source, ground.objective, weights, left_out,
        own.sizes, own.circumstances,
        [measurement for candidate in candidates for measurement in own.otherwise(candidate)],
        _inexact(query, candidates, own),
        sorted({cell.hardware for cell in own.cells if cell.hardware in ground.unasked}),
        set_aside(candidates, own.unusable),
        _machines(ranked, [cell for candidate in candidates for cell in own.of(candidate).cells]),
    )  # fmt: skip


def figures_of(
    batch: int | None, own: ModelEvidence, predicted: Sequence[Figure] = ()
) -> list[Figure]:
    """Return the measured configurations of a candidate, and the predictions of all others."""
    measured = measured_figures(batch, own.cells, own.failures)
    known = {(*_engine(figure), figure.batch) for figure in measured}
    if any(engine[1] is None for engine in known):  # a source that records no engine
        known |= {(*_engine(figure), figure.batch) for figure in predicted}
    return measured + [f for f in predicted if (*_engine(f), f.batch) not in known]


def _with_run_noise(
    found: Mapping[str, Sequence[Figure]], evidence: EvidenceStore
) -> dict[str, list[Figure]]:
    """Return figures by candidate, those measured in several runs with the noise between runs."""
    measured = [f.cell for figures in found.values() for f in figures if f.measured]
    histories = evidence.histories(measured)
    if not histories.runs:
        return {name: [*figures] for name, figures in found.items()}
    return {
        name: [
            replace(f, run_noise=histories.between(f.cell.row, METRICS[0]).value)
            if f.measured else f
            for f in figures
        ]
        for name, figures in found.items()
    }  # fmt: skip


def _engine(figure: Figure) -> tuple[object, ...]:
    row = figure.cell.row
    names = ("device_name", "runtime", "precision", "compiled")
    options = json.dumps(settings_of(row), sort_keys=True, default=str)
    return (*(row.get(name) for name in names), options)


def _fit(figure: Figure, ground: AnswerBasis) -> float:
    room = ground.room(*_device(figure))
    if figure.measured or room is None:
        return 1.0
    return probabilities([RankedOption(figure, 0.0, room)], samples=1024).fits[0]


def _device(figure: Figure) -> tuple[str, str]:
    return figure.cell.hardware, figure.cell.device


def _too_large(figures: Sequence[Figure], ground: AnswerBasis) -> str:
    """Return why no configuration fits, by the one that needs least."""
    least = min((f for f in figures if f.memory), key=lambda f: f.memory.middle if f.memory else 0)
    assert least.memory is not None
    platform, device = _device(least)
    words = memory_words(least.memory.middle * MIB, (ground.room(platform, device) or 0.0) * MIB)
    return (
        f"it does not fit {device} at batch {least.batch:,} in {least.cell.precision}:"
        f" predicted {words}"
    )


def _with_figure(
    entry: ScoredCandidate,
    figure: Figure,
    own: ModelEvidence,
    among: Sequence[EvidenceCell],
    ground: AnswerBasis,
) -> ScoredCandidate:
    entry = replace(
        entry,
        figure=figure,
        cost=cost_of(figure, ground.prices),
        apart=told_apart_by(figure.cell, among),
        failed_since=own.failed_since(figure.cell) if figure.measured else "",
    )
    return _placed(entry, ground)


def _placed(entry: ScoredCandidate, ground: AnswerBasis) -> ScoredCandidate:
    """Return a candidate with whether this machine has it; own measurements need no such place."""
    figure = entry.figure
    own = figure is not None and figure.provenance == Provenance.MEASURED
    if ground.present is None or own:
        return entry
    device = entry.candidate.device or None if figure is None else figure.cell.device or None
    return replace(entry, present=ground.present(entry.candidate.platform, device))


def cost_of(figure: Figure, prices: Prices | None) -> Bounds | None:
    """Return the cost of a million items with the band of the latency; None without a price."""
    if prices is None or figure.rate is None:
        return None
    # A price is of the device, whether its time was measured or predicted.
    row = {**figure.cell.row, "throughput": figure.rate}
    row |= {} if figure.measured else {"provenance": Provenance.MEASURED}
    middle = prices(row)
    if not middle:
        return None
    latency = figure.latency
    return Bounds(middle, middle * figure.low / latency, middle * figure.high / latency)


def ranked_configurations(
    entries: Sequence[ScoredCandidate],
    correlation: Floats | None,
    ground: AnswerBasis,
    weights: Mapping[str, float],
) -> list[ScoredCandidate]:
    """Return configurations in order: those here, those elsewhere, and those by rule alone.

    Configurations with a value of the objective precede those without one. Equals have one rank.
    """
    figured = _tiered([entry for entry in entries if entry.figure is not None])
    units = {counted(entry.figure.unit) for entry in figured if entry.figure}
    merits = {
        id(entry): log_merit(entry, ground.objective, weights, mixed=len(units) > 1)
        for entry in figured
    }
    known = [merit for merit in merits.values() if merit is not None]
    least = min(known, default=0.0)
    ranked: list[tuple[tuple[object, ...], ScoredCandidate]] = []
    for tier in sorted({entry.tier for entry in figured}):
        several = [entry for entry in figured if entry.tier == tier]
        able = [entry for entry in several if merits[id(entry)] is not None]
        options = [
            RankedOption(
                entry.figure, merits[id(entry)] or 0.0, ground.room(*_device(entry.figure))
            )
            for entry in able
            if entry.figure is not None
        ]
        shares = probabilities(options, correlation)
        for entry, option, share, fits in zip(able, options, shares.best, shares.fits, strict=True):
            score = float(f"{math.exp(least - option.log_merit):.12g}")
            is_known = option.figure.measured or option.room is not None
            made = replace(entry, score=score, probability=share, fits=fits if is_known else None)
            ranked.append(((*map(int, tier), False, *place_of(share, option.log_merit)), made))
        ranked += [((*map(int, tier), True), entry) for entry in several if entry not in able]
    for entry in entries:
        if entry.figure is None:
            score = 2.0 ** (min(entry.ruled.points, _MOST_POINTS) - _MOST_POINTS) * _factor(entry)
            failed = bool(entry.ruled_out)
            key: tuple[object, ...] = (
                2,
                entry.is_elsewhere,
                not entry.runs,
                failed,
                -float(f"{score:.12g}"),
            )
            ranked.append((key, replace(entry, score=float(f"{score:.12g}"))))
    # Equals follow the order of platforms and then their names; they have the same rank.
    ranked.sort(key=lambda pair: (pair[0], ground.order(pair[1].candidate.platform),
                                  pair[1].name, _words(pair[1])))  # fmt: skip
    places: dict[tuple[object, ...], int] = {}
    for place, (key, _) in enumerate(ranked, 1):
        places.setdefault(key, place)
    return [replace(entry, rank=places[key]) for key, entry in ranked]


def _tiered(entries: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
    """Return configurations, those marked that rest on less than others in the same place."""
    strong = {e.is_elsewhere for e in entries if e.figure is not None and not e.figure.is_weak}
    return [
        replace(e, is_weak=e.figure is not None and e.figure.is_weak and e.is_elsewhere in strong)
        for e in entries
    ]


def _words(entry: ScoredCandidate) -> tuple[str, ...]:
    return () if entry.figure is None else entry.figure.cell.way


def log_merit(
    entry: ScoredCandidate, objective: str, weights: Mapping[str, float], *, mixed: bool
) -> float | None:
    """Return the logarithm of what an objective minimises; None if it is unknown."""
    figure = entry.figure
    assert figure is not None
    factor = math.log(_factor(entry) or 1e-300)
    if objective == WEIGHTS:
        return _log_weighted(entry, weights) - factor
    if objective == LATENCY:
        return math.log(figure.latency) - factor
    if objective == THROUGHPUT:
        rate = None if mixed else figure.rate
        return -math.log(rate or 1e3 * figure.batch / figure.latency) - factor
    if objective == COST:
        return None if entry.cost is None else math.log(entry.cost.middle) - factor
    joules = figure.cell.row.get("energy_per_item_joules") if figure.measured else None
    return None if not joules else math.log(joules) - factor


def _factor(entry: ScoredCandidate) -> float:
    return math.prod(max(entry.factors.get(name, 1.0), 0.0) for name in FACTORS)


def _weights(
    query: Query, entries: Iterable[ScoredCandidate], ground: AnswerBasis
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the weights of the criteria that are known of all, and why others are left out."""
    if ground.objective != WEIGHTS:
        return {ground.objective: 1.0}, {}
    figured = [entry for entry in entries if entry.figure is not None]
    left_out = {}
    given = weights_of(query, ground.config)
    for name, weight in given.items():
        unknown = [entry.name for entry in figured if _criterion(entry, name) is None]
        if unknown and weight:
            left_out[name] = f"not known of {', '.join(sorted(set(unknown)))}"
    units = {counted(entry.figure.unit): entry.figure.unit for entry in figured if entry.figure}
    if len(units) > 1 and "throughput" in given:
        left_out["throughput"] = f"of {' here and of '.join(sorted(units.values()))} there"
    kept = {name: weight for name, weight in given.items() if name not in left_out and weight}
    if not sum(kept.values()):
        kept = {"compatibility": 1.0}
    total = sum(kept.values())
    return {name: float(f"{weight / total:.12g}") for name, weight in kept.items()}, left_out


def weights_of(query: Query, config: Config) -> dict[str, float]:
    """Return the weights of the criteria by mode and task."""
    task = TASKS.get(query.task or "")
    matters = task.matters if task else {}
    return {
        (criterion := name.removesuffix("_weight")): weight * matters.get(criterion, 1.0)
        for name, weight in config["selection_criteria"][query.mode].items()
    }


def _log_weighted(entry: ScoredCandidate, weights: Mapping[str, float]) -> float:
    """Return the weighted sum of the logarithms of criteria; the less the better."""
    terms = ((weight, _criterion(entry, name)) for name, weight in weights.items())
    return -math.fsum(weight * math.log(value) for weight, value in terms if value)


def _criterion(entry: ScoredCandidate, name: str) -> float | None:
    """Return the value of a criterion, the more the better; None if it is unknown."""
    figure = entry.figure
    assert figure is not None
    if name == "latency":
        return 1.0 / figure.latency
    if name == "throughput":
        return figure.rate
    if name == "memory":
        return 1.0 / figure.memory.middle if figure.memory and figure.memory.middle else None
    if name == "convergence":
        known = figure.cell.row.get("convergence") if figure.measured else None
        if known is not None:
            return float(min(max(known, 1e-9), 1.0))
        return 1.0 if figure.cell.precision in _CONVERGES else None
    return COMPATIBILITY[entry.rating]


def decisive(chosen: Choice, able: Callable[[ScoredCandidate], bool]) -> ScoredCandidate | None:
    """Return the configuration whose measurement most likely changes the first place.

    Measuring the first changes it with the probability that another is the best, measuring another
    with the probability that this one is. Without any value it is the first that can be measured.
    """
    first = next(iter(chosen.configurations), None)
    if first is None:
        return None
    if first.figure is None:
        return next((entry for entry in chosen.ranked if able(entry)), None)
    open_ones = [e for e in chosen.group if e.figure and not e.figure.measured and able(e)]

    def change(entry: ScoredCandidate) -> float:
        share = entry.probability or 0.0
        return 1.0 - share if entry is first else share

    likely = [entry for entry in open_ones if change(entry) >= _LEAST_CHANGE]
    if likely:
        return max(likely, key=change)
    # Nothing says how likely these are the best.
    unknown = (e for e in chosen.ranked if e.is_weak or e.figure is None)
    return next((e for e in unknown if able(e)), None)


def _machines(
    ranked: Sequence[ScoredCandidate], cells: Sequence[EvidenceCell]
) -> dict[str, list[str]]:
    """Return the machines of the cells with the candidates whose result is of them.

    It is empty for a single machine. Devices of two machines do not compare by themselves.
    """
    machines: dict[str, list[str]] = {cell.machine: [] for cell in cells if cell.machine}
    for entry in _first_of_each(ranked):
        if entry.figure is not None and entry.figure.cell.machine:
            machines.setdefault(entry.figure.cell.machine, []).append(entry.name)
    return dict(sorted(machines.items())) if len(machines) > 1 else {}


def _inexact(
    query: Query, candidates: Sequence[Candidate], own: ModelEvidence
) -> dict[str, EvidenceCell]:
    """Return the best cell that its precision keeps out, if it would be the candidate's best."""
    by_name = {}
    for candidate in candidates:
        evidence = own.of(candidate)
        at_batch = [cell for cell in evidence.inexact if cell.batch == query.batch]
        among = [cell for cell in evidence.cells if cell.batch == query.batch]
        if evidence.inexact and best([*(at_batch or evidence.inexact), *among]).exact is False:
            by_name[candidate.name] = best(at_batch or evidence.inexact)
    return by_name


def _contender(
    query: Query, candidate: Candidate, own: ModelEvidence, ground: AnswerBasis
) -> ScoredCandidate:
    config, generates = ground.config, is_generation(query, own.sizes)
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
        None,
        entry,
        ruled(candidate.platform, about, entry.rating),
        config["hardware_preferences"].get(candidate.platform, {}),
        runs=bool(own.others),
        ruled_out=tuple(own.ruled_out(query.batch)),
        wrong_outputs=tuple(own.wrong_outputs(query.batch)),
        engines=tuple(able_engines(candidate.platform, query, generates=generates)),
        unable=why_no_engine(candidate.platform, query, generates=generates),
    )
