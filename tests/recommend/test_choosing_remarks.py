"""What an answer says of its figures: what decided, what is unknown of them, what came since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from choosing_world import result, selector, stored

from accelbench.recommend.selector import HardwareSelector

MODEL = ("embedding", "bert-tiny")


def answered(folder: Path, *results: dict[str, Any]) -> dict[str, Any]:
    chosen = selector(folder, *results)
    return chosen.select_hardware(*MODEL, available_hardware=["cpu", "cuda"])


def launches(ms: float, **changes: Any) -> list[dict[str, Any]]:
    return [result(latency_p50_ms=ms * (1 + n / 500), launch=n, **changes) for n in range(5)]


def rated_higher(folder: Path, ms: float) -> dict[str, Any]:
    """The card of a model whose family is faster there, at so many milliseconds beside 8."""
    known = {"sample_count": 500, "effective_sample_count": 300.0, "model": "another"}
    return answered(
        folder,
        *launches(8.0),
        *launches(ms, hardware="cuda"),
        *launches(8.0, **known),
        *launches(1.0, hardware="cuda", **known),
    )


def test_of_what_is_first_by_its_time_nothing_is_said(tmp_path):
    assert rated_higher(tmp_path, 4.0)["remarks"] == []


def test_a_size_that_nobody_said_is_told(tmp_path):
    theirs = {"hardware": "cuda", "latency_p50_ms": 4.0, "provenance": "imported"}
    answer = answered(tmp_path, result(), result(sequence_length=None, **theirs))
    assert answer["remarks"] == ["cuda does not record: sequence length."]


def test_a_newer_run_that_came_to_nothing_is_told(tmp_path):
    path = stored(tmp_path / "db.duckdb", *launches(8.0), *launches(4.0, hardware="cuda"))
    lost = result(hardware="cuda", status="timeout", started_at="2026-03-01T00:00:00Z")
    chosen = HardwareSelector(stored(path, lost, run="r2"))
    answer = chosen.select_hardware(*MODEL, available_hardware=["cpu", "cuda"])
    assert answer["primary_recommendation"] == "cuda"
    assert answer["remarks"] == [
        "cuda: a newer run failed (timeout); its result is of an older one."
    ]
