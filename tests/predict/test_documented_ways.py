"""Which configurations of a documented card are asked that nobody measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accelbench.models.find import find
from accelbench.predict.cases import CaseConfiguration, MeasuredCase, PredictedCase
from accelbench.predict.questions import PredictionQuestion, cases_of

CARD = CaseConfiguration("cuda", "NVIDIA GeForce RTX 4090", "pytorch", "amp-fp16", "inference")


def measured(**changes: Any) -> MeasuredCase:
    spec = find("resnet-50")
    place = replace(CARD, **changes)
    question = PredictionQuestion((spec,), hardware=("cuda:a100",))
    (case,) = cases_of(question, (), lambda _: None, {}).cases
    return MeasuredCase(PredictedCase(spec.id, case.family, case.shapes, place), 1.0, 1.0)


@pytest.mark.parametrize(
    ("card", "known", "ways"),
    [
        ("a100", {"compiled": True}, {("fp32", False), ("amp-fp16", True)}),
        ("a100", {"hardware": "rocm"}, {("fp32", False)}),
        ("gtx 1080 ti", {"precision": "bf16"}, {("fp32", False)}),  # no units for it
    ],
)
def test_a_card_is_asked_as_others_of_its_platform_were_measured(card, known, ways):
    question = PredictionQuestion((find("resnet-50"),), hardware=(f"cuda:{card}",))
    cases = cases_of(question, [measured(**known)], lambda _: None, {}).cases
    assert {(c.configuration.precision, c.configuration.compiled) for c in cases} == ways
