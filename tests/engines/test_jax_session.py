"""Models opened in JAX against the same ones in PyTorch: outputs, losses, evidence."""

import contextlib
import dataclasses
import json

import numpy as np
import pytest
import torch
from made_up import THREE_CLASSES, made_up
from torch import nn

from refusals import refusal

pytest.importorskip("jax")

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import OutOfMemoryError, UnsupportedError
from accelbench.core.model import InputSpec
from accelbench.core.protocols import Absent, Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.jax import JaxRuntime
from accelbench.engines.jax.procedures import Model
from accelbench.engines.jax.session import case_errors
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.models.find import find
from accelbench.models.inputs import settle
from accelbench.run.verify.self_check import self_check

CPU = Device("cpu", "a processor")
RUNTIMES = {"jax": JaxRuntime, "pytorch": PytorchRuntime}


class Learning(nn.Module):
    """What training has to do with: statistics, dropout, a weight that learns nothing."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 8, padding_idx=0)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.3)
        self.fixed = nn.Parameter(torch.ones(8), requires_grad=False)
        self.head = nn.Linear(8, 3)

    def forward(self, ids):
        hidden = self.norm(self.embedding(ids).mean(1)) * self.fixed
        return {"logits": self.head(self.drop(hidden))}


class Plain(nn.Module):
    """A dropout of nothing, as many configs have it."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.0)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        q = x[:, None]
        seen = nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.0)
        return {"logits": self.head(self.drop(seen[:, 0]))}


class Sized(nn.Module):
    """Cuts by numbers that it is fed."""

    def forward(self, x, sizes):
        height, width = (int(n) for n in sizes[0])
        return x[:, :height, :width] * 2


class Noisy(dict[str, torch.Tensor]):
    """What a denoiser gives: by attribute, as diffusers has it."""

    @property
    def sample(self):
        return self["sample"]


class Denoising(nn.Module):
    """Looks at the time as well."""

    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, sample, timestep):
        seen = self.look(sample) * (1 + timestep[:, None, None, None] / 1000)
        return Noisy(sample=seen.tanh())


LEARNING = made_up(Learning, InputSpec("ids", ("batch", 5), "int64", 0, 9), training=THREE_CLASSES)
SIZED = made_up(
    Sized, InputSpec("x", ("batch", 5, 5)), InputSpec("sizes", ("batch", 2), "int64", row=(3, 4))
)
PLAIN = made_up(Plain, InputSpec("x", ("batch", 4)), training=THREE_CLASSES)
DENOISING = made_up(
    Denoising,
    InputSpec("sample", ("batch", 2, 4, 4)),
    InputSpec("timestep", ("batch",), "int64", 0, 1000),
    procedure="denoise",
    steps=3,
)


def case(model, runtime="jax", precision="fp32", mode=Mode.INFERENCE, batch=2, **options):
    spec = find(model) if isinstance(model, str) else model
    places = any(one.lead for one in spec.inputs)
    shapes = settle(spec, Shapes(batch, None if places or spec.sequence is None else 16))
    return Case(spec, Target(runtime, "cpu"), precision, shapes, mode, options=options)


@contextlib.contextmanager
def opened(asked, seed=0):
    session = RUNTIMES[asked.target.runtime]().open(
        Job(asked, CPU, JobSettings(seed=seed, threads=1))
    )
    try:
        yield session
    finally:
        session.close()


def with_batch(asked, batch):
    return dataclasses.replace(asked, shapes=dataclasses.replace(asked.shapes, batch=batch))


@pytest.fixture(scope="module")
def one():
    """One session for all that leaves it as it was."""
    asked = case(LEARNING)
    with opened(asked) as session:
        yield session, asked


class TestInference:
    @pytest.mark.parametrize("model", ["bert-tiny", "resnet-tiny"])
    def test_weights_and_outputs_are_pytorch_s(self, model):
        found = []
        for runtime in RUNTIMES:
            asked = case(model, runtime)
            with opened(asked, seed=3) as session:
                found.append((session.weights_digest, session.outputs(session.prepare(asked))))
        (one_digest, one), (other_digest, other) = found
        assert one_digest == other_digest
        assert one.keys() == other.keys()
        for name, values in one.items():
            assert values.dtype == np.float32
            np.testing.assert_allclose(values, other[name], rtol=1e-4, atol=1e-5)

    def test_what_the_model_fixes_is_part_of_the_graph(self):
        """As LLaVA-Next reads the sizes of its images: as numbers, which settle other shapes."""
        found = []
        for runtime in RUNTIMES:
            asked = case(SIZED, runtime)
            with opened(asked) as session:
                found.append(session.outputs(session.prepare(asked)))
        for name, values in found[0].items():
            np.testing.assert_allclose(values, found[1][name], rtol=1e-3, atol=1e-4)

    def test_compiling_ahead_leaves_nothing_for_the_steps(self, one):
        session, asked = one
        asked = with_batch(asked, 3)
        inputs = session.prepare(asked)
        ahead = session.compile(inputs)
        assert ahead is not None
        assert ahead > 0
        for timing in (Timing.EACH, Timing.WHOLE):
            block = session.sample(inputs, 2, timing)
            assert (block.compilations, block.compile_ns) == (0, 0)
            times = block.phase_ns["step"]
            assert len(times) == (2 if timing is Timing.EACH else 1)
            assert all(ns > 0 for ns in times)
        parts = session.evidence().details["compiled"]
        assert set(parts) == {"export_ms", "trace_ms", "lower_ms", "compile_ms"}
        named = sum(parts[f"{part}_ms"] for part in ("trace", "lower", "compile"))
        assert named == pytest.approx(ahead / 1e6)
        # The same shapes again are the same program.
        inputs = session.prepare(asked)
        assert session.compile(inputs) == 0

    def test_a_compilation_nobody_asked_for_is_counted_in_its_block(self, one):
        session, asked = one
        inputs = session.prepare(with_batch(asked, 4))
        first = session.sample(inputs, 1, Timing.EACH)
        assert first.compilations == 1
        assert 0 < first.compile_ns < sum(first.phase_ns["step"])
        second = session.sample(inputs, 1, Timing.EACH)
        assert (second.compilations, second.compile_ns) == (0, 0)

    def test_evidence_is_read_back_from_the_arrays(self, one):
        session, asked = one
        inputs = session.prepare(asked)
        session.compile(inputs)
        session.inspect(inputs)
        evidence = session.evidence()
        assert evidence.devices == ("cpu:0",)
        assert evidence.requested == "cpu:0"
        assert not evidence.fell_back
        assert evidence.engine.startswith("jax ")
        details = evidence.details
        assert details["weight_dtypes"] == details["output_dtypes"] == ["float32"]
        assert details["outputs_finite"] is True
        assert details["computed_in"] == {"float32": 1.0}
        assert details["compiled_flops"] > 100
        assert details["threads"] >= 1
        json.dumps(dict(details), allow_nan=False)
        assert session.device_memory() is None

    def test_it_holds_against_itself(self, one):
        session, asked = one
        checked = self_check(session, asked)
        assert checked.verdict == "ok"
        assert checked.inputs_matter
        assert checked.weights_matter
        before = session.outputs(session.prepare(asked))
        with session.other_weights():
            pass
        after = session.outputs(session.prepare(asked))
        assert all(np.array_equal(before[name], after[name]) for name in before)

    def test_a_narrow_type_that_nothing_is_multiplied_in_is_refused(self):
        """XLA's CPU back end converts to fp32 and back around every product."""
        asked = case(LEARNING, precision="bf16")
        with opened(asked) as session:
            inputs = session.prepare(asked)
            with pytest.raises(UnsupportedError) as caught:
                session.compile(inputs)
        assert caught.value.reason == "precision_upcast"
        assert "0% in bf16 and 100% in float32" in caught.value.message
        assert caught.value.advice


class TestDenoising:
    def test_images_are_pytorch_s(self):
        found = []
        for runtime in RUNTIMES:
            asked = case(DENOISING, runtime)
            with opened(asked) as session:
                inputs = session.prepare(asked)
                session.compile(inputs)
                block = session.sample(inputs, 1, Timing.EACH)
                found.append(session.outputs(inputs)["sample"])
        assert block.compilations == 0
        np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4)


def losses(asked, steps):
    with opened(asked) as session:
        with session.without_dropout():
            inputs = session.prepare(asked)
            block = session.sample(inputs, steps, Timing.EACH)
        assert len(block.losses) == steps
        return block.losses


class TestTraining:
    @pytest.mark.parametrize(
        ("model", "optimizer"), [("vit-tiny", "adamw"), ("resnet-tiny", "sgd")]
    )
    def test_losses_are_pytorch_s(self, model, optimizer):
        mine, theirs = (
            losses(case(model, runtime, mode=Mode.TRAINING, batch=4, optimizer=optimizer), 4)
            for runtime in RUNTIMES
        )
        assert mine[-1] < mine[0]
        assert mine == pytest.approx(theirs, rel=2e-4)

    def test_a_session_trains_from_the_start_each_time_it_is_prepared(self):
        """Dropout is drawn anew each step, and the same again from a fresh start."""
        asked = case(LEARNING, mode=Mode.TRAINING, batch=8)
        with opened(asked) as session:
            inputs = session.prepare(asked)
            assert session.phases == ("step",)
            assert session.compile(inputs)
            before = session.outputs(inputs)
            first = session.sample(inputs, 3, Timing.EACH)
            trained = session.outputs(inputs)
            assert any(not np.array_equal(before[name], trained[name]) for name in before)
            session.inspect(inputs)
            evidence = session.evidence()
            # A step that was looked at is nobody's loss; the others are of a block each.
            assert (len(first.losses), len(session.sample(inputs, 1, Timing.EACH).losses)) == (3, 1)
            inputs = session.prepare(asked)
            assert session.compile(inputs) == 0
            fresh = session.outputs(inputs)
            again = session.sample(inputs, 3, Timing.EACH)
        assert all(np.array_equal(before[name], fresh[name]) for name in before)
        assert list(first.losses) == list(again.losses)
        told = evidence.details["training"]
        assert (told["loss"], told["optimizer"]) == ("classification", "AdamW")
        assert told["one_program"]  # its parts have no times of their own
        assert told["trained_parameters"] == 9 * 8 + 2 * 8 + 8 * 3 + 3
        assert evidence.details["outputs_finite"] is True

    @pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
    def test_weights_and_statistics_are_pytorch_s_after_some_steps(self, optimizer):
        """As the evaluation sees them; and what is not to learn has not learned."""
        found = []
        for runtime in RUNTIMES:
            asked = case(LEARNING, runtime, mode=Mode.TRAINING, batch=8, optimizer=optimizer)
            with opened(asked) as session, session.without_dropout():
                inputs = session.prepare(asked)
                block = session.sample(inputs, 5, Timing.EACH)
                found.append((session.outputs(inputs)["logits"], block.losses))
        (mine, losses), (theirs, right) = found
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
        assert losses == pytest.approx(right, rel=1e-5)

    def test_dropout_is_drawn_anew_at_each_step(self):
        """At a rate at which nothing is learned: what is left is chance."""
        asked = case(LEARNING, mode=Mode.TRAINING, batch=8, optimizer="sgd")
        with opened(asked) as session:
            inputs = session.prepare(asked)
            session._prepared._rate = 0.0
            found = session.sample(inputs, 4, Timing.EACH).losses
            with session.without_dropout():
                inputs = session.prepare(asked)
                session._prepared._rate = 0.0
                still = session.sample(inputs, 4, Timing.EACH).losses
            assert session._programs.count == 2
        assert len(set(found)) == 4
        assert len(set(still)) == 1

    def test_what_draws_nothing_is_not_compiled_again_without_dropout(self):
        asked = case(PLAIN, mode=Mode.TRAINING)
        with opened(asked) as session:
            assert session.compile(session.prepare(asked))
            with session.without_dropout():
                assert session.compile(session.prepare(asked)) == 0


class TestErrors:
    def test_errors_of_the_case(self):
        asked = case("bert-tiny")
        asked = dataclasses.replace(asked, target=Target("jax", "tpu"))
        for device in (Device("tpu", "a chip"), Device("cpu", "a processor", ordinal=63)):
            with refusal("engine_sees_no_device"):
                JaxRuntime().open(Job(asked, device))

        for error in (
            RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8000000000000 bytes."),
            RuntimeError("RESOURCE_EXHAUSTED: Failed to allocate request"),
            MemoryError(),
        ):
            with pytest.raises(OutOfMemoryError), case_errors():
                raise error
        with pytest.raises(RuntimeError, match="something else"), case_errors():
            raise RuntimeError("something else")

        import jax.numpy as jnp

        with pytest.raises(OutOfMemoryError), case_errors():
            jnp.zeros((2**22, 2**22)).block_until_ready()
        with pytest.raises(UnsupportedError) as caught, case_errors():
            raise NotImplementedError("a pool that rounds up")
        assert caught.value.reason == "operator"
        assert "a pool that rounds up" in caught.value.message
        with opened(case(LEARNING)) as session:
            assert session.phases == ("step",)
            with pytest.raises(ValueError, match="prepared"):
                session.sample({}, 1, Timing.EACH)


def test_the_engine_itself_says_what_it_sees():
    found = {one.hardware: one for one in JaxRuntime().probe()}
    assert set(found) == set(JaxRuntime.info.hardware)
    assert isinstance(found["cpu"], Device)
    absent = [one for one in found.values() if isinstance(one, Absent)]
    assert all(one.reason and one.remedy for one in absent)


def test_weights_that_cannot_be_doubled_are_what_they_were():
    model = Model.__new__(Model)
    import jax.numpy as jnp

    model.weights = {
        "mask": jnp.asarray([-3.4e38, 1.0], jnp.float32),
        "ids": jnp.asarray([1, 2], jnp.int32),
        "plain": jnp.asarray([0.5, -2.0], jnp.float32),
    }
    before = {name: np.asarray(one) for name, one in model.weights.items()}
    kept = model.double()
    assert model.weights["plain"].tolist() == [1.0, -4.0]
    model.halve(kept)
    assert all(np.array_equal(before[name], one) for name, one in model.weights.items())
