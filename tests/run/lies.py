"""Lies that several tests share, each in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from lying import BATCH, ITEM_NS, WORLD, Lie

from accelbench.core.protocols import Block
from accelbench.core.vocabulary import Timing
from accelbench.engines.shared.sketches import sketch

Sample = Callable[..., Block]
Step = Callable[[Mapping[str, Any]], Any]


def said(**more: Any) -> Lie:
    return Lie(evidence=lambda found: replace(found, **more))


def altered(alter: Callable[[Block], Any]) -> Lie:
    return Lie(sample=lambda honest, inputs, n, timing: alter(honest(inputs, n, timing)))


def times(change: Callable[[list[Any]], Any]) -> Lie:
    return altered(
        lambda b: replace(b, phase_ns={k: change(list(v)) for k, v in b.phase_ns.items()})
    )


STEP_MS = BATCH * ITEM_NS / 1e6


def first_value(inputs: Mapping[str, Any]) -> float:
    return float(np.asarray(next(iter(inputs.values()))).ravel()[0])


def half(step: Step, inputs: Mapping[str, Any]) -> Any:
    return step({name: one[: len(one) // 2] for name, one in inputs.items()})


def half_filled_up(step: Step, inputs: Mapping[str, Any]) -> Any:
    """The outputs of the first half stand for the second one's."""
    found = half(step, inputs)["scores"]
    join = torch.cat if isinstance(found, torch.Tensor) else np.concatenate
    return {"scores": join([found, found])}


def first_item(step: Step, inputs: Mapping[str, Any]) -> Any:
    found = step({name: one[:1] for name, one in inputs.items()})["scores"]
    whole = len(next(iter(inputs.values())))
    return {
        "scores": found.repeat(whole, 1)
        if isinstance(found, torch.Tensor)
        else np.repeat(found, whole, 0)
    }


def remembered(lie: Lie) -> Step:
    """What was asked before is looked up."""

    def look(honest: Step, inputs: Mapping[str, Any]) -> Any:
        key = bytes(np.ascontiguousarray(next(iter(inputs.values()))))
        if key not in lie.kept:
            lie.kept[key] = honest(inputs)
        else:
            WORLD.clock.advance(10_000)
        return lie.kept[key]

    lie.step = look
    return look


def cached() -> Lie:
    lie = Lie()
    remembered(lie)
    return lie


def left_out(
    is_left_out: Callable[[int], bool], only_the_same: bool = True, skipped_ns: int = 10_000
) -> Lie:
    """Steps of some numbers give what the one before gave; new inputs are computed, or are not."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        kept = lie.kept
        kept["steps"] = kept.get("steps", 0) + 1
        is_new = only_the_same and kept.get("of") is not inputs
        if is_new or "found" not in kept or not is_left_out(kept["steps"]):
            kept["found"], kept["of"] = honest(inputs), inputs
        else:
            WORLD.clock.advance(skipped_ns)
        return kept["found"]

    lie.step = step
    return lie


def by_chance_left_out(share: float, skipped_ns: int = 10_000) -> Lie:
    draw = np.random.default_rng(5)
    return left_out(lambda _: bool(draw.random() < share), skipped_ns=skipped_ns)


def early(is_early: Callable[[dict[Any, Any]], bool]) -> Lie:
    """Only the first steps of the first blocks are done; later it is honest."""
    lie = Lie()

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        lie.kept["blocks"] = lie.kept.get("blocks", 0) + (n > 1)
        lie.kept["first"] = True
        return honest(inputs, n, timing)

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        kept = lie.kept
        kept["steps"] = kept.get("steps", 0) + 1
        if kept.pop("first", False) or kept.get("of") is not inputs or not is_early(kept):
            kept["found"], kept["of"] = honest(inputs), inputs
        else:
            WORLD.clock.advance(10_000)
        return kept["found"]

    lie.sample, lie.step = sample, step
    return lie


def recomputed(session: Any, most: int) -> Any:
    """Asked what it left, it runs the inputs again, honestly this time."""
    if session.inputs is None:
        return {}
    found = session._procedure.outputs(session.inputs) if hasattr(session, "_procedure") else None
    if found is None:
        return sketch(session._run(session.inputs), most)
    return sketch({name: one.detach().numpy() for name, one in found.items()}, most)


def thinned(share: int) -> Callable[..., Block]:
    """Of each block a part of the steps, for the time of all."""

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        block = honest(inputs, -(-n // share), timing)
        whole = sum(block.phase_ns["step"])
        found = [whole] if timing is Timing.WHOLE else [whole // n] * n
        return replace(block, steps=n, phase_ns={"step": found})

    return sample
