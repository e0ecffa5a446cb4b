"""One forward pass.

One batch of images: noise taken away pass by pass.

A step is `Shapes.steps` passes of the denoiser with a scheduler's arithmetic
between them. The inputs are those of one pass: the sample is the noise that is
begun with, and the scheduler's own times stand in place of the input
`timestep`, which a forward pass and training draw. There is no guidance: every
pass looks at each image once, as distilled few-step models do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from accelbench.catalog.inputs import named_tensors
from accelbench.catalog.short_steps import SHORT_PASSES
from accelbench.core.case import Case
from accelbench.core.errors import UnsupportedError
from accelbench.runtimes.pytorch.procedures.base import Inputs, Opened
from accelbench.runtimes.shared.local import Mark


class Forward:
    """The model, called once."""

    phases: tuple[str, ...] = ("step",)

    def __init__(self, case: Case, opened: Opened) -> None:
        self._case = case
        self._opened = opened

    @contextmanager
    def around(self) -> Iterator[None]:
        with torch.inference_mode(), self._opened.autocast():
            yield

    def step(self, inputs: Inputs) -> Any:
        return self._opened.run(**inputs)

    def split(self, inputs: Inputs, mark: Mark) -> Any:
        result = self.step(inputs)
        mark("step")
        return result

    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        return named_tensors(self.step(inputs))

    def named(self, left: Any) -> Mapping[str, torch.Tensor]:
        return named_tensors(left)

    def drain(self) -> Mapping[str, Any]:
        return {}


#: How finely Stable Diffusion's noise schedule is cut, and so the most steps there can be.
_TIMES = 1000

#: That schedule, as its scheduler_config.json has it.
_SCHEDULE = {
    "num_train_timesteps": _TIMES,
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "clip_sample": False,
    "set_alpha_to_one": False,
    "steps_offset": 1,
}


class Denoise(Forward):
    """Every pass of a batch of images. DDIM: no noise is added, so nothing is drawn.

    What the scheduler reckons with lies on the host and takes part as plain
    numbers; the times that the denoiser reads lie on the device from the
    beginning. So nothing in a step waits for the device.
    """

    # One phase: splitting passes from the scheduler's arithmetic would wait for the device twice a
    # pass, to tell apart two parts of which one is some multiplications of a small tensor.

    def __init__(self, case: Case, opened: Opened) -> None:
        from diffusers import DDIMScheduler

        super().__init__(case, opened)
        steps = case.shapes.steps or case.model.steps or 1
        if steps > _TIMES:
            raise UnsupportedError(
                "too_many_steps",
                f"There are {_TIMES} denoising steps at most, not {steps}.",
                f"Use {_TIMES} or fewer.",
            )
        self._scheduler = DDIMScheduler(**_SCHEDULE)
        self._scheduler.set_timesteps(steps)
        on_host = self._scheduler.timesteps
        on_device = on_host.to(opened.place.device)
        self._times = [(int(host), on_device[i]) for i, host in enumerate(on_host)]

    def step(self, inputs: Inputs) -> torch.Tensor:
        return self._denoised(inputs, len(self._times))

    def _denoised(self, inputs: Inputs, passes: int) -> torch.Tensor:
        # A tensor of inference mode, as every later one is: torch.compile takes others for
        # another kind, and would compile the whole denoiser twice.
        sample = inputs["sample"].clone()
        batch = sample.shape[0]
        rest = {k: v for k, v in inputs.items() if k not in ("sample", "timestep")}
        for time, on_device in self._times[:passes]:
            output = self._opened.run(sample=sample, timestep=on_device.expand(batch), **rest)
            sample = self._scheduler.step(output.sample, time, sample, return_dict=False)[0]
        return sample

    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        return {"sample": self._denoised(inputs, SHORT_PASSES)}

    def named(self, left: torch.Tensor) -> Mapping[str, torch.Tensor]:
        return {"sample": left}
