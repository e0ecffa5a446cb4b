"""Chosen cells beside the first: what is not alike is said in the row, as `compare` says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dashboard_world import result, store, visitor

from accelbench.analysis.run_noise import Histories
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.comparing.page import ComparedCell, beside
from accelbench.report.dashboard.snapshots import cells
from accelbench.report.dashboard.snapshots.snapshot import taken
from accelbench.store.database import Database

_FIRST = {"precision": "fp8", "hardware": "cuda", "device_name": "8x B200"}


def held(**other: Any) -> ComparedCell:
    """A cell beside the first, which differs from it in these columns."""
    rows = [result(**_FIRST), result(**{**_FIRST, **other}, latency_p50_ms=4.0)]
    chosen = [({**row, "kind": "measured"}, [row]) for row in rows]
    return beside(chosen, Histories())[1]


@pytest.mark.parametrize(
    ("other", "doubts"),
    [
        ({"batch_size": 4}, []),
        ({"precision": "fp4"}, []),
        ({"device_name": "8x H200"}, []),
        ({"hardware": "rocm", "device_name": "8x MI300X", "runtime": "vllm"}, []),
        ({"device_name": "16x H200", "precision": "fp4"}, ["precision", "devices 8 → 16"]),
        ({"batch_size": 4, "world_size": 8}, ["world size"]),
        ({"conditions": {"versions": {"torch": "2.9"}}}, ["versions.torch 2.13 → 2.9"]),
        ({"conditions": {"versions": {"torch": "2.13"}, "Notes": "ours"}}, []),
        ({"throughput_unit": "tokens/s"}, ["figure p50 → mean", "unit sequences/s → tokens/s"]),
    ],
)
def test_what_is_beside_one_axis_makes_a_ratio_doubtful(
    other: dict[str, Any], doubts: list[str]
) -> None:
    """A row said “0.678×” of fp4 on eight cards and fp8 on sixteen, and no more."""
    found = held(**other)
    assert found.ratio is not None
    assert found.doubts == doubts


def test_scenarios_are_not_held_against_each_other() -> None:
    """A server was “1.01×” of what was offline."""
    found = held(scenario="server")
    assert (found.ratio, found.refused) == (None, "not alike: scenario")
    assert not held(scenario=None).refused


def test_the_mark_is_in_the_row(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    unlike = result(precision="fp16", batch_size=4)
    store(database, "r", result(), result(batch_size=2), unlike)
    found = cells.every(taken(database, "now"), PageQuery())
    keys = {one["batch_size"]: one["key"] for one in found}
    site = visitor(database)
    plain = site.get(f"/compare?cell={keys[1]}&cell={keys[2]}").text
    marked = site.get(f"/compare?cell={keys[1]}&cell={keys[4]}").text
    assert "≠" not in plain
    assert '<abbr title="not alike: ' in marked
    assert "≠: beside what is compared" in marked


def test_quantised_outputs_are_said_in_the_row(tmp_path: Path) -> None:
    """int8 stood beside fp32 as twice as fast, and nothing said that its outputs were unknown."""
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    unverified = {"verification": "not_done", "verification_error": None}
    store(
        database,
        "r",
        result(),
        result(precision="int8", **unverified),
        result(precision="int8", batch_size=2, verification="ok", verification_error=0.01),
    )
    found = cells.every(taken(database, "now"), PageQuery())
    keys = {(one["precision"], one["batch_size"]): one["key"] for one in found}
    site = visitor(database)
    first = f"/compare?cell={keys['fp32', 1]}"
    said = "not known to be exact: outputs not verified"
    assert site.get(f"{first}&cell={keys['int8', 1]}").text.count(said) == 1
    assert said not in site.get(f"{first}&cell={keys['int8', 2]}").text
