"""The losses of a training case: every step's, from the first; one that is no number ends it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block

#: So many equal losses are no chance.
_TELLING = 3

#: A loss that moved with each of the first steps, and then, of at least so many more, stood still
#: from step to step more often than this. One that has fallen to a hundredth may stay where it is:
#: there is nothing left to learn; and one that has come to rest has moved for thousands of steps.
_MOVING, _STANDING, _MOST_STILL, LEARNED = 10, 20, 0.5, 0.01


class LossLog:
    """Notes the losses of every block that passes."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def note(self, block: Block) -> None:
        """Of one block more; raises CaseError at the first loss that is no finite number."""
        before = len(self.losses)
        self.losses += block.losses
        for i, loss in enumerate(block.losses, before + 1):
            if not isinstance(loss, (int, float)) or not math.isfinite(loss):
                raise CaseError(
                    "loss_not_finite",
                    f"the loss of training step {i} is {loss}",
                    "Try bf16 or fp32: fp16 has a narrower range.",
                )

    def refuse_standing(self) -> None:
        """Raise CaseError where the losses are of steps that no longer train.

        They are verified for the first ten steps alone: a step that trains on changes the weights,
        and so the loss, in its last places at least.
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
            f"the loss moved with each of the first {_MOVING} training steps, and of the"
            f" {len(last) - 1} after them with {len(last) - 1 - still}: the others did not train",
            "Look at what the runtime executes in a step; if it is the model that has come to rest,"
            " measure fewer steps (--iterations).",
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
        """What a reader should know: steps that changed nothing were timed all the same.

        A loss of 0 may stay what it is: there is nothing left to learn.
        """
        if len(self.losses) < _TELLING or len(set(self.losses)) > 1 or not self.losses[0]:
            return []
        text = (
            f"The loss was the same in all {len(self.losses)} training steps: nothing was learned."
        )
        return [text]
