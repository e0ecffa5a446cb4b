"""Denoising: as many passes as asked, at the scheduler's times, by DDIM's formula."""

import dataclasses

import numpy as np
import pytest
import torch
import torch._dynamo.testing

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.pytorch.procedures.base import Denoise
from accelbench.models.find import find
from accelbench.models.inputs import settle
from refusals import refusal

CPU = Device("cpu", "a processor")
SPEC = find("unet-tiny")


def case_of(steps=None, precision="fp32", batch=2):
    shapes = settle(SPEC, Shapes(batch, steps=steps))
    return Case(SPEC, Target("pytorch", "cpu"), precision, shapes)


@pytest.fixture(scope="module")
def session():
    """One for all: each test prepares the case that it asks about."""
    opened = PytorchRuntime().open(Job(case_of(), CPU, JobSettings(threads=1)))
    yield opened
    opened.close()


@pytest.fixture
def passes(session):
    """What every pass of the denoiser was fed."""
    fed = []

    def note(_module, _args, inputs):
        fed.append(inputs)

    hook = session._module.register_forward_pre_hook(note, with_kwargs=True)
    yield fed
    hook.remove()


@pytest.mark.parametrize("steps", [1, 3, None])
def test_a_step_makes_as_many_passes_as_asked(session, passes, steps):
    case = case_of(steps)
    session.sample(session.prepare(case), 2, Timing.EACH)
    assert len(passes) == 2 * (steps or 4)


def test_one_phase_with_the_schedulers_times(session, passes):
    inputs = session.prepare(case_of(4))
    session.sample(inputs, 1, Timing.EACH)
    assert [fed["timestep"].tolist() for fed in passes] == [[t] * 2 for t in (751, 501, 251, 1)]
    assert all(fed["encoder_hidden_states"] is inputs["encoder_hidden_states"] for fed in passes)
    assert torch.equal(passes[0]["sample"], inputs["sample"])
    assert not torch.equal(passes[1]["sample"], inputs["sample"])

    inputs = session.prepare(case_of(1))
    assert session.phases == ("step",)
    assert session.sample(inputs, 1, Timing.EACH).token_ns == ()
    with refusal("too_many_steps"):
        session.prepare(case_of(1001))


def test_what_is_left_of_the_noise_follows_the_papers_formula(session):
    """Song et al. 2020, formula 12 without added noise, reckoned here in double precision."""
    inputs = session.prepare(case_of(4))
    found = session.outputs(inputs)["sample"]
    betas = np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2
    kept = np.cumprod(1 - betas)
    sample = inputs["sample"].numpy().astype(np.float64)
    for time, before in ((751, 501), (501, 251)):
        with torch.no_grad():
            noise = session._module(
                sample=torch.from_numpy(sample).float(),
                timestep=torch.full((2,), time),
                encoder_hidden_states=inputs["encoder_hidden_states"],
            ).sample.numpy()
        image = (sample - (1 - kept[time]) ** 0.5 * noise) / kept[time] ** 0.5
        sample = kept[before] ** 0.5 * image + (1 - kept[before]) ** 0.5 * noise
    assert np.allclose(found, sample, atol=1e-4)


def test_a_compiled_denoiser_is_compiled_once(session):
    counted = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(session._module, dynamic=False, backend=counted)
    inputs = session.prepare(case_of(4))
    procedure = Denoise(case_of(4), dataclasses.replace(session._opened, run=compiled))
    with procedure.around():
        procedure.step(inputs)
    assert counted.frame_count == 1


@pytest.mark.parametrize("precision", ["bf16", "fp16", "amp-bf16"])
def test_other_precisions_come_close(session, precision):
    case = case_of(2)
    whole = session.outputs(session.prepare(case))["sample"]
    narrow = PytorchRuntime().open(
        Job(dataclasses.replace(case, precision=precision), CPU, JobSettings(threads=1))
    )
    found = narrow.outputs(narrow.prepare(dataclasses.replace(case, precision=precision)))
    narrow.close()
    assert np.abs(found["sample"] - whole).max() < 0.03 * np.abs(whole).max()
