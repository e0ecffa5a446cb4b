"""Predictions of unmeasured configurations keep the order of what vendors document."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up_cases import made_case, true_ms

from accelbench.predict.case_predictions import Basis, CasePredictions
from accelbench.predict.case_predictor import (
    CaseFeatures,
    CasePredictor,
    PredictorsByKind,
    fit_predictors,
)
from accelbench.predict.cases import LATENCY, CaseConfiguration, MeasuredCase
from accelbench.predict.monotone import ordered_configurations, rising_with_batch, with_nodes
from accelbench.predict.terms import TracedCase

LESSER = CaseConfiguration("cuda", "NVIDIA GeForce RTX 3090", "pytorch", "amp-fp16", "inference")
GREATER = replace(LESSER, device="NVIDIA GeForce RTX 4090")
BATCHES = (1, 8, 64)


def in_fp32(place: CaseConfiguration) -> CaseConfiguration:
    return replace(place, precision="fp32")


def predicted(
    predictors: PredictorsByKind, known: list[MeasuredCase], traced: list[TracedCase]
) -> CasePredictions:
    nodes = with_nodes(traced, known)
    return rising_with_batch(nodes, known, LATENCY, predictors.predict_traced)


def test_configurations_are_ordered_by_documented_limits():
    def devices(place: CaseConfiguration, *names: str) -> list[str]:
        measured = [replace(place, device=name, precision="fp64") for name in names]
        return [one.device for one in ordered_configurations(place, measured)]

    both = [LESSER.device, GREATER.device]
    assert devices(in_fp32(GREATER), LESSER.device) == both
    assert devices(in_fp32(LESSER), GREATER.device) == both
    # Another line, and a card with less bandwidth: no order is known.
    others = ("NVIDIA H100 PCIe", "NVIDIA TITAN RTX")
    assert devices(in_fp32(GREATER), *others) == [GREATER.device]
    assert devices(in_fp32(LESSER), "NVIDIA GeForce RTX 4070 Ti") == [LESSER.device]
    # Narrow types that have units are no slower than fp32.
    assert ordered_configurations(GREATER, []) == [in_fp32(GREATER), GREATER]
    processor = CaseConfiguration("cpu", "Intel Core i9-10940X", "pytorch", "bf16", "inference")
    assert ordered_configurations(processor, [in_fp32(processor)]) == [processor]
    # What was measured is ordered with what was measured.
    assert ordered_configurations(GREATER, [GREATER, LESSER]) == [LESSER, GREATER]


class BiasedPredictor(CasePredictor):
    """One that takes the greater card for slower, and narrow types for slower than fp32."""

    def predict(self, features: CaseFeatures) -> CasePredictions:
        value = np.array([
            case.shapes.batch * (1.5 if case.configuration.device == GREATER.device else 1.0)
            * (1.0 if case.configuration.precision == "fp32" else 1.2)
            for case in features.cases
        ])  # fmt: skip
        basis = tuple(
            Basis.OTHER_MODELS if case.configuration == LESSER else Basis.OTHER_CONFIGURATIONS
            for case in features.cases
        )
        return CasePredictions(value, value / 1.5, value * 1.5, basis)


def test_what_rests_on_less_is_moved():
    nothing = CaseFeatures.of([], LATENCY)
    biased = PredictorsByKind(LATENCY, {"GPU": BiasedPredictor(LATENCY, nothing, np.zeros(0))})
    known = [MeasuredCase(made_case(1, LESSER, 4).case, 1e3, None)]
    places = [LESSER, GREATER, in_fp32(LESSER), in_fp32(GREATER)]
    made = predicted(biased, known, [made_case(2, place, 8) for place in places])
    assert made.value == pytest.approx([9.6] * 4)
    assert (made.low < made.value).all()
    assert (made.value < made.high).all()
    # Measured values are not moved.
    measured = [*known, MeasuredCase(made_case(2, GREATER, 8).case, 20.0, None)]
    assert predicted(biased, measured, [made_case(2, GREATER, 4)]).value[0] < 20.0


def test_a_store_keeps_the_order_of_two_cards():
    """Only large batches were measured, and of both cards in one precision."""
    rng = np.random.default_rng(0)
    traced = [made_case(n, place, 256) for n in range(24) for place in (LESSER, GREATER)]
    known = [
        MeasuredCase(entry.case, true_ms(entry, float(rng.normal(0, 0.05))), None)
        for entry in traced
    ]
    predictors = fit_predictors(known, {entry.case: entry for entry in traced}, LATENCY)
    value = {
        place: predicted(
            predictors, known, [made_case(n, place, b) for n in range(24, 30) for b in BATCHES]
        ).value
        for place in (LESSER, GREATER, in_fp32(LESSER), in_fp32(GREATER))
    }
    assert (value[GREATER] <= value[LESSER] * 1.001).all()
    assert (value[in_fp32(GREATER)] <= value[in_fp32(LESSER)] * 1.001).all()
    for place in (LESSER, GREATER):
        assert (value[place] <= value[in_fp32(place)] * 1.001).all()
