"""Made-up cases: models whose time is known, since a formula gives it."""

from __future__ import annotations

import numpy as np

from accelbench.core.case import Shapes
from accelbench.models.graph_files.steps import OperatorSignature
from accelbench.predict.cases import CaseConfiguration, MeasuredCase, PredictedCase
from accelbench.predict.signatures import PassTrace
from accelbench.predict.terms import TracedCase, time_terms

HERE = CaseConfiguration("cpu", "a processor", "pytorch", "fp32", "inference")
THERE = CaseConfiguration("cpu", "a processor", "onnxruntime", "fp32", "inference")


def made_trace(number: int) -> PassTrace:
    """A model with products and other work of its own amounts."""
    wide = 64 * (1 + number % 7)
    deep = 64 * (1 + number % 5)
    product = OperatorSignature(
        "lin", 128 * wide * deep, 128 * deep, wide * deep, 128 * wide, 128, wide, deep, 1, 1, 1
    )
    norm = OperatorSignature("ln", 0, 128 * wide, 0, 128 * wide, wide, 0, 0, 1, 1, 1)
    count = 4 + 3 * (number % 4)
    return PassTrace([(product, count), (norm, 2 * count)], count * wide * deep, 4 * 128 * wide)


def made_case(number: int, place: CaseConfiguration = HERE, batch: int = 1) -> TracedCase:
    """A case of one of those models."""
    case = PredictedCase(f"model-{number}", f"family-{number % 3}", Shapes(batch), place)
    return TracedCase(case, {"forward": made_trace(number)})


def true_ms(traced: TracedCase, noise: float = 0.0) -> float:
    """What a case takes: terms by efficiencies of its engine, and a quirk of each model."""
    slower = 2.0 if traced.case.configuration == THERE else 1.0
    terms = time_terms([traced])[0]
    quirk = 0.1 * np.sin(int(traced.case.model.partition("-")[2]) * 1.7)
    return float(slower * (3.0 * terms[:-1].sum() + 2.0 * terms[-1]) * np.exp(quirk + noise))


def measured_cases(
    models: int = 24, batches: tuple[int, ...] = (1, 4), seed: int = 0
) -> tuple[list[MeasuredCase], dict[PredictedCase, TracedCase]]:
    """Measurements of all of them on both engines, and their traces."""
    rng = np.random.default_rng(seed)
    traced = [
        made_case(number, place, batch)
        for number in range(models) for place in (HERE, THERE) for batch in batches
    ]  # fmt: skip
    measured = [
        MeasuredCase(entry.case, true_ms(entry, float(rng.normal(0, 0.03))), 100.0 + n)
        for n, entry in enumerate(traced)
    ]
    return measured, {entry.case: entry for entry in traced}
