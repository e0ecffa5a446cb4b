"""The largest batch that keeps the limits is bracketed, and what is searched is every precision."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from choosing_world import result, selector
from hypothesis import given, settings
from hypothesis import strategies as st

from accelbench.cli.services.searching import SearchedConfiguration, VerificationCase
from accelbench.core.errors import UsageError
from accelbench.present.terminal.recommend import _searched
from accelbench.recommend.constraints import measurement_candidates
from accelbench.recommend.constraints.measurement_candidates import (
    LARGEST,
    NARROW,
    PRECISIONS,
    largest,
    next_batch,
)


def searched(
    most: int, first: int, among: Sequence[int] = (), *, aside: float = 0.0
) -> dict[int, float]:
    """Every batch that was tried where all up to `most` fit, beside what is there with none."""
    tried: dict[int, float] = {}
    while (batch := next_batch(tried, first, among)) is not None:
        assert batch not in tried
        tried[batch] = (aside + batch) / (aside + most) if most else 2.0
    return tried


@given(st.integers(0, 2 * LARGEST), st.integers(1, LARGEST), st.floats(0.0, 1e4))
@settings(max_examples=300, deadline=None)
def test_the_largest_that_fits_is_found_to_a_sixteenth(most, first, aside):
    tried = searched(most, first, aside=aside)
    found = largest(tried) or 0
    assert found <= most
    assert found == LARGEST or most - found <= max(1, found // NARROW)
    assert all(1 <= batch <= LARGEST for batch in tried)


@pytest.mark.parametrize(
    ("most", "first", "count"), [(62, 62, 3), (64, 62, 3), (600, 62, 7), (30, 62, 7), (0, 1, 1)]
)
def test_from_a_good_beginning_it_takes_a_few_measurements(most, first, count):
    assert len(searched(most, first)) <= count


@given(st.integers(0, 200), st.sets(st.integers(1, 128), min_size=1))
@settings(max_examples=100, deadline=None)
def test_of_batches_that_are_named_the_largest_that_fits_is_found(most, among):
    tried = searched(most, 1, sorted(among))
    assert set(tried) <= among
    assert largest(tried) == max((one for one in among if one <= most), default=None)


def test_every_precision_is_searched_from_where_memory_is_counted_to_end(tmp_path):
    found = selector(tmp_path).best_under(
        {"memory_mb": 128}, model_name="bert-tiny", available_hardware=["cpu", "cuda"]
    )
    ways = found["to_search"]
    assert {(one["hardware"], one["precision"]) for one in ways} == {
        (hardware, precision) for hardware in ("cpu", "cuda") for precision in PRECISIONS
    }
    first = {one["precision"]: one["batch_size"] for one in ways if one["hardware"] == "cpu"}
    assert 1 < first["fp32"] < first["fp16"]
    one_only = selector(tmp_path).best_under(
        {"max_latency_ms": 9}, model_name="bert-tiny", precision="bf16", available_hardware=["cpu"]
    )
    assert [(one["precision"], one["batch_size"]) for one in one_only["to_search"]] == [("bf16", 1)]


def test_an_engine_that_was_measured_is_searched_beside_the_usual_one(tmp_path):
    there = selector(
        tmp_path, result(runtime="onnxruntime"), result(runtime="ncnn", provenance="imported")
    )
    found = there.best_under(
        {"memory_mb": 512}, model_name="bert-tiny", available_hardware=["cpu"], precision="fp32"
    )
    assert [one["runtime"] for one in found["to_search"]] == [None, "onnxruntime"]


@pytest.mark.parametrize("limits", [{"min_throughput": 9.0}, {"max_error": 0.1}, {}])
def test_what_does_not_grow_with_the_batch_is_not_searched(tmp_path, limits):
    assert selector(tmp_path).best_under(limits, model_name="bert-tiny")["to_search"] == []


def test_what_no_meter_here_can_show_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(measurement_candidates, "host_unmetered", lambda: "there is no meter")
    found = selector(tmp_path, result()).best_under(
        {"max_power": 50.0, "memory_mb": 512}, model_name="bert-tiny", available_hardware=["cpu"]
    )
    assert (found["best"], found["to_verify"], found["to_search"]) == (None, [], [])
    why = "max_power cannot be shown to be kept by measuring here: there is no meter."
    assert why in found["explanation"]
    watts = result(power_watts=40.0, provenance="imported")
    kept = selector(tmp_path, watts).best_under({"max_power": 50.0}, model_name="bert-tiny")
    assert kept["best"]["power_watts"] == 40.0
    assert kept["does_not_fit"] == []
    with pytest.raises(UsageError):
        selector(tmp_path).best_under({"max_power": 0.0}, model_name="bert-tiny")


def test_an_answer_names_its_objective_and_contradicts_no_memory_that_was_measured(tmp_path):
    small = result(batch_size=1, latency_p50_ms=1.0, memory_peak_mb=50.0)
    large = result(batch_size=64, latency_p50_ms=128.0, memory_peak_mb=400.0)
    answer = selector(tmp_path, small, large).best_under(
        {"memory_mb": 500.0}, model_name="bert-tiny", available_hardware=["cpu"]
    )
    assert answer["objective"] == "throughput"
    assert answer["best"] is not None
    assert answer["best"]["batch_size"] == 1  # not the largest: it does fewer a second
    assert "best throughput with " in answer["explanation"]
    noisy = [{**row, "quality": "unusable"} for row in (small, large)]
    answer = selector(tmp_path, *noisy).best_under(
        {"memory_mb": 500.0}, model_name="bert-tiny", available_hardware=["cpu"]
    )
    assert answer["best"] is None
    assert {case["memory_mb"] for case in answer["set_aside"]} == {50.0, 400.0}
    assert "nothing is known to fit" not in answer["explanation"]
    answer = selector(tmp_path, *noisy).best_under(
        {"memory_mb": 20.0}, model_name="bert-tiny", available_hardware=["cpu"]
    )
    assert "nothing is known to fit" in answer["explanation"]


def test_the_cap_of_a_search_is_not_called_the_largest_batch_that_fits():
    case = VerificationCase("bert-tiny", "cpu", "pytorch", "fp32", 1, "inference", {}, 1)
    way = SearchedConfiguration(case, 1, {LARGEST // 2: 0.1, LARGEST: 0.2})
    assert next_batch(way.tried, 1) is None
    assert way.to_dict()["largest_tried"] == LARGEST
    assert "largest that fits" not in _searched(way.to_dict())
    bracketed = SearchedConfiguration(case, 1, {8: 0.9, 9: 1.1})
    assert bracketed.to_dict()["largest_tried"] is None
    assert "largest that fits" in _searched(bracketed.to_dict())
