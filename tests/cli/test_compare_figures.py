"""Which figures a comparison shows, and that tables fit into 80 columns."""

from __future__ import annotations

import pytest
from stored_rows import store

from accelbench.present.terminal.compare import differences_in_short

DB = "accelbench.duckdb"
GPU = {"hardware": "cuda", "device_name": "A card"}
NOTHING = {
    "latency_p50_ms": None,
    "latency_mean_ms": None,
    "throughput": None,
    "memory_peak_mb": None,
}


def headed(out: str) -> list[str]:
    """The line of column headings."""
    return next(line for line in out.splitlines() if "times as fast" in line).split()


@pytest.mark.parametrize(
    ("figures", "headings"),
    [
        ({}, "hardware by p50 ms items/s MB times as fast"),
        ({"latency_mean_ms": None, "throughput": None}, "hardware by p50 ms MB times as fast"),
        ({"throughput_unit": "images/s"}, "hardware by p50 ms images/s MB times as fast"),
        ({"throughput_unit": "sequences/s"}, "hardware by p50 ms /s MB times as fast"),
        (NOTHING | {"throughput": 120.0}, "hardware by items/s times as fast"),
        (NOTHING | {"latency_p90_ms": 9.0}, "hardware by p90 ms times as fast"),
    ],
)
def test_the_heading_says_which_figure_it_is(tmp_path, compare, figures, headings):
    store(tmp_path / DB, figures, GPU | figures)
    code, out, _ = compare()
    assert (code, headed(out)) == (0, headings.split())
    assert ("sequences" in out) == ("/s" in headings.split())


def test_figures_of_two_kinds_are_marked_one_by_one(tmp_path, compare):
    store(tmp_path / DB, {}, GPU | {"latency_p50_ms": None, "throughput": None})
    _, out, _ = compare()
    assert "latency ms" in out
    assert "8.00 p50" in out
    assert "8.50 mean" in out
    assert "1.00× ≠" in out  # of the means, which both have
    assert "≠ cuda A card: figure p50 → mean." in out
    assert "Times as fast: by the mean time of an item." in out


def test_an_import_is_not_advised_to_be_launched_again(tmp_path, compare):
    theirs = {"provenance": "imported", "conditions": {"source": {"name": "s"}}}
    store(tmp_path / DB, theirs, GPU | theirs)
    _, out, _ = compare()
    assert "--launches" not in out
    assert "Single imported results have no interval" in out


def test_differences_are_gathered_by_name():
    many = [f"torch 1.{n} → 2.0" for n in range(5)]
    said = differences_in_short([*many, "unit images/s → tokens/s", f"notes {'a' * 50} → b"])
    assert said == (
        f"unit images/s → tokens/s; notes {'a' * 29}… → b;"
        " torch 1.0 → 2.0, 1.1 → 2.0, 1.2 → 2.0 and 2 more"
    )
    assert differences_in_short(f"name{n} a → b" for n in range(10)).endswith(
        "name7 a → b; and name8, name9, see --json"
    )
