"""On a card inputs and outputs stay there; what a fake ONNX Runtime saw of it."""

from dataclasses import replace

import numpy as np
import pytest
from fake_onnxruntime import fake_onnxruntime

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, OutOfMemoryError, UnsupportedError
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.artifacts.recipe import Manifest, Tensor
from accelbench.engines.onnxruntime import OnnxruntimeRuntime, session
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs, settle
from accelbench.run.verify.precision_proof import refuse_other_precision
from refusals import refusal

SPEC = find("resnet-tiny")


def case_of(hardware="cuda", precision="fp32", **options):
    shapes = settle(SPEC, Shapes(2))
    return Case(SPEC, Target("onnxruntime", hardware), precision, shapes, options=options)


@pytest.fixture
def folder(tmp_path):
    image = Tensor("pixel_values", "pixel_values", "float32", ("batch", 3, 64, 64))
    logits = Tensor("logits", "logits", "float32", ("batch", 3, 64, 64))
    Manifest("k", "onnx", SPEC.id, "model.onnx", (image,), (logits,), None, "d").save(tmp_path)
    return tmp_path


def opened(monkeypatch, folder, case, engine, ordinal=1):
    monkeypatch.setattr(session, "onnxruntime", engine)
    device = Device(case.target.hardware, "a card", ordinal=ordinal)
    return OnnxruntimeRuntime().open(
        Job(case, device, JobSettings(threads=3), artefact=str(folder))
    )


def test_inputs_and_outputs_lie_on_the_card_that_was_asked_for(monkeypatch, folder):
    engine, case = fake_onnxruntime(), case_of()
    ours = opened(monkeypatch, folder, case, engine)
    inputs = ours.prepare(case)
    ours.sample(inputs, 3, Timing.EACH)
    (made,) = engine.InferenceSession.made
    (binding,) = made.bound
    assert made.providers == [("CUDAExecutionProvider", {"device_id": "1", "use_tf32": "0"})]
    assert binding.inputs["pixel_values"].place == ("cuda", 1)
    assert binding.outputs == {"logits": ("cuda", 1)}
    assert binding.waited == 3  # a step ends when the card is done with it
    assert made.copied == 0
    found = ours.outputs(inputs)["logits"]
    expected = make_inputs(SPEC, case.shapes, 0)["pixel_values"] + 1
    np.testing.assert_array_equal(found, expected)


def test_evidence_is_of_a_second_session_that_is_profiled(monkeypatch, folder):
    engine, case = fake_onnxruntime(elsewhere_us=10), case_of()
    ours = opened(monkeypatch, folder, case, engine)
    ours.outputs(ours.prepare(case))
    evidence = ours.evidence()
    measured, profiled = engine.InferenceSession.made
    assert not measured.options.enable_profiling
    assert profiled.options.enable_profiling
    assert profiled.providers == measured.providers
    assert profiled.options.intra_op_num_threads == measured.options.intra_op_num_threads == 3
    assert evidence.requested == "cuda:1"
    assert evidence.shares == {"cuda:1": 0.9, "cpu:0": 0.1}
    assert not evidence.fell_back
    assert evidence.details["inputs"] == "bound in cuda memory"
    assert evidence.details["computed_in"] == {"float": 1.0}
    ours.evidence()
    assert len(engine.InferenceSession.made) == 2  # once is enough


def test_more_than_the_share_allowed_on_the_cpu_is_a_fallback(monkeypatch, folder):
    ours = opened(monkeypatch, folder, case_of(), fake_onnxruntime(elsewhere_us=15))
    ours.outputs(ours.prepare(case_of()))
    assert ours.evidence().fell_back


def test_another_precision_than_asked_is_no_result(monkeypatch, folder):
    case = case_of(precision="fp16")
    ours = opened(monkeypatch, folder, case, fake_onnxruntime(types="float"))
    ours.outputs(ours.prepare(case))
    with pytest.raises(CaseError) as raised:
        refuse_other_precision(case, {"details": ours.evidence().details})
    assert raised.value.reason == "precision_changed"
    assert "0% of its products were computed in fp16" in raised.value.message
    assert raised.value.advice


@pytest.mark.parametrize(
    ("hardware", "provider", "engine", "memory"),
    [
        ("cuda", "tensorrt", "TensorrtExecutionProvider", "cuda"),
        ("directml", None, "DmlExecutionProvider", "dml"),
        ("rocm", None, "MIGraphXExecutionProvider", None),
        ("mps", None, "CoreMLExecutionProvider", None),
    ],
)
def test_each_provider_has_its_own_memory_or_is_fed_from_the_host(
    monkeypatch, folder, hardware, provider, engine, memory
):
    case = case_of(hardware, **({"provider": provider} if provider else {}))
    fake = fake_onnxruntime(engine)
    ours = opened(monkeypatch, folder, case, fake, ordinal=0)
    ours.outputs(ours.prepare(case))
    (made,) = fake.InferenceSession.made
    assert (made.copied == 0) == (memory is not None)
    if memory is not None:
        assert made.bound[0].inputs["pixel_values"].place == (memory, 0)
        assert ours.evidence().details["inputs"] == f"bound in {memory} memory"
    else:
        assert ours.evidence().details["inputs"] == "fed from the host"
    assert ours.evidence().devices[0] == f"{hardware}:0"


def test_a_build_without_the_provider_is_refused_with_its_package(monkeypatch, folder):
    with pytest.raises(UnsupportedError) as raised:
        opened(monkeypatch, folder, case_of("rocm"), fake_onnxruntime("CUDAExecutionProvider"))
    assert raised.value.reason == "provider_missing"
    assert "onnxruntime-migraphx" in raised.value.advice


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        ("Failed to allocate memory for requested buffer of size 99\nx", "out_of_memory", None),
        ("std::bad_alloc", "out_of_memory", None),
        ("CUDA failure 2: out of memory", "out_of_memory", None),
        ("Protobuf parsing failed.\nmore", "failed", "session_failed"),
        ("", "failed", "session_failed"),
    ],
)
def test_what_the_engine_says_is_understood(monkeypatch, folder, said, status, reason):
    fake = fake_onnxruntime()
    fake.InferenceSession.refuse = RuntimeError(said)
    with pytest.raises(CaseError) as raised:
        opened(monkeypatch, folder, case_of(), fake)
    assert raised.value.status == status
    assert isinstance(raised.value, OutOfMemoryError) == (status == "out_of_memory")
    assert reason is None or raised.value.reason == reason
    assert "more" not in raised.value.message


def test_an_artefact_for_one_batch_takes_no_other(monkeypatch, folder):
    image = Tensor("pixel_values", "pixel_values", "float32", (2, 3, 64, 64))
    Manifest("k", "onnx", SPEC.id, "model.onnx", (image,), (image,), 2, "d").save(folder)
    ours = opened(monkeypatch, folder, case_of(), fake_onnxruntime())
    ours.prepare(case_of())
    with refusal("fixed_batch"):
        ours.prepare(replace(case_of(), shapes=settle(SPEC, Shapes(3))))
