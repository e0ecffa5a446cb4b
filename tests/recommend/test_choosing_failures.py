"""What failed when it was last tried has no figure, none is estimated for it, and it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector, stored

from accelbench.core.devices import cards
from accelbench.measure.launch_verdicts import geometric_mean
from accelbench.recommend.selector import HardwareSelector

LATER = "2026-02-01T00:00:00Z"
MEMORY = {"status": "out_of_memory", "reason": "out_of_memory"}


def failed(**changes: Any) -> dict[str, Any]:
    """A later attempt that did not work, and never got as far as an engine."""
    usual = {"status": "failed", "reason": "crash", "started_at": LATER, "threads": None}
    gone = {"latency_p50_ms": None, "series_key": None, "verification": "not_done"}
    return result(**{**usual, **gone, "hardware": "cuda", **changes})


def asked(found: HardwareSelector, batch: int = 1, *among: str, **more: Any) -> dict[str, Any]:
    return found.select_hardware(
        "embedding", "bert-tiny", batch, available_hardware=among or ("cpu", "cuda"), **more
    )


def ruled_out(answer: dict[str, Any], name: str = "cuda") -> list[tuple[Any, ...]]:
    """What failed of a candidate."""
    names = ("runtime", "device", "precision", "batch_size", "shapes")
    entries = answer["all_scores"][name]["ruled_out"]
    return [tuple(entry[key] for key in names) for entry in entries]


def test_what_never_got_as_far_as_an_engine_fails_too(tmp_path):
    path = stored(tmp_path / "r.duckdb", result(), result(hardware="cuda", latency_p50_ms=1.0))
    stored(path, failed(), run="r2")
    answer = asked(HardwareSelector(path))
    assert answer["primary_recommendation"] == "cpu"
    assert ruled_out(answer) == [("pytorch", "A card", "fp32", 1, {"sequence_length": 128})]
    failure = "crash at batch 1, sequence length 128 (pytorch, fp32, A card)"
    assert f"Ruled out on cuda by its newest run: {failure}." in answer["remarks"]


def test_a_failed_engine_leaves_the_other_engines_of_its_platform(tmp_path):
    found = selector(
        tmp_path,
        failed(hardware="cpu"),
        result(hardware="openvino", runtime="openvino", latency_p50_ms=4.0),
    )
    answer = asked(found, 1, "cpu", "openvino")
    assert answer["primary_recommendation"] == "openvino"
    assert answer["all_scores"]["cpu"]["compatible"] is True
    (missing,) = answer["missing"]
    assert "--hardware cpu --batch-sizes 1 --framework onnxruntime" in missing["command"]


def test_a_platform_is_out_if_each_of_its_engines_failed(tmp_path):
    engines = [name for name, card in cards().items() if "openvino" in card.hardware]
    failures = [failed(hardware="openvino", runtime=engine) for engine in engines]
    answer = asked(selector(tmp_path, result(), *failures), 1, "cpu", "openvino")
    assert answer["all_scores"]["openvino"]["compatible"] is False
    assert [each[0] for each in ruled_out(answer, "openvino")] == sorted(engines)


def test_one_failed_size_says_nothing_of_a_family(tmp_path):
    found = selector(tmp_path, result(), failed(batch_size=64))
    entry = found.compatibility_matrix["model_families"]["embedding"]["hardware_compatibility"]
    assert entry["cuda"]["compatible"] is True


@pytest.mark.parametrize(
    "changes",
    [
        {"reason": "hardware_absent"},  # of the machine: it says nothing of the card
        {"reason": "timeout", "status": "timeout"},
        {"started_at": "2025-01-01T00:00:00Z"},  # it worked since
        {"precision": "fp16"},
        {"runtime": "onnxruntime"},
        {"sequence_length": 512},
        {"batch_size": 4},
        {"device_name": "Another card"},
        {"model": "bert-mini"},
        {"mode": "training"},
    ],
)
def test_what_failed_of_something_else_takes_no_figure_away(tmp_path, changes):
    path = stored(tmp_path / "r.duckdb", result(), result(hardware="cuda", latency_p50_ms=1.0))
    stored(path, failed(**changes), run="r2")
    answer = asked(HardwareSelector(path))
    assert answer["primary_recommendation"] == "cuda"
    assert answer["all_scores"]["cuda"]["basis"] == "measured"


def test_a_launch_that_failed_beside_others_that_worked_is_no_failure(tmp_path):
    several = [result(hardware="cuda", latency_p50_ms=1.0, launch=n) for n in range(3)]
    lost = failed(launch=3, series_key=several[0]["series_key"])
    answer = asked(selector(tmp_path, result(), *several, lost))
    assert answer["all_scores"]["cuda"]["predictions"]["launches"] == 3


def test_wrong_outputs_in_the_newest_run_are_a_failure(tmp_path):
    path = stored(tmp_path / "r.duckdb", result(), result(hardware="cuda", latency_p50_ms=1.0))
    wrong = result(hardware="cuda", latency_p50_ms=0.5, verification="failed", started_at=LATER)
    stored(path, wrong, run="r2")
    answer = asked(HardwareSelector(path))
    assert answer["primary_recommendation"] == "cpu"
    assert answer["all_scores"]["cuda"]["ruled_out"][0]["reason"] == "wrong_outputs"


def memory_ran_out(tmp_path: Path) -> HardwareSelector:
    """A card that holds a batch of 32 and not one of 64, and a slow processor."""
    measured = [
        result(batch_size=batch, hardware=hardware, latency_p50_ms=step * batch)
        for hardware, step in (("cpu", 10.0), ("cuda", 1.0))
        for batch in (1, 32)
    ]
    return selector(tmp_path, *measured, failed(batch_size=64, **MEMORY))


@pytest.mark.parametrize("batch", [64, 65, 128, 1024])
def test_no_batch_beyond_one_that_ran_out_of_memory_is_recommended(tmp_path, batch):
    answer = asked(memory_ran_out(tmp_path), batch)
    assert answer["primary_recommendation"] == "cpu"
    assert "predictions" not in answer["all_scores"]["cuda"]
    assert ruled_out(answer) == [("pytorch", "A card", "fp32", 64, {"sequence_length": 128})]
    assert answer["missing"][0]["hardware"] == "cpu"


def test_wrong_outputs_of_one_launch_are_wrong_in_all_of_its_run(tmp_path):
    launches = [
        result(
            hardware="cuda", launch=n, latency_p50_ms=2.0, verification_error=1e-4,
            started_at=f"2026-01-02T03:04:0{n}.000000Z",
        )
        for n in range(5)
    ]  # fmt: skip
    right = selector(tmp_path, result(verification="reference"), *launches)
    question: dict[str, Any] = {
        "model_name": "bert-tiny", "available_hardware": ["cpu", "cuda"],
    }  # fmt: skip
    assert right.select_hardware(**question)["primary_recommendation"] == "cuda"
    launches[3] |= {"verification": "failed", "verification_error": 5.0}
    wrong = selector(tmp_path, result(verification="reference"), *launches)
    answer = wrong.select_hardware(**question)
    assert answer["primary_recommendation"] == "cpu"
    assert answer["all_scores"]["cuda"]["ruled_out"][0]["reason"] == "wrong_outputs"
    assert wrong.best_under({"max_error": 1e-3}, **question)["best"]["hardware"] == "cpu"


def test_a_device_called_alike_on_another_machine_did_not_fail(tmp_path):
    mine = result(hardware="cuda", latency_p50_ms=1.0, device_fingerprint="mine")
    path = stored(tmp_path / "r.duckdb", result(), mine)
    stored(path, failed(device_fingerprint="another"), run="r2")
    assert asked(HardwareSelector(path))["primary_recommendation"] == "cuda"


@pytest.mark.parametrize(
    "lost",
    [
        [{"reason": "wrong_outputs", "verification": "failed"}],
        [{"reason": "crash"}, {"reason": "crash"}],
        [MEMORY, MEMORY],
    ],
)
def test_what_most_launches_of_its_only_run_did_not_come_to_is_no_figure(tmp_path, lost):
    card = result(hardware="cuda", latency_p50_ms=1.0, started_at=LATER)
    path = stored(tmp_path / "r.duckdb", result(), card, *(failed(**one) for one in lost))
    answer = asked(HardwareSelector(path))
    assert answer["primary_recommendation"] == "cpu"
    assert answer["all_scores"]["cuda"]["ruled_out"][0]["reason"] == lost[0]["reason"]


def test_launches_of_our_own_run_are_one_cell_wherever_it_was_measured(tmp_path):
    """By a word that says nothing of how it ran, an import of them was a cell a launch."""
    launches = [
        result(
            provenance="imported",
            launch=n,
            latency_p50_ms=8.0 + n,
            conditions={"packages": {"torch": "2.9"}, "cases_before_in_worker": n},
        )
        for n in range(5)
    ]
    for run in ("r1", "import-1"):
        path = stored(tmp_path / f"{run}.duckdb", *launches, run=run)
        said = asked(HardwareSelector(path))["all_scores"]["cpu"]
        middle = geometric_mean([8.0, 9.0, 10.0, 11.0, 12.0])
        assert said["predictions"]["latency"] == pytest.approx(middle)


def test_ways_that_are_set_aside_for_wrong_outputs_are_named(tmp_path):
    wrong = result(runtime="onnxruntime", latency_p50_ms=0.5, verification="failed")
    answer = asked(selector(tmp_path, result(), wrong), 1, "cpu")
    cpu = answer["all_scores"]["cpu"]
    assert (cpu["runtime"], "ruled_out" in cpu) == ("pytorch", False)
    assert [entry["runtime"] for entry in cpu["wrong_outputs"]] == ["onnxruntime"]
    assert any("onnxruntime" in remark for remark in answer["remarks"])
    other = asked(selector(tmp_path, result(batch_size=2), wrong), 2, "cpu")
    assert "wrong_outputs" not in other["all_scores"]["cpu"]
