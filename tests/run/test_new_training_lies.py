"""Training sessions that cheat in their timed steps only; none is ok and verified."""

import pytest
import torch
from lying import Lie
from lying_training import case_of, measured


def cast_to_bf16(honest, inputs):
    with torch.autocast("cpu", torch.bfloat16):
        return honest(inputs)


@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd"}], ids=str)
def test_products_in_bf16_in_timed_steps_are_not_fp32(options):
    assert measured(Lie(step=cast_to_bf16), case_of(**options))["reason"] == "wrong_steps"
