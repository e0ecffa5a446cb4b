"""Training sessions that cheat in their timed steps only; none is ok and verified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from lying import Lie
from lying_training import Step, case_of, measured


def cast_to_bf16(honest: Step, inputs: Mapping[str, Any]) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return honest(inputs)


@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd"}], ids=str)
def test_products_in_bf16_in_timed_steps_are_not_fp32(options):
    assert measured(Lie(step=cast_to_bf16), case_of(**options))["reason"] == "wrong_steps"
