"""The configuration: the guide's shape, read as it stands there, and refused where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.core.errors import UsageError
from accelbench.recommend.config import defaults, over_defaults, read, size_of

#: The guide's fragments, put together as they stand there.
GUIDE = """{
"selection_criteria": {
  "inference": {
    "latency_weight": 0.4,
    "throughput_weight": 0.3,
    "memory_weight": 0.2,
    "compatibility_weight": 0.1
  },
  "training": {
    "throughput_weight": 0.4,
    "convergence_weight": 0.3,
    "memory_weight": 0.2,
    "compatibility_weight": 0.1
  }
},
"model_families": {
  "embedding": {
    "batch_size_importance": "medium",
    "model_size_importance": "low"
  },
  "text_generation": {
    "batch_size_importance": "low",
    "model_size_importance": "high"
  }
},
"hardware_preferences": {
  "cpu": {
    "cost_factor": 1.0,
    "availability_factor": 1.0,
    "power_factor": 0.8
  },
  "cuda": {
    "cost_factor": 0.7,
    "availability_factor": 0.8,
    "power_factor": 0.4
  }
},
"batch_size_thresholds": {
  "small": 1,
  "medium": 8,
  "large": 32
},
"model_size_categories": {
  "small": 100000000,  // ~100M parameters
  "medium": 1000000000,  // ~1B parameters
  "large": 10000000000  // ~10B parameters
}
}"""


def test_the_guides_configuration_is_read_as_it_stands_there(tmp_path):
    (tmp_path / "my_config.json").write_text(GUIDE, encoding="utf-8")
    found = read(tmp_path / "my_config.json")
    wanted = defaults()
    # All but the preferences, which are its user's, are our defaults too.
    assert {**found, "hardware_preferences": {}} == {**wanted, "hardware_preferences": {}}
    assert found["hardware_preferences"]["cuda"] == {
        "cost_factor": 0.7,
        "availability_factor": 0.8,
        "power_factor": 0.4,
    }
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("amount", "size"),
    [(1, "small"), (2, "medium"), (8, "medium"), (9, "large"), (32, "large"), (33, "large")],
)
def test_bounds_belong_to_what_they_bound_and_beyond_all_is_large(amount, size):
    assert size_of(amount, defaults()["batch_size_thresholds"]) == size


def test_a_part_of_it_changes_only_what_it_names():
    found = over_defaults({"selection_criteria": {"inference": {"memory_weight": 0.0}}})
    assert found["selection_criteria"]["inference"]["memory_weight"] == 0.0
    assert found["selection_criteria"]["inference"]["latency_weight"] == 0.4
    assert found["selection_criteria"]["training"] == defaults()["selection_criteria"]["training"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"selection_criterias": {}}', "line 1, selection_criterias: there is no such key. Did"),
        (
            '{"selection_criteria": {\n"inference": {"latency": 1}}}',
            "line 2, selection_criteria.inference.latency: there is no such key. Did you mean",
        ),
        (
            '{"selection_criteria": {"training": {"latency_weight": 1}}}',
            "selection_criteria.training.latency_weight: there is no such key",
        ),
        (
            '{"hardware_preferences": {"cuda": {"cost_factor": -1}}}',
            "hardware_preferences.cuda.cost_factor: -1 is below 0.",
        ),
        (
            '{"hardware_preferences": {"cuda": {"cost_factor": 1e308}}}',
            "hardware_preferences.cuda.cost_factor: cost_factor is above 1e+06.",
        ),
        (
            '{"hardware_preferences": {"cuda": {"cost_factor": true}}}',
            "hardware_preferences.cuda.cost_factor: a number is expected.",
        ),
        (
            """{"selection_criteria": {"inference": {"latency_weight": 0, "throughput_weight": 0,
            "memory_weight": 0, "compatibility_weight": 0}}}""",
            "selection_criteria.inference: all weights are 0.",
        ),
        (
            '{"batch_size_thresholds": {"small": 8}}',
            "batch_size_thresholds: the bounds do not ascend: 8, 8, 32.",
        ),
        (
            '{"model_families": {"embedding": {"model_size_importance": "huge"}}}',
            "model_families.embedding.model_size_importance: 'huge' is none of low, medium, high.",
        ),
        ('{"model_families": {"embeding": {}}}', "model_families.embeding: there is no such key."),
        ('{"model_families": []}', "model_families: an object in braces is expected."),
        ('{"fallback_order": "cuda"}', "fallback_order: a list of names is expected."),
        ("[]", "an object in braces is expected."),
        ('{"a": 1', "line 1: "),
    ],
)
def test_what_is_wrong_is_named_in_one_sentence(tmp_path, text, said):
    (tmp_path / "c.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as error:
        read(tmp_path / "c.json")
    assert said in str(error.value)
    assert "c.json" in str(error.value)


def both(**more: Any) -> tuple[dict[str, Any], ...]:
    slow = result(latency_p50_ms=10.0, memory_peak_mb=100.0, **more)
    return slow, result(hardware="cuda", latency_p50_ms=8.0, memory_peak_mb=200.0, **more)


def first(folder: Path, config: dict[str, Any]) -> Any:
    chosen = selector(folder, *both(), config_path=config)
    return chosen.select_hardware("embedding", "bert-tiny", 1)["primary_recommendation"]


def test_weights_decide(tmp_path):
    def by(**weights: float) -> dict[str, Any]:
        none = dict.fromkeys(("latency", "throughput", "memory", "compatibility"), 0.0)
        said = {f"{name}_weight": value for name, value in {**none, **weights}.items()}
        return {"selection_criteria": {"inference": said}}

    assert first(tmp_path, by(latency=1.0)) == "cuda"
    assert first(tmp_path, by(memory=1.0)) == "cpu"


@pytest.mark.parametrize("factor", ["cost_factor", "availability_factor", "power_factor"])
def test_factors_weigh_scores(tmp_path, factor):
    config = {"hardware_preferences": {"cuda": {factor: 0.5}}}
    chosen = selector(tmp_path, *both(), config_path=config)
    scores = chosen.select_hardware("embedding", "bert-tiny", 1)["all_scores"]
    plain = selector(tmp_path, *both()).select_hardware("embedding", "bert-tiny", 1)["all_scores"]
    ratio, usual = (s["cuda"]["score"] / s["cpu"]["score"] for s in (scores, plain))
    assert ratio == pytest.approx(usual / 2)


def test_factors_weigh_rules_too(tmp_path):
    question = ("text_generation", "of-ours-7b", 64)
    assert selector(tmp_path).select_hardware(*question)["primary_recommendation"] == "cuda"
    config = {"hardware_preferences": {"cuda": {"availability_factor": 0.0}}}
    chosen = selector(tmp_path, config_path=config)
    assert chosen.select_hardware(*question)["primary_recommendation"] == "rocm"


def test_hardware_of_ones_own_by_configuration_alone(tmp_path):
    config = {
        "hardware_preferences": {"npu9": {"cost_factor": 1.0}},
        "compatibility": {
            "audio": {"npu9": {"compatible": True, "performance_rating": "high"}},
            "vision": {"npu9": {"compatible": False}},
        },
        "fallback_order": ["npu9", "cpu"],
    }
    chosen = selector(tmp_path, config_path=config)
    audio = chosen.select_hardware("audio", "of-ours-50m", 4, available_hardware=["npu9", "cuda"])
    assert audio["primary_recommendation"] == "npu9"  # as good as cuda, and before it in the order
    vision = chosen.select_hardware("vision", "of-ours-50m", 4)
    assert not vision["all_scores"]["npu9"]["compatible"]
    entries = chosen.compatibility_matrix["model_families"]["audio"]["hardware_compatibility"]
    assert entries["npu9"]["performance_rating"] == "high"
    assert entries["npu9"]["source"] == "the configuration"


def test_a_custom_platforms_results_are_chosen_by(tmp_path):
    mine = result(hardware="npu9", latency_p50_ms=1.0)
    chosen = selector(tmp_path, *both(), mine)
    assert chosen.select_hardware("embedding", "bert-tiny", 1)["primary_recommendation"] == "npu9"
