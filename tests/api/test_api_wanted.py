"""What a call of the runner may not hold: each slip is one sentence, told before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench import EnhancedHardwareBenchmarkRunner
from accelbench.core.errors import UsageError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model_name": None}, "model_name takes a name, not None"),
        ({"model_name": 5}, "model_name takes a name, not 5"),
        ({"model_family": 5}, "model_family takes a name, not 5"),
        ({"hardware": ["cpu"]}, "There is no hardware named"),
        ({"batch_sizes": 8}, "batch_sizes takes a list"),
        ({"mode": None}, "Modes: inference, training"),
        ({"precision": 8}, "precision takes a name, not 8"),
        ({"precision": None}, "precision takes a name, not None"),
        ({"framework": ["pytorch"]}, "There is no framework named"),
        ({"available_hardware": 5}, "available_hardware takes a list of names"),
        ({"available_hardware": "cpu"}, "Use ['cpu']"),
        ({"available_hardware": [None]}, "available_hardware holds None"),
        ({"available_hardware": []}, "available_hardware is empty"),
        ({"budget": float("nan")}, "budget takes a number above 0"),
        ({"budget": "10m"}, "budget takes a number, not '10m'"),
        ({"budget": -1}, "budget takes a number above 0"),
        ({"label": 5}, "label takes a name"),
        ({"label": "a\nb"}, "cannot be shown"),
        ({"seed": 2**70}, "seed takes a whole number up to"),
        ({"seed": None}, "seed takes a whole number"),
        ({"launches": 0}, "launches takes a whole number"),
        ({"batchsizes": [1]}, "There is no parameter 'batchsizes'. Did you mean batch_sizes?"),
    ],
)
def test_one_model(given, said):
    asked: dict[str, Any] = {"model_name": "bert-tiny", **given}
    with pytest.raises(UsageError) as error:
        EnhancedHardwareBenchmarkRunner(verbose=False).run_benchmark(**asked)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"models": 5}, "models takes a list of names"),
        ({"models": [None]}, "models holds None"),
        ({"models": None}, "No model is named"),
        ({"model_families": [5]}, "model_families holds 5"),
        ({"models": ["bert-tiny"], "limit": "x"}, "limit takes a whole number"),
    ],
)
def test_several_models(given, said):
    with pytest.raises(UsageError) as error:
        EnhancedHardwareBenchmarkRunner(verbose=False).run_multiple(**given)
    assert said in str(error.value)


@pytest.mark.parametrize("name", ["database_path", "config_path", "matrix_file", "output_dir"])
def test_places(name):
    given: dict[str, Any] = {name: 5}
    with pytest.raises(UsageError, match=f"{name} takes a path, not 5"):
        EnhancedHardwareBenchmarkRunner(**given)


def test_a_selector_that_selects_nothing():
    nobody: Any = 5
    with pytest.raises(UsageError, match="selector takes a HardwareSelector"):
        EnhancedHardwareBenchmarkRunner(selector=nobody)
