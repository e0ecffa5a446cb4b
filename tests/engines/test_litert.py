"""LiteRT: a TensorFlow Lite model as it is, by three sets of kernels, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UnsupportedError
from accelbench.core.protocols import Device
from accelbench.engines.litert import LitertRuntime
from accelbench.engines.litert.session import understood
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.file_models.looking import look
from accelbench.models.selection import choose
from accelbench.run.verify.reference import is_own, reference_of
from tflite_model import write

CPU = Device("cpu", "a processor")


def case(model, **options):
    return Case(model, Target("litert", "cpu"), "fp32", Shapes(2), options=options)


def test_a_model_says_what_it_reads(tmp_path):
    found = look(write(tmp_path / "net.tflite"))
    assert found["inputs"] == [
        {"name": "x", "dtype": "float32", "shape": ["", 16],
         "drawn": "normal, mean 0 and deviation 1"}
    ]  # fmt: skip
    assert (found["weights"], found["precision"], found["operators"]) == (676, "fp32", 2)
    (spec,) = choose([str(write(tmp_path / "fixed.tflite", batch=3))])
    assert spec.fixed_batch == 3


def test_its_reference_is_itself_by_the_plain_kernels(tmp_path):
    (spec,) = choose([str(write(tmp_path / "net.tflite"))])
    reference = reference_of(case(spec))
    assert (reference.target.runtime, dict(reference.options)) == (
        "litert", {"kernels": "reference"}
    )  # fmt: skip
    assert is_own(case(spec, kernels="reference"))
    assert not is_own(case(spec))


@pytest.mark.parametrize("cut", [8, 200, 900])
def test_a_part_of_a_model_is_refused(tmp_path, cut):
    path = write(tmp_path / "net.tflite")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FileRefusedError, match="LiteRT cannot read it"):
        look(path)


def test_what_is_no_model_of_it_is_refused(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(b"\x08\0\0\0TFLX" + b"\0" * 64)
    with pytest.raises(FileRefusedError, match="no TensorFlow Lite model, whatever its name"):
        look(path)
    (spec,) = choose([str(write(tmp_path / "net.tflite"))])
    support = LitertRuntime().supports(replace(case(spec), precision="int8"), CPU)
    assert (support.ok, support.reason) == (False, "precision")
    assert "stored in fp32" in support.message


def test_an_operator_that_it_has_not_is_named():
    error = understood(RuntimeError("Encountered unresolved custom op: Wobble."), "session_failed")
    assert isinstance(error, UnsupportedError)
    assert (error.reason, "Wobble" in error.message) == ("operator", True)


def test_evidence_says_who_computed(tmp_path):
    from accelbench.core.protocols import Job
    from accelbench.core.run_options import JobSettings
    from accelbench.engines.artifacts.cache import Cache
    from accelbench.engines.artifacts.make import make
    from accelbench.engines.artifacts.recipe import Recipe

    (spec,) = choose([str(write(tmp_path / "net.tflite"))])
    outputs, parts = {}, {}
    for kernels in ("xnnpack", "builtin", "reference"):
        runtime, asked = LitertRuntime(), case(spec, kernels=kernels)
        folder = make(Recipe(asked, runtime.wants(asked)), Cache(tmp_path / "cache")).folder
        session = runtime.open(Job(asked, CPU, JobSettings(threads=1), str(folder)))
        outputs[kernels] = session.outputs(session.prepare(asked))["y"]
        details = session.evidence().details
        parts[kernels] = details["xnnpack_parts"]
        assert (details["kernels"], details["threads"]) == (kernels, 1)
        json.dumps(details)
        session.close()
    assert parts == {"xnnpack": 1, "builtin": 0, "reference": 0}
    for kernels in ("xnnpack", "builtin"):
        assert np.allclose(outputs[kernels], outputs["reference"], rtol=1e-5)
    assert outputs["reference"].shape == (2, 4)
