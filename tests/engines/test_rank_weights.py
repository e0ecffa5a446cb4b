"""Ranks that do not exchange gradients: their weights drift apart, and the case fails."""

from dataclasses import replace

import numpy as np
import pytest
from training_sessions import CPU, case_of

from accelbench.core.protocols import Job
from accelbench.core.run_options import JobSettings
from accelbench.engines.pytorch.distributed.session import DistributedSession
from refusals import refusal

OPENED = {
    "timings": {"build": 1, "load": 1}, "weights_digest": "w", "phases": ("forward",),
    "device_timed": False, "parts": 2,
}  # fmt: skip


class Ranks:
    """Two ranks, of which the second has weights that differ by so much."""

    ranks = 2

    def __init__(self, apart):
        draw = np.random.default_rng(1)
        first = {f"w{i}": draw.standard_normal(16).astype(np.float32) for i in range(8)}
        second = {name: values * np.float32(1 + apart) for name, values in first.items()}
        self._answers = {"open": [OPENED, OPENED], "weight_values": [first, second]}

    def ask(self, do, **_):
        return self._answers[do]


def session_of(apart, strategy):
    case = replace(case_of("bert-tiny", batch=8, strategy=strategy), world_size=2)
    return DistributedSession(Job(case, CPU, JobSettings()), Ranks(apart))


def test_weights_that_drift_apart_are_refused():
    with refusal("wrong_steps"):
        session_of(0.005, "ddp").weight_values(16, 1)


@pytest.mark.parametrize(("apart", "strategy"), [(0.0, "ddp"), (1e-6, "ddp"), (1.0, "fsdp2")])
def test_weights_that_ranks_share_or_keep_alike_are_not(apart, strategy):
    """Ranks of FSDP keep a part of each weight only."""
    assert len(session_of(apart, strategy).weight_values(16, 1)) == 8
