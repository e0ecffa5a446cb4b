"""The parts of a step are marked where they do not add up to it."""

import pytest

from accelbench.run.conduct.launch_context import slowed
from accelbench.run.verify.plausibility import LIMIT, look, share

TRAINED = {"mode": "training", "latency_p50_ms": 10.0}
PARTS = {"forward_ms": 3.0, "loss_ms": 0.5, "backward_ms": 5.0, "optimizer_ms": 1.5}
WRITTEN = {"mode": "inference", "latency_p50_ms": 10.0, "new_tokens": 4}


def said(**row):
    body = {"warnings": ["something else"], **row}
    look(body)
    return body["warnings"][1:]


def test_parts_of_a_step_add_up_or_are_marked():
    assert said(**TRAINED, **PARTS) == []
    for much in (1 - LIMIT, 1 + LIMIT):
        assert said(**TRAINED, **{name: ms * much for name, ms in PARTS.items()}) == []

    (warning,) = said(**TRAINED, **{**PARTS, "backward_ms": 9.5})
    assert warning.startswith("Forward, loss, backward and optimizer add up to 1.45 times the step")
    assert warning.endswith("Take them for shares, not for times.")
    (warning,) = said(**TRAINED, **{**PARTS, "backward_ms": 1.0})
    assert "0.60 times" in warning

    assert said(**WRITTEN, prefill_ms=4.0, decode_ms=6.5) == []
    (warning,) = said(**WRITTEN, prefill_ms=4.0, decode_ms=16.0)
    assert warning.startswith("Prefill and decode add up to 2.00 times the step")
    rag = {"embed_ms": 1.0, "retrieve_ms": 1.0, "generate_ms": 2.0}
    (warning,) = said(**WRITTEN, **rag)
    assert warning.startswith("Embed, retrieve and generate add up to 0.40 times the step")

    row = {**TRAINED, **PARTS, "latency_p50_ms": None, "latency_mean_ms": 5.0}
    assert share(row) == 2.0
    assert slowed({"latency_p50_ms": 453.0, "latency_min_ms": 2.8}) == pytest.approx(161.8, abs=0.1)
    assert slowed({"latency_p50_ms": None, "latency_min_ms": None}) is None
    assert slowed({}) is None


@pytest.mark.parametrize(
    "row",
    [
        {**TRAINED},
        {**TRAINED, **PARTS, "loss_ms": None},
        {**TRAINED, **PARTS, "latency_p50_ms": None},
        {**WRITTEN, "prefill_ms": 1.0, "decode_ms": None},  # a request of one token
        {"mode": "inference", "latency_p50_ms": 10.0},
    ],
)
def test_what_is_not_known_is_not_judged(row):
    assert share(row) is None
    assert said(**row) == []
