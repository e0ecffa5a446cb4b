"""DDIM's arithmetic between two passes of a denoiser, for engines that are fed with arrays.

The schedule is that of diffusers, which the engine pytorch uses; a test compares both. No noise is
added, so nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from accelbench.core.errors import UnsupportedError

Array = npt.NDArray[Any]

#: How finely Stable Diffusion's noise schedule is cut, and so the most steps there can be.
TIMES = 1000
_FIRST_BETA, _LAST_BETA = 0.00085, 0.012
_OFFSET = 1


def refuse_steps(steps: int) -> None:
    """Raise UnsupportedError if a schedule does not have so many steps."""
    if steps > TIMES:
        raise UnsupportedError(
            "too_many_steps",
            f"There are {TIMES} denoising steps at most, not {steps}.",
            f"Use {TIMES} or fewer.",
        )


class Schedule:
    """The times of a denoiser's passes, and the sample after each."""

    def __init__(self, steps: int) -> None:
        refuse_steps(steps)
        betas = np.linspace(_FIRST_BETA**0.5, _LAST_BETA**0.5, TIMES, dtype=np.float32) ** 2
        self._kept = np.cumprod(1.0 - betas, dtype=np.float32)  # of the image, at each time
        self._apart = TIMES // steps
        self.times = [int(i) * self._apart + _OFFSET for i in reversed(range(steps))]

    def step(self, noise: Array, time: int, sample: Array) -> Array:
        """Return the sample a step earlier, given the noise that the denoiser predicts."""
        before = time - self._apart
        now = self._kept[time]
        then = self._kept[before] if before >= 0 else self._kept[0]
        image = (sample - np.sqrt(1 - now) * noise) / np.sqrt(now)
        prev_sample: Array = np.sqrt(then) * image + np.sqrt(1 - then) * noise
        return prev_sample.astype(sample.dtype, copy=False)

    def factors(self, passes: int | None = None) -> list[tuple[int, float, float]]:
        """Return, per pass, its time and the factors of sample and noise.

        A step is linear, so that engines can do its arithmetic themselves.
        """
        unit, none = np.ones(()), np.zeros(())
        return [
            (time, float(self.step(none, time, unit)), float(self.step(unit, time, none)))
            for time in self.times[:passes]
        ]


def denoise(
    look: Callable[[Array, Array], Array], sample: Array, schedule: Schedule, passes: int
) -> Array:
    """Return the sample after the first passes of a schedule, beginning with noise."""
    batch = sample.shape[0]
    for time in schedule.times[:passes]:
        noise = look(sample, np.full((batch,), time, np.int64))
        sample = schedule.step(noise, time, sample)
    return sample
