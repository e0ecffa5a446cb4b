"""A larger batch is never predicted to take less time, and the knee is read from that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up_cases import HERE, THERE, made_case

from accelbench.core.case import Shapes
from accelbench.predict.answers import answer
from accelbench.predict.case_predictions import Basis, CasePredictions
from accelbench.predict.case_predictor import CaseFeatures, CasePredictor, PredictorsByKind
from accelbench.predict.cases import MeasuredCase, PredictedCase
from accelbench.predict.monotone import BatchSeries, held_by_measured, isotonic
from accelbench.predict.traces import Traces

BATCHES = (1, 2, 4, 8, 16, 32)
#: Batch 8 is quicker than batch 4.
FALLING = (10.0, 18.0, 40.0, 30.0, 60.0, 120.0)


class FallingPredictor(CasePredictor):
    """One whose noise lets larger batches be quicker; the batch decides what it says."""

    def predict(self, features: CaseFeatures) -> CasePredictions:
        batches = np.array([case.shapes.batch for case in features.cases], dtype=np.float64)
        value = np.interp(batches, BATCHES, FALLING) * np.maximum(batches / BATCHES[-1], 1.0)
        return CasePredictions(
            value, value / 1.5, value * 1.2, (Basis.OTHER_MODELS,) * len(features)
        )


class MeasuredTwice(FallingPredictor):
    """One that learned batches 8 and 16 themselves."""

    def predict(self, features: CaseFeatures) -> CasePredictions:
        bases = (
            Basis.MEASURED if case.shapes.batch in (8, 16) else Basis.OTHER_SIZES
            for case in features.cases
        )
        return replace(super().predict(features), basis=tuple(bases))


def test_answers_are_pooled():
    # Adjacent violators are pooled by weight.
    values = np.array([1.0, 3.0, 2.0, 4.0, 0.0])
    assert isotonic(values, np.ones(5)) == pytest.approx([1.0, 2.25, 2.25, 2.25, 2.25])
    assert isotonic(values[:3], np.array([1.0, 3.0, 1.0])) == pytest.approx([1.0, 2.75, 2.75])
    rising = np.arange(4.0)
    assert isotonic(rising, np.ones(4)).tolist() == rising.tolist()
    # Only batches of one configuration are held against each other.
    cases = [made_case(1, place, batch).case for batch in (4, 1) for place in (HERE, THERE)]
    value = np.array([8.0, 1.0, 9.0, 0.5])  # here 9 for one item and 8 for four
    bases = (Basis.OTHER_MODELS,) * 4
    made = BatchSeries.of(cases).rising(CasePredictions(value, value / 2, value * 2, bases))
    pooled = np.sqrt(8.0 * 9.0)
    assert made.value == pytest.approx([pooled, 1.0, pooled, 0.5])
    assert made.low == pytest.approx(made.value / 2)
    assert made.high == pytest.approx(made.value * 2)
    # What is known better moves less.
    cases = [made_case(1, HERE, batch).case for batch in (1, 2)]
    value, half = np.array([9.0, 8.0]), np.array([1.01, 2.0])
    made = BatchSeries.of(cases).rising(
        CasePredictions(value, value / half, value * half, (Basis.OTHER_SIZES,) * 2)
    )
    assert made.value == pytest.approx([9.0, 9.0], rel=0.01)
    assert (made.low <= made.value).all()
    assert (made.value <= made.high).all()


def test_answers_rise_with_the_batch_and_so_do_their_ends(tmp_path):
    nothing = CaseFeatures((), np.zeros((0, 0)), np.zeros((0, 4)), np.zeros(0))
    predictor = FallingPredictor("latency", nothing, np.zeros(0))
    place = replace(HERE, device="AMD EPYC 7763")
    cases = [
        PredictedCase("bert-tiny", "embedding", Shapes(batch, sequence=128), place)
        for batch in reversed(BATCHES)
    ]
    kinds = PredictorsByKind("latency", {"CPU": predictor})
    of = {"latency": kinds, "memory": kinds}
    said = answer(cases, of, (), Traces(tmp_path, trace=False))
    figures = sorted(said.figures, key=lambda entry: entry["batch_size"])
    for name in ("latency_ms", "latency_low_ms", "latency_high_ms", "memory_mb"):
        values = [entry[name] for entry in figures]
        assert values == sorted(values), name
    for entry in figures:
        assert entry["latency_low_ms"] <= entry["latency_ms"] <= entry["latency_high_ms"]
        items = 1e3 * entry["batch_size"] / entry["latency_ms"]
        assert entry["throughput"] == pytest.approx(items)
    assert figures[3]["latency_ms"] == pytest.approx(np.sqrt(40.0 * 30.0))
    # As predicted, batch 8 has all of the throughput of 32; pooled with batch 4 it has 87 %.
    (knee,) = said.knees
    assert knee["batch_size"] == 16


@pytest.mark.parametrize("batch", [1, 4, 6, 8, 1024, 3000, 4096])
def test_what_is_said_of_a_case_does_not_depend_on_what_else_is_asked(tmp_path, batch):
    """resnet50 at batch 8 had 60.2 MB by itself and 71.8 beside four other batches."""
    nothing = CaseFeatures((), np.zeros((0, 0)), np.zeros((0, 4)), np.zeros(0))
    predictor = FallingPredictor("latency", nothing, np.zeros(0))
    kinds = PredictorsByKind("latency", {"CPU": predictor})
    of = {"latency": kinds, "memory": kinds}
    place = replace(HERE, device="AMD EPYC 7763")

    def said(*batches: int) -> list[float]:
        cases = [
            PredictedCase("bert-tiny", "embedding", Shapes(size, sequence=128), place)
            for size in batches
        ]
        figures = answer(cases, of, measured, Traces(tmp_path, trace=False)).figures
        (figure,) = (entry for entry in figures if entry["batch_size"] == batch)
        names = ("latency_ms", "latency_low_ms", "latency_high_ms", "memory_mb", "memory_high_mb")
        return [figure[name] for name in names]  # type: ignore[literal-required]

    measured: tuple[MeasuredCase, ...] = ()
    alone = said(batch)
    assert said(*{1, 3, 4, 7, 8, 64, 20000, batch}) == pytest.approx(alone)
    # A measured one beside it decides, and does so asked or not.
    other = PredictedCase("bert-tiny", "embedding", Shapes(5, sequence=128), place)
    measured = (MeasuredCase(other, 33.0, None),)
    assert said(batch) == pytest.approx(said(*{5, batch}))


def test_batches_between_nodes_rise_too(tmp_path):
    nothing = CaseFeatures((), np.zeros((0, 0)), np.zeros((0, 4)), np.zeros(0))
    predictor = FallingPredictor("latency", nothing, np.zeros(0))
    place = replace(HERE, device="AMD EPYC 7763")
    cases = [
        PredictedCase("bert-tiny", "embedding", Shapes(size, sequence=128), place)
        for size in range(1, 40)
    ]
    kinds = PredictorsByKind("latency", {"CPU": predictor})
    of = {"latency": kinds, "memory": kinds}
    figures = answer(cases, of, (), Traces(tmp_path, trace=False)).figures
    for name in ("latency_ms", "latency_low_ms", "latency_high_ms"):
        values = [entry[name] for entry in figures]  # type: ignore[literal-required]
        assert values == sorted(values), name


def test_between_two_measured_batches_a_figure_is_no_surer_than_they_leave_it(tmp_path):
    """Their own intervals, of one figure each, held three of nine cases of an H200."""
    nothing = CaseFeatures((), np.zeros((0, 0)), np.zeros((0, 4)), np.zeros(0))
    predictor = MeasuredTwice("latency", nothing, np.zeros(0))
    place = replace(HERE, device="AMD EPYC 7763")
    cases = [
        PredictedCase("bert-tiny", "embedding", Shapes(size, sequence=128), place)
        for size in range(1, 40)
    ]
    known = [MeasuredCase(cases[size - 1], ms, None) for size, ms in ((8, 30.0), (16, 50.0))]
    kinds = PredictorsByKind("latency", {"CPU": predictor})
    of = {"latency": kinds, "memory": kinds}
    figures = answer(cases, of, known, Traces(tmp_path, trace=False)).figures
    for entry in figures[8:15]:
        assert 30.0 / 1.03 <= entry["latency_low_ms"] <= entry["latency_ms"]
        assert entry["latency_ms"] <= entry["latency_high_ms"] <= 50.0 * 1.03
        assert entry["latency_high_ms"] > 1.2 * entry["latency_low_ms"]
    for name in ("latency_ms", "latency_low_ms", "latency_high_ms"):
        values = [entry[name] for entry in figures[8:15]]  # type: ignore[literal-required]
        assert values == sorted(values), name


def test_batches_between_and_beyond():
    # What was measured is pooled with nothing.
    cases = [made_case(1, HERE, batch).case for batch in (1, 2, 4, 8)]
    value = np.array([9.0, 8.0, 7.0, 20.0])
    bases = (Basis.OTHER_SIZES, Basis.MEASURED, Basis.OTHER_SIZES, Basis.OTHER_SIZES)
    known = {cases[1]: MeasuredCase(cases[1], 8.25, None)}
    predicted = CasePredictions(value, value / 1.1, value * 1.1, bases)
    made = BatchSeries.of(cases).rising(predicted.as_measured(cases, known, "latency"))
    assert made.value[1] == 8.25
    assert made.value == pytest.approx([8.25, 8.25, 8.25, 20.0], rel=1e-4)
    assert (made.low <= made.value).all()
    assert (made.value <= made.high).all()
    # Of memory nothing was measured there.
    assert predicted.as_measured(cases, known, "memory") is predicted
    # No batch is predicted quicker than a smaller one was measured.
    cases = [made_case(1, HERE, batch).case for batch in (1, 4, 16, 2)]
    value = np.array([30.0, 5.0, 6.0, 9.0])
    predicted = CasePredictions(value, value / 2, value * 2, (Basis.OTHER_SIZES,) * 4)
    known = [MeasuredCase(made_case(1, HERE, b).case, ms, None) for b, ms in ((2, 8.0), (8, 20.0))]
    held = held_by_measured(predicted, cases, known, "latency")
    assert held.value.tolist() == [8.0, 8.0, 20.0, 9.0]
    assert held.low == pytest.approx([4.0, 8.0 / 1.03, 20.0 / 1.03, 4.5])
    assert held.high == pytest.approx([8.0 * 1.03, 16.0, 40.0, 18.0])
    assert held_by_measured(predicted, cases, known, "memory").value.tolist() == value.tolist()
    # Of what was measured to fall nothing follows in between.
    falling = [replace(entry, latency_ms=28.0 - entry.case.shapes.batch) for entry in known]
    assert held_by_measured(predicted, cases, falling, "latency").value[1] == 5.0


def test_a_measured_batch_keeps_its_value_although_a_larger_one_was_faster(tmp_path):
    nothing = CaseFeatures((), np.zeros((0, 0)), np.zeros((0, 4)), np.zeros(0))
    predictor = MeasuredTwice("latency", nothing, np.zeros(0))
    place = replace(HERE, device="AMD EPYC 7763")
    cases = [
        PredictedCase("bert-tiny", "embedding", Shapes(size, sequence=128), place)
        for size in (8, 16)
    ]
    known = [MeasuredCase(case, ms, None) for case, ms in zip(cases, (90.0, 60.0), strict=True)]
    kinds = PredictorsByKind("latency", {"CPU": predictor})
    of = {"latency": kinds, "memory": kinds}
    figures = answer(cases, of, known, Traces(tmp_path, trace=False)).figures
    assert [entry["latency_ms"] for entry in figures] == [90.0, 60.0]
    for entry in figures:
        assert entry["latency_low_ms"] <= entry["latency_ms"] <= entry["latency_high_ms"]
