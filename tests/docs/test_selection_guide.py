"""The Hardware selection guide's snippet of its runner runs with only its import line changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_api import Machine, scripted_machine

BASIC_USAGE = """
from enhanced_hardware_benchmark_runner import EnhancedHardwareBenchmarkRunner

# Initialize benchmark runner
runner = EnhancedHardwareBenchmarkRunner()

# Run benchmark with automatic hardware selection
result = runner.run_benchmark(
    model_name="bert-base-uncased",
    model_family="embedding"
)
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with scripted_machine(tmp_path) as made:
        yield made


@pytest.mark.usefixtures("machine")
def test_the_runners_snippet_measures_on_the_hardware_that_is_chosen():
    snippet = BASIC_USAGE.replace("enhanced_hardware_benchmark_runner import", "accelbench import")
    names: dict[str, Any] = {}
    exec(snippet, names)  # the document's own words
    result = names["result"]
    assert result["status"] == "ok"
    assert result["batch_sizes"] == [1, 8, 32, 128]
    assert (result["hardware"], result["automatic"]) == ("cpu", True)
    assert result["recommendation"]["primary_recommendation"] == "cpu"
    assert Path(result["database"]).is_file()
    json.dumps(result, allow_nan=False)
