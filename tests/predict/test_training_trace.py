"""A training step as it is traced: what grows with the batch, what does not, and its memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accelbench.core.case import Shapes
from accelbench.models.find import find
from accelbench.models.inputs import settle
from accelbench.predict import traces as traces_module
from accelbench.predict.cases import CaseConfiguration, PredictedCase
from accelbench.predict.device_limits import least_values
from accelbench.predict.signatures import PassTrace
from accelbench.predict.terms import PRODUCT_TERMS, TracedCase, memory_terms, time_terms
from accelbench.predict.traces import Traces

NAME = "bert-tiny"
#: Sizes that the catalogue's file has no trace of.
SIZES = settle(find(NAME), Shapes(1, sequence=24))
PLACE = CaseConfiguration("cpu", "AMD EPYC 7763", "pytorch", "fp32", "training")
MIB = 2.0**20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of a training step, and of the forward pass."""
    made: Path = tmp_path_factory.mktemp("traces")
    Traces(made).of(NAME, SIZES, "training")
    Traces(made).of(NAME, SIZES)
    return made


@pytest.fixture(scope="module")
def step(folder: Path) -> dict[str, PassTrace]:
    return Traces(folder).of(NAME, SIZES, "training")


def traced(
    step: dict[str, PassTrace], batch: int = 1, place: CaseConfiguration = PLACE
) -> TracedCase:
    shapes = replace(SIZES, batch=batch)
    return TracedCase(PredictedCase(NAME, "embedding", shapes, place), step)


def macs(passed: PassTrace) -> float:
    return float(passed.sums.macs.sum())


def test_a_step_of_training(step, folder):
    # A step multiplies three times as often as its forward pass.
    forward = Traces(folder).of(NAME, SIZES)["forward"]
    assert macs(step["training"]) == pytest.approx(3 * macs(forward), rel=0.05)
    assert step["training"].sums.launches > 3 * forward.sums.launches
    assert step["training"].weights == pytest.approx(forward.weights, rel=0.01)  # another head
    # What no batch changes is told apart.
    one, many = (time_terms([traced(step, batch)])[0] for batch in (1, 64))
    assert many[:PRODUCT_TERMS].sum() == pytest.approx(64 * one[:PRODUCT_TERMS].sum())
    assert many[-2:] == pytest.approx(one[-2:])  # weights, gradients and launches
    weights = step["training"].weights
    assert step["optimizer"].sums.weights_read == 20 * weights
    assert step["training"].sums.weights_read > weights  # gradients are written too
    # An optimizer with less state moves less and keeps less.
    sgd = replace(PLACE, options="sgd")
    adamw_ms, sgd_ms = time_terms([traced(step), traced(step, place=sgd)])
    assert sgd_ms[-2] < adamw_ms[-2]
    assert sgd_ms[-1] < adamw_ms[-1]
    adamw_mb, sgd_mb = memory_terms([traced(step), traced(step, place=sgd)])
    weights = 4 * step["training"].weights / MIB
    assert adamw_mb[0] == pytest.approx(3 * weights)  # and two moments
    assert sgd_mb[0] == pytest.approx(2 * weights)
    # Gradients and kept results are alive beside the weights.
    weights = 4 * step["training"].weights / MIB
    batches = memory_terms([traced(step, batch) for batch in (1, 512, 1024)])[:, 2]
    assert batches[0] >= weights * 0.99  # all gradients at least
    assert np.diff(batches)[1] == pytest.approx(512 * step["training"].peak_bytes / MIB)
    # Autocast casts its weights and steps in fp32.
    narrow, half = (replace(PLACE, precision=name) for name in ("amp-bf16", "bf16"))
    amp, pure = time_terms([traced(step, place=place) for place in (narrow, half)])
    assert amp[-2] > 1.5 * pure[-2]
    amp_mb, pure_mb = memory_terms([traced(step, place=place) for place in (narrow, half)])
    weights = 4 * step["training"].weights / MIB
    assert amp_mb[0] == pytest.approx(3.5 * weights)
    assert pure_mb[0] == pytest.approx(1.5 * weights)


def test_a_step_is_kept_and_read_again_without_torch(folder, step, monkeypatch):
    monkeypatch.setattr(traces_module, "torch_is_here", lambda: False)
    again = Traces(folder).of(NAME, SIZES, "training")
    assert {name: entry.to_dict() for name, entry in again.items()} == {
        name: entry.to_dict() for name, entry in step.items()
    }


def test_a_step_that_is_not_traced_counts_as_three_forward_passes(folder):
    other = settle(find(NAME), Shapes(1, sequence=25))
    Traces(folder).of(NAME, other)
    passes = Traces(folder, trace=False).of(NAME, other, "training")
    assert set(passes) == {"forward"}
    case = TracedCase(PredictedCase(NAME, "embedding", other, PLACE), passes)
    inference = replace(case.case, configuration=replace(PLACE, mode="inference"))
    assert time_terms([case])[0] == pytest.approx(
        3 * time_terms([replace(case, case=inference)])[0]
    )
    times = time_terms([case])
    least = least_values([case], "latency", times)[0]
    assert least == pytest.approx(2 / 3 * times[0, :PRODUCT_TERMS].sum())
