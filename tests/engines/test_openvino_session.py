"""OpenVINO for real: exported models against PyTorch, in every precision that a CPU has."""

import dataclasses
import json
import os
import subprocess
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, OutOfMemoryError
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.openvino import OpenvinoRuntime
from accelbench.engines.openvino import session as session_module
from accelbench.engines.openvino.session import (
    BoundInputs,
    Profile,
    in_words,
    instructions,
    known_name,
    place_of,
)
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.models.find import find
from accelbench.models.inputs import settle
from accelbench.run.verify.agreement import agree, pick
from accelbench.run.verify.precision_proof import refuse_other_precision
from kept_artefacts import kept_artefacts
from refusals import refusal

#: Exported in a process of its own, as in a run: nncf changes what it is imported beside.
EXPORT = """
import sys
from pathlib import Path
from accelbench.engines.artifacts.cache import Cache
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.find import find
from accelbench.models.inputs import settle
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import ArtifactFormat
for asked in sys.argv[2:]:
    name, format = asked.split(":")
    spec = find(name)
    sequence = 16 if spec.sequence else None
    shapes = settle(spec, Shapes(2, sequence=sequence, image=spec.image))
    case = Case(spec, Target("openvino", "openvino", "cpu"), "fp32", shapes)
    print(asked, make(Recipe(case, ArtifactFormat(format)), Cache(Path(sys.argv[1]), 2**40)).folder)
"""
ARTEFACTS = ("bert-tiny:ir", "bert-tiny:ir-int8", "resnet-tiny:ir", "unet-tiny:ir")


def asked(model="bert-tiny", precision="fp32", batch=2, **more):
    spec = find(model)
    shapes = Shapes(
        batch,
        sequence=16 if spec.sequence else None,
        image=spec.image,
        steps=2 if spec.steps else None,
    )
    target = Target("openvino", "openvino", "cpu")
    return Case(spec, target, precision, settle(spec, shapes), **more)


@pytest.fixture(scope="module")
def artefacts():
    folder = kept_artefacts().folder.parent  # to which a cache adds its own
    done = subprocess.run(
        [sys.executable, "-c", EXPORT, str(folder), *ARTEFACTS],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.split(" ", 1) for line in done.stdout.splitlines() if line.count(":") == 1]
    return {name: path for name, path in lines if name in ARTEFACTS}


@pytest.fixture(scope="module")
def units():
    found = OpenvinoRuntime().probe()
    return {one.unit: one for one in found if isinstance(one, Device)}


@pytest.fixture
def opened(artefacts, units):
    sessions = []

    def open_(case, unit="cpu", threads=1, **more):
        wanted = OpenvinoRuntime().wants(case).format
        folder = artefacts[f"{case.model.id}:{wanted}"]
        job = Job(
            case,
            more.pop("device", units[unit]),
            JobSettings(threads=threads),
            artefact=folder,
            **more,
        )
        sessions.append(OpenvinoRuntime().open(job))
        return sessions[-1]

    yield open_
    for session in sessions:
        session.close()


def reference(case):
    """PyTorch's outputs in fp32, and those for other inputs."""
    right = dataclasses.replace(case, target=Target("pytorch", "cpu"), precision="fp32", options={})
    session = PytorchRuntime().open(
        Job(right, Device("cpu", "a processor"), JobSettings(threads=1))
    )
    found = session.outputs(session.prepare(right)), session.outputs(session.prepare(right, 99))
    session.close()
    return pick(found[0], 0), pick(found[1], 0)


def off(session, case):
    right, other = reference(case)
    return agree(session.outputs(session.prepare(case)), right, other, case.precision)


@pytest.mark.parametrize(
    ("model", "precision"),
    [("bert-tiny", "fp32"), ("resnet-tiny", "fp32"), ("unet-tiny", "fp32"), ("bert-tiny", "int8")],
)
def test_outputs_are_pytorchs_at_any_batch(opened, model, precision):
    session = opened(asked(model, precision))
    for batch in (2, 1, 3):
        held = off(session, asked(model, precision, batch))
        assert held.ok, held
        assert held.telling
    details = session.evidence().details
    assert details["computed_in"][precision] > 0.9
    # What the precision is known by: fp32 is not merely within bf16's tolerance.
    if precision == "int8":
        assert held.error > 1e-3
        assert details["quantiser"]["method"].startswith("nncf")
        assert details["quantiser"]["bias_correction"] is True
        assert details["precision_hint"] == "f32"


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_a_narrow_precision_is_computed_in_or_refused(opened, units, precision):
    case = asked(precision=precision)
    supported = OpenvinoRuntime().supports(case, units["cpu"]).ok
    capability = {"bf16": "BF16", "fp16": "FP16"}[precision]
    assert supported == (capability in units["cpu"].details["capabilities"])
    # Opened all the same, by a device that does not say what it can.
    device = dataclasses.replace(units["cpu"], details={"device": "cpu"})
    if not supported:
        with refusal("precision"):
            opened(case, device=device)
        return
    session = opened(case, device=device)
    held = off(session, case)
    assert held.ok
    assert held.error > 1e-4, "these are fp32's digits"
    assert session.evidence().details["computed_in"][precision] > 0.5


def test_another_precision_than_asked_for_is_no_result(opened, monkeypatch):
    session = opened(asked())
    bound = session.prepare(asked())
    monkeypatch.setattr(session, "_profiled", lambda _: Profile({"bf16": 0.9, "fp32": 0.1}, {}))
    session.inspect(bound)  # it is in the memory pass: nothing is compiled there to look
    for _ in range(2):  # and asking again does not help
        with refusal("precision_changed"):
            refuse_other_precision(asked(), {"details": session.evidence().details})


def test_an_engine_left_to_itself_is_caught(opened, units, monkeypatch):
    """Without a precision hint, OpenVINO's CPU computes fp32 models in bf16 where it can."""
    if "BF16" not in units["cpu"].details["capabilities"]:
        pytest.skip("this CPU has no bf16 to fall into")
    from accelbench.engines.openvino import session as module

    def silent(*args):
        return {}

    monkeypatch.setattr(module, "properties", silent)
    session = opened(asked())
    session.outputs(session.prepare(asked()))
    with refusal("precision_changed"):
        refuse_other_precision(asked(), {"details": session.evidence().details})


def test_compiling_is_a_phase_of_its_own(opened):
    session = opened(asked())
    assert session.evidence().devices == ()  # nothing has run yet
    inputs = session.prepare(asked())
    spent = session.compile(inputs)
    assert spent > 0
    block = session.sample(inputs, 3, Timing.EACH)
    assert (block.compilations, block.compile_ns) == (0, 0)
    # Another batch is another program, and says so where nobody compiled it ahead.
    other = session.prepare(asked(batch=3))
    block = session.sample(other, 1, Timing.EACH)
    assert block.compilations == 1
    assert 0 < block.compile_ns < block.phase_ns["step"][0]
    assert session.sample(other, 2, Timing.WHOLE).compilations == 0


def test_a_step_reads_the_inputs_that_it_is_given(opened):
    """Inputs are bound where they lie: going to and fro between two must not mix them up."""
    session = opened(asked("resnet-tiny"))
    one, other = (session.prepare(asked("resnet-tiny"), seed) for seed in (1, 2))
    first, second = session.outputs(one)["logits"], session.outputs(other)["logits"]
    assert not np.array_equal(first, second)
    assert np.array_equal(session.outputs(one)["logits"], first)
    changed = BoundInputs(tuple(array + 1 for array in one.arrays))
    assert not np.array_equal(session.outputs(changed)["logits"], first)


def test_evidence_says_where_how_and_in_what(opened, units):
    session = opened(asked())
    inputs = session.prepare(asked())
    session.compile(inputs)
    session.inspect(inputs)
    evidence = session.evidence()
    assert evidence.requested == str(units["cpu"])
    assert evidence.devices == (str(units["cpu"]),)
    assert not evidence.fell_back
    assert evidence.engine.startswith("openvino 20")
    details = json.loads(json.dumps(dict(evidence.details), allow_nan=False))
    assert details["execution_devices"] == ["cpu"]
    assert details["precision_hint"] == "f32"
    assert details["computed_in"] == {"fp32": 1.0}
    assert (details["threads"], details["streams"], details["requests_in_flight"]) == (1, 1, 1)
    assert details["isa"]
    assert details["model_cache"] is None
    assert details["outputs_finite"]


def test_where_memory_holds_the_weights_once_they_are_never_there_twice(opened, monkeypatch):
    """The model that is compiled to count takes the place of the one that was run."""
    session = opened(asked())
    inputs = session.prepare(asked())
    session.compile(inputs)
    session.inspect(inputs)
    right = session.outputs(inputs)
    full = types.SimpleNamespace(available=0)
    monkeypatch.setattr(session_module.psutil, "virtual_memory", lambda: full)
    first = weakref.ref(session._compiled)
    made = []
    counting = session._counting
    monkeypatch.setattr(
        session, "_counting", lambda *asked: made.append(first() is None) or counting(*asked)
    )
    details = session.evidence().details
    assert made == [True]
    assert details["computed_in"] == {"fp32": 1.0}
    assert (details["execution_devices"], details["precision_hint"]) == (["cpu"], "f32")
    again = session.outputs(inputs)  # compiled anew, to be timed again
    assert all(np.array_equal(again[name], right[name]) for name in right)
    assert not session._compiled.stands_in


def test_threads_are_those_asked_for_or_the_engines(opened):
    found = {}
    for threads in (1, 2, None):
        session = opened(asked(), threads=threads)
        session.compile(session.prepare(asked()))
        found[threads] = session.evidence().details["threads"]
    assert (found[1], found[2]) == (1, 2)
    assert found[None] >= 1


def test_auto_can_be_asked_for_and_says_what_it_chose(opened, units):
    auto = units["auto"]
    session = opened(asked(), "auto")
    assert off(session, asked()).ok
    evidence = session.evidence()
    assert evidence.requested == str(auto) == evidence.devices[0]
    assert not evidence.fell_back
    assert evidence.details["execution_devices"]
    assert evidence.details["precision_hint"] == "f32"
    assert evidence.details["computed_in"] == {"fp32": 1.0}
    assert evidence.details["threads"] == 1


def test_the_throughput_hint_stays_one_request(opened):
    case = asked(options={"hint": "throughput"})
    session = opened(case, threads=2)
    inputs = session.prepare(case)
    session.compile(inputs)
    assert session.sample(inputs, 2, Timing.EACH).steps == 2
    details = session.evidence().details
    assert (details["hint"], details["requests_in_flight"]) == ("throughput", 1)
    assert details["optimal_requests"] >= 1


def test_the_model_cache_is_used_when_asked_and_told(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path))
    plain = opened(asked("resnet-tiny"))
    plain.compile(plain.prepare(asked("resnet-tiny")))
    assert not (tmp_path / "openvino").exists()
    case = asked("resnet-tiny", options={"model_cache": True})
    loaded = []
    for _ in range(2):
        session = opened(case)
        session.compile(session.prepare(case))
        loaded.append(session.evidence().details["model_cache"]["loaded"])
    assert loaded == [False, True]
    assert list((tmp_path / "openvino").iterdir())


def test_a_unit_that_is_not_here_is_an_error_of_the_case(opened, units):
    gone = dataclasses.replace(units["cpu"], unit="gpu", details={"device": "gpu.7"})
    with refusal("engine_sees_no_device"):
        opened(asked(), device=gone)


def test_an_artefact_that_is_none_is_an_error_of_the_case(opened, artefacts, units, tmp_path):
    for name in ("manifest.json", "model.xml"):
        (tmp_path / name).write_bytes((Path(artefacts["bert-tiny:ir"]) / name).read_bytes())
    (tmp_path / "model.xml").write_text("<net", encoding="utf-8")
    with pytest.raises(CaseError) as caught:
        OpenvinoRuntime().open(Job(asked(), units["cpu"], artefact=str(tmp_path)))
    assert caught.value.reason == "session_failed"
    assert "Exception from" not in caught.value.message
    with refusal("no_artefact"):
        OpenvinoRuntime().open(Job(asked(), units["cpu"]))


def test_what_the_engine_says_is_put_in_words():
    said = RuntimeError(
        "Exception from src/inference/src/cpp/core.cpp:117:\n"
        "Exception from src/plugins/intel_cpu/src/plugin.cpp:9:\nCheck 'x' failed.\n\n"
    )
    found = in_words(said, "compile_failed")
    assert (found.reason, found.message) == ("compile_failed", "OpenVINO: Check 'x' failed.")
    assert isinstance(in_words(RuntimeError("std::bad_alloc"), "run_failed"), OutOfMemoryError)
    assert isinstance(in_words(MemoryError(), "run_failed"), OutOfMemoryError)
    assert in_words(found, "another") is found
    assert instructions("meta=1.0;ov=2026.4.1;isa=AVX2") == "AVX2"
    assert instructions(None) is None


def test_the_engine_is_imported_without_its_telemetry_and_threads():
    code = (
        "import os, sys\n"
        "import numpy\n"  # whose own threads survive a fork
        "before = len(os.listdir('/proc/self/task'))\n"
        "import accelbench.engines.openvino.session\n"
        "assert sys.modules['openvino_telemetry'] is None\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    if not Path("/proc/self/task").exists():
        pytest.skip("threads are counted in /proc")
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in os.environ.items() if name not in threads},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "0"  # or the template could not be forked


def test_conversions_keep_names():
    assert known_name({"b", "a"}, ["a", "b"]) == "a"
    with pytest.raises(CaseError, match="takes an input made, which its file does not have"):
        known_name({"made"}, ["a"])
    assert place_of("y", [{"x"}, {"y", "z"}]) == 1
    with pytest.raises(CaseError, match="OpenVINO's model has no output w") as refused:
        place_of("w", [{"x"}])
    assert refused.value.reason == "no_outputs"
