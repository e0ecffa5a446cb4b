"""The denoising arithmetic for arrays is diffusers' own scheduler."""

import numpy as np
import pytest
import torch
from diffusers import DDIMScheduler

from accelbench.core.errors import UnsupportedError
from accelbench.models.denoising import TIMES, Schedule, denoise


def scheduler(steps):
    made = DDIMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        set_alpha_to_one=False,
        steps_offset=1,
    )
    made.set_timesteps(steps)
    return made


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 20, 50, 999, 1000])
def test_its_times_are_diffusers(steps):
    assert Schedule(steps).times == scheduler(steps).timesteps.tolist()


@pytest.mark.parametrize("steps", [1, 4, 20, 50])
def test_every_step_is_diffusers_to_a_millionth(steps):
    draw = np.random.default_rng(steps)
    theirs, ours = scheduler(steps), Schedule(steps)
    sample = draw.standard_normal((2, 4, 8, 8)).astype(np.float32)
    right = torch.from_numpy(sample.copy())
    for time in ours.times:
        noise = draw.standard_normal(sample.shape).astype(np.float32)
        right = theirs.step(torch.from_numpy(noise), time, right).prev_sample
        sample = ours.step(noise, time, sample)
        assert sample.dtype == np.float32
        scale = float(right.abs().max())
        np.testing.assert_allclose(sample, right.numpy(), rtol=1e-6, atol=1e-6 * scale)


def test_a_denoiser_is_asked_for_every_item_at_each_time():
    asked = []

    def look(sample, times):
        asked.append((sample.shape, times.tolist(), times.dtype))
        return np.zeros_like(sample)

    start = np.ones((3, 1, 2, 2), np.float32)
    found = denoise(look, start, Schedule(4), passes=2)
    assert [times for _, times, _ in asked] == [[751] * 3, [501] * 3]
    assert all(dtype == np.int64 for _, _, dtype in asked)
    # Without noise a step only scales, and more with each.
    assert np.ptp(found) == 0
    assert found.flat[0] > 1


def test_more_steps_than_times_are_refused():
    with pytest.raises(UnsupportedError) as raised:
        Schedule(TIMES + 1)
    assert raised.value.advice
