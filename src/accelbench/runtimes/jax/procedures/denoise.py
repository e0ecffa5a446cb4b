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

from accelbench.catalog.denoising import Schedule
from accelbench.catalog.short_steps import SHORT_PASSES
from accelbench.core.case import Case
from accelbench.runtimes.jax.lowering import Lowered
from accelbench.runtimes.jax.procedures.base import Example, Inputs, Opened
from accelbench.runtimes.jax.procedures.forward import lowered
from accelbench.runtimes.jax.programs import Program


class Denoise:
    """Every pass of a batch of images. DDIM: no noise is added, so nothing is drawn."""

    phases: tuple[str, ...] = ("step",)

    def __init__(self, case: Case, opened: Opened, example: Example) -> None:
        schedule = Schedule(case.shapes.steps or case.model.steps or 1)
        self._opened = opened
        self._example = example
        device = opened.model.layout.whole
        self._times = [tuple(jax.device_put(n, device) for n in step) for step in _times(schedule)]

    def _made(self) -> tuple[Program, Lowered]:
        model = self._opened.model

        def arguments(low: Lowered) -> tuple[Any, ...]:
            inputs = self._example.arrays(model.layout)
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
        program, low = self._made()
        weights, sample = self._opened.model.weights, inputs["sample"]
        for time in self._times[:passes]:
            sample = program.run(weights, low.buffers, inputs, sample, *time)
        return sample

    def outputs(self, inputs: Inputs) -> dict[str, jax.Array]:
        return {"sample": self._denoised(inputs, SHORT_PASSES)}

    def look(self, inputs: Inputs) -> dict[str, jax.Array]:
        return self.outputs(inputs)

    def named(self, left: jax.Array) -> Mapping[str, jax.Array]:
        return {"sample": left}

    def drain(self) -> Mapping[str, Any]:
        return {}


def _times(schedule: Schedule) -> list[tuple[Any, Any, Any]]:
    """Each time, and how much of the sample and of the noise its step leaves.

    DDIM's step is a sum of the two, each times a number: what it makes of a bare one.
    """
    unit, none = np.ones(1, np.float32), np.zeros(1, np.float32)
    return [
        (np.int32(time), schedule.step(none, time, unit)[0], schedule.step(unit, time, none)[0])
        for time in schedule.times
    ]


def _pass(low: Lowered) -> Callable[..., Any]:
    """One look at the noise, and the scheduler's step after it."""

    def run(
        weights: Any, buffers: Any, inputs: Any, sample: Any, time: Any, keep: Any, take: Any
    ) -> Any:
        times = jnp.broadcast_to(time, inputs["timestep"].shape)
        fed = {**inputs, "sample": sample, "timestep": times.astype(inputs["timestep"].dtype)}
        noise = low(weights, buffers, fed)[0]["sample"]
        return (keep * sample + take * noise.astype(jnp.float32)).astype(sample.dtype)

    return run
