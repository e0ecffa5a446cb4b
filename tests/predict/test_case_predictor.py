"""The predictor of cases: what it learns, what its predictions rest on, how wide they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up_cases import HERE, THERE, made_case, measured_cases, true_ms

from accelbench.models.graph_files.steps import OperatorSignature
from accelbench.predict import residual_process
from accelbench.predict.answers import _platform_notes
from accelbench.predict.case_predictions import Basis
from accelbench.predict.case_predictor import (
    CaseFeatures,
    CasePredictor,
    PredictorsByKind,
    fit_predictors,
    predictor_of,
)
from accelbench.predict.cases import CaseConfiguration, MeasuredCase
from accelbench.predict.evaluation import own_cases, own_scores
from accelbench.predict.measurement_plan import MeasurementCosts, plan
from accelbench.predict.positive_sum import PositiveSum, fit_sum
from accelbench.predict.residual_process import KernelNames, ResidualProcess, fit_process
from accelbench.predict.signatures import PassTrace
from accelbench.predict.terms import TracedCase, memory_terms
from accelbench.run.plan.run_forecast import SecondsRange


@pytest.fixture(scope="module")
def fitted() -> CasePredictor:
    measured, traced = measured_cases()
    return predictor_of(measured, traced, "latency").fit()


def error(predictor: CasePredictor, *cases: object) -> np.ndarray:
    traced = list(cases)
    predicted = predictor.predict(CaseFeatures.of(traced, "latency")).value
    return np.abs(np.log(predicted / np.array([true_ms(entry) for entry in traced])))


def test_a_sum_finds_the_factors_of_its_terms():
    # A sum finds the factors of its terms.
    rng = np.random.default_rng(1)
    terms = np.exp(rng.normal(0, 1.5, (300, 3)))
    factors = np.array([0.5, 2.0, 8.0])
    logs = np.log(terms @ factors) + rng.normal(0, 0.05, 300)
    logs[:5] += 3.0  # outliers move nothing
    found = fit_sum(terms, logs, np.ones(3))
    assert np.exp(found.theta) == pytest.approx(factors, rel=0.1)
    # Terms that nothing was measured of stay where they are usual.
    terms = np.column_stack([np.linspace(1, 9, 40), np.zeros(40)])
    found = fit_sum(terms, np.log(4 * terms[:, 0]), np.array([2.0, 5.0]))
    assert np.exp(found.theta)[1] == pytest.approx(5.0)
    assert np.exp(found.theta)[0] == pytest.approx(4.0, rel=0.05)


def test_unseen_models_and_batches(fitted):
    # An unseen model is predicted from the others.
    unseen = [made_case(number, place) for number in (31, 36, 41) for place in (HERE, THERE)]
    assert error(fitted, *unseen).max() < 0.35
    assert np.median(error(fitted, *unseen)) < 0.15
    # A model at another batch is predicted better than an unseen one.
    known = [made_case(number, HERE, 2) for number in range(12)]
    unseen = [made_case(number, HERE, 2) for number in range(24, 36)]
    assert error(fitted, *known).mean() < 0.06
    assert error(fitted, *known).mean() < error(fitted, *unseen).mean()
    # Each prediction says what it rests on.
    gpu = CaseConfiguration("cuda", "NVIDIA H100 80GB HBM3", "pytorch", "fp32", "inference")
    half = replace(HERE, precision="bf16")
    cases = [
        made_case(1, HERE, 16), made_case(1, half), made_case(50), made_case(50, half),
        made_case(50, gpu),
    ]  # fmt: skip
    kinds = PredictorsByKind("latency", {"CPU": fitted})
    answer = kinds.predict(CaseFeatures.of(cases, "latency"))
    assert answer.basis == (
        Basis.OTHER_SIZES, Basis.OTHER_CONFIGURATIONS, Basis.FAMILY,
        Basis.OTHER_CONFIGURATIONS, Basis.PEAKS,
    )  # fmt: skip
    width = np.log(answer.high / answer.low)
    assert width.argmin() in (0, 2)  # its own model, or its family, here
    assert width.argmax() in (3, 4)  # where nothing is
    assert fitted.bases([made_case(1, HERE, 4).case]) == [Basis.MEASURED]


def test_how_uncertain_an_engine_or_a_model_is():
    # A model that was measured in one engine is known in another that was measured.
    measured, traced = measured_cases()
    some = [m for m in measured if m.case.model != "model-2" or m.case.configuration == HERE]
    predictor = predictor_of(some, traced, "latency").fit()
    assert predictor.bases([made_case(2, THERE).case]) == [Basis.ELSEWHERE]
    # A configuration that was never measured is as uncertain as one left out whole: its cases have
    # the sum of the other one then.
    measured, traced = measured_cases()
    predictor = predictor_of(measured, traced, "latency").fit()
    some = [m for m in measured if m.case.configuration == HERE]
    alone = predictor_of(some, traced, "latency").fit()
    there = [m for m in measured if m.case.configuration == THERE]
    features = CaseFeatures.of([traced[m.case] for m in there], "latency")
    off = np.abs(np.log(alone.predict(features).value) - np.log([m.latency_ms for m in there]))
    _, variance = alone._predict(features)
    half = predictor.widths[Basis.OTHER_CONFIGURATIONS] * variance
    assert np.mean(off <= half) >= 0.85
    # That a model is unlike is not known where it is left out.
    measured, traced = measured_cases()
    strange = [
        replace(entry, latency_ms=12 * (entry.latency_ms or 0.0))
        if (entry.case.model, entry.case.configuration) == ("model-3", THERE)
        else entry
        for entry in measured
    ]
    predictor = predictor_of(strange, traced, "latency").fit()
    assert ("model-3", THERE) in predictor.unlike
    rows = [case.model == "model-3" and case.configuration == THERE
            for case in predictor.known.cases]  # fmt: skip
    _, standard = predictor.errors_of_unseen_models()
    assert standard[np.array(rows)].min() > 4.0  # as far off as it is for who has never seen it


@pytest.mark.parametrize("differs", [0.0, 0.4])
def test_that_a_model_is_unlike_in_an_engine_holds_in_its_other_precisions(differs):
    measured, traced = measured_cases()
    narrow = replace(THERE, precision="int8")
    strange = {"model-3", "model-7", "model-11"}

    def case(entry: MeasuredCase) -> tuple[MeasuredCase, TracedCase]:
        asked = replace(entry.case, configuration=narrow)
        times = np.exp(differs) if asked.model in strange else 1.0
        ms = 0.6 * times * (entry.latency_ms or 0.0)
        return replace(entry, case=asked, latency_ms=ms), replace(traced[entry.case], case=asked)

    known = [
        replace(entry, latency_ms=10 * (entry.latency_ms or 0.0))
        if entry.case.model in strange and entry.case.configuration == THERE
        else entry
        for entry in measured
    ]
    pairs = [case(entry) for entry in known if entry.case.configuration == THERE]
    traced |= {entry.case: trace for entry, trace in pairs}
    hidden = [entry for entry, _ in pairs if entry.case.model in {"model-3", "model-5"}]
    some = [*known, *(entry for entry, _ in pairs if entry not in hidden)]
    predictor = predictor_of(some, traced, "latency").fit()
    assert ("model-3", THERE) in predictor.unlike
    features = CaseFeatures.of([traced[entry.case] for entry in hidden], "latency")
    answer = predictor.predict(features)
    for place, entry in enumerate(hidden):
        assert entry.latency_ms is not None
        assert abs(np.log(answer.value[place] / entry.latency_ms)) < 0.2 + differs
        assert 0.95 * answer.low[place] <= entry.latency_ms <= 1.05 * answer.high[place]


def test_nine_in_ten_lie_inside_of_their_intervals(fitted):
    scores = own_scores(own_cases({"latency": PredictorsByKind("latency", {"CPU": fitted})}))[
        "latency"
    ]
    assert scores["n"] == 96
    assert scores["models"] == 24
    assert scores["mdape"] < 12
    assert 80 <= scores["coverage90"] <= 99


def test_what_rests_on_peaks_and_on_other_platforms():
    # Nothing measured gives peaks and a wide interval.
    empty = predictor_of([], {}, "latency").fit()
    answer = empty.predict(CaseFeatures.of([made_case(1)], "latency"))
    assert answer.basis == (Basis.PEAKS,)
    assert answer.high[0] / answer.low[0] == pytest.approx(np.exp(2.2))
    # Results of other platforms do not move what rests on peaks.
    card = CaseConfiguration("cuda", "NVIDIA A100-SXM4-80GB", "pytorch", "fp32", "inference")
    asked = CaseFeatures.of([made_case(30, card, 8)], "latency")
    measured, traced = measured_cases(models=7, batches=(1, 8))
    noise = np.random.default_rng(0).lognormal(2.0, 1.5, len(measured))
    scattered = [
        replace(m, latency_ms=(m.latency_ms or 0.0) * float(by))
        for m, by in zip(measured, noise, strict=True)
    ]
    nothing = predictor_of([], {}, "latency", kind="GPU").fit().predict(asked)
    for cases in (measured, scattered):
        found = fit_predictors(cases, traced, "latency").predict(asked)
        assert found.basis == (Basis.PEAKS,)
        assert found.value == pytest.approx(nothing.value)
        assert found.low == pytest.approx(nothing.low)
        assert found.high == pytest.approx(nothing.high)
    # Other platforms of the same kind that a value shares with are named.
    card, other = (
        CaseConfiguration(platform, "A card", "pytorch", "fp32", "inference")
        for platform in ("cuda", "rocm")
    )
    asked_cases = [made_case(1, card).case]
    learned = [made_case(1).case, *asked_cases, made_case(1, other).case]
    figure = {"hardware": "cuda", "basis": Basis.OTHER_MODELS, "rests_on": ["measured"]}
    (note,) = _platform_notes([figure], asked_cases, learned)  # type: ignore[list-item]
    assert {"cuda", "rocm"} <= set(note.replace(",", "").split())
    assert HERE.hardware not in note.split()
    of_peaks = {**figure, "basis": Basis.PEAKS, "rests_on": []}
    assert not _platform_notes([of_peaks], asked_cases, learned)  # type: ignore[list-item]


def test_groups_left_out_in_closed_form_are_as_conditioned_without_them():
    measured, traced = measured_cases(models=6)
    features = CaseFeatures.of([traced[entry.case] for entry in measured], "latency")
    residual = np.random.default_rng(0).normal(0, 0.2, len(features))
    shares = PositiveSum(np.zeros(features.terms.shape[1])).shares(features.terms)
    usual = np.ones(len(features))
    inputs = KernelNames().inputs(features.cases, features.sizes, shares, usual, learn=True)
    process = fit_process(inputs, residual)
    groups = np.arange(len(features)) % 5
    mean, variance = process.left_out(groups)
    others, group = np.flatnonzero(groups != 2), np.flatnonzero(groups == 2)
    without = ResidualProcess(inputs.only(others), residual[others], process.variances)
    expected, spread = without(inputs.only(group))
    assert mean[group] == pytest.approx(expected, abs=1e-4)
    assert variance[group] == pytest.approx(spread, rel=1e-3)


def test_what_to_measure_first(fitted):
    # What to measure first lowers what is not known most.
    gpu = CaseConfiguration("cuda", "NVIDIA A10", "pytorch", "fp32", "inference")
    features = CaseFeatures.of([made_case(n, gpu) for n in range(8)], "latency")
    made = plan(features, fitted, 3, costs(8))
    planned = made.measurements
    deviations = [made.before, *(entry.deviation for entry in planned)]
    assert deviations == sorted(deviations, reverse=True)
    assert len({entry.case for entry in planned}) == 3
    assert "--hardware cuda --framework pytorch --precision fp32" in planned[0].command
    assert len(plan(features.only(np.arange(2)), fitted, 5, costs(2)).measurements) == 2
    # What takes minutes or does not fit is not measured.
    gpu = CaseConfiguration("cuda", "NVIDIA A10", "pytorch", "fp32", "inference")
    features = CaseFeatures.of([made_case(n, gpu) for n in range(6)], "latency")
    quick, slow, large = costs(1), costs(1, step=90.0), costs(1, memory=3e9)
    some = [quick, slow, large, quick, slow, quick]
    mixed = MeasurementCosts(
        [one.step[0] for one in some],
        [one.memory_bytes[0] for one in some],
        [one.room_bytes[0] for one in some],
        [one.weights[0] for one in some],
    )
    made = plan(features, fitted, 6, mixed)
    assert {entry.case.model for entry in made.measurements} == {"model-0", "model-3", "model-5"}
    assert made.left_out == (
        "Left out, as predicted to take a minute a step and more: model-1, model-4;"
        " more memory than there is: model-2."
    )
    assert made.before == plan(features, fitted, 1, costs(6)).before  # they are asked about still
    # Where memory is not known nothing is left out.
    features = CaseFeatures.of([made_case(40)], "latency")
    made = plan(features, fitted, 1, costs(1, memory=9e12, room=None))
    assert len(made.measurements) == 1
    assert made.left_out == ""
    # What is quickly measured goes first where it teaches as much.
    gpu = CaseConfiguration("cuda", "NVIDIA A10", "pytorch", "fp32", "inference")
    features = CaseFeatures.of([made_case(n, gpu) for n in range(8)], "latency")
    alike = plan(features, fitted, 1, costs(8)).measurements[0]
    steps = [
        SecondsRange(20.0, 30.0, 50.0) if case == alike.case else SecondsRange(0.01, 0.02, 0.04)
        for case in features.cases
    ]
    dear = MeasurementCosts(steps, [1e9] * 8, [2e9] * 8, [10**6] * 8)
    made = plan(features, fitted, 2, dear)
    assert alike.case not in {entry.case for entry in made.measurements}
    together = sum(entry.seconds.middle for entry in made.measurements)
    assert made.seconds.middle == pytest.approx(together, rel=0.1)
    assert made.seconds.low < together < made.seconds.high


def costs(
    number: int, step: float = 0.1, memory: float = 1e9, room: float | None = 2e9
) -> MeasurementCosts:
    """Of cases that take as long as each other."""
    steps = [SecondsRange(step / 2, step, step * 2)] * number
    return MeasurementCosts(steps, [memory] * number, [room] * number, [10**6] * number)


def test_engines_with_sums_of_their_own():
    # A model that is unlike the others in an engine says nothing of them.
    measured, traced = measured_cases()
    odd = {("model-3", THERE), ("model-8", THERE)}
    strange = [
        replace(entry, latency_ms=12 * (entry.latency_ms or 0.0))
        if (entry.case.model, entry.case.configuration) in odd
        else entry
        for entry in measured
    ]
    predictor = predictor_of(strange, traced, "latency").fit()
    assert set(sorted(predictor.unlike, key=predictor.unlike.__getitem__)[-2:]) == odd
    unseen = [made_case(number, THERE) for number in (31, 36, 41, 45, 50)]
    assert np.median(error(predictor, *unseen)) < 0.15
    # What was measured of it counts for itself all the same.
    itself = made_case(3, THERE, 2)
    predicted = predictor.predict(CaseFeatures.of([itself], "latency")).value[0]
    assert predicted == pytest.approx(12 * true_ms(itself), rel=0.25)
    # Engines that hold weights otherwise have sums of their own.
    measured, traced = measured_cases()
    terms = memory_terms([traced[entry.case] for entry in measured])
    copies = {HERE: 10.0, THERE: 90.0}
    held = [
        replace(entry, memory_mb=float(copies[entry.case.configuration] * row[:2].sum() + row[-1]))
        for entry, row in zip(measured, terms, strict=True)
    ]
    predictor = predictor_of(held, traced, "memory").fit()
    factors = {place: np.exp(predictor.rooflines.of[place].theta)[0] for place in copies}
    assert factors[THERE] > 1.5 * factors[HERE]
    # Attention scores and tables of embeddings are terms of memory.
    attention = OperatorSignature("sdpa", 1, 1, 0, 1, 1500, 1500, 64, 6, 0, 1)
    product = OperatorSignature("lin", 1, 1, 3 * 2**20, 1, 1, 1, 1, 1, 1, 1)
    passed = PassTrace([(attention, 4), (product, 1)], 5 * 2**20, 4 * 2**20)
    case = TracedCase(made_case(1, batch=2).case, {"forward": passed})
    multiplied, other, alive, scores, _ = memory_terms([case])[0]
    assert (multiplied, other) == (12.0, 8.0)
    assert alive == pytest.approx(8.0)
    assert scores == pytest.approx(2 * 4 * 6 * 1500 * 1500 / 2**20)


def test_many_cases_at_once_are_predicted_as_each_part_alone(fitted):
    """The covariance that is put together in one pass is the sum of the kernel's parts."""
    elsewhere = CaseConfiguration("cuda", "a card", "pytorch", "fp16", "inference")
    cases = [
        made_case(number, place, batch)
        for number in (0, 5, 30) for place in (HERE, THERE, elsewhere) for batch in (1, 8)
    ]  # fmt: skip
    process = fitted.process
    assert process is not None
    inputs = fitted._inputs(CaseFeatures.of(cases, "latency"), learn=False)
    unlike = replace(process.inputs, unlike=np.linspace(1, 3, len(process.inputs)))
    parts = residual_process._covariance(residual_process._parts(inputs, unlike), process.variances)
    both = [
        covariance(inputs, unlike, process.variances)
        for covariance in (residual_process._smooth, residual_process._local)
    ]
    assert sum(both) == pytest.approx(parts, rel=1e-12)
