"""The best batch size and precision under limits; what is not known does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector
from hypothesis import given
from hypothesis import strategies as st

from accelbench.recommend.constraints.measurement_candidates import pareto
from accelbench.recommend.constraints.options import Option
from accelbench.recommend.figures import Bounds


def grid(folder: Path, **more: Any) -> Any:
    """On a card: batches 1 to 32 in two precisions, more memory and throughput with each."""
    results = [
        result(
            hardware="cuda",
            precision=precision,
            batch_size=batch,
            latency_p50_ms=(4.0 + batch) * share,
            memory_peak_mb=500.0 * share + 50.0 * batch * share,
            verification_error=error,
        )
        for precision, share, error in (("fp32", 1.0, 1e-6), ("fp16", 0.5, 0.01))
        for batch in (1, 8, 32)
    ]
    return selector(folder, *results, **more)


def best(chosen: Any, at: tuple[int, ...] = (), /, **limits: float) -> Any:
    answer = chosen.best_under(limits, "embedding", "bert-tiny", batch_sizes=at)
    json.dumps(answer, allow_nan=False)
    return answer


def place(answer: dict[str, Any]) -> tuple[str, int] | None:
    found = answer["best"]
    return found and (found["precision"], found["batch_size"])


def test_memory_constrained(tmp_path):
    chosen = grid(tmp_path)
    assert place(best(chosen, memory_mb=2048)) == ("fp16", 32)
    assert place(best(chosen, memory_mb=900)) == ("fp16", 8)
    assert place(best(chosen, memory_mb=300)) == ("fp16", 1)
    nothing = best(chosen, memory_mb=100)
    assert nothing["best"] is None
    assert len(nothing["does_not_fit"]) == 6
    assert nothing["explanation"].startswith("Nothing fits under memory_mb 100")


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ({"max_latency_ms": 7.0}, ("fp16", 8)),
        ({"max_error": 1e-3}, ("fp32", 32)),
        ({"max_error": 1e-3, "max_latency_ms": 13.0}, ("fp32", 8)),
        ({}, ("fp16", 32)),
    ],
)
def test_each_limit_holds(tmp_path, limits, wanted):
    assert place(best(grid(tmp_path), **limits)) == wanted


def test_a_throughput_is_reached_by_what_fits_and_missed_by_the_rest(tmp_path):
    answer = best(grid(tmp_path), min_throughput=700.0)
    assert {(one["precision"], one["batch_size"]) for one in answer["fits"]} == {
        *(("fp16", 32), ("fp16", 8), ("fp32", 32))
    }
    assert "200 items/s is below 700" in [one["why"][0] for one in answer["does_not_fit"]]


def test_what_was_not_measured_does_not_fit_and_says_so(tmp_path):
    one = result(verification_error=None, model="of-ours")
    chosen = selector(tmp_path, {**one, "memory_peak_mb": None})
    for limit, why in (
        ("memory_mb", "its memory was not measured"),
        ("max_error", "its error was not measured"),
        ("max_power", "its power was not measured"),
        ("max_cost", "no price is known"),
    ):
        answer = chosen.best_under({limit: 1e9}, "embedding", "of-ours")
        assert answer["best"] is None
        assert answer["does_not_fit"][0]["why"] == [why]


def test_cost_by_a_price(tmp_path):
    chosen = grid(tmp_path, prices=lambda row: 1e3 / row["throughput"])
    answer = best(chosen, max_cost=1.0)
    assert {(o["precision"], o["batch_size"]) for o in answer["fits"]} == {
        *(("fp16", 32), ("fp16", 8))
    }
    assert answer["best"]["cost_per_million"] < 1.0


def test_a_batch_that_is_named_is_the_only_one_that_counts(tmp_path):
    chosen = selector(
        tmp_path,
        result(batch_size=1, latency_p50_ms=2.0),
        result(batch_size=8, latency_p50_ms=10.0),
        result(batch_size=2, latency_p50_ms=3.0, quality="unusable", cpu_wait_share=0.8),
    )
    assert best(chosen, max_latency_ms=5)["best"]["batch_size"] == 1
    answer = best(chosen, (8,), max_latency_ms=5)
    assert answer["best"] is None
    assert [one["batch_size"] for one in answer["does_not_fit"]] == [8]
    assert answer["set_aside"] == []


def test_where_nothing_is_known_it_says_what_to_measure(tmp_path):
    answer = selector(tmp_path).best_under(
        {"memory_mb": 2048}, model_name="bert-base", available_hardware=["cpu"]
    )
    assert answer["best"] is None
    (wanted,) = answer["to_verify"]
    assert wanted["command"].startswith("accelbench run bert-base --hardware cpu --batch-sizes ")
    assert wanted["batch_size"] > 1


def test_what_is_worth_measuring_begins_with_the_best(tmp_path):
    answer = best(grid(tmp_path), memory_mb=2048)
    first = answer["to_verify"][0]
    assert (first["precision"], first["batch_size"], first["hardware"]) == ("fp16", 32, "cuda")


def option(latency: float, throughput: float, memory: float | None) -> Option:
    exact = Bounds.exact
    return Option(
        "cuda", 1, "measured", Bounds(latency, latency, latency),
        Bounds(throughput, throughput, throughput), memory=exact(memory),
    )  # fmt: skip


amounts = st.integers(1, 6).map(float)
options = st.lists(
    st.builds(option, amounts, amounts, st.one_of(amounts, st.just(3.0))), min_size=1, max_size=12
)


@given(options)
def test_nothing_beats_what_is_on_the_front_and_something_there_beats_the_rest(found):
    def memory(one: Option) -> float:
        return one.memory.high if one.memory else 0.0

    def beats(one: Option, other: Option) -> bool:
        no_worse = (
            one.latency.high <= other.latency.high
            and one.rate.low >= other.rate.low
            and memory(one) <= memory(other)
        )
        return no_worse and one != other

    front = pareto(found)
    assert front
    for one in found:
        assert (one in front) is not any(beats(other, one) for other in found)
