"""What was measured in another way than is asked is said, and never taken for an answer."""

from __future__ import annotations

from typing import Any

from choosing_world import result, selector, stored

from accelbench.recommend.selector import HardwareSelector

NO_TIME = {"latency_p50_ms": None, "memory_peak_mb": None}


def imported(**changes: Any) -> dict[str, Any]:
    """As a table of somebody else's has it."""
    more = {"model": "mixtral-8x7b", "family": "text_generation", "sequence_length": None}
    found = result(**{**more, "provenance": "imported", "latency_p50_ms": 1.0, **changes})
    return {**found, "series_key": None}


def served(scenario: str, rate: float, **changes: Any) -> dict[str, Any]:
    """Many requests at once, of a batch that nobody says."""
    return imported(batch_size=1, throughput=rate, throughput_unit="tokens/s", **changes) | {
        **NO_TIME, "scenario": scenario, "batch_size": None,
    }  # fmt: skip


def tail(name: str, value: float, **changes: Any) -> dict[str, Any]:
    """A result of which nothing but a percentile is known."""
    found = imported(**{"model": "resnet50", "family": "vision", **changes})
    return {**found, **NO_TIME, "throughput": None, f"latency_{name}_ms": value}


def test_measured_rows_of_other_scenarios_are_said_and_their_platforms_come_first(tmp_path):
    card = {"hardware": "cuda", "device_name": "8x A card", "world_size": 8}
    chosen = selector(
        tmp_path,
        served("offline", 800.0, **card),
        served("offline", 500.0, **{**card, "device_name": "4x A card", "world_size": 4}),
        served("server", 600.0, **card),
        served("offline", 50.0, hardware="rocm"),
    )
    answer = chosen.select_hardware(model_name="mixtral-8x7b")
    # The rules alone would have another order: nothing else is known to run it at all.
    assert answer["primary_recommendation"] == "cuda"
    assert answer["fallback_options"][0] == "rocm"
    told = {(one["hardware"], one["scenario"]): one for one in answer["measured_otherwise"]}
    assert set(told) == {("cuda", "offline"), ("cuda", "server"), ("rocm", "offline")}
    offline = told["cuda", "offline"]
    assert (offline["results"], offline["device"], offline["throughput"]) == (2, "4x A card", 500.0)
    assert (offline["throughput_per_device"], offline["batch_size"]) == (125.0, None)
    said = (
        "cuda, scenario offline, no time of a step: 2 results, the most 500 tokens/s on 4 devices"
    )
    assert said in answer["explanation"]
    assert "unknown batch" in answer["explanation"]
    under = chosen.best_under({"max_latency_ms": 9}, model_name="mixtral-8x7b")
    assert said in under["explanation"]
    assert len(under["measured_otherwise"]) == 3
    assert "Nothing that was measured" not in under["explanation"]
    assert (
        "None of it is the time of a step of mixtral-8x7b, with one request after the other on one"
        " device, so nothing is known to fit under max_latency_ms 9." in under["explanation"]
    )
    # No line says of one platform that it was measured and that it was not.
    lines = answer["explanation"].splitlines()
    assert "Without a measured figure of what is asked: cuda, rocm." in lines
    (never,) = (line for line in lines if line.startswith("Not measured: "))
    assert "cuda" not in never


def test_rates_of_other_scenarios_that_reach_a_limit_are_named(tmp_path):
    card = {"hardware": "cuda", "device_name": "8x A card", "world_size": 8}
    chosen = selector(
        tmp_path, served("offline", 800.0, **card), served("server", 50.0, hardware="rocm")
    )

    def said(least: float) -> str:
        found = chosen.best_under({"min_throughput": least}, model_name="mixtral-8x7b")
        assert found["best"] is None
        return str(found["explanation"])

    reached = "these reach 90 a second: cuda 100 tokens/s on each device (scenario offline). What"
    assert reached in said(90)
    most = "None of these rates reaches 500 a second: the most is cuda 100 tokens/s on each device"
    assert most in said(500)


def test_what_answers_needs_no_more(tmp_path):
    answer = selector(tmp_path, result(), result(scenario="server")).select_hardware(
        model_name="bert-tiny", available_hardware=["cpu"]
    )
    assert answer["all_scores"]["cpu"]["basis"] == "measured"
    assert answer["measured_otherwise"] == []


def test_an_unknown_batch_is_not_batch_1(tmp_path):
    unsaid = {**result(hardware="cuda", latency_p50_ms=0.1), "batch_size": None}
    chosen = selector(tmp_path, result(), unsaid)
    answer = chosen.select_hardware(model_name="bert-tiny", available_hardware=["cpu", "cuda"])
    assert answer["primary_recommendation"] == "cpu"
    assert answer["all_scores"]["cuda"]["basis"] == "rule"
    (said,) = answer["measured_otherwise"]
    assert (said["hardware"], said["batch_size"], said["latency"]) == ("cuda", None, 0.1)
    assert "unknown batch" in said["text"]
    found = chosen.best_under({"max_latency_ms": 100}, model_name="bert-tiny")
    assert {one["hardware"] for one in found["fits"]} == {"cpu"}


def test_a_failure_of_an_unknown_batch_is_of_no_batch(tmp_path):
    later = {"started_at": "2026-03-03T00:00:00Z", "series_key": None}
    failed = result(status="out_of_memory", reason="out_of_memory", **later)
    for batch, there in ((1, 0), (None, 1)):
        path = stored(tmp_path / f"{batch}.duckdb", result())
        stored(path, {**failed, "batch_size": batch}, run="r2")
        answer = HardwareSelector(path).select_hardware(
            model_name="bert-tiny", available_hardware=["cpu"]
        )
        assert len(answer["compared"]) == there


def test_a_figure_says_which_figure_it_is_and_is_held_against_the_same(tmp_path):
    median = result()
    mean = result(hardware="cuda", latency_mean_ms=4.0, latency_p50_ms=3.0)
    names = ["cpu", "cuda"]
    for rows, known in (([median], {"cpu": "p50"}), ([median, mean], {"cuda": "mean"})):
        answer = selector(tmp_path, *rows).select_hardware(
            model_name="bert-tiny", available_hardware=names
        )
        scores = answer["all_scores"]
        told = {name: scores[name]["predictions"]["figure"] for name in answer["compared"]}
        assert told == known
    assert scores["cuda"]["predictions"]["latency"] == 4.0
    assert "mean 4 ms a step" in answer["explanation"]
    (aside,) = answer["measured_otherwise"]
    assert (aside["hardware"], aside["why"], aside["figure"]) == ("cpu", "p50 alone", "p50")


def test_a_percentile_stands_where_there_is_nothing_else_beside_its_like(tmp_path):
    cards = ("cpu", "p90", 9.0), ("cuda", "p90", 2.0), ("rocm", "p99", 1.0)
    rows = [tail(name, ms, hardware=hardware) for hardware, name, ms in cards]
    names = ["cpu", "cuda", "rocm"]
    answer = selector(tmp_path, *rows).select_hardware(
        model_name="resnet50", available_hardware=names
    )
    assert answer["compared"] == ["cuda", "cpu"]
    best = answer["all_scores"]["cuda"]
    assert (best["predictions"]["latency"], best["predictions"]["figure"]) == (2.0, "p90")
    # A rate is of means: nobody makes one of a percentile.
    assert best["predictions"]["throughput"] is None
    assert [one["hardware"] for one in answer["measured_otherwise"]] == ["rocm"]
    under = selector(tmp_path, *rows).best_under(
        {"min_throughput": 1.0}, model_name="resnet50", available_hardware=names
    )
    assert under["best"] is None
    assert under["does_not_fit"][0]["why"] == ["its throughput was not measured"]
    known = imported(model="resnet50", family="vision", hardware="openvino")
    answer = selector(tmp_path, *rows, known).select_hardware(
        model_name="resnet50", available_hardware=[*names, "openvino"]
    )
    assert answer["compared"] == ["openvino"]


def test_what_was_measured_in_another_precision_is_said(tmp_path):
    """“Not measured: cuda” stood beside dozens of its figures in amp-fp16."""
    card = {"hardware": "cuda", "device_name": "A card", "precision": "amp-fp16"}
    chosen = selector(tmp_path, result(**card, latency_p50_ms=2.0, batch_size=8))
    answer = chosen.select_hardware(model_name="bert-tiny", precision="fp16", batch_size=8)
    (told,) = answer["measured_otherwise"]
    assert (told["hardware"], told["why"], told["precision"]) == ("cuda", "in amp-fp16", "amp-fp16")
    named = chosen.select_hardware(model_name="bert-tiny", precision="amp-fp16", batch_size=8)
    assert named["measured_otherwise"] == []
