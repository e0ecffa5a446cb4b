"""The order of options under limits, their Pareto front, and rates that do not compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.recommend.constraints.measurement_candidates import pareto
from accelbench.recommend.constraints.options import Option
from accelbench.recommend.evidence.cells import counted, unit_of
from accelbench.recommend.figures import Bounds

WRITES = {
    "model": "gpt2", "family": "text_generation", "sequence_length": None, "prompt_tokens": 64,
    "new_tokens": 16, "parameters": 124_000_000,
}  # fmt: skip
TOKENS = {**WRITES, "throughput_unit": "tokens/s"}
OTHER = {"hardware": "openvino", "runtime": "openvino", "throughput_unit": "sequences/s"}


def option(
    latency: tuple[float, float],
    rate: tuple[float, float],
    memory: float | None = 1.0,
    hardware: str = "cuda",
) -> Option:
    """Of the middle and the dear end of each; measured where they are alike."""
    (middle, slow), (usual, low) = latency, rate
    basis = "measured" if middle == slow else "between batches"
    return Option(
        hardware, 1, basis, Bounds(middle, middle, slow), Bounds(usual, low, usual),
        memory=Bounds.exact(memory),
    )  # fmt: skip


def test_what_is_on_the_front():
    known = option((5.0, 5.0), (200.0, 200.0))
    hopeful = option((4.0, 6.0), (250.0, 160.0), hardware="rocm")
    surely = option((3.0, 4.0), (300.0, 250.0), hardware="cpu")
    assert pareto([known, hopeful]) == [hopeful]
    assert pareto([known, surely]) == [surely]
    # Equals are both on the front and one alone is.
    one = option((5.0, 5.0), (200.0, 200.0))
    other = option((5.0, 5.0), (200.0, 200.0), hardware="rocm")
    assert pareto([other, one]) == pareto([one, other])
    assert len(pareto([one, other])) == 2
    assert pareto([one]) == [one]
    assert pareto([]) == []


def test_memory_is_compared_only_where_all_know_theirs(tmp_path):
    fast = result(model="ours", latency_p50_ms=4.0, memory_peak_mb=900.0)
    small = result(model="ours", latency_p50_ms=8.0, memory_peak_mb=100.0, runtime="onnxruntime")
    both = selector(tmp_path, fast, small).best_under({}, "embedding", "ours")
    assert both["pareto_by"] == ["latency_ms", "throughput", "memory_mb"]
    assert len(both["pareto"]) == 2
    assert "leaves memory out" not in both["explanation"]

    unknown = {**small, "memory_peak_mb": None}
    one = selector(tmp_path, fast, unknown).best_under({}, "embedding", "ours")
    assert one["pareto_by"] == ["latency_ms", "throughput"]
    assert [found["latency_ms"] for found in one["pareto"]] == [4.0]
    assert "leaves memory out: of 1 of 2 that fit it is not known" in one["explanation"]


@pytest.mark.parametrize(
    ("said", "unit", "kind"),
    [
        (None, "items", "items"),
        ("tokens/s", "tokens", "tokens"),
        ("audio s/s", "seconds of sound", "seconds of sound"),
        ("Images/s", "images", "items"),
        ("inferences/s", "inferences", "items"),
        ("calls/s", "calls", "calls"),
    ],
)
def test_what_a_rate_counts(said, unit, kind):
    assert unit_of({"throughput_unit": said}) == unit
    assert counted(unit) == kind


def mixed(folder: Path) -> Any:
    """A request takes 100 ms for 16 tokens, or 50 ms: the second is faster, its number smaller."""
    return selector(
        folder,
        result(**TOKENS, latency_p50_ms=100.0, throughput=160.0),
        result(**TOKENS, batch_size=2, latency_p50_ms=190.0, throughput=168.0),
        result(**WRITES, **OTHER, latency_p50_ms=50.0, throughput=20.0),
    )


def test_tokens_are_not_ranked_among_items(tmp_path):
    answer = mixed(tmp_path).best_under({"max_latency_ms": 1000}, model_name="gpt2")
    assert answer["best"]["runtime"] == "openvino"
    assert [one["runtime"] for one in answer["pareto"]] == ["openvino"]
    assert "Rates are of sequences and of tokens, which do not compare" in answer["explanation"]


def test_a_limited_rate_is_of_the_unit_that_most_have(tmp_path):
    answer = mixed(tmp_path).best_under({"min_throughput": 10}, model_name="gpt2")
    assert {one["throughput_unit"] for one in answer["fits"]} == {"tokens"}
    assert answer["does_not_fit"][0]["why"] == [
        "it counts sequences, and min_throughput is taken to be of tokens"
    ]
    assert "min_throughput is taken to be of tokens." in answer["explanation"]


def test_items_by_other_names_compare(tmp_path):
    chosen = selector(
        tmp_path,
        result(latency_p50_ms=8.0, throughput_unit="sequences/s"),
        result(latency_p50_ms=4.0, **{**OTHER, "throughput_unit": "inferences/s"}),
    )
    answer = chosen.best_under({"min_throughput": 1}, model_name="bert-tiny")
    assert len(answer["fits"]) == 2
    assert "do not compare" not in answer["explanation"]
