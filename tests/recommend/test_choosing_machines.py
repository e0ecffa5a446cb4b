"""Results of several machines: each figure says whose it is, and one machine can be asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, stored

from accelbench.core.errors import UsageError
from accelbench.recommend.selector import HardwareSelector

QUESTION = ("embedding", "bert-tiny")


def launches(ms: float, moment: str, **changes: Any) -> list[dict[str, Any]]:
    return [
        result(latency_p50_ms=ms * (1 + n / 1000), launch=n, started_at=moment, **changes)
        for n in range(3)
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """On lab the card is twice as fast as the processor, on other half as fast, measured later."""
    file, old, new = tmp_path / "results.duckdb", "2026-01-02T00:00:00Z", "2026-02-02T00:00:00Z"
    stored(file, *launches(10, old), *launches(5, old, hardware="cuda"), run="r1")
    more = [*launches(10.5, new), *launches(20, new, hardware="cuda")]
    return stored(file, *more, run="r2", machine="other")


def test_figures_of_two_machines_are_said_to_be_that(path):
    answer = HardwareSelector(path).select_hardware(*QUESTION)
    scores = answer["all_scores"]
    assert scores["cuda"]["predictions"]["latency"] == pytest.approx(5, rel=0.01)
    assert scores["cuda"]["machine"].startswith("lab ")
    assert "machine" in scores["cuda"]["told_apart_by"]
    assert [name.partition(" ")[0] for name in answer["machines"]] == ["lab", "other"]
    assert "results of 2 machines" in answer["explanation"]


def test_of_one_machine_its_own_figures_answer(path):
    answer = HardwareSelector(path, machine="other").select_hardware(*QUESTION)
    assert answer["primary_recommendation"] == "cpu"
    assert answer["all_scores"]["cuda"]["predictions"]["latency"] == pytest.approx(20, rel=0.01)
    assert answer["machines"] == {}


def test_a_machine_without_results_is_refused(path):
    with pytest.raises(UsageError, match="no results of a machine"):
        HardwareSelector(path, machine="another").select_hardware(*QUESTION)


def test_under_limits_each_option_is_of_one_machine(path):
    found = HardwareSelector(path).best_under({"max_latency_ms": 12}, *QUESTION)
    of_cuda = [one for one in (*found["fits"], *found["does_not_fit"]) if one["hardware"] == "cuda"]
    assert {(one["machine"].partition(" ")[0], bool(one.get("why"))) for one in of_cuda} == {
        ("lab", False),
        ("other", True),
    }
    assert "results of 2 machines" in found["explanation"]


def test_launches_that_failed_are_said_beside_the_figure_of_the_others(tmp_path):
    lost = [
        result(launch=n, status="failed", reason="worker_died", started_at="2026-01-02T03:05:00Z")
        for n in (3, 4)
    ]
    answer = HardwareSelector(
        stored(tmp_path / "results.duckdb", *launches(8, "2026-01-02T03:04:05Z"), *lost)
    ).select_hardware(*QUESTION)
    said = answer["all_scores"]["cpu"]["predictions"]
    assert (said["failed_launches"], said["launches_tried"]) == (2, 5)
    assert "though 2 of 5 launches failed" in answer["explanation"]
