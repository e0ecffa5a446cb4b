""" "When to use each hardware type": one test a bullet, with nothing measured."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.core.vocabulary import FAMILIES
from accelbench.recommend.selector import HardwareSelector

SMALL, MEDIUM, LARGE = "of-ours-50m", "of-ours-500m", "of-ours-7b"
ALL = ("cpu", "cuda", "rocm", "mps", "openvino", "qnn", "webnn", "webgpu")


def ask(
    family: str, model: str, batch: int = 1, mode: str = "inference", *among: str, **more: Any
) -> dict[str, Any]:
    return HardwareSelector().select_hardware(family, model, batch, mode, among or None, **more)


def first(*question: Any, **more: Any) -> Any:
    return ask(*question, **more)["primary_recommendation"]


def rating(answer: dict[str, Any], hardware: str) -> Any:
    return answer["all_scores"][hardware]["performance_rating"]


# -- CPU


def test_cpu():
    # Cpu small models with low latency requirements.
    answer = ask("text_generation", SMALL)
    assert rating(answer, "cpu") == "high"
    assert "small models with low latency requirements" in answer["all_scores"]["cpu"]["reasons"]
    assert first("audio", SMALL, 1, "inference", "cpu", "openvino", "webgpu", "qnn") == "cpu"
    assert rating(ask("text_generation", SMALL, 64), "cpu") == "low"
    assert first("vision", LARGE, 64, "training", "cpu") == "cpu"
    assert ask("vision", LARGE, 64, "training")["fallback_options"][-1] == "cpu"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("model", [SMALL, MEDIUM, LARGE])
@pytest.mark.parametrize("mode", ["inference", "training"])
def test_cpu_for_development_and_testing_of_anything(family, model, mode):
    answer = ask(family, model, 32, mode, deployment="development")
    assert (answer["primary_recommendation"], answer["fallback_options"]) == ("cpu", [])


# -- CUDA


@pytest.mark.parametrize("batch", [1, 8, 64])
def test_cuda_large_language_models(batch):
    assert first("text_generation", LARGE, batch) == "cuda"
    assert "large language models" in ask("text_generation", LARGE)["all_scores"]["cuda"]["reasons"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("model", [SMALL, MEDIUM, LARGE])
def test_cuda_high_throughput_batch_processing(family, model):
    answer = ask(family, model, 64)
    assert answer["primary_recommendation"] == "cuda"
    assert "high-throughput batch processing" in answer["all_scores"]["cuda"]["reasons"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("task", ["training", "fine_tuning"])
def test_cuda_training_and_fine_tuning(family, task):
    for model in (SMALL, MEDIUM, LARGE):
        answer = HardwareSelector().select_hardware_for_task(family, model, task, 8)
        assert answer["primary_recommendation"] == "cuda"


# -- ROCm


@pytest.mark.parametrize("family", FAMILIES)
def test_rocm_alternative_to_cuda_for_batch_processing(family):
    without = [name for name in ALL if name != "cuda"]
    assert first(family, MEDIUM, 64, "inference", *without) == "rocm"


def test_rocm_and_mps_by_size():
    # Rocm medium to large models.
    scores = {
        model: ask("vision", model, 4)["all_scores"]["rocm"]["score"]
        for model in (SMALL, MEDIUM, LARGE)
    }
    assert scores[SMALL] < scores[MEDIUM] == scores[LARGE]
    # Where power counts it is before the CPU, and behind what is made for it.
    answer = ask("audio", SMALL, 4, deployment="battery")
    order = [answer["primary_recommendation"], *answer["fallback_options"]]
    assert order.index("mps") < order.index("cpu")


@pytest.mark.parametrize("family", FAMILIES)
def test_rocm_training_with_compatible_frameworks(family):
    assert ask(family, MEDIUM, 8, "training")["fallback_options"][0] == "rocm"


# -- MPS


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_mps_mac_based_deployment(mode):
    answer = ask("audio", MEDIUM, 4, mode, deployment="mac")
    assert [answer["primary_recommendation"], *answer["fallback_options"]] == ["mps", "cpu"]


@pytest.mark.parametrize("family", FAMILIES)
def test_mps_medium_sized_models(family):
    assert rating(ask(family, MEDIUM), "mps") == "high"
    assert rating(ask(family, LARGE), "mps") == "low"


# -- OpenVINO


@pytest.mark.parametrize("family", FAMILIES)
def test_openvino_intel_cpu_and_gpu_optimization(family):
    assert first(family, MEDIUM, 4, deployment="intel") == "openvino"


def test_openvino_and_qnn():
    assert rating(ask("vision", MEDIUM), "openvino") == "high"
    assert rating(ask("audio", MEDIUM), "openvino") == "medium"
    # Openvino edge deployment scenarios.
    answer = ask("vision", SMALL, deployment="edge")
    assert answer["primary_recommendation"] == "openvino"
    assert set(answer["all_scores"]) == {"openvino", "qnn", "cpu"}
    assert first("audio", MEDIUM, 1, "inference", "qnn", "cpu") == "qnn"


# -- QNN


@pytest.mark.parametrize("family", FAMILIES)
def test_qnn_mobile_and_edge_deployment(family):
    assert first(family, MEDIUM, 1, deployment="mobile") == "qnn"
    assert "qnn" in ask(family, MEDIUM, 1, deployment="edge")["all_scores"]


def test_qnn_on_devices():
    assert first("vision", SMALL, 4, deployment="battery") == "qnn"
    # It infers, with what fits on a device; it trains nothing.
    answer = ask("vision", SMALL, 1, "training")
    assert not answer["all_scores"]["qnn"]["compatible"]
    assert "qnn" not in answer["fallback_options"]
    assert rating(ask("vision", LARGE, 64), "qnn") == "low"


# -- WebNN


@pytest.mark.parametrize("family", ["embedding", "vision"])
def test_webnn_browser_based_deployment(family):
    answer = ask(family, MEDIUM, deployment="browser")
    assert answer["primary_recommendation"] == "webnn"
    assert set(answer["all_scores"]) == {"webnn", "webgpu", "wasm"}


def test_browsers():
    # Webnn small to medium models.
    small, medium, large = (
        ask("vision", model, 1, "inference", "webnn")["all_scores"]["webnn"]["score"]
        for model in (SMALL, MEDIUM, LARGE)
    )
    assert small == medium > large
    # Webnn embedding and vision tasks.
    ratings = {
        family: rating(ask(family, SMALL, 4, "inference", *ALL), "webnn") for family in FAMILIES
    }
    assert {family for family, level in ratings.items() if level == "high"} == {
        *("embedding", "vision")
    }
    # Outside of a page nothing else is given up for one by a rule.
    texts = ask("text_generation", SMALL, 4, "inference", *ALL)["fallback_options"]
    assert texts.index("cpu") < texts.index("webnn")
    assert first("audio", LARGE, deployment="browser") == "webgpu"
    # Webgpu gpu acceleration in web applications.
    answer = ask("audio", MEDIUM, 4, "inference", "webgpu", "wasm")
    assert answer["primary_recommendation"] == "webgpu"
    assert "GPU acceleration in web applications" in answer["all_scores"]["webgpu"]["reasons"]
    # Webgpu when webnn is not available.
    assert ask("vision", SMALL, deployment="browser")["fallback_options"][0] == "webgpu"
    among = ("webgpu", "wasm")
    assert first("vision", SMALL, 1, "inference", *among, deployment="browser") == "webgpu"


# -- WebGPU


# -- what holds of all of them


def test_what_a_rule_answers():
    # A rule is never a clear winner and gives no figure.
    answer = ask("text_generation", LARGE)
    assert not answer["clear_winner"]
    assert not any("predictions" in one for one in answer["all_scores"].values())
    # What was never measured names the command that would.
    answer = ask("embedding", "bert-tiny", 4, "training", "cuda", precision="bf16")
    (missing,) = answer["missing"]
    assert missing["command"] == (
        "accelbench run bert-tiny --hardware cuda --batch-sizes 4 --mode training --precision bf16"
    )
