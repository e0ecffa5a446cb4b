"""Limits as they are given, and as they are judged: what cannot be shown to be kept is not kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from choosing_world import result, selector, stored

from accelbench.core.errors import UsageError
from accelbench.recommend.constraints.limits import Limits, limits_named
from accelbench.recommend.selector import HardwareSelector
from accelbench.recommend.validation import batches

HUGE = pytest.param(10**400, id="huge")
HUGER = pytest.param(10**5000, id="huger")


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, -1, 0, "big", "", True, False, [1], {}, 1j, HUGE, HUGER],
)
def test_a_limit_that_is_no_amount_is_refused_in_one_sentence(value):
    with pytest.raises(UsageError) as refused:
        limits_named({"max_latency_ms": value})
    assert "max_latency_ms" in refused.value.message
    assert len(str(refused.value)) < 160


@pytest.mark.parametrize("given", [None, [], "memory_mb", 3, {"memory": 1}, {1: 1}])
def test_what_names_no_limit_is_refused(given):
    with pytest.raises(UsageError, match="memory_mb, max_latency_ms"):
        limits_named(given)


def test_limits_and_batches_in_order():
    # None is no limit and numbers of any kind are plain.
    found = limits_named(
        {"memory_mb": None, "max_error": np.float32(0.5), "max_power": np.int64(3)}
    )
    assert found == Limits(max_error=0.5, max_power=3)
    assert {type(value) for value in found.given.values()} == {float}
    assert batches(iter([8, 1, np.int64(8), 4.0])) == [1, 4, 8]


@pytest.mark.parametrize(
    "given",
    [[0], [-1], ["8"], [2.5], "8", b"8", 8, None, [True], [math.nan], [10**20], [None], {8: 1}],
)
def test_batch_sizes_that_are_none_are_refused_in_one_sentence(given):
    with pytest.raises(UsageError, match="batch") as refused:
        batches(given)
    assert len(str(refused.value)) < 160


# -- an estimate is judged by its dear end


def between(folder: Path, **more: Any) -> Any:
    """Batch 8 and 32 of one way: at 16 a step takes 12 ms or more, at worst 20."""
    card = {"hardware": "cuda", "verification_error": 1e-6}
    return selector(
        folder,
        result(**card, batch_size=8, latency_p50_ms=10.0, memory_peak_mb=200.0),
        result(**card, batch_size=32, latency_p50_ms=20.0, memory_peak_mb=500.0),
        **more,
    )


def at(answer: dict[str, Any], batch: int) -> dict[str, Any]:
    (found,) = (
        one for one in (*answer["fits"], *answer["does_not_fit"]) if one["batch_size"] == batch
    )
    return dict(found)


def ask(chosen: Any, *batches: int, **limits: float) -> dict[str, Any]:
    found = chosen.best_under(limits, model_name="bert-tiny", batch_sizes=batches)
    return dict(found)


def test_what_was_measured_is_judged_by_its_middle(tmp_path):
    answer = ask(between(tmp_path), max_latency_ms=10.0, memory_mb=200.0)
    assert answer["best"]["batch_size"] == 8
    assert at(answer, 32)["why"] == ["memory 500 MB is above 200", "p50 latency 20 ms is above 10"]


def test_a_version_that_fits_counts_before_a_faster_one_that_does_not(tmp_path):
    old, new = ({"provenance": "imported", "conditions": {"version": n}} for n in (1, 2))
    path = stored(
        tmp_path / "a.duckdb",
        result(**old, latency_p50_ms=4.0, memory_peak_mb=900.0),
        result(**new, latency_p50_ms=8.0, memory_peak_mb=100.0),
        run="import-1",
    )
    answer = ask(HardwareSelector(path), memory_mb=200.0)
    assert answer["best"]["latency_ms"] == 8.0
    assert answer["does_not_fit"] == []


def test_the_reference_does_not_differ_from_itself(tmp_path):
    chosen = selector(tmp_path, result(verification="reference", verification_error=None))
    assert ask(chosen, 1, max_error=1e-9)["best"]["error"] == 0.0


def test_large_figures_are_written_out(tmp_path):
    one = result(batch_size=256, latency_p50_ms=20.0, memory_peak_mb=123_456.0)
    answer = ask(selector(tmp_path, one), memory_mb=98_765)
    assert answer["does_not_fit"][0]["why"] == ["memory 123,456 MB is above 98765"]
    assert "12,800 items/s" in ask(selector(tmp_path, one))["explanation"]


def test_nothing_fits_names_the_limit_and_who_is_nearest(tmp_path):
    said = ask(between(tmp_path), max_latency_ms=9.0)["explanation"]
    assert "max_latency_ms is missed by 2 of 2 ways" in said
    assert "the nearest is cuda pytorch fp32 at batch 8: p50 latency 10 ms is above 9" in said


def test_what_was_never_measured_there_is_said(tmp_path):
    chosen = between(tmp_path)
    both = chosen.best_under({}, model_name="bert-tiny", available_hardware=["cuda", "cpu"])
    assert "Not measured: cpu." in both["explanation"]
    other = chosen.best_under(
        {"memory_mb": 9000}, model_name="bert-tiny", available_hardware=["cpu"]
    )
    assert "Nothing that counts is measured of bert-tiny on cpu" in other["explanation"]


# -- memory


def test_memory_is_counted_at_the_sizes_that_figures_are_of(tmp_path):
    def memory(length: int) -> Any:
        one = result(sequence_length=length, memory_peak_mb=None, batch_size=64)
        chosen = selector(tmp_path, one)
        found = chosen.best_under(
            {"memory_mb": 9e9}, model_name="bert-tiny", shapes={"sequence": length}
        )
        assert found["best"]["memory_basis"] == "estimated"
        return found["best"]["memory_mb"]

    assert memory(512) > 2 * memory(64)
    unasked = selector(tmp_path, result(sequence_length=512, memory_peak_mb=None, batch_size=64))
    assert ask(unasked, memory_mb=9e9)["best"]["memory_mb"] == memory(512)


def test_memory_is_counted_with_the_settings_of_training(tmp_path):
    def memory(**settings: Any) -> Any:
        one = result(mode="training", memory_peak_mb=None, batch_size=64, options=settings)
        found = selector(tmp_path, one).best_under({}, model_name="bert-tiny", mode="training")
        return found["best"]["memory_mb"]

    assert memory(optimizer="sgd") < memory()


def test_the_largest_batch_is_of_the_sizes_asked(tmp_path):
    def largest(length: int) -> Any:
        (found,) = selector(tmp_path).best_under(
            {"memory_mb": 150},
            model_name="bert-tiny",
            available_hardware=["cpu"],
            shapes={"sequence_length": length},
        )["to_verify"]
        return found["batch_size"]

    assert largest(32) > largest(512)


def test_where_not_even_the_smallest_batch_fits_it_says_what_that_takes(tmp_path):
    answer = ask(selector(tmp_path), memory_mb=5)
    assert answer["to_verify"] == []
    assert "Batch 1 in fp32 is estimated to take" in answer["explanation"]


def test_of_launches_the_one_that_took_most_memory_counts(tmp_path):
    launches = [result(launch=n, memory_peak_mb=mb) for n, mb in enumerate((900.0, 900.0, 5000.0))]
    found = selector(tmp_path, *launches).best_under({"memory_mb": 1000}, model_name="bert-tiny")
    assert found["best"] is None
    assert "memory of a launch 5000 MB is above 1000" in str(found)


# -- what was measured is judged by its interval


def kept_at(tmp_path: Path, limit: float, *times: float) -> dict[str, Any]:
    launches = [result(latency_p50_ms=ms, launch=n) for n, ms in enumerate(times)]
    found = selector(tmp_path, *launches).best_under({"max_latency_ms": limit}, "", "bert-tiny")
    (only,) = (*found["fits"], *found["does_not_fit"])
    return {**only, "to_verify": found["to_verify"]}


def test_launches_close_together_keep_it_or_do_not(tmp_path):
    assert "why" not in kept_at(tmp_path, 9, 8.0, 8.1, 8.05)
    assert kept_at(tmp_path, 7, 8.0, 8.1, 8.05)["why"] == ["p50 latency 8.05 ms is above 7"]
