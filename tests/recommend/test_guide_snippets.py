"""Every snippet of the Hardware Selection guide runs with only its import line changed."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from choosing_world import result, stored

#: Answers here rest on predictions too.
PREDICTS = ("test_predictions_are_shown_where_nobody_has_measured_anything",)
_THEIRS = "from hardware_selector import HardwareSelector"
_OURS = "from accelbench import HardwareSelector"

BASIC = """
from hardware_selector import HardwareSelector

# Initialize selector
selector = HardwareSelector(database_path="./benchmark_results")

# Get hardware recommendation
result = selector.select_hardware(
    model_family="text_generation",
    model_name="gpt2",
    batch_size=1,
    mode="inference"
)

# Print recommendation
print(f"Primary hardware: {result['primary_recommendation']}")
print(f"Fallback options: {result['fallback_options']}")
"""

TASK = """
result = selector.select_hardware_for_task(
    model_family="vision",
    model_name="vit-base-patch16-224",
    task_type="classification",
    batch_size=32
)
"""

PREDICTIONS = """
result = selector.select_hardware(
    model_family="vision",
    model_name="vit-base-patch16-224",
    batch_size=16,
    mode="inference"
)

# Check predictions for each hardware type
for hw_type, scores in result['all_scores'].items():
    if 'predictions' in scores:
        print(f"{hw_type} predictions:")
        print(f"  Latency: {scores['predictions'].get('latency', 'N/A')} ms")
        print(f"  Throughput: {scores['predictions'].get('throughput', 'N/A')} items/sec")
"""

FALLBACKS = """
# Initialize selector with debug logging to see fallback behavior
import logging
logging.getLogger("hardware_selector").setLevel(logging.DEBUG)

selector = HardwareSelector()

# This will use fallback rules if no training data is available
result = selector.select_hardware(
    model_family="multimodal",  # May have limited training data
    model_name="clip-vit-base-patch32",
    batch_size=1,
    mode="inference"
)
"""

UNAVAILABLE = """
# Specify available hardware options
available_hardware = ["cpu", "openvino"]  # No GPU available

# Get recommendation for available hardware only
result = selector.select_hardware(
    model_family="text_generation",
    model_name="gpt2",
    batch_size=1,
    mode="inference",
    available_hardware=available_hardware
)
"""

ALL_SCORES = """
for hw_type, scores in result['all_scores'].items():
    print(f"{hw_type}: {scores}")
"""

MATRIX = """
print(json.dumps(selector.compatibility_matrix, indent=2))
"""


@pytest.fixture(autouse=True)
def _logger_as_before() -> Iterator[None]:
    logger = logging.getLogger("hardware_selector")
    level = logger.level
    yield
    logger.setLevel(level)


def run(*snippets: str) -> dict[str, Any]:
    """What is left after snippets that follow each other on the page."""
    names: dict[str, Any] = {"json": json}
    for snippet in snippets:
        exec(snippet.replace(_THEIRS, _OURS), names)  # the guide's own words
    return names


def test_basic_usage_answers_where_nobody_has_measured_yet(capsys, caplog):
    names = run(BASIC)
    assert capsys.readouterr().out.startswith("Primary hardware: cuda\nFallback options: ['")
    assert "There is nothing at ./benchmark_results" in caplog.text
    json.dumps(names["result"], allow_nan=False)


def test_basic_usage_answers_by_what_a_folder_holds(tmp_path, capsys):
    (tmp_path / "benchmark_results").mkdir()
    slow = result(model="gpt2", family="text_generation", latency_p50_ms=90.0)
    fast = {**slow, "hardware": "openvino", "latency_p50_ms": 30.0, "series_key": "o"}
    fast["throughput"] = 1e3 / 30.0
    stored(tmp_path / "benchmark_results" / "ours.duckdb", slow, fast)
    names = run(BASIC)
    assert capsys.readouterr().out.startswith("Primary hardware: openvino\n")
    assert names["result"]["all_scores"]["openvino"]["predictions"]["latency"] == 30.0


def test_selection_by_task_and_availability():
    # Task specific selection.
    answer = run(BASIC, TASK)["result"]
    assert answer["question"]["task"] == "classification"
    assert answer["question"]["mode"] == "inference"
    assert answer["primary_recommendation"] == "cuda"
    # Only available hardware is recommended.
    answer = run(BASIC, UNAVAILABLE)["result"]
    assert set(answer["all_scores"]) == {"cpu", "openvino"}
    # OpenVINO's engine does not generate text.
    assert [answer["primary_recommendation"], *answer["fallback_options"]] == ["cpu"]


def test_predictions_are_shown_where_nobody_has_measured_anything(capsys):
    run(
        "from hardware_selector import HardwareSelector\nselector = HardwareSelector()", PREDICTIONS
    )
    assert "cuda predictions:\n  Latency: " in capsys.readouterr().out


def test_fallback_rules_answer_and_the_log_says_so(caplog):
    answer = run(_THEIRS, FALLBACKS)["result"]
    assert answer["all_scores"][answer["primary_recommendation"]]["basis"] == "rule"
    assert "By rule alone" in caplog.text
    assert "evidence: none" in caplog.text


def test_debugging_tools(capsys):
    run(BASIC, ALL_SCORES)
    lines = capsys.readouterr().out.splitlines()[2:]
    assert len(lines) == 6  # the guide's platforms but the two that are in a browser
    run(BASIC, MATRIX)
    shown = json.loads(capsys.readouterr().out.partition("']\n")[2])
    entries = shown["model_families"]["embedding"]["hardware_compatibility"]
    # The guide's own example of a matrix.
    assert shown["hardware_types"] == [
        *("cpu", "cuda", "rocm", "mps", "openvino", "qnn", "webnn", "webgpu")
    ]
    levels = {name: entries[name]["performance_rating"] for name in ("cpu", "cuda", "webnn")}
    assert levels == {"cpu": "medium", "cuda": "high", "webnn": "high"}
    assert all(entries[name]["compatible"] for name in levels)


def test_maps_and_customisation():
    # The map has the guides nesting and its examples.
    made = run(BASIC)["selector"].create_hardware_selection_map()
    families = made["model_families"]
    assert set(made) == {"timestamp", "model_families"}
    assert set(families) == {"embedding", "text_generation", "vision", "audio", "multimodal"}
    for family in families.values():
        assert set(family) == {"model_sizes", "inference", "training"}
        assert set(family["model_sizes"]) == {"small", "medium", "large"}
        for mode in ("inference", "training"):
            assert set(family[mode]["batch_sizes"]) == {"1", "4", "16", "32", "64"}
            kept = [size[mode] for size in family["model_sizes"].values()]
            for one in [*kept, *family[mode]["batch_sizes"].values()]:
                assert set(one) == {"primary", "fallbacks", "basis", "models"}
    embedding = families["embedding"]
    small = embedding["model_sizes"]["small"]
    batches = embedding["inference"]["batch_sizes"]
    for cell, primary, fallbacks in (
        (small["inference"], "webnn", ["cuda", "cpu"]),
        (small["training"], "cuda", ["rocm", "cpu"]),
        (batches["1"], "webnn", ["cuda", "cpu"]),
        (batches["32"], "cuda", ["rocm", "cpu"]),
    ):
        assert (cell["primary"], cell["fallbacks"]) == (primary, fallbacks)
    # Custom size estimation changes the answer.
    base: type[Any] = run(_THEIRS)["HardwareSelector"]

    class Mine(base):  # type: ignore[misc]
        def _estimate_model_size(self, model_name: str) -> int:
            return 70_000_000_000

    question = ("text_generation", "our-own-writer", 1, "inference", ["cuda", "mps"])
    assert base().select_hardware(*question)["question"]["model_size"] == "medium"
    large = Mine().select_hardware(*question)
    assert large["question"]["model_size"] == "large"
    assert "large language models" in large["all_scores"]["cuda"]["reasons"]
    # A custom encoding decides among equals.
    base: type[Any] = run(_THEIRS)["HardwareSelector"]

    class Mine(base):  # type: ignore[misc]
        def _encode_hardware_type(self, hardware_type: str) -> float:
            return {"webgpu": 0.0}.get(hardware_type, 1.0)

    question = ("audio", "our-own-listener-50m", 4, "inference", ["openvino", "webgpu"])
    assert base().select_hardware(*question)["primary_recommendation"] == "openvino"
    assert Mine().select_hardware(*question)["primary_recommendation"] == "webgpu"


def test_custom_selection_logic_is_used_by_everything_else():
    names = run(_THEIRS)
    base: type[Any] = names["HardwareSelector"]

    class Mine(base):  # type: ignore[misc]
        def select_hardware(
            self,
            model_family: str,
            model_name: str,
            batch_size: int,
            mode: str,
            available_hardware: Any = None,
            **more: Any,
        ) -> dict[str, Any]:
            answer = super().select_hardware(
                model_family, model_name, batch_size, mode, available_hardware, **more
            )
            return {**answer, "primary_recommendation": "mine", "fallback_options": []}

    mine = Mine()
    task = mine.select_hardware_for_task("vision", "vit-base-patch16-224", "classification", 32)
    assert task["primary_recommendation"] == "mine"
    families = mine.create_hardware_selection_map()["model_families"]
    cell = families["audio"]["training"]["batch_sizes"]["4"]
    assert (cell["primary"], cell["fallbacks"]) == ("mine", [])
