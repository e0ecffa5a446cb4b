"""A profile's heading: which case, and what a reader should know of the whole."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.present.terminal.summary import heading


def profile(**more: Any) -> dict[str, Any]:
    return {
        "model": "bert-tiny", "runtime": "qnn", "hardware": "qnn", "precision": "int8",
        "batch_size": 1, "sequence_length": 128, "mode": "inference", "options": {"compile": True},
        "emulated": False, "why_not": None, "profiler": "a profiler", "steps": 2, "wall_ms": 1.5,
        "walls_ms": [1.0, 2.0], "explained": 0.5, **more,
    }  # fmt: skip


def test_a_profile():
    # It names the case the profiler and the share that is explained.
    assert heading(profile()) == [
        "Where the time goes: bert-tiny qnn/qnn int8 compiled batch 1 seq 128",
        "a profiler, mean of 2 steps: 1.50 ms, of which operators explain 50%",
    ]
    # Where there is none it says why.
    (said,) = heading(profile(why_not="the runtime x has no profiler", steps=None, walls_ms=[]))
    assert said.startswith("No profile of bert-tiny")
    assert said.endswith(": the runtime x has no profiler")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"emulated": True}, "seq 128, on an emulation\n"),
        ({"steps": 1, "walls_ms": [1.5]}, "mean of 1 step: "),
        ({"walls_ms": [0.9, 2.1]}, "\n! The steps took from 0.900 to 2.10 ms"),
        ({"options": {"hint": "throughput"}}, "int8 hint=throughput batch 1"),
    ],
)
def test_what_is_out_of_the_ordinary_is_said(more, said):
    assert said in "\n".join(heading(profile(**more)))
    assert said not in "\n".join(heading(profile()))
