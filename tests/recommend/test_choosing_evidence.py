"""What an answer stands on: measured before estimated before ruled, and what counts at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from choosing_world import result, selector, stored

from accelbench.core.errors import UsageError
from accelbench.recommend.selector import HardwareSelector


def ask(chosen: HardwareSelector, batch: int = 1, *among: str, **more: Any) -> dict[str, Any]:
    question = {"model_family": "embedding", "model_name": "bert-tiny", **more}
    return chosen.select_hardware(batch_size=batch, available_hardware=among or None, **question)


def test_the_fastest_way_stands_for_its_platform_and_is_named(tmp_path):
    chosen = selector(
        tmp_path,
        result(latency_p50_ms=9.0),
        result(
            latency_p50_ms=5.0, runtime="onnxruntime", precision="int8", verification_error=0.05
        ),
        result(hardware="cuda", latency_p50_ms=6.0),
    )
    cpu = ask(chosen)["all_scores"]["cpu"]
    assert (cpu["runtime"], cpu["precision"]) == ("onnxruntime", "int8")
    assert cpu["predictions"]["latency"] == 5.0
    assert ask(chosen)["primary_recommendation"] == "cpu"
    # In fp32 it is the other way round.
    assert ask(chosen, precision="float32")["primary_recommendation"] == "cuda"


@pytest.mark.parametrize(
    "changes",
    [
        {"emulated": True},
        {"provenance": "simulated"},
        {"provenance": "predicted"},
        {"verification": "failed"},
        {"quality": "unusable"},
        {"status": "failed", "reason": "crash", "latency_p50_ms": None},
    ],
)
def test_what_does_not_count_never_gives_a_figure(tmp_path, changes):
    fake = result(hardware="qnn", **{"latency_p50_ms": 0.01, **changes})
    answer = ask(selector(tmp_path, result(), fake), 1, "cpu", "qnn")
    assert answer["primary_recommendation"] == "cpu"
    qnn = answer["all_scores"]["qnn"]
    assert qnn["basis"] in ("rule", "incompatible")
    predicted = qnn.get("predictions", {"provenance": "predicted", "latency": 1.0})
    assert predicted["provenance"] == "predicted"
    assert predicted["latency"] > 0.05  # and not what does not count


def test_a_platform_that_refused_a_family_is_out_with_its_reason(tmp_path):
    refused = {"status": "unsupported", "reason": "operator", "latency_p50_ms": None}
    npu = result(hardware="qnn", runtime="qnn", **refused)
    answer = ask(selector(tmp_path, result(), npu))
    assert answer["all_scores"]["qnn"]["compatible"] is False
    assert "operator" in answer["all_scores"]["qnn"]["reason"]
    assert "qnn" not in answer["fallback_options"]


def test_newer_results_are_seen_by_a_selector_that_is_there_already(tmp_path):
    path = stored(tmp_path / "r.duckdb", result())
    chosen = HardwareSelector(path)
    assert ask(chosen)["primary_recommendation"] == "cpu"
    stored(path, result(hardware="cuda", latency_p50_ms=1.0), run="r2")
    assert ask(chosen)["primary_recommendation"] == "cuda"


def test_sizes_are_the_models_own_or_those_that_are_asked_for(tmp_path):
    chosen = selector(
        tmp_path,
        result(latency_p50_ms=8.0),
        result(latency_p50_ms=2.0, sequence_length=16, series_key="short"),
    )
    assert ask(chosen)["all_scores"]["cpu"]["predictions"]["latency"] == 8.0
    short = ask(chosen, shapes={"sequence": 16})
    assert short["all_scores"]["cpu"]["predictions"]["latency"] == 2.0
    assert short["question"]["shapes"] == {"sequence_length": 16}


def test_devices_of_one_platform_compete_by_name(tmp_path):
    slow = result(hardware="cuda", device_name="NVIDIA GeForce RTX 3090", latency_p50_ms=5.0)
    fast = result(hardware="cuda", device_name="NVIDIA GeForce RTX 4090", latency_p50_ms=3.0)
    chosen = selector(tmp_path, slow, fast)
    answer = ask(chosen, 1, "rtx 3090", "cuda:nvidia geforce rtx 4090")
    assert answer["primary_recommendation"] == "cuda:NVIDIA GeForce RTX 4090"
    assert answer["fallback_options"] == ["cuda:NVIDIA GeForce RTX 3090"]
    with pytest.raises(UsageError, match="part of 2 names"):
        ask(chosen, 1, "rtx")
    with pytest.raises(UsageError, match="Did you mean cuda"):
        ask(chosen, 1, "cida")


def launches(hardware: str, *latencies: float) -> list[dict[str, Any]]:
    return [
        result(hardware=hardware, latency_p50_ms=one, launch=n) for n, one in enumerate(latencies)
    ]


@pytest.mark.parametrize(
    ("cpu", "cuda", "clear"),
    [
        ((8.0,), (7.9,), False),  # single figures within 3 %
        ((8.0,), (7.0,), True),
        ((8.0, 8.1, 7.9, 8.0, 8.05), (7.4, 7.5, 7.45, 7.4, 7.5), True),
        ((8.0, 9.5, 7.0, 8.8, 7.2), (7.4, 8.9, 6.6, 8.2, 7.1), False),  # launches differ by more
    ],
)
def test_within_the_uncertainty_there_is_no_clear_winner(tmp_path, cpu, cuda, clear):
    answer = ask(selector(tmp_path, *launches("cpu", *cpu), *launches("cuda", *cuda)))
    assert answer["primary_recommendation"] == "cuda"
    assert answer["clear_winner"] is clear
    assert answer["no_clear_winner_between"] == ([] if clear else ["cuda", "cpu"])
    assert ("No clear winner" in answer["explanation"]) is not clear
    assert answer["all_scores"]["cpu"]["predictions"]["launches"] == len(cpu)


def test_what_was_compared_with_nothing_is_no_clear_winner(tmp_path):
    chosen = selector(tmp_path, result())
    answer = ask(chosen, 1, "cpu", "cuda")
    assert (answer["primary_recommendation"], answer["clear_winner"]) == ("cpu", False)
    assert answer["compared"] == ["cpu"]
    assert "No other has a value" in answer["explanation"]
    assert ask(chosen, 1, "cpu")["clear_winner"]  # nothing else was asked about
    assert answer["data_date"] == "2026-01-02T03:04:05.000000Z"


def test_other_spellings_find_what_is_stored(tmp_path):
    stored_as = result(model="vit_base_patch32_384", family="vision", parameters=88_000_000)
    answer = selector(tmp_path, stored_as).select_hardware("vision", "ViT-base-patch32-384")
    assert answer["all_scores"]["cpu"]["basis"] == "measured"
    assert answer["question"]["parameters"] == 88_000_000


def test_several_devices_are_advised_of_and_no_time_is_predicted(tmp_path):
    chosen = selector(tmp_path)
    config = {"gpu_count": 4, "max_memory_gb": 16}
    answer = chosen.select_hardware(
        "text_generation", "llama-2-7b", 4, "training", distributed_config=config
    )
    assert answer["distributed"]["strategy"] == "fsdp"
    assert answer["distributed"]["fits"] is False
    assert "not predicted" in answer["distributed"]["speed"]
    small = chosen.select_hardware(
        "embedding", "bert-tiny", 4, "training", distributed_config=config
    )
    assert (small["distributed"]["strategy"], small["distributed"]["fits"]) == ("ddp", True)
    with pytest.raises(UsageError, match="no 'gpus'"):
        chosen.select_hardware("embedding", "bert-tiny", distributed_config={"gpus": 4})


def test_an_answer_is_plain_json(tmp_path):
    for answer in (ask(selector(tmp_path, result())), ask(selector(tmp_path))):
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def test_what_is_left_of_a_run_that_was_mostly_of_no_use_chooses_nothing(tmp_path):
    """Two launches of five had come out at 5 ms: they were taken before five honest ones of 7."""
    launches = [
        result(launch=n, latency_p50_ms=30.0 if n < 3 else 5.0, quality=word)
        for n, word in enumerate(("unusable",) * 3 + ("converged",) * 2)
    ]
    other = [result(launch=n, latency_p50_ms=7.0, runtime="onnxruntime") for n in range(5)]
    cpu = ask(selector(tmp_path, *launches, *other))["all_scores"]["cpu"]
    assert cpu["runtime"] == "onnxruntime"
