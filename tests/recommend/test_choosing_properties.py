"""Whatever was measured: the same data give the same answer, and the measured best is chosen."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from choosing_world import result
from hypothesis import given, settings
from hypothesis import strategies as st

from accelbench.judge.run_noise import Histories
from accelbench.recommend.answers import told
from accelbench.recommend.choosing import AnswerBasis, choose
from accelbench.recommend.config import ModelSize, defaults
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import EvidenceCell, Failure
from accelbench.recommend.matrices import Matrices
from accelbench.recommend.query import RawQuery

PLATFORMS = ("cpu", "cuda", "rocm", "openvino")


class Given:
    """Cells that nobody had to store, numbered by what they say as a store numbers them."""

    def __init__(self, found: Sequence[EvidenceCell]) -> None:
        ordered = sorted(found, key=lambda one: str(sorted(one.row.items())))
        self.found = [replace(one, order=number) for number, one in enumerate(ordered)]

    def cells(self, models: Sequence[str]) -> list[EvidenceCell]:
        return [cell for cell in self.found if cell.model in models]

    def unusable(self, models: Sequence[str]) -> list[EvidenceCell]:
        return []

    def failures(self, models: Sequence[str]) -> list[Failure]:
        return []

    def histories(self, cells: Sequence[EvidenceCell]) -> Histories:
        return Histories()


def cell(hardware: str, latency: float, **more: Any) -> EvidenceCell:
    row = result(hardware=hardware, latency_p50_ms=latency, **more)
    return EvidenceCell(row, (latency,), (row["throughput"],))


def answer(
    found: Sequence[EvidenceCell], among: Sequence[Candidate], batch: int = 4
) -> dict[str, Any]:
    asked = RawQuery("embedding", "bert-tiny", batch, "inference").understood(
        (), {}, lambda *_: ModelSize("small", "a test", 4_385_920)
    )
    order = defaults()["fallback_order"].index
    return told(choose(asked, among, Given(found), AnswerBasis(defaults(), Matrices(()), order)))


def platforms() -> list[Candidate]:
    return [Candidate(name) for name in PLATFORMS]


latencies = st.floats(0.01, 1e4, allow_nan=False)
ways = st.sampled_from(["pytorch", "onnxruntime", "jax"])
figures = st.lists(
    st.builds(
        lambda hardware, latency, runtime, batch, memory, model: cell(
            hardware, latency, runtime=runtime, batch_size=batch, memory_peak_mb=memory, model=model
        ),
        st.sampled_from(PLATFORMS),
        latencies,
        ways,
        st.sampled_from([1, 2, 4, 8, 16]),
        st.one_of(st.none(), st.floats(1, 1e4)),
        st.sampled_from(["bert-tiny", "bert-tiny", "distilbert-tiny", "bert-base", "peer"]),
    ),
    max_size=24,
)


@given(figures, st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_the_order_of_results_and_of_candidates_does_not_matter(found, seed):
    mixed, among = list(found), platforms()
    random.Random(seed).shuffle(mixed)
    random.Random(seed).shuffle(among)
    one, other = answer(found, platforms()), answer(mixed, among)
    assert one["primary_recommendation"] == other["primary_recommendation"]
    assert one["fallback_options"] == other["fallback_options"]
    assert one["all_scores"] == other["all_scores"]
    assert one["no_clear_winner_between"] == other["no_clear_winner_between"]


@given(figures)
@settings(max_examples=30, deadline=None)
def test_the_same_data_give_the_same_answer(found):
    assert answer(found, platforms()) == answer(found, platforms())


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), latencies, min_size=2))
@settings(max_examples=60, deadline=None)
def test_among_measured_devices_of_one_platform_the_best_is_chosen(measured):
    found = [
        cell("cuda", latency, batch_size=4, device_name=f"card {name}")
        for name, latency in measured.items()
    ]
    among = [Candidate("cuda", f"card {name}") for name in measured]
    first = answer(found, among)["primary_recommendation"]
    best = min(measured.values())
    assert measured[first.removeprefix("cuda:card ")] <= best * (1 + 1e-9)


@given(figures)
@settings(max_examples=60, deadline=None)
def test_every_candidate_is_told_once_and_scores_descend_within_a_tier(found):
    said = answer(found, platforms())
    order = [said["primary_recommendation"], *said["fallback_options"]]
    assert sorted(order) == sorted(PLATFORMS)
    figured = ["predictions" in said["all_scores"][name] for name in order]
    assert figured == sorted(figured, reverse=True)
    for tier in (True, False):
        scores = [
            said["all_scores"][name]["score"]
            for name, has in zip(order, figured, strict=True)
            if has is tier
        ]
        assert scores == sorted(scores, reverse=True)
