"""The losses of a training case: every step's, from the first; one that is no number ends it."""

from __future__ import annotations

import math
from typing import Any

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block

#: So many equal losses are no chance.
_TELLING = 3


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

    def columns(self) -> dict[str, Any]:
        """The columns of the registry."""
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
