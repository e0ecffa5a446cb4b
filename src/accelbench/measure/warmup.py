"""Warm-up rule: a state that receives blocks and returns the number of steps to run next.

        compile  window 1      window 2      window 3
    ──────┃────┃──────────╂─────────────╂─────────────╂──▶ steady state
               ≥ 5 steps    medians       medians agree
               ≥ 100 ms     differ        within 2 %: warm

A window closes at the end of a block once it has enough steps and time. A block with a compilation
restarts everything. The cap ends the warm-up after 20 % of the budget, but never before 3 steps; a
step that is not steady by then is unsteady.

Steps too slow for two windows within the cap (from 200 ms on with a budget of 10 s) would all be
unsteady by this rule. They are judged by two halves of the steps since the last compilation,
without the middle one of an odd number. A step of 4 s gets 3 steps: the last is compared with the
first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

_MOST_GROWTH = 10


@dataclass(frozen=True)
class WarmupRule:
    """Conditions for a warm model, and limits."""

    window_steps: int = 5
    window_ns: int = 100_000_000
    agreement: float = 0.02
    cap_steps: int = 3
    cap_fraction: float = 0.20
    budget_ns: int = 10_000_000_000  # for measuring the case; the time limit of stopping
    fixed: int | None = None  # exactly this many steps, without a check

    @property
    def cap_ns(self) -> float:
        return self.cap_fraction * self.budget_ns

    def start(self) -> WarmupState:
        return WarmupState(self, done=self.fixed == 0)


@dataclass(frozen=True)
class WarmupState:
    """Progress of the warm-up."""

    rule: WarmupRule
    steps: int = 0
    elapsed_ns: int = 0  # in the steps themselves
    step_ns: float | None = None  # time of a step in the latest block
    done: bool = False
    steady: bool | None = None  # None if not judged, or if the number is fixed
    window: tuple[float, ...] = ()  # step times of the open window in ns
    window_steps: int = 0
    window_ns: int = 0
    closed: tuple[float, ...] | None = None  # the window before, since the last compilation
    compared: bool = False  # two windows have been compared since the last compilation

    def add_untimed(self, steps: int, ns: int) -> WarmupState:
        """Return the state after steps that warmed the model but do not belong to a window."""
        return replace(self, steps=self.steps + steps, elapsed_ns=self.elapsed_ns + ns)

    def next_steps(self) -> int:
        """Return how many steps to run in the next block; 0 if done."""
        # One step at first. Then enough to close the window within the cap, but at most ten times
        # the steps so far: one step that a coarse clock showed as zero must not cause millions.
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

    def add_block(
        self, block_ns: Sequence[int], compilations: int = 0, steps_per_sample: int = 1
    ) -> WarmupState:
        """Return the state after a block with a number of compilations."""
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
        return run._close_window()

    def _close_window(self) -> WarmupState:
        """Close the window if it is full, compare it with the previous one, and apply the cap."""
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
