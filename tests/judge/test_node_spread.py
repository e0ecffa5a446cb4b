"""Which node falls out of its kind, and when that cannot be told."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.judge.process_spread import step_parts, validated


def row(node: str, ms: float | None, kind: str = "epyc", **more: Any) -> dict[str, Any]:
    """A result of one case on a node."""
    return {
        "run_id": f"20260101-000000-0123456789.{node}", "device_fingerprint": kind,
        "device_name": kind, "model": "bert-tiny", "runtime": "pytorch", "hardware": "cpu",
        "precision": "fp32", "batch_size": 1, "status": "failed" if ms is None else "ok",
        "reason": "crash" if ms is None else None, "message": "it crashed" if ms is None else None,
        "latency_p50_ms": ms, "latency_mean_ms": ms, "sample_count": 30, "provenance": "measured",
        **more,
    }  # fmt: skip


def test_the_slow_one_of_four_is_named():
    found = validated([row("a", 10.0), row("b", 10.2), row("c", 9.9), row("d", 13.0)], 0.1)
    assert list(found.bad) == ["d"]
    assert "29% slower than the median of its kind" in found.bad["d"][0]
    assert not found.open
    (spread,) = found.spreads
    assert spread.spread == pytest.approx(3.1 / 10.1)


def test_nodes_that_are_alike_are_fine():
    found = validated([row(name, ms) for name, ms in zip("abc", (10, 10.5, 9.8), strict=True)], 0.1)
    assert not found.bad
    assert not found.open


def test_of_two_that_differ_neither_is_named():
    found = validated([row("a", 10.0), row("b", 15.0)], 0.1)
    assert not found.bad
    assert len(found.open) == 1


def test_two_that_agree_are_fine_and_one_alone_cannot_be_told():
    assert not validated([row("a", 10.0), row("b", 10.3)], 0.1).open
    assert len(validated([row("a", 10.0)], 0.1).open) == 1


def test_what_differs_by_more_than_the_threshold_everywhere_is_no_fault_of_one():
    """Five nodes 15 % apart each: the slowest is not three deviations from the median."""
    times = (10.0, 11.5, 13.2, 15.2, 17.5)
    found = validated([row(name, ms) for name, ms in zip("abcde", times, strict=True)], 0.1)
    assert not found.bad


def test_a_node_that_is_faster_is_no_fault_but_said():
    found = validated([row("a", 10.0), row("b", 10.2), row("c", 9.9), row("d", 7.0)], 0.1)
    assert not found.bad
    assert list(found.spreads[0].fast) == ["d"]


def test_launches_of_a_node_are_taken_by_their_median():
    rows = [row("c", ms, launch=n) for n, ms in enumerate((10.0, 10.1, 99.0))]
    found = validated([row("a", 10.0), row("b", 10.2), *rows], 0.1)
    assert not found.bad


def test_nothing_is_judged_by_times_that_are_unusable():
    """All of them agree, and any may be twice as slow as what was read."""
    rows = [row(node, 10.0, quality="unusable") for node in "abc"]
    found = validated(rows, 0.1)
    assert not found.bad
    (spread,) = found.open
    assert (spread.times, spread.unusable) == ({}, {"a": 10.0, "b": 10.0, "c": 10.0})
    assert spread.spread is None


def test_a_node_that_is_unsteady_is_not_named_and_the_others_are_judged():
    steady = [row(node, ms) for node, ms in zip("abcd", (10.0, 10.1, 9.9, 13.0), strict=True)]
    launches = [row("e", 30.0, quality="unusable"), row("e", 31.0, quality="unusable")]
    found = validated([*steady, *launches, row("e", 10.0)], 0.1)
    assert list(found.bad) == ["d"]
    assert [spread.unusable for spread in found.open] == [{"e": 30.0}]


def test_one_bad_launch_of_three_does_not_count():
    launches = [row("a", 10.0), row("a", 10.2), row("a", 90.0, quality="unusable")]
    found = validated([*launches, row("b", 10.1)], 0.1)
    assert not found.open
    assert found.spreads[0].times["a"] == pytest.approx(10.1)


def test_kinds_are_held_apart_and_a_failure_of_one_node_counts():
    rows = [row("a", 10.0), row("b", 10.1), row("c", None), row("d", 50.0, "other")]
    found = validated(rows, 0.1)
    assert list(found.bad) == ["c"]
    assert "failed there alone: it crashed" in found.bad["c"][0]
    assert [spread.device for spread in found.open] == ["other"]


def test_what_no_node_could_measure_blames_none():
    assert not validated([row("a", None), row("b", None), row("c", None)], 0.1).bad


def test_cases_of_a_plan_that_differ_in_mode_sizes_or_options_are_apart():
    rows = [
        row(node, ms, **more)
        for node, slower in (("a", 1.0), ("b", 1.0), ("c", 2.0))
        for ms, more in (
            (1.0 * slower, {"mode": "inference", "sequence_length": 128}),
            (10.0, {"mode": "training", "sequence_length": 128}),
            (3.0, {"mode": "training", "sequence_length": 128, "world_size": 2}),
            (5.0, {"mode": "inference", "sequence_length": 256}),
            (7.0, {"mode": "inference", "sequence_length": 128, "options": {"compile": True}}),
        )
    ]
    found = validated(rows, 0.1)
    assert len(found.spreads) == 5
    assert found.bad == {
        "c": ["bert-tiny pytorch/cpu fp32 batch 1 seq 128: 100% slower than the median of its kind"]
    }


def test_what_was_not_tried_is_no_failure_of_its_node():
    rows = [row("a", 10.0), row("b", 10.0), row("c", None, status="skipped", reason="budget")]
    assert not validated(rows, 0.1).bad


def test_parts_of_a_step_are_the_mean_of_the_launches_that_were_profiled():
    profiled = [
        row("a", 10.0, communication_ms=4.0, communication_share=share, exposed_communication_ms=ms)
        for share, ms in ((0.4, 1.0), (0.5, 2.0))
    ]
    found = step_parts([row("a", 10.0), *profiled])
    assert found is not None
    assert (found.computation, found.overlapped, found.exposed) == (5.0, 2.5, 1.5)
    assert step_parts([row("a", 10.0)]) is None
