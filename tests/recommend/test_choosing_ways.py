"""A figure is told with the way it was run: compiled, by how many threads, by which version."""

from __future__ import annotations

from typing import Any

from choosing_world import result, selector

PACKAGES = {"packages": {"torch": "2.13.0", "numpy": "2.4"}}
CARD = {"hardware": "cuda", "latency_p50_ms": 5.0, "options": {"layout": "nchw"}}


def way(number: int, **changes: Any) -> dict[str, Any]:
    """One of several at a place, each a series of its own."""
    return result(series_key=f"way {number}", **changes)


def test_the_engines_version_is_told_of_what_is_ours_and_of_imports(tmp_path):
    theirs = {"conditions": {"engine": "torch 2.4 inductor"}, "provenance": "imported"}
    chosen = selector(
        tmp_path,
        way(1, conditions=PACKAGES, threads=2),
        way(2, **CARD, **theirs, compiled=True),
        way(3, hardware="rocm", runtime="migraphx", conditions=PACKAGES),
    )
    answer = chosen.select_hardware(model_name="bert-tiny")
    scores = answer["all_scores"]
    versions = {name: scores[name].get("engine_version") for name in ("cpu", "cuda", "rocm")}
    assert versions == {"cpu": "torch 2.13.0", "cuda": "torch 2.4 inductor", "rocm": None}
    assert "A card, pytorch (torch 2.4 inductor), fp32, compiled: " in answer["explanation"]
    assert "A processor, pytorch (torch 2.13.0), fp32, 2 threads: " in answer["explanation"]
    best = chosen.best_under({"max_latency_ms": 6}, model_name="bert-tiny")["best"]
    assert (best["engine_version"], best["compiled"]) == ("torch 2.4 inductor", True)


def test_ways_of_one_engine_stand_apart_under_limits(tmp_path):
    chosen = selector(
        tmp_path,
        way(1, **CARD, compiled=True),
        way(2, **{**CARD, "latency_p50_ms": 6.0}),
        way(3, threads=1, latency_p50_ms=9.0),
        way(4, threads=16),
    )
    found = chosen.best_under({"max_latency_ms": 10}, model_name="bert-tiny")
    ran = [(one["hardware"], one["compiled"], one["threads"]) for one in found["fits"]]
    assert ran == [
        ("cuda", True, None), ("cuda", False, None), ("cpu", False, 16), ("cpu", False, 1)
    ]  # fmt: skip
    assert "A card · pytorch · fp32 · compiled · layout=nchw" in found["explanation"]
    answer = chosen.select_hardware(model_name="bert-tiny")["all_scores"]
    assert (answer["cpu"]["told_apart_by"], answer["cpu"]["threads"]) == (["threads"], 16)
    assert answer["cuda"]["told_apart_by"] == ["compiled"]
