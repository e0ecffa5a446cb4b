"""What a procedure is: the one thing that a step of a case does, and how it is split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch

from accelbench.core.clock import Clock
from accelbench.core.protocols import Job
from accelbench.runtimes.pytorch.places import TorchPlace
from accelbench.runtimes.shared.local import Mark

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


class Procedure(Protocol):
    """One step of a case; made anew whenever a case is prepared."""

    #: What `split` marks, in order.
    phases: tuple[str, ...]

    def around(self) -> AbstractContextManager[Any]:
        """Entered once around a block: no-gradient mode, autocast."""

    def step(self, inputs: Inputs) -> Any:
        """Start one step; it may return before the device is done."""

    def split(self, inputs: Inputs, mark: Mark) -> Any:
        """One step that marks the end of each of its phases."""

    def outputs(self, inputs: Inputs) -> Mapping[str, torch.Tensor]:
        """Named outputs of these inputs, for the evidence and for comparing.

        They depend on inputs and weights alone; what a step changes, this leaves.
        Where a step is long (a whole request), a short one stands for it.
        """

    def named(self, left: Any) -> Mapping[str, torch.Tensor]:
        """What a step returned, by the names that `outputs` has; empty where it returned none."""

    def drain(self) -> Mapping[str, Any]:
        """What the steps since the last call noted beside their times, as fields of a Block."""


@runtime_checkable
class Settling(Protocol):
    """A procedure with something to find out, untimed, before its first step."""

    def settle(self, inputs: Inputs) -> None:
        """Asked once, with the inputs it will be stepped with; leaves nothing but what it found."""


@runtime_checkable
class Telling(Protocol):
    """A procedure that has something to say beside its figures."""

    def facts(self) -> Mapping[str, Any]:
        """For the evidence, as JSON holds it."""
