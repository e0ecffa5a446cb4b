"""How far estimates reach, and when the first is not clearly the first."""

from __future__ import annotations

from choosing_world import result, selector


def test_a_device_is_no_rival_of_its_own_platform(tmp_path):
    chosen = selector(tmp_path, result(), result(hardware="cuda", latency_p50_ms=2.0))
    answer = chosen.select_hardware(
        "embedding", "bert-tiny", available_hardware=["cuda", "cuda:A card", "cpu"]
    )
    assert answer["no_clear_winner_between"] == []
    assert answer["clear_winner"]


def test_what_nobody_wants_is_no_clear_winner(tmp_path):
    none = {"availability_factor": 0}
    config = {"hardware_preferences": {"cpu": none, "cuda": none}}
    chosen = selector(tmp_path, result(), result(hardware="cuda"), config_path=config)
    answer = chosen.select_hardware("embedding", "bert-tiny", available_hardware=["cpu", "cuda"])
    assert not answer["clear_winner"]
