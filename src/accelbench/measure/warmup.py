"""When is a model warm? A state that is fed blocks and says how many steps come next.

        compile  window 1      window 2      window 3
    ──────┃────┃──────────╂─────────────╂─────────────╂──▶ steady state
               ≥ 5 steps    medians       medians agree
               ≥ 100 ms     differ        within 2 %: warm

A window closes at the end of a block once it has enough steps and time. A block in
which something was compiled starts everything anew. The cap ends warm-up after
20 % of the budget, but never before 3 steps; what has not settled by then is unsteady.

Steps too slow for two windows within the cap (from 200 ms on with a budget of 10 s)
would all be unsteady by that reading. They are judged by what fits: the two halves
of the steps since the last compilation, the middle one of an odd number left out.
A step of 4 s gets 3 steps: the last is compared with the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

_MOST_GROWTH = 10


@dataclass(frozen=True)
class WarmupRule:
    """What counts as warm, and when to give up."""

    window_steps: int = 5
    window_ns: int = 100_000_000
    agreement: float = 0.02
    cap_steps: int = 3
    cap_fraction: float = 0.20
    budget_ns: int = 10_000_000_000  # what measuring the case may take; the stopping time limit
    fixed: int | None = None  # exactly so many steps, judged by nothing

    @property
    def cap_ns(self) -> float:
        return self.cap_fraction * self.budget_ns

    def start(self) -> WarmupState:
        return WarmupState(self, done=self.fixed == 0)


@dataclass(frozen=True)
class WarmupState:
    """How far warm-up has come. Feed it blocks until it is done."""

    rule: WarmupRule
    steps: int = 0
    elapsed_ns: int = 0  # in the steps themselves
    step_ns: float | None = None  # what a step took in the latest block
    done: bool = False
    steady: bool | None = None  # None: not judged (yet, or at all where the number is fixed)
    window: tuple[float, ...] = ()  # ns a step of the open window
    window_steps: int = 0
    window_ns: int = 0
    closed: tuple[float, ...] | None = None  # the window before, since the last compilation
    compared: bool = False  # two windows have been compared since the last compilation

    def credited(self, steps: int, ns: int) -> WarmupState:
        """Return the state after steps that warmed the model but were not timed for a window."""
        return replace(self, steps=self.steps + steps, elapsed_ns=self.elapsed_ns + ns)

    def next_steps(self) -> int:
        """Return how many steps to run before feeding it again; 0 when done."""
        # One at first: nothing is known yet. Then what closes the window, as far as the cap allows,
        # but no more than ten times the steps so far: one step that a coarse clock showed as
        # nothing must not call for millions.
        rule = self.rule
        if self.done:
            return 0
        if rule.fixed is not None:
            return rule.fixed - self.steps
        if self.step_ns is None:
            return 1
        step_ns = max(self.step_ns, 1.0)
        wanted = max(
            rule.window_steps - self.window_steps,
            math.ceil((rule.window_ns - self.window_ns) / step_ns),
        )
        allowed = max(
            rule.cap_steps - self.steps, math.ceil((rule.cap_ns - self.elapsed_ns) / step_ns)
        )
        return max(1, min(wanted, allowed, _MOST_GROWTH * self.steps))

    def fed(
        self, block_ns: Sequence[int], compilations: int = 0, steps_per_sample: int = 1
    ) -> WarmupState:
        """Return the state after a block, during which so many compilations happened."""
        if not block_ns:
            return self
        steps = [ns / steps_per_sample for ns in block_ns]
        run = replace(
            self,
            steps=self.steps + len(steps) * steps_per_sample,
            elapsed_ns=self.elapsed_ns + sum(block_ns),
            step_ns=median(steps),
        )
        if self.rule.fixed is not None:
            return replace(run, done=run.steps >= self.rule.fixed)
        if compilations:
            run = replace(run, window=(), window_steps=0, window_ns=0, closed=None, compared=False)
        else:
            run = replace(
                run,
                window=run.window + tuple(steps),
                window_steps=run.window_steps + len(steps) * steps_per_sample,
                window_ns=run.window_ns + sum(block_ns),
            )
        return run._judged()

    def _judged(self) -> WarmupState:
        """Close the window if it is full, compare it with the one before, heed the cap."""
        rule, run = self.rule, self
        if run.window_steps >= rule.window_steps and run.window_ns >= rule.window_ns:
            if run.closed is not None and self._agree(run.closed, run.window):
                return replace(run, done=True, steady=True)
            run = replace(
                run,
                closed=run.window,
                compared=run.closed is not None,
                window=(),
                window_steps=0,
                window_ns=0,
            )
        if run.steps >= rule.cap_steps and run.elapsed_ns >= rule.cap_ns:
            return replace(run, done=True, steady=not run.compared and run._halves_agree())
        return run

    def _halves_agree(self) -> bool:
        seen = (self.closed or ()) + self.window
        half = len(seen) // 2
        return half > 0 and self._agree(seen[:half], seen[-half:])

    def _agree(self, before: Sequence[float], after: Sequence[float]) -> bool:
        first, second = median(before), median(after)
        return abs(second - first) <= self.rule.agreement * min(first, second)
