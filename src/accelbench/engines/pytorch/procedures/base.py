"""What a procedure is: the one thing that a step of a case does, and how it is split."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.protocols import Job
from accelbench.engines.pytorch.places import TorchPlace
from accelbench.engines.shared.local import Mark
from accelbench.models.denoising import TIMES, refuse_steps
from accelbench.models.inputs import named_tensors
from accelbench.models.short_steps import SHORT_PASSES

Inputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Opened:
    """A model on its device, as procedures are given it."""

    job: Job
    module: torch.nn.Module
    run: Callable[..., Any]  # the module, or what torch.compile made of it
    place: TorchPlace
    clock: Clock
    autocast: Callable[[], AbstractContextManager[Any]]  # the case's, or none
    rebuild: Callable[[], Mapping[str, torch.Tensor]]  # the initial weights once more, on the host


class Procedure(ABC):
    """One step of a case; made anew whenever a case is prepared."""

    #: What `split` marks, in order.
    phases: tuple[str, ...] = ("step",)

    def __init__(self, case: Case, opened: Opened) -> None:
        self._case = case
        self._opened = opened

    def settle(self, inputs: Inputs) -> None:  # noqa: B027 - most have nothing to find out
        """Find out, untimed, what the first step needs; leave nothing but that."""

    @contextmanager
    def around(self) -> Iterator[None]:
        with torch.inference_mode(), self._opened.autocast():
            yield

    @abstractmethod
    def step(self, inputs: Inputs) -> Any:
        """Start one step; it may return before the device is done."""

    def split(self, inputs: Inputs, mark: Mark) -> Any:
        """Make one step that marks the end of each of its phases."""
        result = self.step(inputs)
        mark("step")
        return result

    @abstractmethod
    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        """Return the named outputs of these inputs, for the evidence and for comparing.

        They depend on inputs and weights alone; what a step changes, this leaves.
        A short step stands for a long one, such as a whole request.
        """

    @abstractmethod
    def named(self, left: Any) -> Mapping[str, torch.Tensor]:
        """Return a step's result by the names of `outputs`; empty if it returned none."""

    def drain(self) -> Mapping[str, Any]:
        """Return what the steps since the last call noted, as fields of a Block."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        return {}


class Forward(Procedure):
    """The model, called once."""

    def step(self, inputs: Inputs) -> Any:
        return self._opened.run(**inputs)

    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        return named_tensors(self.step(inputs))

    def named(self, left: Any) -> Mapping[str, torch.Tensor]:
        return named_tensors(left)


#: Stable Diffusion's noise schedule, as its scheduler_config.json has it.
_SCHEDULE = {
    "num_train_timesteps": TIMES,
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "clip_sample": False,
    "set_alpha_to_one": False,
    "steps_offset": 1,
}


class Denoise(Forward):
    """One batch of images: noise taken away pass by pass, by DDIM, which draws nothing.

    The sample is the noise that is begun with; the scheduler's own times stand in place of the
    input `timestep`. There is no guidance: every pass looks at each image once, as distilled
    few-step models do. What the scheduler reckons with lies on the host and takes part as plain
    numbers; the times that the denoiser reads lie on the device from the beginning. So nothing
    in a step waits for the device.
    """

    # One phase: splitting passes from the scheduler's arithmetic would wait for the device twice a
    # pass, to tell apart two parts of which one is some multiplications of a small tensor.

    def __init__(self, case: Case, opened: Opened) -> None:
        from diffusers import DDIMScheduler

        super().__init__(case, opened)
        steps = case.shapes.steps or case.model.steps or 1
        refuse_steps(steps)
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


# -- what a step draws: seeded, given back, or done without

#: Of modules that are nothing but a dropout or a dropped path, torch's and torchvision's.
_PROBABILITY = "p"


def seed_all(seed: int) -> None:
    """Seed all that a step draws from: dropout, and what models mask by NumPy and Python."""
    torch.manual_seed(seed)  # of every device
    np.random.seed(seed % 2**32)
    random.seed(seed)


@contextmanager
def chances_kept(device: torch.device) -> Iterator[None]:
    """Have what is drawn within drawn again afterwards."""
    numbers, python = np.random.get_state(), random.getstate()
    own = [] if device.type == "cpu" else [device]
    try:
        with torch.random.fork_rng(devices=own, device_type=device.type if own else "cuda"):
            yield
    finally:
        np.random.set_state(numbers)
        random.setstate(python)


@contextmanager
def dropped_nothing(module: torch.nn.Module) -> Iterator[None]:
    """Give every dropout, dropped path and dropped layer of a model probability 0 meanwhile.

    Models keep these numbers in modules of torch, in attributes of their own and in configs,
    which some read at every step. All of them are called some kind of drop. One that a model's
    code has as a bare number is not reached.
    """
    kept: list[tuple[Any, str, float]] = []
    for owner in _owners(module):
        kept += [(owner, name, value) for name, value in vars(owner).items() if _drops(owner, name)]
    for owner, name, _ in kept:
        setattr(owner, name, 0.0)
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


def _owners(module: torch.nn.Module) -> list[Any]:
    modules = list(module.modules())
    configs = [c for part in modules if (c := getattr(part, "config", None)) is not None]
    # Diffusers' configs are frozen mappings, which nothing is read from after building.
    plain = {id(c): c for c in configs if hasattr(c, "__dict__") and not isinstance(c, Mapping)}
    return [*modules, *plain.values()]


def _drops(owner: Any, name: str) -> bool:
    value = vars(owner)[name]
    named = "drop" in name.lower()
    bare = name == _PROBABILITY and "drop" in type(owner).__name__.lower()
    return (named or bare) and isinstance(value, float) and 0 < value <= 1


@contextmanager
def buffers_kept(module: torch.nn.Module) -> Iterator[None]:
    """Give a module's buffers back the values that they had before."""
    kept = [(buffer, buffer.clone()) for buffer in module.buffers()]
    yield
    with torch.no_grad():
        for buffer, before in kept:
            buffer.copy_(before)
