"""Sharing a time budget among cases, so that the last one gets as much as the first."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Of a case's share, what its steady state may take; the rest is for building,
#: loading, warm-up and the passes beside it.
STEADY_SHARE = 0.5
SHORTEST_SECONDS = 0.2
LONGEST_SECONDS = 10.0


class Budget:
    """Seconds for a whole run, None for no limit."""

    def __init__(
        self, seconds: float | None, cases: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._deadline = None if seconds is None else now() + seconds
        self._cases = cases

    def left(self) -> float | None:
        """Seconds left, None for no limit."""
        return None if self._deadline is None else self._deadline - self._now()

    @property
    def exhausted(self) -> bool:
        left = self.left()
        return left is not None and left <= 0

    def steady_seconds(self) -> float | None:
        """How long the steady state of the next case may last; None for the design's rule."""
        left = self.left()
        if left is None:
            return None
        share = STEADY_SHARE * left / max(self._cases, 1)
        return round(min(max(share, SHORTEST_SECONDS), LONGEST_SECONDS), 2)

    def add(self, seconds: float) -> None:
        """Have so much more time: it was spent waiting for another run."""
        if self._deadline is not None:
            self._deadline += seconds

    def case_over(self) -> None:
        """One case fewer to share with."""
        self._cases -= 1
