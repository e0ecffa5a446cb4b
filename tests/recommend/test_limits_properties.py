"""Whatever is known, what fits is shown to fit, what does not says why, and nothing is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from accelbench.recommend.candidate_predictions import PredictedCandidates
from accelbench.recommend.choosing import THROUGHPUT, AnswerBasis
from accelbench.recommend.config import ModelSize, defaults
from accelbench.recommend.constraints.best_under import Limits, under
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import EvidenceCell
from accelbench.recommend.evidence.model_evidence import ModelEvidence
from accelbench.recommend.matrices import Matrices
from accelbench.recommend.query import RawQuery

ASKED = RawQuery("vision", "ours", 1, "inference").understood(
    "", {}, lambda *_: ModelSize("small", "no one")
)
AMONG = [Candidate("cpu"), Candidate("cuda")]
GROUND = AnswerBasis(defaults(), Matrices(()), lambda _: 0.0, objective=THROUGHPUT)

amounts = st.floats(0.5, 500.0)
perhaps = st.none() | amounts


@st.composite
def cells(draw: st.DrawFn) -> EvidenceCell:
    latency = draw(amounts)
    row = {
        "model": "ours", "mode": "inference", "hardware": draw(st.sampled_from(["cpu", "cuda"])),
        "device_name": "A device", "runtime": draw(st.sampled_from(["pytorch", "onnxruntime"])),
        "precision": draw(st.sampled_from(["fp32", "fp16"])),
        "batch_size": draw(st.sampled_from([1, 2, 8, 32])),
        "throughput_unit": draw(st.sampled_from([None, "images/s", "tokens/s"])),
        "memory_peak_mb": draw(perhaps), "power_watts": draw(perhaps),
        "verification_error": draw(perhaps),
    }  # fmt: skip
    return EvidenceCell(row, (latency,), (draw(amounts),))


limited = st.builds(
    Limits,
    memory_mb=perhaps,
    max_latency_ms=perhaps,
    min_throughput=perhaps,
    max_error=perhaps,
    max_power=perhaps,
)


@settings(deadline=None)
@given(st.lists(cells(), max_size=8), limited, st.lists(st.sampled_from([1, 4, 16, 64])))
def test_what_fits_is_shown_to_fit(own, limits, batches):
    nothing = PredictedCandidates()
    answer = under(ASKED, limits, ModelEvidence(own), AMONG, nothing, batches, GROUND)
    json.dumps(answer, allow_nan=False)
    again = under(ASKED, limits, ModelEvidence(own), AMONG, nothing, batches[::-1], GROUND)
    assert answer == again
    for one in answer["fits"]:
        assert _keeps(one, limits)
        assert "why" not in one
    for one in answer["does_not_fit"]:
        assert one["why"]
    assert (answer["best"] is None) == (not answer["fits"])
    assert (answer["best"] is None) == (not answer["pareto"])
    measured = {(cell.hardware, cell.way[2:4], cell.batch) for cell in own}
    told = {
        (one["hardware"], (one["runtime"], one["precision"]), one["batch_size"])
        for one in (*answer["fits"], *answer["does_not_fit"])
    }
    assert {one for one in measured if not batches or one[2] in batches} <= told
    assert not batches or {batch for *_, batch in told} <= set(batches)


def _keeps(one: dict[str, Any], limits: Limits) -> bool:
    is_measured = one["basis"] == "measured"
    pairs = (
        (one["memory_high"], limits.memory_mb),
        (one["latency_ms"] if is_measured else one["latency_high"], limits.max_latency_ms),
        (one["error"], limits.max_error),
        (one["power_watts"], limits.max_power),
    )
    least = limits.min_throughput
    return all(
        limit is None or (value is not None and value <= limit) for value, limit in pairs
    ) and (least is None or one["throughput_low"] >= least)
