"""ONNX Runtime on this CPU: PyTorch's numbers, and proof of what was computed in what."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from array_sessions import case_of, distance, folder_of, opened

from accelbench.core.case import Shapes
from accelbench.core.errors import CaseError
from accelbench.core.identity import to_plain
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Timing
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.engines.onnxruntime.profile import Profile
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.models.inputs import settle
from accelbench.run.verify.precision_proof import proved, refuse_other_precision
from refusals import refusal

RUNTIME = OnnxruntimeRuntime()
CPU = Device("cpu", "a processor")


@pytest.mark.parametrize("model", ["bert-tiny", "resnet-tiny"])
def test_one_session_gives_pytorchs_numbers_at_two_batches(model):
    case = case_of(model)
    with opened(RUNTIME, case, CPU) as session:
        for batch in (1, 3):
            other = replace(case, shapes=replace(case.shapes, batch=batch))
            assert distance(session.outputs(session.prepare(other)), other) < 1e-5


@pytest.mark.parametrize(("model", "within"), [("bert-tiny", 0.1), ("resnet-tiny", 0.2)])
def test_int8_is_computed_in_int8_and_near_fp32(model, within):
    case = case_of(model, "int8")
    with opened(RUNTIME, case, CPU) as session:
        assert 1e-4 < distance(session.outputs(session.prepare(case)), case) < within
        details = session.evidence().details
    assert details["computed_in"]["int8"] > 0.5
    assert details["quantiser"]["calibration"]["source"] == "seeded"


def test_a_float_graph_that_is_asked_for_as_int8_is_refused():
    case = case_of("resnet-tiny")
    folder = folder_of(RUNTIME, case)
    wrong = replace(case, precision="int8")
    session = RUNTIME.open(Job(wrong, CPU, JobSettings(threads=1), artefact=str(folder)))
    session.outputs(session.prepare(wrong))
    details = session.evidence().details
    with refusal("precision_changed"):
        refuse_other_precision(wrong, {"details": details})


def test_devices_are_those_of_the_nodes_that_ran_and_of_none_there_is_no_proof():
    with opened(RUNTIME, case_of("bert-tiny"), CPU) as session:
        cuda = "CUDAExecutionProvider"
        session._profile = Profile({"CPUExecutionProvider": 3, cuda: 1, "": 2}, {}, {})
        assert session.evidence().devices == ("cpu:0", cuda)
        assert session.evidence().fell_back
        session._profile = Profile({}, {}, {})
        with pytest.raises(CaseError, match="names no device"):
            proved(to_plain(session.evidence()), "cpu:0")


def test_evidence_says_where_and_how():
    case = case_of("bert-tiny")
    with opened(RUNTIME, case, CPU, threads=2) as session:
        before = session.evidence()
        assert before.shares == {}
        assert before.details["threads"] == 2
        session.outputs(session.prepare(case))
        evidence = session.evidence()
    assert evidence.devices == ("cpu:0",)
    assert not evidence.fell_back
    assert evidence.shares == {"cpu:0": pytest.approx(1.0)}
    assert evidence.engine.startswith("onnxruntime ")
    assert evidence.details["computed_in"] == {"float": 1.0}
    assert evidence.details["provider_nodes"]["CPUExecutionProvider"] > 20
    assert evidence.details["graph_optimization_level"] == "ORT_ENABLE_ALL"
    assert evidence.details["execution_mode"] == "ORT_SEQUENTIAL"
    assert evidence.details["outputs_finite"] is True
    json.dumps(dict(evidence.details), allow_nan=False)


def test_threads_that_nobody_asked_for_are_counted():
    case = case_of("resnet-tiny")
    folder = folder_of(RUNTIME, case)
    code = (
        "import json, sys; from accelbench.engines.onnxruntime import OnnxruntimeRuntime\n"
        "from accelbench.core.protocols import Device, Job\n"
        "from accelbench.core.serial import case_from_json\n"
        "case, cpu = case_from_json(json.loads(sys.argv[1])), Device('cpu', 'x')\n"
        "job = Job(case, cpu, artefact=sys.argv[2])\n"
        "print(OnnxruntimeRuntime().open(job).evidence().details['threads'])"
    )
    asked = [sys.executable, "-c", code, json.dumps(case_to_json(case)), str(folder)]
    # Read by ONNX Runtime where nobody else says how many: it takes them without a word.
    environment = {**os.environ, "ORT_INTRA_OP_NUM_THREADS": "3"}
    done = subprocess.run(asked, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["3"]


def test_profiling_leaves_nothing_behind_and_the_session_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = case_of("resnet-tiny")
    with opened(RUNTIME, case, CPU) as session:
        inputs = session.prepare(case)
        before = session.outputs(inputs)
        session.evidence()
        after = session.outputs(inputs)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert list(tmp_path.iterdir()) == []


def test_images_are_made_as_pytorch_makes_them():
    case = case_of("unet-tiny")
    right = PytorchRuntime().open(Job(case, CPU, JobSettings(threads=1)))
    expected = right.outputs(right.prepare(case))
    with opened(RUNTIME, case, CPU) as session:
        inputs = session.prepare(case)
        found = session.outputs(inputs)
        block = session.sample(inputs, 2, Timing.EACH)
        evidence = session.evidence()
    right.close()
    assert len(block.phase_ns["step"]) == 2
    assert list(found) == list(expected) == ["sample"]
    scale = np.abs(expected["sample"]).max()
    np.testing.assert_allclose(found["sample"], expected["sample"], atol=1e-5 * scale)
    assert evidence.details["computed_in"] == {"float": 1.0}


def test_outputs_are_copies():
    case = case_of("resnet-tiny")
    with opened(RUNTIME, case, CPU) as session:
        first = session.outputs(session.prepare(case))["logits"]
        kept = first.copy()
        session.outputs(session.prepare(case, seed=9))
        assert np.array_equal(first, kept)


@pytest.mark.parametrize("body", [b"", b"this is no graph", b"\x08\x09\x12"])
def test_a_corrupt_file_is_an_error_of_the_case(tmp_path, body):
    case = case_of("resnet-tiny")
    for path in folder_of(RUNTIME, case).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.onnx").write_bytes(body)
    with pytest.raises(CaseError) as raised:
        RUNTIME.open(Job(case, CPU, artefact=str(tmp_path)))
    assert raised.value.reason == "session_failed"
    assert raised.value.message.startswith("ONNX Runtime: ")
    assert raised.value.advice


def test_what_is_missing_or_does_not_fit_is_an_error_of_the_case(tmp_path):
    case = case_of("resnet-tiny")
    for path in folder_of(RUNTIME, case).iterdir():
        if path.name != "model.data":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with refusal("session_failed"):
        RUNTIME.open(Job(case, CPU, artefact=str(tmp_path)))

    with refusal("no_artefact"):
        RUNTIME.open(Job(case_of("resnet-tiny"), CPU))

    case = case_of("bert-tiny")
    longer = replace(case, shapes=settle(case.model, Shapes(1, sequence=24)))
    with opened(RUNTIME, case, CPU) as session:
        inputs = session.prepare(longer)
        with pytest.raises(CaseError) as raised:
            session.outputs(inputs)
    assert raised.value.reason == "run_failed"
