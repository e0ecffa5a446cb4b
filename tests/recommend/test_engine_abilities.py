"""No platform is named whose engines cannot run what is asked, or whose memory cannot hold it."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.core.devices import cards
from accelbench.recommend.selector import HardwareSelector

#: Answers here rest on predictions too.
PREDICTS = True

ONLY_FORWARD = ("openvino", "qnn", "webnn", "webgpu", "wasm", "tpu")


def scores(*among: str, **question: Any) -> dict[str, Any]:
    answer = HardwareSelector().select_hardware(available_hardware=among or None, **question)
    found: dict[str, Any] = answer["all_scores"]
    return found


@pytest.mark.parametrize("model", ["gpt2", "llama-2-7b"])
def test_generation_is_never_recommended_on_engines_that_do_not_generate(model):
    found = scores("cpu", "cuda", *ONLY_FORWARD, model_name=model)
    assert [found[name]["compatible"] for name in ONLY_FORWARD] == [False] * len(ONLY_FORWARD)
    assert "generate token by token" in found["openvino"]["reason"]
    assert found["cuda"]["compatible"]


def test_what_engines_can_do():
    found = scores("openvino", "webgpu", model_name="gpt2", shapes={"sequence_length": 64})
    assert all(score["compatible"] for score in found.values())
    # Training and precision are checked by engine.
    assert not scores("openvino", "cpu", model_name="bert-tiny", mode="training")["openvino"][
        "compatible"
    ]
    found = scores("openvino", "cpu", model_name="bert-tiny", precision="amp-bf16")
    assert [found[name]["compatible"] for name in ("openvino", "cpu")] == [False, True]
    # Hardware without engines of ours stays possible.
    own = {"hardware_preferences": {"abacus": {"cost_factor": 1.0}}}
    answer = HardwareSelector(config_path=own).select_hardware(
        model_name="gpt2", available_hardware=["abacus"]
    )
    assert answer["primary_recommendation"] == "abacus"
    assert not cards()["jax"].generates
    assert cards()["pytorch"].generates


def test_memory_that_rules_out_one_platform_rules_out_those_that_share_it(monkeypatch):
    names = {"cpu": "A processor", "openvino": "A processor", "wasm": "A browser"}
    monkeypatch.setattr(
        "accelbench.recommend.selector.Knowledge._device_name", lambda _, p: names.get(p)
    )
    monkeypatch.setattr(
        "accelbench.predict.questions.MemoryByDevice.__call__",
        lambda _, platform, device: 4 * 2**30 if device == "A processor" else None,
    )
    asked = {"model_name": "llama-2-7b", "shapes": {"sequence_length": 64}}
    for precision in (None, "fp32", "int8"):  # no prediction of int8: its weights alone decide
        found = scores("cpu", "openvino", "wasm", precision=precision, **asked)
        assert not any(score["compatible"] for score in found.values()), precision
        assert all("does not fit" in score["reason"] for score in found.values())
