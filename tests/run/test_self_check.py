"""A model compared with itself."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.model import InputSpec, Training
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Mode
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.shared.sketches import outputs_digest, sketch
from accelbench.models.build import build
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs, named_tensors, settle
from accelbench.run.conduct.launch_context import Repeats
from accelbench.run.verify.agreement import agree, pick
from accelbench.run.verify.self_check import self_check
from accelbench.run.verify.verdicts import TOLERANCES

#: Those whose outputs other weights move least, in parts of what other inputs do, and two more.
WEIGHED = ("llama-tiny", "mixtral-tiny", "unet-tiny", "llava-tiny", "bert-tiny", "vit-tiny")
CASE = Case(find("bert-tiny"), Target("pytorch", "cpu"), "fp32", Shapes(2, 16))


class Machine:
    """A session that may cheat: its output is seed × weight, less what it ignores."""

    def __init__(self, *ignored, drifts=False):
        self._ignored = ignored
        self._drifts = drifts
        self._weight = 3.0

    def prepare(self, case, seed=None):
        return 1.0 if seed is None else 2.0

    def outputs(self, inputs):
        if self._drifts:
            self._weight += 1e-6
        seen = 1.0 if "inputs" in self._ignored else inputs
        held = 1.0 if "weights" in self._ignored else self._weight
        return {"y": np.full(3, seen * held)}

    @contextmanager
    def other_weights(self):
        self._weight *= 2
        yield
        self._weight /= 2


def checked(machine):
    return self_check(machine, CASE)


def test_a_real_model_passes_and_chance_is_none():
    found = checked(Machine())
    assert (found.repeatable, found.inputs_matter, found.weights_matter) == (True, True, True)
    assert found.ok
    assert found.verdict == "ok"
    assert found.warnings() == []
    found.refuse("it")

    found = checked(Replayed(1.0, "inputs", "weights"))
    assert (found.repeatable, found.inputs_matter, found.weights_matter) == (False, False, False)
    with pytest.raises(CaseError, match="its inputs and weights"):
        found.refuse("it")
    unknown = checked(Drawing(1.0, "inputs", "weights"))
    assert (unknown.inputs_matter, unknown.weights_matter, unknown.verdict) == (
        None,
        None,
        "failed",
    )

    found = checked(Drawing(1e-6))
    assert (found.repeatable, found.inputs_matter, found.weights_matter) == (False, True, True)
    assert found.verdict == "failed"
    found.refuse("it")


@pytest.mark.parametrize("ignored", [("inputs",), ("weights",), ("inputs", "weights")])
def test_a_model_that_ignores_something_is_not_real(ignored):
    found = checked(Machine(*ignored))
    assert not found.ok
    with pytest.raises(CaseError, match=f"do not depend on its {' and '.join(ignored)}") as error:
        found.refuse("it")
    assert error.value.reason == "not_real"


def test_a_model_that_gives_something_else_the_second_time_is_told():
    found = checked(Machine(drifts=True))
    assert not found.repeatable
    assert found.ok
    assert "second time" in found.warnings()[0]


def test_what_nothing_can_be_told_of_is_not_judged():
    machine = Machine("weights")
    only = SimpleNamespace(prepare=machine.prepare, outputs=machine.outputs)
    found = checked(only)
    assert found.weights_matter is None
    assert found.ok

    found = checked(Overflowing())
    assert (found.inputs_matter, found.weights_matter) == (None, None)
    assert found.verdict == "not_done"
    found.refuse("it")

    how = Training("classification", (InputSpec("labels", ("batch",), "int64", high=2),))
    fixed = InputSpec("x", ("batch", 4), constant=1.0)
    model = replace(CASE.model, inputs=(fixed,), training=how)
    case = replace(CASE, model=model, mode=Mode.TRAINING)
    machine = Machine("inputs")
    assert self_check(machine, case).inputs_matter is None
    varied = replace(model, inputs=(fixed, InputSpec("y", ("batch", 4))))
    assert self_check(machine, replace(case, model=varied)).inputs_matter is False


def test_the_digest_is_of_names_shapes_and_bits():
    one = {"a": np.zeros((2, 3), np.float32)}
    assert outputs_digest(one) == outputs_digest({"a": np.zeros((2, 3), np.float32)})
    others = [
        {"b": one["a"]},
        {"a": np.zeros((3, 2), np.float32)},
        {"a": np.zeros((2, 3), np.int32)},
        {"a": np.full((2, 3), 1e-45, np.float32)},
    ]
    assert outputs_digest(one) not in {outputs_digest(other) for other in others}


def test_a_real_session_is_real_and_has_its_weights_back():
    session = PytorchRuntime().open(Job(CASE, Device("cpu", "host"), JobSettings(threads=1)))
    try:
        before = session.outputs(session.prepare(CASE))
        found = self_check(session, CASE)
        after = session.outputs(session.prepare(CASE))
    finally:
        session.close()
    assert (found.repeatable, found.inputs_matter, found.weights_matter) == (True, True, True)
    assert found.outputs_digest == outputs_digest(before) == outputs_digest(after)


def test_launches_that_differ_are_told_apart():
    repeats = Repeats()
    rows = [
        {"case_id": "c", "device_fingerprint": "d", "launch": n, "outputs_digest": digest}
        for n, digest in enumerate(["x", "x", "y", None])
    ]
    for row in rows:
        repeats.look(row)
    assert [row.get("warnings") for row in rows] == [
        None,
        None,
        ["The same seeded inputs gave other outputs in launch 0."],
        None,
    ]


class Overflowing(Machine):
    """What it gives are no numbers, as of a real model whose values overflow in fp16."""

    def outputs(self, inputs):
        return {"y": np.full(3, np.nan)}


class Drawing(Machine):
    """Gives random numbers: different each time, whatever is asked."""

    def __init__(self, noise, *ignored):
        super().__init__(*ignored)
        self._noise = noise
        self._random = np.random.default_rng(0)

    def outputs(self, inputs):
        found = super().outputs(inputs)["y"][0]
        return {"y": found + self._noise * self._random.standard_normal(1000)}


class Replayed(Drawing):
    """One that can be made to draw the same each time."""

    @contextmanager
    def same_draws(self):
        self._replays = True
        yield
        self._replays = False

    def outputs(self, inputs):
        if getattr(self, "_replays", False):
            self._random = np.random.default_rng(0)
        return super().outputs(inputs)


@pytest.mark.parametrize("noise", [0.3, 100.0])
def test_a_real_model_may_differ_much_from_run_to_run(noise):
    """As dropout that is left on makes it, or a mask that is drawn."""
    found = checked(Replayed(noise))
    assert (found.repeatable, found.inputs_matter, found.weights_matter) == (False, True, True)
    found.refuse("it")
    half = checked(Replayed(noise, "weights"))
    assert (half.inputs_matter, half.weights_matter) == (True, False)


@pytest.mark.parametrize("kind", [bool, np.complex64])
def test_outputs_may_be_of_any_kind(kind):
    class Other(Machine):
        def outputs(self, inputs):
            draw = np.random.default_rng(int(100 * inputs * self._weight))
            return {"y": (draw.standard_normal(100) + 1j * draw.standard_normal(100)).astype(kind)
                    if kind is not bool else draw.standard_normal(100) > 0}  # fmt: skip

    assert checked(Other()).ok


class Counting(Machine):
    runs = 0

    def outputs(self, inputs):
        self.runs += 1
        return super().outputs(inputs)


def test_what_timed_steps_left_to_the_last_bit_is_a_second_run():
    left = sketch({"y": np.full(3, 3.0)})
    machine, again, off = Counting(), Counting(), Counting(drifts=True)
    for one, kept in ((machine, left), (again, None), (off, left)):
        found = self_check(one, CASE, left=kept)
        assert found.repeatable is (one is not off)
    assert (machine.runs, again.runs) == (3, 4)
    assert off.runs == 4  # it differs: the second run is one


@pytest.mark.parametrize("seed", [0, 0x5EED, -1])
def test_other_inputs_are_of_another_seed_than_the_jobs_own(seed):
    machine, seeds = Machine(), []

    def prepare(case, seed=None):
        seeds.append(seed)
        return Machine.prepare(machine, case, seed)

    only = SimpleNamespace(prepare=prepare, outputs=machine.outputs)
    self_check(only, CASE, seed)
    drawn = [one for one in seeds if one is not None]
    assert drawn
    assert seed not in drawn


@pytest.mark.parametrize("name", WEIGHED)
def test_outputs_of_other_weights_are_never_verified(name):
    """What opens a file is not asked with other weights: that it is verified has to be enough."""
    spec = find(name)
    shapes = settle(spec, Shapes(2, steps=2 if spec.steps else None))

    def outputs(weights, inputs):
        arrays = make_inputs(spec, shapes, inputs)
        fed = {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in arrays.items()}
        with torch.no_grad():
            found = named_tensors(build(spec, seed=weights)(**fed))
        return {k: v.numpy() for k, v in found.items()}

    own, wrong = outputs(0, 0), outputs(1, 0)
    right, other = pick(own, draw=1), pick(outputs(0, 99), draw=1)
    for precision in TOLERANCES:
        assert agree(own, right, other, precision).ok
        held = agree(wrong, right, other, precision)
        assert not held.ok
        assert held.error > 0.9
