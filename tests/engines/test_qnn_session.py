"""QNN's emulation on x86-64, for real: where it ran, in what, and what it does not take."""

import json

import numpy as np
import pytest
from array_sessions import case_of, distance, folder_of, opened

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.engines.qnn import QnnRuntime
from accelbench.engines.qnn.session import distances
from accelbench.run.verify.precision_proof import refuse_other_precision
from kept_artefacts import kept_artefacts
from refusals import refusal

pytest.importorskip("onnxruntime_qnn")

RUNTIME = QnnRuntime()
FOUND = RUNTIME.probe()[0]
if not isinstance(FOUND, Device):
    pytest.skip(FOUND.reason, allow_module_level=True)
NPU = FOUND


def case(model="resnet-tiny", precision="int8", batch=2):
    return case_of(model, precision, batch, target="qnn/qnn")


@pytest.mark.parametrize(
    ("model", "precision", "within"),
    [("resnet-tiny", "int8", 0.25), ("llama-tiny", "int8", 0.1), ("resnet-tiny", "fp16", 0.02)],
)
def test_all_of_it_runs_there_in_what_was_asked(model, precision, within):
    asked = case(model, precision)
    with opened(RUNTIME, asked, NPU) as session:
        inputs = session.prepare(asked)
        assert 1e-5 < distance(session.outputs(inputs), asked) < within
        assert len(session.sample(inputs, 2, Timing.EACH).phase_ns["step"]) == 2
        evidence = session.evidence()
    assert evidence.devices == (str(NPU),) == (evidence.requested,)
    assert not evidence.fell_back
    assert evidence.emulated == NPU.emulated
    details = evidence.details
    assert set(details["provider_nodes"]) == {"QNNExecutionProvider"}
    assert details["provider_nodes"]["QNNExecutionProvider"] > 20
    assert details["computed_in"][{"int8": "int8", "fp16": "float16"}[precision]] > 0.5
    assert details["npu_operators"]
    assert details["backend"] in ("libQnnHtp.so", "QnnHtp.dll")
    assert "QNN" in evidence.engine
    # The CPU provider rounds the same file in other places, and no more than that.
    assert set(details["against_cpu"]) == {one.name for one in session.manifest.outputs}
    assert all(apart < 0.1 for apart in details["against_cpu"].values())
    json.dumps(dict(details), allow_nan=False)


def test_what_it_says_before_it_ran():
    asked = case()
    with opened(RUNTIME, asked, NPU, threads=2) as session:
        evidence = session.evidence()
    assert evidence.details["threads"] == 2
    assert "computed_in" not in evidence.details
    assert evidence.details["soc"] == (
        {"soc_model": "60", "htp_arch": "75"} if NPU.emulated else "the device's own"
    )


def test_another_precision_than_asked_is_no_result():
    asked = case(precision="fp16")
    folder = folder_of(RUNTIME, asked)
    session = RUNTIME.open(Job(case(), NPU, JobSettings(threads=1), artefact=str(folder)))
    session.outputs(session.prepare(case()))
    details = session.evidence().details
    session.close()
    assert details["computed_in"] == {"float16": 1.0}
    with refusal("precision_changed"):
        refuse_other_precision(case(), {"details": details})


def test_outputs_that_the_cpu_does_not_have_are_no_result(monkeypatch):
    asked = case()
    with opened(RUNTIME, asked, NPU) as session:
        session.outputs(session.prepare(asked))
        run = session._run
        monkeypatch.setattr(session, "_run", lambda fed: [one[:, ::-1] for one in run(fed)])
        with pytest.raises(CaseError) as raised:
            session.evidence()
    assert raised.value.reason == "unlike_the_cpu"
    assert "a batch of 2" in raised.value.message


def test_with_layer_norms_written_out_the_second_item_is_right_too():
    """As they are, the emulation gives 0.44 of BERT's spread: wrong for all but the first."""
    asked = case("bert-tiny")
    recipe = Recipe(asked, RUNTIME.wants(asked), workarounds=("layer_norm_written_out",))
    folder = make(recipe, kept_artefacts()).folder
    session = RUNTIME.open(Job(asked, NPU, JobSettings(threads=1), artefact=str(folder)))
    found = session.outputs(session.prepare(asked))
    against = session.evidence().details["against_cpu"]  # raises unlike_the_cpu
    session.close()
    assert max(against.values()) < 0.35
    assert distance(found, asked) < 0.5


def test_what_it_does_not_take_is_a_fallback_that_says_which(tmp_path):
    asked = case()
    folder = folder_of(RUNTIME, asked)
    import onnx

    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    model = onnx.load(str(tmp_path / "model.onnx"), load_external_data=False)
    last = next(node for node in model.graph.node if "logits" in node.output)
    last.output[0] = "before"
    # HTP has no such operator.
    model.graph.node.append(onnx.helper.make_node("Det", ["square"], ["of it"], "determinant"))
    shape = onnx.numpy_helper.from_array(np.array([1, 4, 4], np.int64), "four")
    some = onnx.numpy_helper.from_array(np.arange(16, dtype=np.int64), "some")
    model.graph.initializer.extend([shape, some])
    model.graph.node.pop()
    model.graph.node.extend(
        [
            onnx.helper.make_node("Gather", ["before", "some"], ["few"], "few", axis=1),
            onnx.helper.make_node("ReduceMean", ["few"], ["mean"], "mean", keepdims=1),
            onnx.helper.make_node("Expand", ["mean", "four"], ["square"], "square"),
            onnx.helper.make_node("Det", ["square"], ["det"], "determinant"),
            onnx.helper.make_node("Add", ["before", "det"], ["logits"], "sum"),
        ]
    )
    onnx.save(model, str(tmp_path / "model.onnx"))
    with pytest.raises(CaseError) as raised:
        RUNTIME.open(Job(asked, NPU, JobSettings(threads=1), artefact=str(tmp_path)))
    assert raised.value.reason == "fallback"
    assert "Det × 1" in raised.value.message
    assert "CPUExecutionProvider" in raised.value.message
    assert raised.value.advice


def test_a_corrupt_file_is_an_error_of_the_case(tmp_path):
    asked = case()
    for path in folder_of(RUNTIME, asked).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with refusal("session_failed"):
        RUNTIME.open(Job(asked, NPU, artefact=str(tmp_path)))


def test_outputs_are_judged_by_many_values():
    asked = case()
    with opened(RUNTIME, asked, NPU) as session:
        for far in ({"a": 0.1, "b": float("nan")}, {"b": float("nan"), "a": 0.1}):
            session._against_cpu = far
            with pytest.raises(CaseError) as raised:
                session._hold_to_cpu()
            assert raised.value.reason == "unlike_the_cpu"
            assert "the output b" in raised.value.message
        session._against_cpu = {"a": 0.1, "b": 0.2}
        session._hold_to_cpu()

    many = np.linspace(-1, 1, 64, dtype=np.float32)
    one = np.float32([[0.006]])
    found = distances({"logit": (one + 0.1, one), "embeds": (many + 0.01, many)})
    assert set(found) == {"embeds"}
    assert 0 < found["embeds"] < 0.1
    alone = distances({"logit": (np.float32([[2.2]]), np.float32([[2.0]]))})
    assert alone["logit"] == pytest.approx(0.1, rel=0.05)
    assert distances({"ids": (np.int64([1]), np.int64([2]))}) == {}
