"""What launches of the same differ by, and what so many of them find."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from accelbench.judge.run_noise import floors
from accelbench.judge.verdicts import Judgement
from asked_rows import row


def launches(noise: float, count: int = 20, **changes: Any) -> list[dict[str, Any]]:
    drawn = np.random.default_rng(3).normal(0.0, noise, count)
    times = [8.0 * math.exp(one) for one in drawn]
    return [
        row(case_id="c", launch=n, latency_p50_ms=ms, throughput=1e3 / ms, **changes)
        for n, ms in enumerate(times)
    ]


def test_each_figure_has_its_own_noise():
    latency, throughput, memory = floors(launches(0.02))
    assert latency.noise == pytest.approx(0.02, rel=0.4)
    assert throughput.noise == pytest.approx(latency.noise)
    assert memory.noise == 0.0
    assert {one.against_itself.answer for one in (latency, throughput)} <= {
        Judgement.STEADY,
        Judgement.CANNOT_TELL,
    }


def test_more_launches_find_smaller_changes():
    latency, *_ = floors(launches(0.05))
    shown = [found for _, _, found in latency.finds() if found is not None]
    assert shown == sorted(shown, reverse=True)
    assert latency.launches_for_the_least > 20
    assert floors(launches(0.002))[0].launches_for_the_least == 5


def test_few_or_failed_launches_have_no_floor():
    assert floors(launches(0.02, count=9)) == []
    assert floors([{**one, "status": "failed"} for one in launches(0.02)]) == []
