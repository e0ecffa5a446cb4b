"""`history` names the runs that it leaves out, and other series of the same question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stored_rows import store

from accelbench.core.unusable_reasons import REASON_TEXTS, UnusableReason

DB = "accelbench.duckdb"


def fill(folder: Path) -> None:
    """Five runs, of which the third is unusable, and one run with a single thread."""
    runs: list[dict[str, Any]] = [{"threads": 2} for _ in range(5)]
    runs[2] |= {"quality": "unusable", "unexplained_share": 0.7}
    runs.append({"threads": 1, "series_key": "t1"})
    for day, changes in enumerate(runs):
        about = {
            "series_key": "s",
            "latency_p50_ms": 8.0,
            "latency_mean_ms": 8.0,
            "started_at": f"2026-03-{day + 1:02d}T03:04:05.000000Z",
            **changes,
        }
        store(folder / DB, about, run=f"r{day}")


def test_what_a_series_leaves_out_is_counted_with_its_reason(tmp_path, history):
    fill(tmp_path)
    (series,) = history.json("--all")["series"]
    assert series["point_count"] == 4
    left_out = series["left_out"]
    (run,) = left_out["runs"]
    assert run["run_id"] == "r2"
    assert REASON_TEXTS[UnusableReason.UNACCOUNTED] in run["why"]
    assert REASON_TEXTS[UnusableReason.TOO_NOISY] not in run["why"]
    (other,) = left_out["other_series"]
    assert other == {"series_key": "t1", "runs": 1, "differs": {"threads": "1"}}
    code, out, _ = history("--all")
    assert code == 0
    assert left_out["said"] in " ".join(out.split())


def test_nothing_is_said_of_a_series_that_is_whole(tmp_path, history):
    for day in range(3):
        when = f"2026-03-{day + 1:02d}T03:04:05.000000Z"
        store(tmp_path / DB, {"series_key": "s", "started_at": when}, run=f"r{day}")
    (series,) = history.json("--all")["series"]
    assert series["left_out"] == {"said": None, "runs": [], "other_series": []}
