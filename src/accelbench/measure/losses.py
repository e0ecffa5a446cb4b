"""Losses of a training case, of every step; a loss that is not finite ends it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block

#: Fewest equal losses that cannot be a coincidence.
_TELLING = 3

#: A loss that changed with each of the first 10 steps is suspicious if it then stayed constant in
#: more than half of at least 20 further steps. It may stay constant once it has fallen to a
#: hundredth; a loss that converged has changed for thousands of steps.
_MOVING, _STANDING, _MOST_STILL, LEARNED = 10, 20, 0.5, 0.01


class LossLog:
    """Recorder of the losses of every block."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def record(self, block: Block) -> None:
        """Record the losses of a block; raise CaseError at the first one that is not finite."""
        before = len(self.losses)
        self.losses += block.losses
        for i, loss in enumerate(block.losses, before + 1):
            if not isinstance(loss, (int, float)) or not math.isfinite(loss):
                raise CaseError(
                    "loss_not_finite",
                    f"the loss of training step {i} is {loss}",
                    "Try bf16 or fp32: fp16 has a narrower range.",
                )

    def refuse_constant(self) -> None:
        """Raise CaseError if the losses show that later steps no longer train.

        Only the first ten steps are verified. A step that trains changes the weights, and so at
        least the last digits of the loss.
        """
        first, last = self.losses[:_MOVING], self.losses[_MOVING - 1 :]
        moved = len(first) == _MOVING and all(a != b for a, b in pairwise(first))
        if not moved or len(last) <= _STANDING or abs(last[-1]) <= LEARNED * abs(first[0]):
            return
        still = sum(a == b for a, b in pairwise(last))
        if still <= _MOST_STILL * (len(last) - 1):
            return
        raise CaseError(
            "wrong_steps",
            f"the loss changed with each of the first {_MOVING} training steps, but only with"
            f" {len(last) - 1 - still} of the {len(last) - 1} after them: the others did not train",
            "Check what the engine executes in a step. If the model has converged, measure fewer"
            " steps (--iterations).",
        )

    def columns(self) -> dict[str, Any]:
        if not self.losses:
            return {}
        return {
            "loss_first": self.losses[0],
            "loss_last": self.losses[-1],
            "loss_per_step": list(self.losses),
        }

    def warnings(self) -> list[str]:
        """Return a warning if no step changed the loss.

        A loss of 0 may stay constant: there is nothing left to learn.
        """
        if len(self.losses) < _TELLING or len(set(self.losses)) > 1 or not self.losses[0]:
            return []
        text = (
            f"The loss was the same in all {len(self.losses)} training steps: nothing was learned."
        )
        return [text]
