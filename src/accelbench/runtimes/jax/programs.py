"""Functions compiled ahead of the first step, each part of it timed.

|trace: Python to jaxpr|lower: jaxpr to StableHLO|compile: XLA|
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import jax

from accelbench.core.clock import Clock
from accelbench.core.errors import UnsupportedError
from accelbench.core.precision import COMPUTED_AS_ASKED, long_name
from accelbench.runtimes.jax.collectives import collectives_of
from accelbench.runtimes.jax.computed_in import multiplied_in
from accelbench.runtimes.jax.lowering import Lowered


@dataclass(frozen=True)
class Program:
    """A function compiled for the shapes, and on the device, of its arguments."""

    run: Callable[..., Any]
    parts: dict[str, int]  # nanoseconds of trace, lower, compile; of export, where torch's was
    flops: float | None
    multiplied_in: dict[str, float]
    collectives: dict[str, int]  # by kind; of several devices

    @property
    def compile_ns(self) -> int:
        """What JAX itself took: exporting is torch's, and the price of coming from there."""
        return sum(ns for part, ns in self.parts.items() if part != "export")


@dataclass
class Programs:
    """Everything that a session has compiled, each kind of step once for the same shapes."""

    clock: Clock
    precision: str
    count: int = 0
    total_ns: int = 0  # with what torch took to export
    _made: dict[Hashable, tuple[Program, Lowered]] = field(default_factory=dict)

    def known(self, key: Hashable) -> tuple[Program, Lowered] | None:
        """What was made of a key, if it was."""
        return self._made.get(key)

    def get(
        self,
        key: Hashable,
        lowered: Callable[[], Lowered],
        function: Callable[[Lowered], Callable[..., Any]],
        arguments: Callable[[Lowered], tuple[Any, ...]],
        donated: tuple[int, ...] = (),
        left: Callable[[tuple[Any, ...]], Any] = lambda _: None,
    ) -> tuple[Program, Lowered]:
        """The program of a key, and what its graph was lowered to; made where it is missing.

        Args:
            key: what is done, and the shapes.
            lowered: exports and lowers the graph.
            function: makes of that what is compiled.
            arguments: makes of it an example of the arguments.
            donated: which arguments the program may write its results over.
            left: says of the arguments where the results have to lie; None: where XLA puts them.

        Raises:
            UnsupportedError: the graph cannot be had, or what is compiled multiplies mostly
                in another type than was asked for.
        """
        entry = self._made.get(key)
        if entry is None:
            start = self.clock.now_ns()
            low = lowered()
            exported = self.clock.now_ns()
            given = arguments(low)
            jitted = _jitted(function(low), donated, left(given))
            program = self._compiled(jitted, given, exported - start)
            del given
            self.count += 1
            self.total_ns += self.clock.now_ns() - start
            entry = self._made[key] = (program, low.compiled())
        return entry

    def _compiled(self, jitted: Any, arguments: tuple[Any, ...], export_ns: int) -> Program:
        now = self.clock.now_ns
        start = now()
        traced = jitted.trace(*arguments)
        was_traced = now()
        lowered = traced.lower()
        was_lowered = now()
        run = lowered.compile()
        done = now()
        text = run.as_text() or ""
        shares = multiplied_in(text)
        self._refuse(shares)
        return Program(
            run=run,
            parts={
                "export": export_ns,
                "trace": was_traced - start,
                "lower": was_lowered - was_traced,
                "compile": done - was_lowered,
            },
            flops=_flops(run),
            multiplied_in=shares,
            collectives=collectives_of(text),
        )

    def _refuse(self, shares: dict[str, float]) -> None:
        share = shares.get(long_name(self.precision), 0.0)
        if shares and share < COMPUTED_AS_ASKED:
            most = max(shares, key=lambda name: shares[name])
            raise UnsupportedError(
                "precision_upcast",
                f"of this model's products XLA compiled {share:.0%} in {self.precision} and"
                f" {shares[most]:.0%} in {most}, with conversions around them",
                "Use --precision fp32, or --framework pytorch.",
            )

    def forget(self) -> None:
        """Let everything go."""
        self._made.clear()


def _jitted(function: Callable[..., Any], donated: tuple[int, ...], left: Any) -> Any:
    if left is None:
        return jax.jit(function, donate_argnums=donated)
    return jax.jit(function, donate_argnums=donated, out_shardings=left)


def _flops(run: Any) -> float | None:
    """XLA's own count of what it compiled; not every back end keeps one."""
    try:
        cost = run.cost_analysis()
    except Exception:
        return None
    cost = cost[0] if isinstance(cost, list) and cost else cost
    flops = cost.get("flops") if isinstance(cost, dict) else None
    return float(flops) if flops is not None and flops > 0 else None
