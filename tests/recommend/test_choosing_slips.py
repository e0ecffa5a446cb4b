"""Whatever is handed over in Python: one sentence with what to use, never a bare error."""

from __future__ import annotations

from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.core.errors import UsageError
from accelbench.recommend.selector import HardwareSelector

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        *(({"batch_size": b}, "batch") for b in ("8", 2.5, NAN, INF, None, True, False, 0, -1)),
        ({"batch_size": 2**40}, "batch_size takes a whole number"),
        ({"batch_size": 0}, "holds no item"),
        ({"available_hardware": []}, "No hardware is named"),
        ({"available_hardware": "cpu"}, "Use ['cpu']"),
        ({"available_hardware": 5}, "available_hardware takes a list of names"),
        ({"available_hardware": {"cpu": 1}}, "available_hardware takes a list of names"),
        ({"available_hardware": ["cpu", None]}, "available_hardware holds None"),
        ({"available_hardware": ["cuda:"]}, "names no device"),
        ({"model_name": None}, "model_name takes a name, not None"),
        ({"model_name": 5}, "model_name takes a name, not 5"),
        ({"model_family": 5}, "One of embedding"),
        ({"model_family": "audio"}, "vit-base is of the family vision, not of audio"),
        ({"model_family": "poetry"}, "Families: embedding"),
        ({"model_name": "nobody-knows", "model_family": None}, "family of nobody-knows"),
        ({"mode": "dreaming"}, "Modes: inference, training"),
        ({"mode": None}, "One of inference, training"),
        ({"task_type": 5}, "One of classification"),
        ({"precision": 8}, "One of fp32"),
        ({"precision": "fp3"}, "no precision"),
        ({"shapes": {"image_size": "big"}}, "image_size takes a number, not 'big'"),
        ({"shapes": {"image_size": -1}}, "image_size takes a number above 0"),
        ({"shapes": {"image_size": True}}, "image_size takes a number"),
        ({"shapes": {5: 5}}, "There is no size 5"),
        ({"shapes": {"girth": 3}}, "no size 'girth'"),
        ({"shapes": [224]}, "shapes takes a mapping"),
        ({"parameters": -1}, "parameters takes a number above 0"),
        ({"parameters": "7b"}, "parameters takes a number, not '7b'"),
        ({"parameters": 10**400}, "parameters takes a number above 0"),
        ({"distributed_config": "4"}, "distributed_config takes a mapping"),
        ({"distributed_config": {"gpu_count": True}}, "gpu_count takes a number"),
        ({"distributed_config": {"gpu_count": 2.5}}, "gpu_count takes a whole number"),
        ({"distributed_config": {"gpu_count": 2, "max_memory_gb": INF}}, "max_memory_gb"),
        ({"distributed_config": {"gpus": 2}}, "has no 'gpus'"),
        ({"deployment": "moon"}, "There is no deployment 'moon'"),
        ({"deployment": 5}, "deployment takes a name"),
    ],
)
def test_a_question(tmp_path, question, said):
    asked = {"model_family": "vision", "model_name": "vit-base", **question}
    with pytest.raises(UsageError) as error:
        selector(tmp_path).select_hardware(**asked)
    assert said in str(error.value)
    assert error.value.advice
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"config_path": "."}, "cannot be read"),
        ({"config_path": 5}, "config_path takes a path"),
        ({"config_path": "bad.json"}, "bad.json, line 1"),
        ({"config_path": "list.json"}, "an object in braces is expected"),
        ({"config_path": {5: {}}}, "5 is no name"),
        ({"config_path": {"hardware_preferences": {" ": {}}}}, "' ' is no name"),
        (
            {"config_path": {"hardware_preferences": {"cpu": {"cost_factor": NAN}}}},
            "a number that has an end",
        ),
        (
            {"config_path": {"hardware_preferences": {"cpu": {"cost_factor": 10**400}}}},
            "a number that has an end",
        ),
        ({"matrix_file": "."}, "cannot be read: Is a directory"),
        ({"matrix_file": 5}, "matrix_file takes a path"),
        ({"database_path": 5}, "database_path takes a path"),
        ({"prices": 5}, "prices takes the path of a price file, or a function"),
        ({"prices": "none.json"}, "none.json cannot be read"),
        ({"prices": "."}, "cannot be read"),
    ],
)
def test_what_a_selector_is_made_of(tmp_path, given, said):
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(UsageError) as error:
        HardwareSelector(**given)
    assert said in str(error.value)


def test_what_is_meant_all_the_same_is_taken(tmp_path):
    import numpy as np

    chosen = selector(tmp_path, result(batch_size=8))
    plain = chosen.select_hardware(model_name="bert-tiny", batch_size=8)
    assert plain["all_scores"]["cpu"]["basis"] == "measured"
    for batch in (8.0, np.int64(8)):
        assert chosen.select_hardware(model_name="bert-tiny", batch_size=batch) == plain
    few = chosen.select_hardware(model_name="bert-tiny", available_hardware=["cuda", "cpu"])
    named = {"cuda", "cpu"}
    assert few == chosen.select_hardware(model_name="bert-tiny", available_hardware=named)
    of_any = selector(tmp_path).select_hardware("vision", available_hardware=["cpu"])
    assert "any model of the family vision" in of_any["explanation"]
    assert of_any["missing"][0]["command"] is None


def test_names_of_hardware_are_known_whatever_their_case(tmp_path):
    chosen = selector(tmp_path, config_path={"hardware_preferences": {"NPU9": {}}})
    for word in ("NPU9", "npu9"):
        answer = chosen.select_hardware("audio", "of-ours-50m", available_hardware=[word])
        assert answer["primary_recommendation"] == "NPU9"


@pytest.mark.parametrize("batches", [5, "1,8", [0], [None]])
def test_batch_sizes_of_a_search_under_limits(tmp_path, batches):
    with pytest.raises(UsageError, match="batch_sizes takes"):
        selector(tmp_path, result()).best_under(
            {"memory_mb": 100}, model_name="bert-tiny", batch_sizes=batches
        )


def test_stored_models_of_one_family(tmp_path):
    chosen = selector(
        tmp_path, result(), result(model="resnet-tiny", family="vision", image_size=64)
    )
    assert set(chosen.select_for_all_models(model_family="vision")) == {"resnet-tiny"}
    ranked = chosen.rank_models("training", model_family="embedding")
    assert [one["model"] for one in ranked] == ["bert-tiny"]
    with pytest.raises(UsageError, match="no model family"):
        chosen.select_for_all_models(model_family="poetry")


@pytest.mark.parametrize("estimate", ["huge", -1, 0, NAN, INF, True, []])
def test_an_estimate_of_ones_own_is_a_size_or_a_number(tmp_path, estimate):
    class Own(HardwareSelector):
        def _estimate_model_size(self, model_name: str) -> Any:
            return estimate

    with pytest.raises(UsageError, match="It gives a number of weights, small, medium or large"):
        Own().select_hardware("vision", "of-ours")


@pytest.mark.parametrize("place", [None, "first", NAN])
def test_a_place_of_ones_own_is_a_number(tmp_path, place):
    class Own(HardwareSelector):
        def _encode_hardware_type(self, hardware_type: str) -> Any:
            return place

    with pytest.raises(UsageError, match="_encode_hardware_type gave"):
        Own().select_hardware("vision", "of-ours")


def test_an_answer_of_ones_own_may_be_short():
    class Own(HardwareSelector):
        def select_hardware(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {"primary_recommendation": "cpu"}

    families = Own().create_hardware_selection_map()["model_families"]
    cell = families["audio"]["model_sizes"]["small"]["training"]
    assert (cell["primary"], cell["fallbacks"]) == ("cpu", [])
