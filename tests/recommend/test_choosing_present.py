"""What nobody named: no browser, and where nothing was measured first what this machine has."""

from __future__ import annotations

import pytest
from choosing_world import result, selector

from accelbench.recommend.config import BROWSERS
from accelbench.recommend.selector import Knowledge

IN_A_PAGE = result(hardware="webgpu", runtime="browser", device_name="Chromium", latency_p50_ms=1.0)


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The platforms that were looked for, on a machine with a CPU and OpenVINO."""
    wanted: list[str] = []

    def is_here(_: Knowledge, platform: str, device: str | None = None) -> bool:
        wanted.append(platform)
        return platform in ("cpu", "openvino")

    monkeypatch.setattr(Knowledge, "is_here", is_here)
    return wanted


def test_what_is_here_comes_before_what_is_not(tmp_path, asked_for):
    answer = selector(tmp_path).select_hardware("embedding", "bert-tiny")
    order = [answer["primary_recommendation"], *answer["fallback_options"]]
    assert set(order[:2]) == {"cpu", "openvino"}
    assert answer["all_scores"]["cuda"]["present"] is False
    assert "cuda" in asked_for


@pytest.mark.parametrize("named", [{"available_hardware": ["cpu", "cuda"]}, {"deployment": "mac"}])
def test_who_names_platforms_is_not_told_what_is_here(tmp_path, asked_for, named):
    answer = selector(tmp_path).select_hardware("text_generation", "gpt2", **named)
    assert all("present" not in score for score in answer["all_scores"].values())
    assert answer["primary_recommendation"] == ("mps" if "deployment" in named else "cuda")


def test_what_was_measured_elsewhere_comes_before_what_is_here(tmp_path, asked_for):
    there = selector(tmp_path, result(hardware="cuda", latency_p50_ms=1.0))
    answer = there.select_hardware(model_name="bert-tiny")
    assert answer["primary_recommendation"] == "cuda"
    assert answer["fallback_options"][:1] in (["cpu"], ["openvino"])


def test_no_browser_is_chosen_for_who_did_not_ask_for_one(tmp_path):
    both = selector(tmp_path, result(), IN_A_PAGE)
    answer = both.select_hardware(model_name="bert-tiny")
    assert not BROWSERS & set(answer["all_scores"])
    assert answer["primary_recommendation"] == "cpu"
    assert answer["browsers_left_out"] == ["webgpu"]
    assert "by --deployment browser" in answer["explanation"]
    assert both.best_under({}, model_name="bert-tiny")["best"]["hardware"] == "cpu"


@pytest.mark.parametrize(
    "named", [{"available_hardware": ["cpu", "webgpu"]}, {"deployment": "browser"}]
)
def test_a_browser_that_is_meant_is_taken(tmp_path, named):
    both = selector(tmp_path, result(), IN_A_PAGE)
    answer = both.select_hardware(model_name="bert-tiny", **named)
    assert answer["primary_recommendation"] == "webgpu"
    assert answer["browsers_left_out"] == []


def test_the_map_is_of_every_platform_wherever_it_may_be(tmp_path, asked_for):
    families = selector(tmp_path).create_hardware_selection_map()["model_families"]
    small = families["embedding"]["model_sizes"]["small"]["inference"]
    assert small["primary"] == "webnn"  # the guide's own example
    assert small["fallbacks"] == ["cuda", "cpu"]
