"""`accelbench history` where a check would refuse, and where there is no figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stored_rows import store

DB = "accelbench.duckdb"
RATE = {"latency_p50_ms": None, "latency_mean_ms": None, "throughput": 100.0, "batch_size": None}


def night(folder: Path, day: int, *launches: dict[str, Any], name: str = "s") -> None:
    """A run of a day, of one launch unless several are told."""
    about = {"series_key": name, "case_id": f"c-{name}", "device_fingerprint": "f"}
    moment = f"2026-03-{day:02d}T03:04:05.000000Z"
    rows = [
        {"started_at": moment, "launch": n, **about, **one}
        for n, one in enumerate(launches or [{}])
    ]
    store(folder / DB, *rows, run=f"r{day:02d}-{name}")


def halved(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Four nights, and five of half their time that are otherwise."""
    for day in range(1, 10):
        wobble = 1.0 + 0.002 * (day % 3)
        first = day < 5
        ms = (8.0 if first else 4.0) * wobble
        night(folder, day, {"latency_p50_ms": ms, **(before if first else now)})


def test_own_code_that_was_changed_goes_on_with_its_line(tmp_path, history):
    """A line of it is to say since when it is slower: that is what was changed."""
    own = {"weights": "code"}
    halved(tmp_path, {**own, "weights_digest": "a"}, {**own, "weights_digest": "b"})
    (one,) = history.json()["series"]
    assert one["not_alike"] == []
    assert [step["at"] for step in one["steps"]] == [4]


def test_launches_of_one_run_that_are_not_alike_are_alike_to_no_run(tmp_path, history):
    for day in range(1, 7):
        night(tmp_path, day)
    night(tmp_path, 7, {}, {"workarounds": ["static shapes"]})
    (one,) = history.json()["series"]
    assert [(mark["at"], mark["what"]) for mark in one["not_alike"]] == [(6, ["workarounds"])]


def test_emulated_times_are_no_points(tmp_path, history):
    halved(tmp_path, {}, {"emulated": True})
    said = " ".join(history()[1].split())
    assert "4 runs" in said
    assert "Can't tell: the newest run, of 2026-03-09 03:04, has no figure: emulated" in said
    assert ", emulated:" not in said


def test_what_has_another_figure_is_said_to_have_it(tmp_path, history):
    night(tmp_path, 1, RATE, name="rate")
    night(tmp_path, 2, RATE, name="rate")
    code, _, err = history()
    said = " ".join(err.split())
    assert (code, "measured twice" in said) == (4, False)
    assert "has a history by latency" in said
    assert "has no latency in 2 runs" in said
    assert "--metric throughput" in said
    assert history("--metric", "throughput")[0] == 0
    for day in (1, 2):
        night(tmp_path, day, name="timed")
    out = " ".join(history()[1].split())
    assert "Of 2 series: 1 drawn, not judged, 1 no latency." in out
    assert "--metric throughput" in out
    (one,) = history.json()["without_figure"]
    assert (one["runs"], one["newest"]["why"]) == (2, "its latency is not known")
    assert "throughput" in one["metrics"]


def test_times_that_are_of_no_use_are_no_lack_of_runs(tmp_path, history):
    for day in (1, 2):
        night(tmp_path, day, {"quality": "unusable", "memory_peak_mb": None})
    code, _, err = history()
    said = " ".join(err.split())
    assert (code, "measured twice" in said) == (4, False)
    assert "has no latency in 2 runs, the newest of 2026-03-02 03:04: unusable" in said
