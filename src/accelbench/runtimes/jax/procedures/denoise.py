"""One batch of images: noise taken away pass by pass, as the pytorch runtime's denoise says.

One pass and the scheduler's arithmetic after it are one program; a step calls it for
each of the scheduler's times. What it reckons with goes in as numbers, so the same
program serves every pass, and nothing waits for the device between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accelbench.core.case import Case
from accelbench.core.errors import UnsupportedError
from accelbench.runtimes.jax.lowering import Lowered
from accelbench.runtimes.jax.procedures.base import Example, Inputs, Opened
from accelbench.runtimes.jax.procedures.forward import lowered
from accelbench.runtimes.jax.programs import Program
from accelbench.runtimes.pytorch.procedures.denoise import _SCHEDULE, _TIMES, SHORT


class Denoise:
    """Every pass of a batch of images. DDIM: no noise is added, so nothing is drawn."""

    phases: tuple[str, ...] = ("step",)

    def __init__(self, case: Case, opened: Opened, example: Example) -> None:
        steps = case.shapes.steps or case.model.steps or 1
        if steps > _TIMES:
            raise UnsupportedError(
                "too_many_steps",
                f"There are {_TIMES} denoising steps at most, not {steps}.",
                f"Use {_TIMES} or fewer.",
            )
        self._opened = opened
        self._example = example
        device = opened.model.device
        self._times = [
            tuple(
                jax.device_put(np.asarray(n, t), device) for n, t in zip(one, _KINDS, strict=True)
            )
            for one in _times(steps)
        ]

    def _made(self) -> tuple[Program, Lowered]:
        model = self._opened.model

        def arguments(low: Lowered) -> tuple[Any, ...]:
            inputs = self._example.arrays(model.device)
            return model.weights, low.buffers, inputs, inputs["sample"], *self._times[0]

        return self._opened.programs.get(
            ("denoise", self._example.key),
            lambda: lowered(self._opened, self._example),
            _pass,
            arguments,
        )

    def compile(self) -> Program:
        return self._made()[0]

    def step(self, inputs: Inputs) -> jax.Array:
        return self._denoised(inputs, len(self._times))

    def _denoised(self, inputs: Inputs, passes: int) -> jax.Array:
        """What is left of the noise after the first passes."""
        program, low = self._made()
        weights, sample = self._opened.model.weights, inputs["sample"]
        for time in self._times[:passes]:
            sample = program.run(weights, low.buffers, inputs, sample, *time)
        return sample

    def outputs(self, inputs: Inputs) -> dict[str, jax.Array]:
        return {"sample": self._denoised(inputs, SHORT)}

    def look(self, inputs: Inputs) -> dict[str, jax.Array]:
        return self.outputs(inputs)

    def drain(self) -> Mapping[str, Any]:
        return {}


#: Of a time and of the shares of the image in what is there then, and afterwards.
_KINDS = (np.int32, np.float32, np.float32)


def _times(steps: int) -> list[tuple[int, float, float]]:
    """Diffusers' own schedule: each time with its share of the image, and the next time's."""
    from diffusers import DDIMScheduler

    scheduler = DDIMScheduler(**_SCHEDULE)
    scheduler.set_timesteps(steps)
    shares, last = scheduler.alphas_cumprod, float(scheduler.final_alpha_cumprod)
    found = []
    for time in scheduler.timesteps.tolist():
        after = time - _TIMES // steps
        found.append((time, float(shares[time]), float(shares[after]) if after >= 0 else last))
    return found


def _pass(low: Lowered) -> Callable[..., Any]:
    """One look at the noise, and DDIM's step (Song et al. 2020, formula 12 with sigma 0)."""

    def run(
        weights: Any, buffers: Any, inputs: Any, sample: Any, time: Any, share: Any, after: Any
    ) -> Any:
        times = jnp.broadcast_to(time, inputs["timestep"].shape)
        fed = {**inputs, "sample": sample, "timestep": times.astype(inputs["timestep"].dtype)}
        noise = low(weights, buffers, fed)[0]["sample"].astype(jnp.float32)
        image = (sample - jnp.sqrt(1 - share) * noise) / jnp.sqrt(share)
        found = jnp.sqrt(after) * image + jnp.sqrt(1 - after) * noise
        return found.astype(sample.dtype)

    return run
