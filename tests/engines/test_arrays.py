"""What sessions that are fed with arrays share, on an engine that doubles what it gets."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.clock import MonotonicClock
from accelbench.core.protocols import Device, Evidence, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.artifacts.recipe import Manifest, Tensor
from accelbench.engines.shared.arrays import ArraySession, timed
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs, settle
from accelbench.models.short_steps import SHORT_PASSES
from refusals import refusal

CPU = Device("cpu", "a processor")


class Doubling(ArraySession):
    """Gives twice its first input, always in the same memory."""

    def _open(self):
        self.runs = []
        self._same = None

    def _bind(self, arrays):
        return dict(arrays)

    def _run(self, bound):
        self.runs.append(bound)
        value = bound[self.manifest.inputs[0].file_name]
        if self._same is None or self._same.shape != value.shape:
            self._same = np.empty_like(value)
        np.multiply(value, 2, out=self._same)
        return self._same

    def _read(self, result):
        return [result]

    def evidence(self):
        return Evidence(("cpu:0",), "cpu:0", details=self.details())


def session_of(folder, model="resnet-tiny", batch=None, **more):
    spec = find(model)
    steps = more.pop("steps", None)
    case = Case(spec, Target("x", "cpu"), "fp32", settle(spec, Shapes(2, steps=steps)))
    arrays = make_inputs(spec, case.shapes, 0)
    inputs = [Tensor(name, f"in_{name}", str(one.dtype), one.shape) for name, one in arrays.items()]
    outputs = [Tensor("out", "out_file", "float32", ())]
    Manifest("k", "onnx", spec.id, "m", inputs, outputs, batch, "the digest", **more).save(folder)
    return Doubling(
        Job(case, CPU, JobSettings(seed=3), artefact=str(folder)), MonotonicClock()
    ), case


def test_inputs_and_what_is_known_without_running(tmp_path):
    session, case = session_of(tmp_path)
    expected = make_inputs(case.model, case.shapes, 3)["pixel_values"]
    found = session.outputs(session.prepare(case))
    assert list(session.runs[0]) == ["in_pixel_values"]
    assert session.runs[0]["in_pixel_values"].flags.c_contiguous
    np.testing.assert_array_equal(found["out"], 2 * expected)
    other = session.outputs(session.prepare(case, seed=4))
    assert not np.array_equal(found["out"], other["out"])  # and the first was a copy

    session, case = session_of(tmp_path)
    assert session.weights_digest == "the digest"
    assert session.timings["load"] > 0
    assert session.model_path == tmp_path / "m"
    assert session.compile(session.prepare(case)) is None
    assert session.device_memory() is None
    assert session.loaded() == {}
    assert session.phases == ("step",)

    made, took = timed(MonotonicClock(), lambda: "made")
    assert made == "made"
    assert took >= 0


@pytest.mark.parametrize("steps", [1, 3])
def test_a_step_of_a_denoiser_is_a_whole_image(tmp_path, steps):
    session, case = session_of(tmp_path, "unet-tiny", steps=steps)
    inputs = session.prepare(case)
    session.sample(inputs, 2, Timing.EACH)
    assert len(session.runs) == 2 * steps
    times = [int(run["in_timestep"][0]) for run in session.runs]
    assert times[:steps] == times[steps:] == sorted(times[:steps], reverse=True)
    assert all(run["in_timestep"].shape == (2,) for run in session.runs)
    session.runs.clear()
    assert list(session.outputs(inputs)) == ["sample"]
    assert len(session.runs) == min(SHORT_PASSES, steps)


def test_outputs_that_are_no_numbers_are_told(tmp_path):
    session, case = session_of(tmp_path)
    inputs = session.prepare(case)
    session.inspect(inputs)
    assert session.evidence().details["outputs_finite"] is True
    inputs["in_pixel_values"][0] = np.nan
    session.inspect(inputs)
    details = session.evidence().details
    assert details["outputs_finite"] is False
    assert details["output_dtypes"] == ["float32"]


def test_what_is_looked_at_in_the_memory_pass_is_not_copied(tmp_path):
    """Neither as a whole nor as a mask: both would be part of the peak that is read."""
    session, case = session_of(tmp_path)
    inputs = session.prepare(case)
    huge = np.zeros(2**20, np.float32)
    session._read = lambda result: [huge]
    taken = {}
    for name, look in (("inspect", session.inspect), ("outputs", session.outputs)):
        tracemalloc.start()
        look(inputs)
        taken[name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert taken["inspect"] < huge.nbytes / 8 < huge.nbytes < taken["outputs"]
    for bad in (np.nan, np.inf, -np.inf):
        huge[7] = bad
        session.inspect(inputs)
        assert session.evidence().details["outputs_finite"] is False


def test_evidence_says_what_was_opened(tmp_path):
    more = {"quantiser": {"method": "q"}, "versions": {"onnx": "1"}, "seconds": {"onnx": 2.5}}
    session, _ = session_of(tmp_path, batch=2, **more)
    details = session.evidence().details
    assert details["artefact"] == {
        "key": "k",
        "format": "onnx",
        "fixed_batch": 2,
        "made_with": {"onnx": "1"},
        "seconds": {"onnx": 2.5},
    }
    assert details["quantiser"] == {"method": "q"}


def test_a_fixed_batch_is_held_to(tmp_path):
    session, case = session_of(tmp_path, batch=2)
    session.prepare(case)
    with refusal("fixed_batch"):
        session.prepare(replace(case, shapes=replace(case.shapes, batch=4)))
