"""Real inputs in a PyTorch session: fed, told of in columns, evidence and warnings."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from accelbench.core.abilities import RealInputs
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.columns import BY_NAME
from accelbench.core.errors import UnsupportedError
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Quality
from accelbench.engines.pytorch.runtime import PytorchRuntime
from accelbench.engines.pytorch.session import PytorchSession
from accelbench.measure.loop import Measurement
from accelbench.models.find import find
from accelbench.run.worker.worker import with_inputs

CASE = Case(find("vit-tiny"), Target("pytorch", "cpu"), "bf16", Shapes(2))


@pytest.fixture
def folder(tmp_path):
    for name, grey in (("dark", 0), ("light", 255)):
        (tmp_path / name).mkdir()
        Image.new("RGB", (80, 80), (grey, grey, grey)).save(tmp_path / name / "1.png")
    return tmp_path


def opened(data):
    job = Job(CASE, Device("cpu", "test"), JobSettings(threads=1, data=str(data) if data else None))
    return PytorchSession(job, PytorchRuntime().clock())


def measured(session):
    session.inspect(session.prepare(CASE))
    return Measurement({"latency_p50_ms": 1.0}, {}, {}, Quality.CONVERGED, ["one"],
                       session.evidence())  # fmt: skip


def test_only_seed_0_is_of_the_files(folder):
    session = opened(folder)
    pixels = session.prepare(CASE)["pixel_values"]
    assert str(pixels.dtype) == "torch.bfloat16"
    assert sorted(pixels.float().mean(dim=(1, 2, 3)).tolist()) == [-1.0, 1.0]
    again = session.prepare(CASE)["pixel_values"]
    assert np.array_equal(pixels.float().numpy(), again.float().numpy())

    session = opened(folder)
    drawn, synthetic = session.prepare(CASE, seed=5), opened(None).prepare(CASE, seed=5)
    assert drawn["pixel_values"].equal(synthetic["pixel_values"])
    session = opened(folder)
    with pytest.raises(UnsupportedError, match="bert-tiny takes text"):
        session.prepare(replace(CASE, model=find("bert-tiny")))


def test_the_result_carries_columns_evidence_and_notes(folder):
    (folder / "dark/2.png").write_bytes(b"nothing")
    session = opened(folder)
    assert isinstance(session, RealInputs)
    found = with_inputs(session, measured(session))
    assert set(found.metrics) == {"latency_p50_ms", "data_load_ms", "data_digest"}
    assert set(found.metrics) <= set(BY_NAME)
    assert found.metrics["data_load_ms"] > 0
    assert found.warnings == ["one", "Skipped, as unreadable: 1 of 3 inputs."]
    data = found.evidence.details["data"]
    assert (data["files"], data["classes"], data["skipped_count"]) == (3, 2, 1)


def test_synthetic_inputs_leave_no_trace(folder):
    session = opened(None)
    found = measured(session)
    assert with_inputs(session, found) == replace(found)
    assert "data" not in found.evidence.details
