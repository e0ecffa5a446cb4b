"""Predictor of cases: a roofline fitted to what was measured, and a process of the residuals.

It learns from measured cases of any configuration and predicts others with an interval. The basis
of a case, the nearest that was measured, decides how its interval is calibrated. No interval
reaches below what the device can do.

Intervals are wider beyond what was measured: a process of residuals would be as sure of a batch of
a million as of one of eight. Half an interval grows, as a logarithm, with each doubling between a
case and the nearest measured one in its configuration: along batch, work and length, the farthest
of them.

A model that is unlike others in an engine is unlike them in its other precisions too. An export
that computes every expert of a mixture takes ten times as long as its operators imply, in int8 as
in fp32; the process holds precisions for too little alike to predict that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from accelbench.predict.case_predictions import (
    Basis,
    CasePredictions,
    bases_of,
    joined_predictions,
    left_out_bases,
    numbered_alike,
    with_its_parts,
)
from accelbench.predict.cases import (
    LATENCY,
    MEMORY,
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    kind_of,
    numbers_of_places,
    platform_of,
)
from accelbench.predict.device_grid import FEWEST_DEVICES, GridPredictor
from accelbench.predict.device_limits import (
    HALF_WIDTH,
    LEVEL,
    least_values,
    measured_below,
    within_limits,
)
from accelbench.predict.held_out import HeldOutError, HeldOutErrors
from accelbench.predict.positive_sum import ConfigurationSums, PositiveSum, fit_sum
from accelbench.predict.residual_process import (
    CaseInputs,
    KernelNames,
    ResidualProcess,
    fit_process,
    usual_variances,
)
from accelbench.predict.signatures import Floats, Ints
from accelbench.predict.terms import (
    NOT_CALIBRATED,
    USUAL_MEMORY,
    Calibrated,
    TracedCase,
    kernel_sizes,
    memory_terms,
    time_terms,
    usual_time,
)

#: A model in an engine, whatever the precision.
EngineModel = tuple[str, CaseConfiguration]
#: Of what is carried over so much may be wrong, as a standard deviation.
_UNSURE = 0.5


@dataclass
class CarriedDeviations:
    """By model and engine the logarithm by which it deviates in the precisions that were measured.

    Attributes:
        measured: models in configurations that were measured: they have their own.
    """

    of: Mapping[EngineModel, float]
    measured: frozenset[tuple[str, CaseConfiguration]]

    def __call__(self, cases: Sequence[PredictedCase]) -> tuple[Floats, Floats]:
        """What is added to the logarithm of each case, and to its variance."""
        if not self.of:
            return np.zeros(len(cases)), np.zeros(len(cases))
        # A matrix has a hundred thousand cases of few models in few configurations.
        places = numbers_of_places(cases)
        shifts: dict[tuple[str, int], float] = {}
        for case, place in zip(cases, places, strict=True):
            if (case.model, place) not in shifts:
                shifts[case.model, place] = self._of(case)
        shift = np.array([shifts[c.model, p] for c, p in zip(cases, places, strict=True)])
        return shift, (_UNSURE * shift) ** 2

    def _of(self, case: PredictedCase) -> float:
        if (case.model, case.configuration) in self.measured:
            return 0.0
        return self.of.get(_engine(case), 0.0)


def carried_deviations(
    known: Sequence[PredictedCase],
    unlike: Mapping[tuple[str, CaseConfiguration], float],
    errors: Callable[[Ints], Floats],
) -> CarriedDeviations:
    """Return the deviations of models that are unlike others in an engine.

    `errors` returns, by groups of cases, the error of each without its group; a negative group
    stays.
    """
    engines: dict[EngineModel, list[int]] = {}
    for row, case in enumerate(known):
        if (case.model, case.configuration) in unlike:
            engines.setdefault(_engine(case), []).append(row)
    if not engines:
        return CarriedDeviations({}, frozenset())
    groups = np.full(len(known), -1, dtype=np.int64)
    for number, rows in enumerate(engines.values()):
        groups[rows] = number
    off = errors(groups)
    return CarriedDeviations(
        {engine: float(np.median(off[rows])) for engine, rows in engines.items()},
        frozenset((case.model, case.configuration) for case in known),
    )


def _engine(case: PredictedCase) -> EngineModel:
    return case.model, replace(case.configuration, precision="")


#: Work, batch and length among the sizes of the kernel, and what makes doublings of them.
_COLUMNS = (0, 1, 3)
_DOUBLINGS = np.array([2.0 / np.log(2.0), 2.0, 2.0 / np.log(2.0)])
#: Within twice a size that was measured nothing is added.
_NEAR = 1.0
#: A doubling where too few larger batches were measured to count errors, and at least.
USUAL_WIDENING = 0.1
_LEAST_WIDENING = 0.05
_FEWEST_ERRORS = 20
#: A configuration with so many cases has a sum of times of its own: 65 factors.
_FEWEST_OF_SUM = 100
#: With fewer cases it has the factors of the most similar one, all slower or faster by as much. By
#: how much is believed of so many cases to a half.
_OFFSET_CASES = 1.0


def doublings_beyond(
    cases: Sequence[PredictedCase],
    sizes: Floats,
    known: Sequence[PredictedCase],
    known_sizes: Floats,
) -> Floats:
    """How many doublings beyond twice what was measured in its configuration each case lies.

    Where nothing was measured in a configuration, it is compared with all of them; without any it
    is 0, as peaks alone are as far off at any size.
    """
    apart = np.zeros(len(cases))
    if not len(known):
        return apart
    measured = _rows(known)
    for place, rows in _rows(cases).items():
        others = known_sizes[measured[place]] if place in measured else known_sizes
        for column, scale in zip(_COLUMNS, _DOUBLINGS, strict=True):
            nearest = _nearest(sizes[rows, column], others[:, column]) * scale
            apart[rows] = np.maximum(apart[rows], nearest)
    return np.maximum(apart - _NEAR, 0.0)


def _nearest(values: Floats, known: Floats) -> Floats:
    """How far each value is from the nearest known one."""
    ordered = np.unique(known)
    after = np.searchsorted(ordered, values).clip(0, len(ordered) - 1)
    before = (after - 1).clip(0)
    return np.asarray(np.minimum(np.abs(values - ordered[after]), np.abs(values - ordered[before])))


def larger_batches(cases: Sequence[PredictedCase]) -> Iterator[tuple[Ints, Floats]]:
    """Cases to leave out together: those above each batch that their configuration has.

    With each how many doublings it lies beyond twice the largest batch that is left.
    """
    batches = np.array([case.shapes.batch for case in cases], dtype=np.float64)
    rows = _rows(cases)
    for batch in np.unique(batches)[:-1].tolist():
        groups, beyond = np.full(len(cases), -1, dtype=np.int64), np.zeros(len(cases))
        for number, places in enumerate(rows.values()):
            if not (batches[places] <= batch).any():
                continue
            left = batches[places][batches[places] <= batch].max()
            larger = places[batches[places] > batch]
            groups[larger] = number
            beyond[larger] = np.log2(batches[larger] / left) - _NEAR
        if (beyond > 0.0).any():
            yield groups, np.maximum(beyond, 0.0)


def widening(excess: Floats, beyond: Floats) -> float:
    """What half an interval grows by for each doubling."""
    if len(excess) < _FEWEST_ERRORS:
        return USUAL_WIDENING
    each = np.sort(np.maximum(excess, 0.0) / beyond)
    rank = min(int(np.ceil((len(each) + 1) * LEVEL)), len(each)) - 1
    return max(float(each[rank]), _LEAST_WIDENING)


def _rows(cases: Sequence[PredictedCase]) -> dict[CaseConfiguration, Ints]:
    rows: dict[CaseConfiguration, list[int]] = {}
    for row, case in enumerate(cases):
        rows.setdefault(case.configuration, []).append(row)
    return {place: np.array(places, dtype=np.int64) for place, places in rows.items()}


#: Where too few errors were counted: half as wide again covered eight in ten of them.
_UNCOUNTED_WIDTH = 2.5
#: Fewer errors than this calibrate nothing.
#: Peaks alone are off by a factor of three either way: half of nine in ten. Memory, of which they
#: say nothing, by five: 186 cases on a CPU lay within three times in 44 % only.
_PEAKS_WIDTH = {LATENCY: 1.1, MEMORY: 1.6}
#: Of GPUs, whose usual factors are known: forty public values of an A100, a V100, a T4 and a TITAN
#: RTX all lie within.
_PEAKS_WIDTH_OF_GPUS = 0.8
#: Each model is left out by itself up to so many cases; of more, models are left out in folds.
_CASES_ONE_BY_ONE = 400
_FOLDS = 6
_UNLIKE_ROUNDS = 2
#: Of more cases whole families are left out in place of models.
_MOST_REFITTED = 1500
#: Errors of models that are left out in closed form are smaller than of unseen ones, since the sums
#: were fitted to them too: intervals without this covered 84 % of unseen models.
_LEARNED_BY_SUMS = 1.15
#: Of so many cases at most whole configurations and batches are left out.
_MOST_LEFT_OUT = 1000


@dataclass(frozen=True)
class CaseFeatures:
    """What a predictor sees of cases, a row each."""

    cases: tuple[PredictedCase, ...]
    terms: Floats  # of the target
    sizes: Floats
    least: Floats  # what none can be below; 0 where that is not known

    @classmethod
    def of(
        cls,
        traced: Sequence[TracedCase],
        target: str,
        times: Floats | None = None,
        calibrated: Calibrated = NOT_CALIBRATED,
    ) -> CaseFeatures:
        """The features of cases for a target."""
        times = time_terms(traced, calibrated) if times is None else times
        terms = times if target == LATENCY else memory_terms(traced)
        cases = tuple(entry.case for entry in traced)
        least = least_values(traced, target, times, calibrated)
        return cls(cases, terms, kernel_sizes(traced, times), least)

    def __len__(self) -> int:
        return len(self.cases)

    def only(self, rows: Ints) -> CaseFeatures:
        """Some of the cases."""
        cases = tuple(self.cases[int(row)] for row in rows)
        return CaseFeatures(cases, self.terms[rows], self.sizes[rows], self.least[rows])


@dataclass
class CasePredictor:
    """A predictor of one target.

    Attributes:
        kind: the kind of platform of its cases.
        widths: by basis, half of an interval of 90 % as standard deviations.
        widening: what half an interval grows by, for each doubling beyond what was measured.
        unlike: models that are unlike others in a configuration, by how many times.
        unseen: errors of each known case by a predictor that does not know its model, as logarithms
            and as standard deviations; None where they were not kept.
    """

    target: str
    known: CaseFeatures
    log_values: Floats
    rooflines: ConfigurationSums = field(default_factory=ConfigurationSums)
    process: ResidualProcess | None = None
    widths: dict[Basis, float] = field(default_factory=dict)
    widening: float = USUAL_WIDENING
    unlike: dict[tuple[str, CaseConfiguration], float] = field(default_factory=dict)
    names: KernelNames = field(default_factory=KernelNames)
    unseen: tuple[Floats, Floats] | None = None
    kind: str = ""

    @property
    def whole(self) -> list[PredictedCase]:
        """Of the known cases those that are whole steps, not parts of a request."""
        return [case for case in self.known.cases if not case.part]

    @property
    def usual(self) -> Floats:
        """The factors of the terms before anything was measured."""
        return usual_time(self.kind) if self.target == LATENCY else USUAL_MEMORY

    @property
    def _peaks_width(self) -> float:
        if self.target == LATENCY and self.kind == "GPU":
            return _PEAKS_WIDTH_OF_GPUS
        return _PEAKS_WIDTH[self.target]

    def fit(self, seed: int = 0, begin: Floats | None = None) -> CasePredictor:
        """Learn from the known cases."""
        self.rooflines = self._fitted_rooflines()
        if len(self.known):
            self.unlike = self._unlike_models()
            residual = self.log_values - self._base(self.known)
            self.process = fit_process(self._inputs(self.known, learn=True), residual, begin)
            self._calibrate(seed)
        return self

    def _unlike_models(self) -> dict[tuple[str, CaseConfiguration], float]:
        """Models that are unlike others in a configuration, by the variances that are usual.

        Variances that were fitted to them as well would make every model as unlike.
        """
        keys = [(case.model, case.configuration) for case in self.known.cases]
        self.unlike = {}
        for _ in range(_UNLIKE_ROUNDS):  # what the first round leaves out hides the next no more
            process = self.condition(usual_variances()).process
            assert process is not None
            unlike = process.unlike_models(numbered_alike(keys))
            more = zip(keys, unlike, strict=True)
            self.unlike |= {key: float(times) for key, times in more if times > 1.0}
        return self.unlike

    def condition(
        self, variances: Floats, kept: tuple[Floats, Floats] | None = None
    ) -> CasePredictor:
        """Make a predictor ready whose factors and widths were kept, and maybe its posterior."""
        if len(self.known):
            residual = self.log_values - self._base(self.known)
            inputs = self._inputs(self.known, learn=True)
            self.process = ResidualProcess(inputs, residual, variances, kept)
        return self

    def predict(self, features: CaseFeatures) -> CasePredictions:
        """Predictions of cases."""
        log_value, deviation = self._predict(features)
        basis = self.bases(features.cases)
        width = np.array([self.widths.get(kind, _UNCOUNTED_WIDTH) for kind in basis])
        half = width * deviation + self.widening * self._beyond(features)
        # Results of other platforms do not move a figure that rests on peaks: 14 scattered cases
        # of a CPU took one of an A100 from 63 to 1,214 ms.
        of_peaks = np.array([kind is Basis.PEAKS for kind in basis], dtype=bool)
        log_value = np.where(of_peaks, self._unlearned(features), log_value)
        half = np.where(of_peaks, self._peaks_width, half)
        value, low, high, limited = within_limits(log_value, half, self.least(features))
        return CasePredictions(value, low, high, tuple(basis), limited)

    def least(self, features: CaseFeatures) -> Floats:
        """What no case can be below: its limit, unless less was measured there."""
        shares = self._below
        reached = [shares.get(case.configuration, 1.0) for case in features.cases]
        return np.asarray(features.least * np.array(reached))

    @cached_property
    def held_out(self) -> HeldOutErrors:
        """By how much it is off where what a figure rests on is held out."""
        if self.process is None:
            return HeldOutErrors()
        unseen, _ = self.unseen or self.errors_of_unseen_models()
        return HeldOutErrors(self.known.cases, self.process, unseen)

    def _beyond(self, features: CaseFeatures) -> Floats:
        known = self.known
        return doublings_beyond(features.cases, features.sizes, known.cases, known.sizes)

    @cached_property
    def _below(self) -> dict[CaseConfiguration, float]:
        return measured_below(self.known.cases, self.known.least, self.log_values)

    def covariance(self, features: CaseFeatures) -> tuple[Floats, float]:
        """Covariance of what predictions of cases are off by, and the noise of a measurement.

        Before anything was measured it is what the kernel begins with.
        """
        process = self.process
        if process is None:
            nothing = self.known.only(np.zeros(0, dtype=np.int64))
            process = fit_process(self._inputs(nothing, learn=True), np.zeros(0))
        inputs = self._inputs(features, learn=True)
        return process.covariance(inputs), float(process.variances[-1])

    def bases(self, cases: Sequence[PredictedCase]) -> list[Basis]:
        """What predictions of cases rest on."""
        return bases_of(cases, self.known.cases)

    def _fitted_rooflines(self) -> ConfigurationSums:
        """The sum of all configurations, and that of each with many cases, near the one of all.

        One engine maps the weights and another keeps two copies of them: of memory few cases are
        enough. A configuration with few cases of latency shares the factors of the most similar.
        """
        if not len(self.known):
            return ConfigurationSums(PositiveSum(np.log(self.usual)))
        configurations = [case.configuration for case in self.known.cases]
        numbers = numbered_alike(configurations)
        whole = fit_sum(self.known.terms, self.log_values, self.usual, numbers)
        rooflines = ConfigurationSums(whole)
        fewest = 1 if self.target == MEMORY else _FEWEST_OF_SUM
        few: dict[CaseConfiguration, Ints] = {}
        for number, configuration in enumerate(dict.fromkeys(configurations)):
            rows = np.flatnonzero(numbers == number)
            if len(rows) < fewest:
                few[configuration] = rows
                continue
            terms, values = self.known.terms[rows], self.log_values[rows]
            slower = np.median(values - whole(terms)) if self.target == LATENCY else 0.0
            rooflines.of[configuration] = fit_sum(terms, values, np.exp(whole.slower(slower).theta))
        nearest = {place: rooflines.nearest(place) for place in few}
        for configuration, rows in few.items():
            known = nearest[configuration]
            off = self.log_values[rows] - known(self.known.terms[rows])
            slower = np.median(off) * len(rows) / (len(rows) + _OFFSET_CASES)
            rooflines.of[configuration] = known.slower(slower)
        return rooflines

    def _base(self, features: CaseFeatures) -> Floats:
        return self.rooflines.sums([c.configuration for c in features.cases], features.terms)

    def _without(self, kept: Ints, variances: Floats) -> CasePredictor:
        """A predictor of some of the known cases, with the variances that all of them chose."""
        known, values = self.known.only(kept), self.log_values[kept]
        fold = CasePredictor(self.target, known, values, kind=self.kind)
        # That a model is unlike is known of those alone that were measured: a new one is not.
        models = {case.model for case in fold.known.cases}
        fold.unlike = {key: times for key, times in self.unlike.items() if key[0] in models}
        fold.rooflines = fold._fitted_rooflines()
        return fold.condition(variances)

    def _unlearned(self, features: CaseFeatures) -> Floats:
        """Return the logarithms that a predictor gives that learned from nothing."""
        places = [case.configuration for case in features.cases]
        return ConfigurationSums(PositiveSum(np.log(self.usual))).sums(places, features.terms)

    def _predict(self, features: CaseFeatures) -> tuple[Floats, Floats]:
        base = self._base(features)
        if self.process is None:
            return base, np.full(len(features), self._peaks_width / HALF_WIDTH)
        mean, variance = self.process(self._inputs(features, learn=False))
        shift, unsure = self._carried(features.cases)
        return base + mean + shift, np.sqrt(variance + unsure)

    @cached_property
    def _carried(self) -> CarriedDeviations:
        def errors(groups: Ints) -> Floats:
            assert self.process is not None
            return self.process.residual - self.process.left_out(groups)[0]

        return carried_deviations(self.known.cases, self.unlike, errors)

    def _inputs(self, features: CaseFeatures, *, learn: bool) -> CaseInputs:
        places = [case.configuration for case in features.cases]
        shares = self.rooflines.shares(places, features.terms)
        unlike = np.ones(len(features))
        models = {model for model, _ in self.unlike}
        for row, case in enumerate(features.cases):
            if case.model in models:
                unlike[row] = self.unlike.get((case.model, case.configuration), 1.0)
        return self.names.inputs(features.cases, features.sizes, shares, unlike, learn=learn)

    def _calibrate(self, seed: int) -> None:
        """Widths by basis, from errors on cases left out.

        Of cases whose model stays known they are in closed form; of models that are left out whole
        all is fitted anew without them.
        """
        process = self.process
        assert process is not None
        cases = self.known.cases
        kinds = {
            # A request is left out with its parts: they would say how long it takes.
            Basis.OTHER_SIZES: numbered_alike([with_its_parts(case) for case in cases]),
            Basis.ELSEWHERE: numbered_alike([(c.model, c.configuration) for c in cases]),
            Basis.FAMILY: numbered_alike([case.model for case in cases]),
        }
        for basis, groups in kinds.items():
            mean, variance = process.left_out(groups)
            wanted = left_out_bases(cases, groups)
            errors = np.abs(process.residual - mean) / np.sqrt(variance)
            learned = _LEARNED_BY_SUMS if basis is Basis.FAMILY else 1.0
            self._set_width(basis, learned * errors[[kind is basis for kind in wanted]])
        some = self._some_of(process)
        self._calibrate_new_configurations(*some)
        self._calibrate_larger_batches(*some)
        self.unseen = self.errors_of_unseen_models(seed)
        standard = self.unseen[1]
        self._set_width(Basis.OTHER_MODELS, standard[~np.isnan(standard)])

    def _some_of(self, process: ResidualProcess) -> tuple[ResidualProcess, CaseFeatures]:
        """The process of some cases: to leave many out at once takes the cube of their number."""
        rows = np.arange(len(self.known))
        if len(rows) > _MOST_LEFT_OUT:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_LEFT_OUT, replace=False))
        some = process.inputs.only(rows)
        return ResidualProcess(some, process.residual[rows], process.variances), self.known.only(
            rows
        )

    def _calibrate_new_configurations(self, process: ResidualProcess, known: CaseFeatures) -> None:
        """The width where a configuration was never measured: each whole one is left out."""
        places = [case.configuration for case in known.cases]
        groups = numbered_alike(places)
        if not int(groups.max()):
            return
        mean, variance = process.left_out(groups)
        error = process.residual - mean
        for number, place in enumerate(dict.fromkeys(places)):
            # Without it, its cases would have the sum of another configuration.
            rows = np.flatnonzero(groups == number)
            others = {other: sums for other, sums in self.rooflines.of.items() if other != place}
            other = ConfigurationSums(self.rooflines.whole, others).nearest(place)
            own = self.rooflines.nearest(place)
            error[rows] += own(known.terms[rows]) - other(known.terms[rows])
        self._set_width(Basis.OTHER_CONFIGURATIONS, np.abs(error) / np.sqrt(variance))

    def _calibrate_larger_batches(self, process: ResidualProcess, known: CaseFeatures) -> None:
        """What intervals grow by beyond what was measured: the largest batches are left out."""
        width = self.widths.get(Basis.OTHER_SIZES, _UNCOUNTED_WIDTH)
        excess, beyond = [np.zeros(0)], [np.zeros(0)]
        for groups, doublings in larger_batches(known.cases):
            mean, variance = process.left_out(groups)
            error = np.abs(process.residual - mean) - width * np.sqrt(variance)
            excess.append(error[doublings > 0.0])
            beyond.append(doublings[doublings > 0.0])
        self.widening = widening(np.concatenate(excess), np.concatenate(beyond))

    def errors_of_unseen_models(self, seed: int = 0) -> tuple[Floats, Floats]:
        """Errors of each case, its model left out: as logarithms, and as standard deviations.

        Of many cases whole families are left out. NaN if there is no other model.
        """
        process = self.process
        assert process is not None
        models = numbered_alike([case.model for case in self.known.cases])
        count = int(models.max()) + 1
        if len(models) > _MOST_REFITTED:
            models = numbered_alike([case.relatives for case in self.known.cases])
            count = int(models.max()) + 1
        folds = count if len(models) <= _CASES_ONE_BY_ONE else min(_FOLDS, count)
        fold = np.random.default_rng(seed).permutation(count)[models] % folds
        error, standard = np.full(len(models), np.nan), np.full(len(models), np.nan)
        for number in range(folds):
            inside, outside = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            if not len(inside) or not len(outside):
                continue
            without = self._without(inside, process.variances)
            log_value, deviation = without._predict(self.known.only(outside))
            error[outside] = self.log_values[outside] - log_value
            standard[outside] = np.abs(error[outside]) / deviation
        return error, standard

    def _set_width(self, basis: Basis, errors: Floats) -> None:
        if len(errors) >= _FEWEST_ERRORS:
            rank = int(np.ceil((len(errors) + 1) * LEVEL)) - 1
            self.widths[basis] = float(np.sort(errors)[min(rank, len(errors) - 1)])


NO_GRIDS: Mapping[str, GridPredictor] = {}


class PredictorsByKind:
    """The predictors of one target, one for each kind of platform.

    Results of one kind of platform do not move predictions of another. In one predictor, phones and
    boards took the error of public values of GPUs from 15 to 200 %. Models without operators have
    predictors of their own, one for each platform.
    """

    def __init__(
        self,
        target: str,
        of: Mapping[str, CasePredictor],
        grids: Mapping[str, GridPredictor] = NO_GRIDS,
    ) -> None:
        self.target = target
        self.of = dict(of)
        self.grids = dict(grids)
        self._untrained: dict[str, CasePredictor] = {}

    def __len__(self) -> int:
        of_grids = sum(len(grid.known) for grid in self.grids.values())
        return of_grids + sum(len(predictor.known) for predictor in self.of.values())

    @property
    def whole(self) -> list[PredictedCase]:
        """The known cases that are whole steps, not parts of a request."""
        return [case for predictor in self.of.values() for case in predictor.whole]

    def whole_of(self, cases: Iterable[PredictedCase]) -> list[PredictedCase]:
        """The known cases that predictions of some cases rest on, parts of requests left out."""
        asked = {(case.has_operators, case.configuration) for case in cases}
        kinds = {kind_of(place) for is_traced, place in asked if is_traced}
        named = {platform_of(place) for is_traced, place in asked if not is_traced}
        whole = [case for kind in kinds & set(self.of) for case in self.of[kind].whole]
        return whole + [case for kind in named & set(self.grids) for case in self.grids[kind].known]

    def predictor(self, configuration: CaseConfiguration) -> CasePredictor:
        """The predictor of a configuration's kind of platform."""
        return self._of_kind(kind_of(configuration))

    def _of_kind(self, kind: str) -> CasePredictor:
        if kind not in self.of and kind not in self._untrained:
            nothing = CaseFeatures.of([], self.target)
            self._untrained[kind] = CasePredictor(self.target, nothing, np.zeros(0), kind=kind)
            self._untrained[kind].fit()
        return self.of.get(kind) or self._untrained[kind]

    def is_answerable(self, cases: Sequence[PredictedCase]) -> list[bool]:
        """Return which cases have a prediction: without operators, those that others measured."""
        answered = [case.has_operators for case in cases]
        for grid, rows in self._by_grid(cases):
            for row in rows[grid.can_answer([cases[row] for row in rows.tolist()])].tolist():
                answered[row] = True
        return answered

    def _by_grid(self, cases: Sequence[PredictedCase]) -> Iterator[tuple[GridPredictor, Ints]]:
        by_platform: dict[str, list[int]] = {}
        for row, case in enumerate(cases):
            if not case.has_operators:
                by_platform.setdefault(platform_of(case.configuration), []).append(row)
        for platform, rows in by_platform.items():
            grid = self.grids.get(platform) or GridPredictor(self.target, (), np.zeros(0))
            yield grid, np.array(rows, dtype=np.int64)

    def _by_predictor(self, features: CaseFeatures) -> Iterator[tuple[CasePredictor, Ints]]:
        is_traced = np.array([case.has_operators for case in features.cases], dtype=bool)
        if not is_traced.all():
            rows = np.flatnonzero(is_traced)
            for predictor, some in self._by_predictor(features.only(rows)):
                yield predictor, rows[some]
            return
        numbers = numbers_of_places(features.cases)
        first = dict(zip(numbers, features.cases, strict=True))
        kinds = {number: kind_of(case.configuration) for number, case in first.items()}
        row_kinds = np.array([kinds[number] for number in numbers])
        for kind in dict.fromkeys(kinds.values()):
            yield self._of_kind(kind), np.flatnonzero(row_kinds == kind)

    def predict(self, features: CaseFeatures) -> CasePredictions:
        """Return predictions of cases, each by the predictor of its kind."""
        parts = [
            (rows, predictor.predict(features.only(rows)))
            for predictor, rows in self._by_predictor(features)
        ]
        cases = features.cases
        for grid, rows in self._by_grid(cases):
            parts.append((rows, grid.predict([cases[row] for row in rows.tolist()])))
        return joined_predictions(parts, len(features))

    def predict_traced(
        self, traced: Sequence[TracedCase], calibrated: Calibrated = NOT_CALIBRATED
    ) -> CasePredictions:
        """Return predictions of cases with their operators, each by itself."""
        return self.predict(CaseFeatures.of(traced, self.target, calibrated=calibrated))

    def least(self, features: CaseFeatures) -> Floats:
        """Return what no case can be below: its limit, unless less was measured there."""
        least = np.zeros(len(features))
        for predictor, rows in self._by_predictor(features):
            least[rows] = predictor.least(features.only(rows))
        return least

    def covariance(self, features: CaseFeatures) -> tuple[Floats, float]:
        """Return the covariance of the errors of predictions, and the noise of a measurement.

        Errors on different kinds of platforms are independent.
        """
        total, noises = np.zeros((len(features), len(features))), []
        for predictor, rows in self._by_predictor(features):
            total[np.ix_(rows, rows)], noise = predictor.covariance(features.only(rows))
            noises.append(noise)
        cases = features.cases
        for grid, rows in self._by_grid(cases):
            total[np.ix_(rows, rows)], noise = grid.covariance([cases[r] for r in rows.tolist()])
            noises.append(noise)
        return total, max(noises, default=0.0)

    def held_out_error(self, basis: Basis, case: PredictedCase) -> HeldOutError | None:
        """Return the error of predictions on a basis, with that basis held out."""
        place = case.configuration
        if case.has_operators:
            return self.predictor(place).held_out.of(basis, place)
        grid = self.grids.get(platform_of(place))
        return grid.held_out_error(basis, place) if grid else None


def predictor_of(
    measured: Sequence[MeasuredCase],
    traced: Mapping[PredictedCase, TracedCase],
    target: str,
    calibrated: Calibrated = NOT_CALIBRATED,
    kind: str = "",
) -> CasePredictor:
    """Return a predictor of a target, with the cases that it is to be fitted to."""
    values = [(entry.case, entry.value(target)) for entry in measured]
    pairs = [(traced[case], value) for case, value in values if case in traced and value]
    logs = np.log(np.array([value for _, value in pairs], dtype=np.float64))
    features = CaseFeatures.of([entry for entry, _ in pairs], target, calibrated=calibrated)
    return CasePredictor(target, features, logs, kind=kind)


def fit_predictors(
    measured: Sequence[MeasuredCase],
    traced: Mapping[PredictedCase, TracedCase],
    target: str,
    calibrated: Calibrated = NOT_CALIBRATED,
    begin: Mapping[str, Floats] | None = None,
) -> PredictorsByKind:
    """Fit the predictors of a target, from variances to begin with; leave out untraced cases."""
    by_kind: dict[str, list[MeasuredCase]] = {}
    for entry in measured:
        if entry.case in traced and entry.case.has_operators and entry.value(target):
            by_kind.setdefault(kind_of(entry.case.configuration), []).append(entry)
    of = {
        kind: predictor_of(entries, traced, target, calibrated, kind).fit(
            begin=(begin or {}).get(kind)
        )
        for kind, entries in by_kind.items()
    }
    return PredictorsByKind(target, of, grids_of(measured, target))


def grids_of(measured: Iterable[MeasuredCase], target: str) -> dict[str, GridPredictor]:
    """Return the predictors of models without operators, by platform with enough devices."""
    by_platform: dict[str, list[tuple[PredictedCase, float]]] = {}
    for entry in measured:
        if not entry.case.has_operators and (value := entry.value(target)):
            key = platform_of(entry.case.configuration)
            by_platform.setdefault(key, []).append((entry.case, value))
    return {
        platform: GridPredictor(
            target, tuple(case for case, _ in pairs), np.log([value for _, value in pairs])
        )
        for platform, pairs in by_platform.items()
        if len({case.configuration.device for case, _ in pairs}) >= FEWEST_DEVICES
    }
