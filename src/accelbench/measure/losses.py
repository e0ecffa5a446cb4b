"""The losses of a training case: every step's, from the first; one that is no number ends it."""

from __future__ import annotations

import math
from typing import Any, cast

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, Session
from accelbench.core.words import Timing

#: So many equal losses are no chance.
_TELLING = 3


class LossLog:
    """Stands before a session and notes the losses of every block that passes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.losses: list[float] = []

    @property
    def session(self) -> Session:
        """What to measure instead of the session itself."""
        return cast(Session, self)

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        """As the session's own; raises CaseError at the first loss that is no finite number."""
        block = self._session.sample(inputs, n, timing)
        self.losses += block.losses
        for i, loss in enumerate(block.losses, len(self.losses) - len(block.losses) + 1):
            if not math.isfinite(loss):
                raise CaseError(
                    "loss_not_finite",
                    f"the loss of training step {i} is {loss}",
                    "Try bf16 or fp32: fp16 has a narrower range.",
                )
        return block

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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)
