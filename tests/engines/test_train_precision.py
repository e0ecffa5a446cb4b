"""Training in narrow precisions: autocast, scaled losses, narrow weights; and compiled."""

import numpy as np
import pytest
import torch
from training_sessions import case_of, chancy, losses, opened, training_facts

from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch.procedures import train


class TestPrecision:
    @pytest.mark.parametrize(
        ("precision", "autocast", "scaled"),
        [("fp32", None, False), ("bf16", "bfloat16", False), ("fp16", "float16", True)],
    )
    def test_weights_stay_whole_and_only_fp16_is_scaled(self, precision, autocast, scaled):
        case = case_of("vit-tiny", precision)
        with opened(case) as session:
            inputs = session.prepare(case)
            session.sample(inputs, 2, Timing.EACH)
            session.outputs(inputs)
            details = session.evidence().details
            assert (training_facts(session)["loss_scale"] is not None) == scaled
        assert details["weight_dtypes"] == ["float32"]
        assert details["autocast"] == autocast
        assert details["output_dtypes"] == [autocast or "float32"]

    def test_a_step_whose_scaled_gradients_overflow_is_left_out_and_the_scale_halved(self):
        case = case_of(chancy(), "fp16", batch=8)
        with opened(case) as session:
            inputs = session.prepare(case)
            before = [p.detach().clone() for p in session._module.parameters()]
            # The largest fp32 holds: any gradient of size 1 overflows.
            session._procedure._scale_from(3e38)
            session.sample(inputs, 1, Timing.EACH)
            after = list(session._module.parameters())
            assert all(torch.equal(one, two) for one, two in zip(before, after, strict=True))
            facts = training_facts(session)
        assert facts["loss_scale"] == pytest.approx(1.5e38)
        assert facts["skipped_steps"] == 1

    def test_the_scale_is_settled_before_the_first_step(self):
        """Gradients so steep that they overflow at the scale which torch begins with."""
        model = chancy(steep=True)
        case = case_of(model, "fp16", batch=8)
        with opened(case) as session:
            inputs = session.prepare(case)
            before = [p.detach().clone() for p in session._module.parameters()]
            session.sample(inputs, 1, Timing.EACH)
            after = list(session._module.parameters())
            facts = training_facts(session)
        assert facts["skipped_steps"] == 0
        assert 0 < facts["loss_scale"] < train.LARGEST_SCALE / train.SCALE_MARGIN
        assert not any(torch.equal(one, two) for one, two in zip(before, after, strict=True))

    def test_settling_leaves_nothing_but_the_scale(self, monkeypatch):
        """Neither random numbers nor running statistics nor gradients."""
        case = case_of(chancy(), "fp16", batch=8)
        with opened(case) as session:
            inputs = session.prepare(case)
            assert all(p.grad is None for p in session._module.parameters())
            buffers = {name: b.clone() for name, b in session._module.named_buffers()}
            settled = session.sample(inputs, 5, Timing.EACH).losses
        scale = train.LARGEST_SCALE / train.SCALE_MARGIN
        monkeypatch.setattr(train.Train, "settle", lambda self, inputs: self._scale_from(scale))
        with opened(case) as session:
            inputs = session.prepare(case)
            for name, buffer in session._module.named_buffers():
                assert torch.equal(buffer, buffers[name])
            assert session.sample(inputs, 5, Timing.EACH).losses == settled

    def test_a_loss_that_is_no_number_is_found_in_a_step_and_not_before(self):
        case = case_of(chancy(explode=True), "fp16")
        with opened(case) as session:
            inputs = session.prepare(case)
            assert training_facts(session)["loss_scale"] == train.LARGEST_SCALE
            assert not np.isfinite(session.sample(inputs, 1, Timing.EACH).losses[0])

    def test_pure_training_narrows_the_weights_and_scales_nothing(self):
        case = case_of("vit-tiny", "bf16", pure=True)
        with opened(case) as session:
            inputs = session.prepare(case)
            found = session.sample(inputs, 10, Timing.EACH).losses
            details = session.evidence().details
            assert training_facts(session)["loss_scale"] is None
        assert details["weight_dtypes"] == ["bfloat16"]
        assert details["autocast"] is None
        assert found[-1] < found[0]


def compile_seconds(part):
    from torch._dynamo import utils

    return float(sum(utils.compilation_time_metrics.get(part, ())))


@pytest.fixture
def compiled_anew():
    """What a worker's environment sees to: nothing compiled earlier, here or in Inductor's cache.

    From the cache the backward pass comes with the forward pass and is not compiled at all.
    """
    torch._dynamo.reset()
    with torch.compiler.config.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


@pytest.mark.full
@pytest.mark.usefixtures("compiled_anew")
def test_what_the_backward_pass_has_compiled_counts_as_compilation():
    """It is compiled when it is first called: it must not pass for a slow first step."""
    case = case_of("vit-tiny", compile=True)
    parts = ("_compile.compile_inner", "backward._backward_impl")
    with opened(case) as session:
        inputs = session.prepare(case)
        before = [compile_seconds(part) for part in parts]
        first = session.sample(inputs, 1, Timing.EACH)
        forward, backward = (compile_seconds(p) - b for p, b in zip(parts, before, strict=True))
        assert first.compilations == 1
        assert forward > 0
        assert backward > 0
        assert first.compile_ns == pytest.approx((forward + backward) * 1e9)
        found = [*first.losses, *session.sample(inputs, 2, Timing.EACH).losses]
        session.inspect(inputs)  # in evaluation mode, and not compiled for it
        again = session.sample(session.prepare(case), 3, Timing.PHASES)
    assert again.compilations == 0
    assert again.losses == pytest.approx(found)
    assert found == pytest.approx(losses(case_of("vit-tiny"), steps=3), rel=1e-4)
