"""A comparison in a sentence: the faster one first, and never more than is known."""

from __future__ import annotations

import pytest

from accelbench.core.result_statistics import Statistic
from accelbench.judge.ratios import SAMPLES, Ratio
from accelbench.present.dashboard.comparing import SideOfRatio, names_of, sentence, times
from accelbench.present.dashboard.words import share

RUNTIMES = {"hardware": "cpu", "precision": "fp32", "batch_size": 1, "model": "m"}


def ratio(value: float, low: float | None = None, high: float | None = None) -> Ratio:
    launches = (1, 1) if low is None else (5, 5)
    return Ratio(value, Statistic.MEAN, launches, low, high, "launches" if low else "")


def side(name: str, *figures: float, memory: float | None = None) -> SideOfRatio:
    return SideOfRatio(name, ratio(*figures), memory)


def test_a_sentence_of_two():
    told = sentence("ONNX Runtime", [side("OpenVINO", 1.2, 1.11, 1.29, memory=2.4)])
    assert told == "OpenVINO is 1.1–1.3× as fast as ONNX Runtime; memory 2.40×."
    told = sentence("ONNX Runtime", [side("PyTorch", 0.5, 0.4, 0.625, memory=0.5)])
    assert told == "ONNX Runtime is 1.6–2.5× as fast as PyTorch; memory 2.00×."
    told = sentence("A", [side("B", 1.01, 0.97, 1.05, memory=1.001)])
    assert told == ("Can't tell whether B or A is faster: B is 0.97–1.05× as fast; memory alike.")
    told = sentence("A", [side("B", 0.06, 0.0134, 0.295)])
    assert told == "A is faster than B, by how much can't be told: 3.3–75×."
    told = sentence("A", [side("B", 5.66)])
    assert told == "B is 5.66× as fast as A (single figures: no interval)."


def test_what_is_not_compared():
    # What is not compared says why.
    one = SideOfRatio("B", refused="not alike: weights")
    other = SideOfRatio("C", refused="simulated: not measured")
    assert sentence("A", [one]) == "B is not compared with A: not alike: weights."
    assert sentence("A", [one, other]) == (
        "Nothing is compared with A: not alike: weights; simulated: not measured."
    )
    told = sentence("A", [side("D", 2.0, 1.9, 2.1), one])
    assert told.endswith("B is not compared: not alike: weights.")
    # The sentence said 1149.56×, the table below it 1,150×.
    told = sentence("A", [side("B", 1149.56, memory=1149.56)])
    assert told.count(share(1149.56)) == 2
    assert "B is 1,150× as fast" in told


def test_a_sentence_of_several():
    # Of several the fastest and the slowest are named.
    others = [side("B", 2.0, 1.9, 2.1), side("C", 1.4, 1.3, 1.5), side("D", 0.5, 0.45, 0.55)]
    assert sentence("A", others) == (
        "B is the fastest of 4: 1.9–2.1× as fast as A; D is the slowest, 0.45–0.55× as fast as A."
    )
    # Of several the base may be the fastest.
    others = [side("B", 0.5, 0.45, 0.55), side("C", 0.8, 0.75, 0.85)]
    told = sentence("A", others)
    assert told.startswith("A is the fastest of 3: 1.1")
    assert "as fast as C; B is the slowest" in told
    # Of several those that cannot be told apart are all named.
    others = [side("B", 2.0, 1.8, 2.2), side("C", 1.9, 1.7, 2.1), side("D", 1.2, 1.1, 1.3)]
    assert sentence("A", others) == (
        "Can't tell which of B and C is fastest: B is 1.8–2.2× as fast as A."
    )
    others = [side("B", 2.0, 1.9, 2.1), side("C", 0.6, 0.5, 0.7), side("D", 0.55, 0.45, 0.65)]
    assert sentence("A", others) == "B is the fastest of 4: 1.9–2.1× as fast as A."
    # Single figures and single launches are said of several too.
    alone = Ratio(1.5, Statistic.MEAN, (1, 1), 1.45, 1.55, SAMPLES)
    several = [side("B", 2.0), side("C", 1.02)]
    assert sentence("A", several) == (
        "B is the fastest of 3: 2.00× as fast as A (all without an interval: single figures)."
    )
    assert sentence("A", [SideOfRatio("B", alone), side("C", 0.5, 0.45, 0.55)]) == (
        "B is the fastest of 3: 1.45–1.55× as fast as A; C is the slowest, 0.45–0.55× as fast as"
        " A (1 of 2 ratios within single launches)."
    )
    assert sentence("A", [SideOfRatio("B", alone)]) == (
        "B is 1.45–1.55× as fast as A (within single launches)."
    )
    # Of single launches a few per cent make nothing the fastest.
    near = SideOfRatio("B", Ratio(1.05, Statistic.MEAN, (1, 1), 1.04, 1.06, SAMPLES))
    told = sentence("A", [near, side("C", 0.5, 0.45, 0.55)])
    assert told.startswith("Can't tell which of B and A is fastest")


def test_what_is_not_alike():
    # Where the base is fastest what is not alike of the next is said.
    next_one = SideOfRatio("B", ratio(0.8, 0.75, 0.85), doubts=["threads 2 → 8"])
    told = sentence("A", [next_one, side("C", 0.5, 0.45, 0.55)])
    assert "as fast as B; not alike: threads 2 → 8; C is the slowest" in told
    one = SideOfRatio("B", ratio(2.0, 1.9, 2.1), doubts=["devices 8 → 16"])
    assert sentence("A", [one]) == "B is 1.9–2.1× as fast as A; not alike: devices 8 → 16."


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.11, 1.29, "1.1–1.3×"),
        (1.14, 1.16, "1.14–1.16×"),
        (1.004, 1.2, "1.004–1.200×"),
        (12.2, 15.8, "12–16×"),
        (0.97, 1.05, "0.97–1.05×"),
        (2.0, 2.0, "2.0×"),
    ],
)
def test_ends_are_rounded_outwards_and_never_across_once(low, high, text):
    assert times(low, high) == text


def test_names_in_a_sentence():
    # Names are what tells them apart.
    rows = [{**RUNTIMES, "runtime": name} for name in ("openvino", "onnxruntime")]
    assert names_of(rows, {}) == ["OpenVINO", "ONNX Runtime"]
    cards = [
        {**RUNTIMES, "runtime": "pytorch", "hardware": "cuda", "device_name": name}
        for name in ("NVIDIA H100", "NVIDIA A100")
    ]
    assert names_of(cards, {}) == ["H100", "A100"]
    # Each of a pair that shares a name says what it is.
    rows = [
        {**RUNTIMES, "runtime": "pytorch", "batch_size": 8, "apart": "layout nhwc"},
        {**RUNTIMES, "runtime": "pytorch", "batch_size": 8, "apart": "layout nchw"},
        {**RUNTIMES, "runtime": "pytorch", "batch_size": 1},
    ]
    assert names_of(rows, {}) == ["batch 8 (layout nhwc)", "batch 8 (layout nchw)", "batch 1"]
    # Names are never the same.
    rows = [{**RUNTIMES, "runtime": "pytorch"}] * 2
    names = names_of(rows, {})
    assert len(set(names)) == 2
    assert names_of([], {}) == []


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("batch 8", "Batch 8 is"),
        ("not compiled", "Not compiled is"),
        ("training", "Training is"),
        ("bert-tiny", "bert-tiny is"),
        ("fp16", "fp16 is"),
    ],
)
def test_a_sentence_begins_with_a_capital_and_names_stay_as_they_are(name, begins):
    assert sentence("A", [side(name, 1.2, 1.11, 1.29)]).startswith(begins)
    assert sentence("A", [side(name, 2.0, 1.9, 2.1), side("B", 1.0)]).startswith(begins)
    refused = [SideOfRatio(name, refused="another engine")]
    assert sentence("A", refused).startswith(begins)
    assert f" {begins} not compared" in sentence("A", [side("B", 1.2, 1.1, 1.3), *refused])
