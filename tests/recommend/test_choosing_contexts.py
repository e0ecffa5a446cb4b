"""Figures of different sources beside each other: what is not said may be anything."""

from __future__ import annotations

from typing import Any

from choosing_world import result, selector

from accelbench.recommend.selector import HardwareSelector

#: The tests that predict.
PREDICTS = ("test_an_answer_by_prediction_alone_records_its_sizes",)
UNSAID = {"provenance": "imported", "weights": None, "data_source": None, "verification": None}


def vision(**changes: Any) -> dict[str, Any]:
    usual = {"model": "resnet50", "family": "vision", "sequence_length": None, "image_size": 224}
    return result(**{**usual, **changes})


def imported(**changes: Any) -> dict[str, Any]:
    return vision(**{**UNSAID, "series_key": f"import/{changes}", **changes})


def test_what_is_measured_here_stands_beside_what_others_measured(tmp_path):
    others = [
        imported(hardware="cuda", latency_p50_ms=50.0, weights=None),
        imported(hardware="cpu", latency_p50_ms=40.0),
    ]
    mine = vision(hardware="openvino", latency_p50_ms=5.0)
    answer = selector(tmp_path, *others, mine).select_hardware(
        "vision", "resnet50", available_hardware=["cpu", "openvino", "cuda"]
    )
    assert answer["primary_recommendation"] == "openvino"
    assert {one["basis"] for one in answer["all_scores"].values()} == {"measured"}
    assert answer["missing"] == []


def test_a_size_that_an_import_does_not_say_may_be_any(tmp_path):
    unsaid = imported(hardware="cuda", image_size=None, latency_p50_ms=3.0)
    answer = selector(tmp_path, unsaid, vision()).select_hardware(
        "vision", "resnet50", available_hardware=["cpu", "cuda"]
    )
    assert answer["primary_recommendation"] == "cuda"
    assert answer["question"]["shapes"] == {"image_size": 224}
    assert "cuda does not record: image size." in answer["explanation"]
    # Asked for by name it has to be said.
    asked = selector(tmp_path, unsaid, vision()).select_hardware(
        "vision", "resnet50", available_hardware=["cpu", "cuda"], shapes={"image_size": 224}
    )
    assert asked["all_scores"]["cuda"]["basis"] == "rule"


def test_two_sizes_are_never_held_together(tmp_path):
    large = vision(hardware="cuda", image_size=384, latency_p50_ms=1.0)
    unsaid = imported(hardware="rocm", image_size=None, latency_p50_ms=2.0)
    answer = selector(
        tmp_path, large, unsaid, vision(), vision(hardware="openvino")
    ).select_hardware("vision", "resnet50", available_hardware=["cpu", "openvino", "cuda", "rocm"])
    measured = {n for n, one in answer["all_scores"].items() if one["basis"] == "measured"}
    assert measured == {"cpu", "openvino", "rocm"}
    said = "Measured, though not as asked: cuda, image_size 384: 1 result, 1000 items/s, p50 1 ms"
    assert said in answer["explanation"]
    assert [one["hardware"] for one in answer["missing"]] == ["cuda"]


def test_what_we_measured_without_a_size_has_none(tmp_path):
    generating = {"prompt_tokens": 128, "new_tokens": 32, "sequence_length": None}
    whole = result(model="gpt2-tiny", family="text_generation", latency_p50_ms=100.0, **generating)
    step = result(model="gpt2-tiny", family="text_generation", hardware="cuda", latency_p50_ms=1.0)
    answer = selector(tmp_path, whole, step).select_hardware(
        "text_generation", "gpt2-tiny", available_hardware=["cpu", "cuda"]
    )
    assert sum(one["basis"] == "measured" for one in answer["all_scores"].values()) == 1


def test_an_answer_records_the_sizes_that_it_is_for(tmp_path):
    lengths = (64, 128)
    several = [result(sequence_length=n, series_key=f"of {n}") for n in lengths]
    found = selector(tmp_path, *several)
    for asked, answered in (({}, 128), ({"sequence_length": 64}, 64)):
        answer = found.select_hardware(model_name="bert-tiny", shapes=asked)
        assert answer["sizes"] == {"sequence_length": answered}
        limited = found.best_under({"max_latency_ms": 10.0}, model_name="bert-tiny", shapes=asked)
        assert limited["sizes"] == {"sequence_length": answered}


def test_an_answer_by_prediction_alone_records_its_sizes():
    answer = HardwareSelector().select_hardware(
        model_name="resnet-tiny", available_hardware=["cuda:NVIDIA H100 SXM5 80GB"]
    )
    assert answer["sizes"] == {"image_size": 64}
