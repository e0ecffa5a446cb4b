"""Findings that would not hold: what is counted, what is certain, and whose failure it is."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from test_finding_kinds import FAILED, QUICK, QUIET, SLOW, engines, found, launches, of_kind

from accelbench.judge.findings.finding import FindingKind
from accelbench.judge.findings.tasks import best_of_tasks
from accelbench.judge.points import points
from accelbench.judge.run_noise import Histories

Rows = list[dict[str, Any]]


def one(rows: Rows, kind: FindingKind) -> str:
    (finding,) = of_kind(found(rows), kind)
    return finding.sentence


def at(rows: Rows, day: int) -> Rows:
    """The same, a second after another on a day."""
    return [r | {"started_at": f"2026-01-{day:02} 00:00:0{n}"} for n, r in enumerate(rows)]


def within(rows: Rows) -> Rows:
    """The same with an interval of the mean within each launch."""
    return [
        r
        | {"latency_mean_ms": (ms := r["latency_p50_ms"])}
        | {"latency_ci_low_ms": 0.995 * ms, "latency_ci_high_ms": 1.005 * ms}
        for r in rows
    ]


# -- failures


@pytest.mark.parametrize("device", ["A processor", None])
def test_a_launch_that_failed_last_takes_no_figure_from_the_others(device):
    rows = at(launches(QUIET, 8.0, model="bert-tiny", device_name="A processor"), 1)
    last = FAILED | {"reason": "crash", "device_name": device}
    said = one([*rows[:-1], rows[-1] | last], FindingKind.FAILURES)
    assert said.startswith(
        "1 configuration has a figure although 1 launch of it failed, most of all with"
    )
    assert "came to no figure" not in said


def test_what_fails_last_and_what_mends_it():
    # A newer run in which every launch failed has no figure.
    rows = at(launches(QUIET, 8.0, model="bert-tiny", run_id="r1"), 1)
    later = [r | FAILED | {"reason": "crash", "run_id": "r2"} for r in at(rows, 2)]
    assert one([*rows, *later], FindingKind.FAILURES).startswith("1 configuration came to no")
    # What failed before it had a device is mended by any.
    case = {"model": "bert-tiny", "hardware": "cuda"}
    lost = [r | FAILED | {"device_name": None} for r in at(launches(QUIET, 8.0, **case), 1)]
    well = at(launches(QUIET, 8.0, **case, device_name="Card A", run_id="r2"), 2)
    assert not of_kind(found([*lost, *well]), FindingKind.FAILURES)


@pytest.mark.parametrize("first", [1, 3])
def test_a_card_that_answers_later_does_not_mend_another(first):
    case = {"model": "bert-tiny", "hardware": "cuda"}
    failed = FAILED | {"reason": "out_of_memory", "device_name": "Card B"}
    lost = [r | failed for r in at(launches(QUIET, 8.0, **case), first)]
    well = at(launches(QUIET, 8.0, **case, device_name="Card A"), 2)
    said = one(sorted([*lost, *well], key=lambda r: r["started_at"]), FindingKind.FAILURES)
    assert said.startswith("1 configuration came to no figure: 1 with")


# -- the fastest


PAIR = [
    *launches(QUIET, 8.0, model="bert-tiny", runtime=SLOW),
    *launches(QUIET, 6.0, model="bert-tiny", runtime=QUICK),
]


def test_what_the_fastest_is_held_against():
    # The fastest is not the fastest of what is not known to be exact.
    int8 = launches(
        QUIET,
        2.0,
        model="bert-tiny",
        runtime=QUICK,
        precision="int8",
        verification="not_done",
        verification_error=None,
    )
    said = one([*PAIR, *int8], FindingKind.FASTEST)
    assert "is the fastest of 2 configurations" in said
    assert said.endswith("; not counted: 1 (outputs not verified).")
    # Each stands for itself, and an engine with its platform's name is named once.
    own = {"task": None, "family": "unknown"}
    rows = [
        *launches(QUIET, 8.0, model="net.onnx", runtime=SLOW, **own),
        *launches(QUIET, 6.0, model="net.onnx", runtime="openvino", hardware="openvino", **own),
        *launches(QUIET, 1.0, model="other.py:make", runtime=QUICK, **own),
    ]
    said = one(rows, FindingKind.FASTEST)
    assert said.startswith("Of net.onnx (batch 1")
    assert ", openvino in fp32 is the fastest of 2 configurations" in said
    # What is not alike is not among those it is the fastest of.
    other = launches(QUIET, 9.0, model="bert-tiny", runtime="openvino", weights_digest="others")
    said = one([*PAIR, *other], FindingKind.FASTEST)
    assert "is the fastest of 2 configurations" in said
    assert said.endswith("; not counted: 1 (not alike).")


def test_what_is_known_roughly():
    # One that is known roughly may be the fastest however slow it seems.
    rough = launches((0.3, 1.0, 3.0), 8.5, model="bert-tiny", runtime="openvino")
    said = one([*PAIR, *rough], FindingKind.FASTEST)
    assert "has the lowest time of 3 configurations" in said
    assert said.endswith("; whether it is faster than openvino on cpu in fp32 can't be told.")
    # Sizes stand with their models where these have others.
    short = launches(QUIET, 1.0, model="short", runtime=QUICK, sequence_length=32)
    said = one([*PAIR[:3], *short], FindingKind.FASTEST)
    assert said.startswith("For sentence embedding (batch 1), short (seq 32) by onnxruntime on")
    assert "as fast as bert-tiny (seq 128) by pytorch on cpu" in said
    # A single launch is slower for certain only by more than launches differ.
    many = {f"model-{n}": 1.8 + 0.02 * n for n in range(9)}
    for ratio, named in ((0.95, False), (0.7, True)):
        rows = within(engines(many | {"gpt2-tiny": ratio}, (1.0,)))
        said = one(rows, FindingKind.ENGINES)
        assert said.endswith("slower for certain on gpt2-tiny.") is named


@pytest.mark.parametrize(("count", "seed"), [(1, 0), (1, 1), (1, 2), (1, 3), (3, 0)])
def test_of_many_that_take_equally_long_none_is_the_fastest(count, seed):
    """Launches differ by 3 %, the samples within each by half of one."""
    draw = random.Random(seed)
    rows: Rows = []
    for n in range(30):
        times = tuple(math.exp(draw.gauss(0.0, 0.03)) for _ in range(count))
        rows += launches(times, 8.0, model="bert-tiny", runtime=f"engine-{n}")
    (task,) = best_of_tasks(points(within(rows)), Histories(), frozenset())
    assert task.fastest is not None
    assert not task.fastest.sure
