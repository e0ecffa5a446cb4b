"""Sessions that lie, each in a few lines, and what becomes of their case: never ok.

The same lies are told by the pytorch runtime's own session and by one whose engine is elsewhere.
What no check sees is at the end, as docs/measuring.md names it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lying
import numpy as np
import pytest
import torch
from lying import (
    BATCH,
    CASE,
    CPU,
    ITEM_NS,
    KINDS,
    WORLD,
    Lie,
    became,
    judged_case,
    measured,
    opened,
)

from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, DeviceMemory, Job
from accelbench.core.vocabulary import PrecisionWord, Quality, Timing
from accelbench.hardware.thread_times import ThreadTimes
from accelbench.run.verify.precision_proof import PrecisionProof
from accelbench.run.worker.case_checks import CaseChecks
from accelbench.runtimes.shared.sketches import sketch

Sample = Callable[..., Block]
Step = Callable[[Mapping[str, Any]], Any]


# -- where it ran


def said(**more: Any) -> Lie:
    return Lie(evidence=lambda found: replace(found, **more))


WHERE = {
    "no device is named": (said(devices=()), "no_proof"),
    "no device, and none was asked for": (said(devices=(), requested=""), "no_proof"),
    "a device without a name": (said(devices=("",)), "no_proof"),
    "it ran elsewhere": (said(devices=("cuda:0",)), "fallback"),
    "it ran elsewhere, and that was asked for": (
        said(devices=("cuda:0",), requested="cuda:0"),
        "fallback",
    ),
    "it ran elsewhere, and nothing was asked for": (
        said(devices=("cuda:0",), requested=""),
        "fallback",
    ),
    "more than all of the time": (said(shares={"cpu:0": 1.3}), "bad_evidence"),
    "less than no time": (
        said(devices=("cpu:0", "cuda:0"), shares={"cpu:0": 1.0, "cuda:0": -0.2}),
        "bad_evidence",
    ),
    "most of the time is nobody's": (said(shares={"cpu:0": 0.05}), "bad_evidence"),
    "the other device is not named": (said(shares={"cpu:0": 0.5, "cuda:0": 0.5}), "bad_evidence"),
}


# -- what a block is


def altered(alter: Callable[[Block], Any]) -> Lie:
    return Lie(sample=lambda honest, inputs, n, timing: alter(honest(inputs, n, timing)))


def times(change: Callable[[list[Any]], Any]) -> Lie:
    return altered(
        lambda b: replace(b, phase_ns={k: change(list(v)) for k, v in b.phase_ns.items()})
    )


BLOCKS = {
    "floats for nanoseconds": times(lambda found: [float(ns) for ns in found]),
    "numbers of NumPy's": times(lambda found: list(np.asarray(found))),
    "an array": times(np.asarray),
    "times below nought": times(lambda found: [-ns for ns in found]),
    "times of nought": times(lambda found: [0 for _ in found]),
    "no number": times(lambda found: [math.nan for _ in found]),
    "truths": times(lambda found: [True for _ in found]),
    "no times": times(lambda found: []),
    "the last time is missing": times(lambda found: found[:-1]),
    "a time too many": times(lambda found: [*found, found[-1]]),
    "no phases": altered(lambda b: replace(b, phase_ns={})),
    "phases of another session": altered(
        lambda b: replace(b, phase_ns={"forward": b.phase_ns["step"]})
    ),
    "a phase more": altered(
        lambda b: replace(b, phase_ns={**b.phase_ns, "rest": b.phase_ns["step"]})
    ),
    "other steps than asked": altered(lambda b: replace(b, steps=b.steps + 1)),
    "timed otherwise": altered(lambda b: replace(b, timing=Timing.WHOLE)),
    "compiling that took longer than all": altered(
        lambda b: replace(b, compilations=1, compile_ns=2 * sum(b.phase_ns["step"]))
    ),
    "compiling that gave time back": altered(lambda b: replace(b, compilations=1, compile_ns=-5)),
    "losses of other steps": altered(lambda b: replace(b, losses=[1.0] * (b.steps + 1))),
    "tokens of no request": altered(lambda b: replace(b, token_ns=[[5, 3]])),
    "no block": altered(lambda b: {"steps": b.steps}),
    "building took less than no time": Lie(timings={"build": -1}),
    "building took half a nanosecond": Lie(timings={"build": 0.5}),
    "compiling ahead took less than no time": Lie(compile=-1),
    "memory below nought": Lie(memory=DeviceMemory(-1, 5, 5, "counter")),
    "memory that is no number": Lie(memory=DeviceMemory(math.nan, 5, 5, "counter")),  # type: ignore[arg-type]
}


# -- what time it took


def one_repeated(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
    """One step is done, and n times the same is said."""
    block = honest(inputs, 1, timing)
    return replace(block, steps=n, phase_ns={"step": list(block.phase_ns["step"]) * n})


def constant(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
    block = honest(inputs, n, timing)
    return (
        block
        if n == 1
        else replace(block, phase_ns={"step": [200_000] * len(block.phase_ns["step"])})
    )


def after_a_while(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
    """True while it warms up."""
    block = honest(inputs, n, timing)
    return (
        block
        if n < 5
        else replace(block, phase_ns={"step": [ns // 3 for ns in block.phase_ns["step"]]})
    )


CLOCKS = {
    "times threefold": times(lambda found: [3 * ns for ns in found]),
    "times of a tenth more": times(lambda found: [round(1.1 * ns) for ns in found]),
    "times by ten": times(lambda found: [max(ns // 10, 1) for ns in found]),
    "times by three": times(lambda found: [ns // 3 for ns in found]),
    "microseconds for nanoseconds": times(lambda found: [max(ns // 1000, 1) for ns in found]),
    "milliseconds for nanoseconds": times(lambda found: [max(ns // 10**6, 1) for ns in found]),
    "one step repeated": Lie(sample=one_repeated),
    "a constant": Lie(sample=constant),
    "a third, once it is warm": Lie(sample=after_a_while),
    "compiling ahead took longer than it took": Lie(compile=10**12),
}


# -- values other than the time of a step

STEP_MS = BATCH * ITEM_NS / 1e6


def first_step_compiles() -> Lie:
    """The first step is said to be all compiling but a microsecond."""
    lie = Lie()

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        block = honest(inputs, n, timing)
        first = not lie.kept
        lie.kept["asked"] = True
        whole = sum(block.phase_ns["step"])
        return replace(block, compilations=1, compile_ns=whole - 1000) if first else block

    lie.sample = sample
    return lie


MEMORY = {"device_memory_peak_mb", "device_memory_reserved_mb", "memory_peak_mb"}
SIDE = {
    "memory of 0.001 MB": (
        Lie(memory=DeviceMemory(1049, 1049, 1049, "counter")),
        {*MEMORY, "device_memory_avg_mb", "memory_avg_mb"},
    ),
    "no memory": (
        Lie(memory=DeviceMemory(0, 0, 0, "counter")),
        {*MEMORY, "device_memory_avg_mb", "memory_avg_mb"},
    ),
    "the first inference took a microsecond": (first_step_compiles(), {"first_inference_ms"}),
    "the device worked for a microsecond": (Lie(device_ns=1000), {"device_time_ms"}),
    "compiling took a microsecond of 3 s": (
        Lie(compile=1000, compiling_ns=3 * 10**9),
        {"compile_ms"},
    ),
}
OPENING = {
    "the model was built in a nanosecond": (
        Lie(timings={"build": 1}),
        # Of the pytorch session both together leave out most of the time.
        {"pytorch": {"build_ms", "load_ms"}, "remote": {"build_ms"}},
    ),
    "it was loaded in a nanosecond": (
        Lie(timings={"load": 1}),
        {"pytorch": set(), "remote": {"load_ms"}},
    ),
    "build and load leave out 10 s": (
        Lie(opening_ns=10**10),
        {"pytorch": {"build_ms", "load_ms"}, "remote": set()},
    ),
    "loading took longer than opening": (
        Lie(timings={"load": 10**12}),
        {"pytorch": {"build_ms", "load_ms"}, "remote": {"load_ms"}},
    ),
}


# -- what work was done


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


def narrow(step: Step, inputs: Mapping[str, Any]) -> Any:
    found = step(inputs)["scores"]
    if isinstance(found, torch.Tensor):
        return {"scores": found.bfloat16().float()}
    return {"scores": found.astype(np.float16).astype(np.float32) * np.float32(1 + 2e-3)}


def every_other() -> Lie:
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        """Every second call gives what the first one gave."""
        lie.kept["calls"] = lie.kept.get("calls", 0) + 1
        if lie.kept["calls"] % 2 or lie.kept.get("of") is not inputs:
            lie.kept["found"], lie.kept["of"] = honest(inputs), inputs
        else:
            WORLD.clock.advance(10_000)
        return lie.kept["found"]

    lie.step = step
    return lie


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


def computed_before() -> Lie:
    """Of inputs that are new everything is computed before the first step is timed."""
    lie = Lie()
    lie.outputs = remembered(lie)

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        honest(inputs, 1, timing)
        return honest(inputs, n, timing)

    lie.sample = sample
    return lie


def said_to_compile() -> Lie:
    """What a first step with new inputs takes is said to be compiling."""
    lie = Lie()
    lie.outputs = remembered(lie)

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        block = honest(inputs, n, timing)
        whole = sum(block.phase_ns["step"])
        return replace(block, compile_ns=whole - 1000) if whole > 1_000_000 else block

    lie.sample = sample
    return lie


def looked_up(key_of: Callable[[Any], Any], uses: int = 1) -> Lie:
    """Outputs are kept by a key of the inputs, once that was used so often."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        (features,) = inputs.values()
        key = key_of(features)
        lie.kept["uses", key] = lie.kept.get(("uses", key), 0) + 1
        if lie.kept["uses", key] <= uses:
            lie.kept[key] = honest(inputs)
        else:
            WORLD.clock.advance(10_000)
        return lie.kept[key]

    lie.step = step
    return lie


def whole_content(features: Any) -> bytes:
    return bytes(np.ascontiguousarray(features))


def left_out(is_left_out: Callable[[int], bool], only_the_same: bool = True) -> Lie:
    """Steps of some numbers give what the one before gave; new inputs are computed, or are not."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        kept = lie.kept
        kept["steps"] = kept.get("steps", 0) + 1
        is_new = only_the_same and kept.get("of") is not inputs
        if is_new or "found" not in kept or not is_left_out(kept["steps"]):
            kept["found"], kept["of"] = honest(inputs), inputs
        else:
            WORLD.clock.advance(10_000)
        return kept["found"]

    lie.step = step
    return lie


def by_chance_left_out(share: float) -> Lie:
    draw = np.random.default_rng(5)
    return left_out(lambda _: bool(draw.random() < share))


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


def of_sizes(is_lazy: Callable[[int], bool]) -> Lie:
    """Of blocks of some sizes only the first step is done."""
    lie = early(lambda kept: is_lazy(kept["size"]))
    begun = lie.sample
    assert begun is not None

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        lie.kept["size"] = n
        return begun(honest, inputs, n, timing)  # type: ignore[no-any-return]

    lie.sample = sample
    return lie


def one_behind() -> Lie:
    """Each step gives what the one before has computed."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        found = honest(inputs)
        before, lie.kept["found"] = lie.kept.get("found", found), found
        return before

    lie.step = step
    return lie


def half_of_the_features(step: Step, inputs: Mapping[str, Any]) -> Any:
    """The first half of each sequence stands for the second one."""
    (features,) = inputs.values()
    WORLD.clock.advance(-len(features) * ITEM_NS // 2)
    twice = np.tile(np.asarray(features)[:, :8], (1, 2))
    return step({"features": torch.from_numpy(twice) if torch.is_tensor(features) else twice})


def with_noise(step: Step, inputs: Mapping[str, Any]) -> Any:
    """A narrower type, whose error is hidden under noise."""
    found = np.asarray(step(inputs)["scores"])
    noise = np.random.default_rng(3).standard_normal(found.shape)
    whole = (found * (1 + 5e-4 * noise)).astype(np.float32)
    is_torch = torch.is_tensor(next(iter(inputs.values())))
    return {"scores": torch.from_numpy(whole) if is_torch else whole}


def stale() -> Lie:
    """What it gave first it gives for ever."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        WORLD.clock.advance(100_000)
        if "found" not in lie.kept:
            lie.kept["found"] = honest(inputs)
        return lie.kept["found"]

    lie.step = step
    return lie


def sleeping(honest: Step, inputs: Mapping[str, Any]) -> Any:
    WORLD.clock.advance(500_000)


def recomputed(session: Any, most: int) -> Any:
    """Asked what it left, it runs the inputs again, honestly this time."""
    if session.inputs is None:
        return {}
    found = session._procedure.outputs(session.inputs) if hasattr(session, "_procedure") else None
    if found is None:
        return sketch(session._run(session.inputs), most)
    return sketch({name: one.detach().numpy() for name, one in found.items()}, most)


def answered_late(keeps: bool) -> Lie:
    """A step only starts its work; whoever asks for its outputs has them computed.

    Args:
        keeps: whether what was computed is kept for whoever asks again.
    """
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        WORLD.clock.advance(2_000)
        lie.kept.clear()
        return lie

    def stepped(session: Any, most: int) -> Any:
        if not keeps or "found" not in lie.kept:
            lie.kept["found"] = recomputed(session, most)
        return lie.kept["found"]

    lie.step, lie.stepped = step, stepped
    return lie


def ones(honest: Step, inputs: Mapping[str, Any]) -> Any:
    return {"scores": np.ones((len(next(iter(inputs.values()))), 24), np.float32)}


def drawn(honest: Step, inputs: Mapping[str, Any]) -> Any:
    draw = np.random.default_rng(WORLD.clock.time_ns)
    return {"scores": draw.standard_normal((len(next(iter(inputs.values()))), 24), np.float32)}


def shifted(honest: Step, inputs: Mapping[str, Any]) -> Any:
    return {name: one + 0.1 for name, one in honest(inputs).items()}


def of_the_first(honest: Step, inputs: Mapping[str, Any]) -> Any:
    found = honest(inputs)["scores"]
    return {"scores": np.repeat(np.asarray(found)[:1], len(found), 0)}


def last_of_a_block(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
    """One step is done, and its time is said to be that of all of them."""
    block = honest(inputs, 1, timing)
    each = sum(block.phase_ns["step"]) // n
    found = [each * n] if timing is Timing.WHOLE else [each] * n
    return replace(block, steps=n, phase_ns={"step": found})


def thinned(share: int) -> Callable[..., Block]:
    """Of each block a part of the steps, for the time of all."""

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        block = honest(inputs, -(-n // share), timing)
        whole = sum(block.phase_ns["step"])
        found = [whole] if timing is Timing.WHOLE else [whole // n] * n
        return replace(block, steps=n, phase_ns={"step": found})

    return sample


def whole_at_the_end(less: Callable[[Step, Mapping[str, Any]], Any]) -> Lie:
    """All steps of a block but the last, which is looked at, do less."""
    lie = Lie()

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        lie.kept["left"] = n
        return honest(inputs, n, timing)

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        lie.kept["left"] -= 1
        return honest(inputs) if lie.kept["left"] <= 0 else less(honest, inputs)

    lie.sample, lie.step = sample, step
    return lie


def half_from_seven_on(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
    return honest(inputs, n, timing) if n < 7 else thinned(2)(honest, inputs, n, timing)


def half_of_long_blocks(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
    """Blocks that are longer than those of checks: half of their steps, for the time of all."""
    if n <= 30:
        return honest(inputs, n, timing)
    block = honest(inputs, n // 2, timing)
    each = sum(block.phase_ns["step"]) // n
    return replace(block, steps=n, phase_ns={"step": [each] * n})


def computed_late() -> Lie:
    """A cache; of inputs that it has not seen the last step of a block computes alone."""
    lie = Lie()
    look = remembered(lie)
    lie.outputs = look

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        lie.kept["left"] = n
        return honest(inputs, n, timing)

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        lie.kept["left"] -= 1
        if lie.kept["left"] > 0:
            WORLD.clock.advance(10_000)
            return None
        return look(honest, inputs)

    lie.sample, lie.step = sample, step
    return lie


def partly_remembered(share: float) -> Lie:
    """A step costs less by this share with inputs that it has seen."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        seen = lie.kept.get("of") is inputs
        lie.kept["of"] = inputs
        before = WORLD.clock.time_ns
        found = honest(inputs)
        WORLD.clock.time_ns -= int(share * (WORLD.clock.time_ns - before)) if seen else 0
        return found

    lie.step = step
    return lie


def late(every: int | None) -> Lie:
    """The device is waited for at the end of a block alone, or at every so manieth step."""
    lie = Lie(waits=False)

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        lie.kept["left"] = n
        return honest(inputs, n, timing)

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        found = honest(inputs)
        WORLD.clock.advance(1_500_000)  # queueing takes a part of the time
        lie.kept["left"] = lie.kept.get("left", 1) - 1
        lie.kept["calls"] = lie.kept.get("calls", 0) + 1
        if lie.kept["calls"] % every == 0 if every else lie.kept["left"] <= 0:
            WORLD.wait()
        return found

    lie.sample, lie.step = sample, step
    return lie


WORK = {
    "outputs by the first element": (
        looked_up(lambda features: float(np.asarray(features).ravel()[0])), {"cached"}
    ),
    "outputs by a hash of a sample of the inputs": (
        looked_up(lambda features: bytes(np.asarray(features).ravel()[::7].copy())), {"cached"}
    ),
    "outputs by the identity of the inputs": (
        looked_up(id), {"cached", "wrong_steps", "work_skipped"}
    ),
    "outputs of inputs that were used five times": (
        looked_up(whole_content, 5), {"cached", "work_skipped"}
    ),
    "outputs of inputs that were used twenty times": (
        looked_up(whole_content, 20), {"cached", "work_skipped"}
    ),
    "one step of three": (left_out(lambda number: number % 3 != 1), {"cached"}),
    "one step of ten": (left_out(lambda number: number % 10 != 1), {"cached"}),
    "one step of three, whatever the inputs": (
        left_out(lambda number: number % 3 != 1, only_the_same=False), {"wrong_steps"}
    ),
    "three steps of ten by chance": (by_chance_left_out(0.7), {"cached", "work_skipped"}),
    "the first step of blocks of ten and more": (
        of_sizes(lambda size: size >= 10), {"work_skipped", "cached"}
    ),
    "what the step before has computed": (one_behind(), {"wrong_steps"}),
    "the first half of each sequence": (Lie(step=half_of_the_features), {"wrong_steps"}),
    "noise over a narrower type": (
        Lie(step=with_noise, outputs=with_noise), {"wrong_outputs", "wrong_steps"}
    ),
    "half of a step is remembered": (partly_remembered(0.5), {"cached"}),
    "two fifths of a step are remembered": (partly_remembered(0.4), {"cached"}),
    "it waits at the end of a block": (
        late(None),
        {"unsynchronised", "work_skipped", "wrong_steps"},
    ),
    "it waits at every eighth step": (
        late(8),
        {"unsynchronised", "work_skipped", "wrong_steps"},
    ),
    "outputs that it has seen, computed by the last step": (
        computed_late(),
        {"cached", "not_real", "wrong_steps"},
    ),
    "one step of each block": (Lie(sample=last_of_a_block), {"work_skipped"}),
    "half of the batch": (Lie(step=half), {"wrong_steps"}),
    "half of the batch, filled up": (Lie(step=half_filled_up), {"wrong_steps"}),
    "the first item alone": (Lie(step=first_item), {"wrong_steps"}),
    "a narrower type": (Lie(step=narrow), {"wrong_steps"}),
    "every other step": (every_other(), {"cached", "wrong_steps"}),
    "outputs that it has seen": (cached(), {"cached", "wrong_steps"}),
    "outputs that it computes before it reads its clock": (
        computed_before(),
        {"cached", "not_real"},
    ),
    "outputs that it has seen, and compiling before": (said_to_compile(), {"cached", "not_real"}),
    "the same outputs for ever": (stale(), {"wrong_steps", "cached"}),
    "a step that sleeps": (Lie(step=sleeping), {"wrong_steps"}),
    "a step that sleeps, and works when it is asked": (
        Lie(step=sleeping, stepped=recomputed),
        {"wrong_steps"},
    ),
    "half of the batch, and the rest when it is asked": (
        Lie(step=half, stepped=recomputed),
        {"wrong_steps"},
    ),
    "nothing kept": (Lie(stepped=lambda session, most: {}), {"wrong_steps"}),
    "it does not wait for its device": (Lie(waits=False), {"unsynchronised", "wrong_steps"}),
    "one answer to everything": (Lie(outputs=ones), {"not_real", "wrong_steps"}),
    "chance": (Lie(outputs=drawn), {"not_real", "wrong_outputs", "wrong_steps"}),
    "outputs that are a little off": (Lie(outputs=shifted, step=shifted), {"wrong_outputs"}),
    "the first item for all": (
        Lie(outputs=of_the_first, step=of_the_first),
        {"wrong_outputs", "wrong_steps"},
    ),
}  # fmt: skip


# -- which items of the batch were computed

Array = np.ndarray[Any, Any]
Rows = Callable[[int], list[int]]
Fill = Callable[[Array, int], Array]


def computing(rows: Rows, fill: Fill) -> Lie:
    """Compute some rows of each batch, in steps and for outputs, and fill up the others."""

    def run(honest: Step, inputs: Mapping[str, Any]) -> Any:
        (features,) = inputs.values()
        found = honest({"features": features[rows(len(features))]})["scores"]
        whole = fill(np.asarray(found), len(features)).astype(np.float32)
        return {"scores": torch.from_numpy(whole) if isinstance(found, torch.Tensor) else whole}

    return Lie(step=run, outputs=run)


def first(count: int) -> Rows:
    return lambda batch: list(range(min(count, batch)))


def half_of(batch: int) -> list[int]:
    return list(range(max(batch // 2, 1)))


def all_but_one(batch: int) -> list[int]:
    return list(range(max(batch - 1, 1)))


def again_and_again(found: Array, batch: int) -> Array:
    return found[np.arange(batch) % len(found)]


def averaged(found: Array, batch: int) -> Array:
    rest = np.repeat(found.mean(0)[None], batch - len(found), 0)
    return np.concatenate([found, rest])


def by_chance(found: Array, batch: int) -> Array:
    draw = np.random.default_rng(abs(int(1e6 * found.sum())))
    rest = draw.standard_normal((batch - len(found), found.shape[1])) * found.std(0)
    return np.concatenate([found, rest])


def other_way_about(found: Array, batch: int) -> Array:
    return found[::-1].copy()


def exchanged(found: Array, batch: int) -> Array:
    """The outputs of the two items in the middle are each other's."""
    rows = np.arange(batch)
    rows[batch // 2 - 1 : batch // 2 + 1] = rows[batch // 2 - 1 : batch // 2 + 1][::-1].copy()
    return found[rows]


def of_its_neighbour(found: Array, batch: int) -> Array:
    rows = np.arange(batch)
    rows[batch // 2] = batch // 2 - 1
    return found[rows]


def everything(batch: int) -> list[int]:
    return list(range(batch))


#: What is seen wherever the reference's items lie.
ITEMS = {
    "three items, repeated": computing(first(3), again_and_again),
    "three items, and their average": computing(first(3), averaged),
    "the first half, repeated": computing(half_of, again_and_again),
    "the first half, and its average": computing(half_of, averaged),
    "every second item, repeated": computing(
        lambda batch: list(range(0, batch, 2)), lambda found, batch: np.repeat(found, 2, 0)[:batch]
    ),
    "all but one item, which is the first one's": computing(all_but_one, again_and_again),
    "one item has its neighbour's outputs": computing(everything, of_its_neighbour),
    "all items, the other way about": computing(everything, other_way_about),
}
#: What is seen of quick steps, and of all if the reference has all items.
FEW_ITEMS = {
    "the first half, and chance": computing(half_of, by_chance),
    "all but one item, which is the average": computing(all_but_one, averaged),
    "two items have each other's outputs": computing(everything, exchanged),
}
WHOLE, QUICK_NS = 64, 500_000


@pytest.mark.parametrize(("items", "item_ns"), [(3, QUICK_NS), (3, 6_000_000), (WHOLE, 6_000_000)])
@pytest.mark.parametrize("name", ITEMS)
def test_which_items_were_computed(
    kind: str, name: str, item_ns: int, items: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lying, "ITEM_NS", item_ns)
    assert became(kind, ITEMS[name], tmp_path, 12, batch=WHOLE, items=items) == "wrong_outputs"


@pytest.mark.parametrize(("items", "item_ns"), [(3, QUICK_NS), (WHOLE, 6_000_000)])
@pytest.mark.parametrize("name", FEW_ITEMS)
def test_that_a_few_items_were_not_computed(
    kind: str, name: str, item_ns: int, items: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lying, "ITEM_NS", item_ns)
    found = became(kind, FEW_ITEMS[name], tmp_path, 12, batch=WHOLE, items=items)
    assert found == "wrong_outputs"


def test_half_of_slow_items_is_seen_in_seven_runs_of_eight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs by chance are no copies, and a slow batch is run once: three items decide."""
    lie = FEW_ITEMS["the first half, and chance"]
    found = [
        became("remote", lie, tmp_path, 12, batch=WHOLE, items=3, draw=draw) for draw in range(16)
    ]
    assert set(found) <= {"ok", "wrong_outputs"}
    assert found.count("ok") <= 4


@pytest.mark.parametrize("item_ns", [QUICK_NS, 6_000_000])
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 64])
def test_batches_of_distinct_items_that_were_computed_are_measured(
    kind: str, batch: int, item_ns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lying, "ITEM_NS", item_ns)
    doubts: list[int] = []
    assert became(kind, Lie(), tmp_path, 12, batch=batch, items=3, doubts=doubts) == "ok"
    assert doubts == [0]


def saturated(honest: Step, inputs: Mapping[str, Any]) -> Any:
    """Of few values, each at its least or most: many items have the same outputs."""
    found = honest(inputs)["scores"][:, :4]
    sign = torch.sign if isinstance(found, torch.Tensor) else np.sign
    return {"scores": sign(found)}


def test_items_whose_outputs_coincide_are_settled_by_the_reference(
    kind: str, tmp_path: Path
) -> None:
    lie, doubts = Lie(step=saturated, outputs=saturated), list[int]()
    found = became(kind, lie, tmp_path, 12, batch=WHOLE, items=3, honest=lie, doubts=doubts)
    assert (found, doubts) == ("ok", [1])


def thinned_mostly(share: int, of: int) -> Lie:
    """One block of some is done in full."""
    lie = Lie()

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        lie.kept["blocks"] = lie.kept.get("blocks", 0) + (n > 6)
        full = n <= 6 or lie.kept["blocks"] % of == 0
        return (honest if full else partial(thinned(share), honest))(inputs, n, timing)

    lie.sample = sample
    return lie


#: Steps of all lengths: such lies are told by how many are asked for at once.
MANY = {
    "half of the steps": Lie(sample=thinned(2)),
    "one of three steps": Lie(sample=thinned(3)),
    "one of eight steps": Lie(sample=thinned(8)),
    "half of the batch in all steps but the last": whole_at_the_end(half_filled_up),
    "one item in all steps but the last": whole_at_the_end(first_item),
    "half of the steps of most blocks": thinned_mostly(2, 10),
    "half of the steps from seven on": Lie(sample=half_from_seven_on),
}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_who_is_honest_is_measured(kind: str, tmp_path: Path) -> None:
    assert became(kind, Lie(), tmp_path) == "ok"


def test_who_keeps_nothing_of_its_steps_is_measured_with_a_warning(tmp_path: Path) -> None:
    """A runtime of another package, say, that was written before anybody asked."""

    class Forgetful(KINDS["remote"]):  # type: ignore[misc]
        stepped = None

    WORLD.__init__()  # type: ignore[misc]
    session = Forgetful(Job(CASE, CPU), Lie())
    checks = CaseChecks(session, CPU, 0, WORLD.clock, WORLD.clock)
    checks.steady_state_over()
    found = checks.of(CASE, BATCH * ITEM_NS, alone=False)
    assert found.steps_verified == "not_done"
    assert any("keeps nothing of what they leave" in one for one in found.warnings)


@pytest.mark.parametrize("name", WHERE)
def test_where_it_ran(kind: str, name: str, tmp_path: Path) -> None:
    lie, reason = WHERE[name]
    assert became(kind, lie, tmp_path) == reason


@pytest.mark.parametrize("name", BLOCKS)
def test_what_a_block_is(kind: str, name: str, tmp_path: Path) -> None:
    assert became(kind, BLOCKS[name], tmp_path) == "bad_block"


@pytest.mark.parametrize("name", CLOCKS)
def test_what_time_it_took(kind: str, name: str, tmp_path: Path) -> None:
    assert became(kind, CLOCKS[name], tmp_path) == "wrong_clock"


@pytest.mark.parametrize("name", SIDE)
def test_values_that_cannot_be_are_absent(kind: str, name: str) -> None:
    lie, gone = SIDE[name]
    lie.kept.clear()
    WORLD.__init__()  # type: ignore[misc]
    bench, _ = opened(kind, lie)
    found = measured(bench, 10)
    assert {n for n in gone if found["metrics"].get(n) is not None} == set()
    assert gone <= set(found["null_reasons"])
    assert "device" not in found["samples"]
    assert found["sampling"].keys() == found["samples"].keys()


@pytest.mark.parametrize("name", OPENING)
def test_times_of_opening_that_cannot_be_are_absent(kind: str, name: str) -> None:
    lie, gone = OPENING[name]
    WORLD.__init__()  # type: ignore[misc]
    told = opened(kind, lie)[1]
    assert set(told["null_reasons"]) == gone[kind]
    assert not {f"{what}_ms" for what in told["timings"]} & gone[kind]


def test_an_honest_session_keeps_every_value(kind: str) -> None:
    WORLD.__init__()  # type: ignore[misc]
    bench, told = opened(kind, Lie(compile=10**9, compiling_ns=10**9))
    found = measured(bench, 10)
    assert told["null_reasons"] == {}
    assert told["timings"]["load"] == lying.LOAD_NS
    assert set(found["null_reasons"]) == {"cpu_wait_share"}
    assert found["metrics"]["compile_ms"] == 1000.0
    assert found["metrics"]["first_inference_ms"] > STEP_MS


def times_of(threads: Sequence[tuple[int, int]], machine_ns: int) -> lying.ReadTimes:
    """A reader of threads that ran and waited for so long between two readings, a second apart."""
    readings = itertools.count()

    def read(_: Iterable[int]) -> ThreadTimes:
        at = next(readings)
        ran = {number: at * ns for number, (ns, _) in enumerate(threads)}
        waited = {number: at * ns for number, (_, ns) in enumerate(threads)}
        return ThreadTimes(at * 10**9, sum(ran.values()), ran, waited, at * machine_ns, 2)

    return read


S = 1_000_000_000


@pytest.mark.parametrize(
    ("threads", "machine", "known", "usable"),
    [
        ([(S, 0)], S, True, True),
        ([(S, 0), (S, 0)], 2 * S, False, True),  # --threads 1, and two are busy
        ([(S // 3, 2 * S // 3)] * 2, 2 * S, True, False),  # on a loaded machine nobody can tell
        ([(9 * S // 10, S // 10)] * 2, 2 * S, False, True),  # on one that is a little busy
        ([(S // 3, 2 * S // 3)], 2 * S, True, False),  # two other processes a core
        ([(S // 2, S // 2 - 1)], 2 * S, True, True),  # one a core
    ],
)
def test_threads_are_those_that_were_busy_and_had_a_cpu(
    threads: Sequence[tuple[int, int]], machine: int, known: bool, usable: bool
) -> None:
    WORLD.__init__()  # type: ignore[misc]
    bench, _ = opened("pytorch", Lie(), read_times=times_of(threads, machine))
    found = measured(bench, 10)
    assert ("threads" not in found["null_reasons"]) is known
    assert (found["quality"] != Quality.UNUSABLE) is usable
    assert found["metrics"]["cpu_wait_share"] == pytest.approx(
        threads[0][1] / sum(threads[0]), abs=1e-9
    )


@pytest.mark.parametrize(("waiting", "ended"), [(2 * S // 3, "unusable"), (S // 10, "refused")])
def test_no_case_fails_by_times_alone_while_others_have_the_cpus(
    kind: str, waiting: int, ended: str
) -> None:
    """Others have them after the steady state, while its times are compared with single steps."""
    readings = itertools.count()

    def read(_: Iterable[int]) -> ThreadTimes:
        at = next(readings)
        waited = max(0, at - 1) * waiting
        ran = at * S - waited
        return ThreadTimes(at * S, ran, {1: ran}, {1: waited}, 2 * at * S, 2)

    WORLD.__init__()  # type: ignore[misc]
    bench, _ = opened(kind, Lie(sample=thinned(2)), read_times=read)
    try:
        found = measured(bench)["quality"]
    except CaseError as error:
        found = "refused" if error.reason == "work_skipped" else error.reason
    assert found == ended


@pytest.mark.parametrize("name", WORK)
def test_what_work_was_done(kind: str, name: str, tmp_path: Path) -> None:
    lie, reasons = WORK[name]
    lie.kept.clear()
    assert became(kind, lie, tmp_path) in reasons


@pytest.mark.parametrize(
    ("name", "step_ms"),
    [*((name, ms) for name in MANY for ms in (4, 48)), *((name, 120) for name in [*MANY][:5])],
)
def test_how_many_steps_were_done(
    kind: str, name: str, step_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lying, "ITEM_NS", step_ms * 1_000_000 // BATCH)
    found = became(kind, MANY[name], tmp_path, iterations=12 if step_ms > 4 else 40)
    assert found in {"work_skipped", "cached", "wrong_steps", "unsynchronised"}


def test_a_far_engine_under_load_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten processes beside it: the way there and back takes as long as ten steps."""
    monkeypatch.setattr(lying, "ITEM_NS", 300_000)
    monkeypatch.setattr(lying, "LINK_NS", 30_000_000)
    assert became("remote", Lie(), tmp_path) == "ok"
    for name in ("times by three", "one step repeated"):
        assert became("remote", CLOCKS[name], tmp_path) == "wrong_clock"
    assert became("remote", WORK["outputs that it has seen"][0], tmp_path) != "ok"


def of_a_block(part: int) -> Lie:
    """Of steps that are timed as a whole, one of so many is done; 0: one alone."""

    def sample(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
        done = max(n // part, 1) if part else 1
        return replace(honest(inputs, n if timing is not Timing.WHOLE else done, timing), steps=n)

    return Lie(sample=sample)


def test_steps_too_short_to_be_timed_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is a script's, the many steps of such blocks are not: few lies."""
    monkeypatch.setattr(lying, "ITEM_NS", 1000)
    assert became("remote", Lie(), tmp_path) == "ok"
    # A block that ends early has fewer times than such a session reports.
    assert became("remote", of_a_block(0), tmp_path) in {"work_skipped", "bad_block"}
    assert became("pytorch", Lie(), tmp_path) == "ok"
    assert became("pytorch", of_a_block(10), tmp_path) in {"work_skipped", "bad_block"}


@pytest.mark.parametrize("value", [-3.4e38, -math.inf, 2e38])
def test_weights_that_cannot_be_doubled_are_what_they_were(value: float) -> None:
    """As a mask may be: twice it is infinite, and half of that too."""
    session = KINDS["pytorch"](Job(CASE, CPU), Lie())
    weights = list(session._module.parameters())
    with torch.no_grad():
        weights[0][0, 0] = value
    before = [one.clone() for one in weights]
    with session.other_weights():
        assert not torch.equal(weights[0], before[0])
    assert all(torch.equal(*pair) for pair in zip(weights, before, strict=True))


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("late_ms", [0.6, 8.0])
def test_work_that_is_done_when_outputs_are_asked_for(
    kind: str, keeps: bool, late_ms: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another process up to 12 ms cannot be told from the way there and back."""
    monkeypatch.setattr(lying, "ITEM_NS", round(late_ms * 1e6) // BATCH)
    assert became(kind, Lie(), tmp_path) == "ok"
    is_seen = kind == "pytorch" or (late_ms > 1 and keeps)
    found = became(kind, answered_late(keeps), tmp_path)
    assert (
        found in {"wrong_steps", "cached", "work_skipped", "unsynchronised"}
        if is_seen
        else found == "ok"
    )


#: It cannot be told from a machine that became slower.
EARLY = {
    "six blocks": early(lambda kept: kept["blocks"] < 6),
    "twelve blocks": early(lambda kept: kept["blocks"] < 12),
}


@pytest.mark.parametrize("name", EARLY)
def test_who_is_honest_only_after_the_measurement_is_named(kind: str, name: str) -> None:
    WORLD.__init__()  # type: ignore[misc]
    lie = EARLY[name]
    lie.kept.clear()
    found = measured(opened(kind, lie)[0])
    assert found["metrics"]["latency_mean_ms"] < STEP_MS / 2
    assert any("times as long when they were asked for once more" in w for w in found["warnings"])


def test_steps_that_are_left_out_by_chance(kind: str, tmp_path: Path) -> None:
    """Their single steps are quick now and then, and leave right outputs."""
    found = became(kind, by_chance_left_out(0.45), tmp_path, iterations=400)
    assert found in {"work_skipped", "cached"}


class Blocks(KINDS["remote"]):  # type: ignore[misc]
    """An engine that is asked for many blocks at once, of which it may do one step each."""

    lies = False

    def unbroken_blocks(self, inputs: Any, steps: int, samples: int) -> list[Block]:
        done = 1 if self.lies else steps
        return [
            replace(self._sampler.sample(inputs, done, Timing.WHOLE), steps=steps)
            for _ in range(samples)
        ]


@pytest.mark.parametrize(("lies", "found"), [(False, "ok"), (True, "work_skipped")])
def test_blocks_that_are_asked_for_at_once(
    lies: bool, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lying, "ITEM_NS", 1000)
    monkeypatch.setattr(Blocks, "lies", lies)
    monkeypatch.setitem(KINDS, "blocks", Blocks)  # type: ignore[arg-type]
    assert became("blocks", Lie(), tmp_path) == found


def test_half_of_the_steps_of_long_blocks(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lying, "ITEM_NS", 500_000)
    assert became(kind, Lie(), tmp_path, iterations=80) == "ok"
    lie = Lie(sample=half_of_long_blocks)
    assert became(kind, lie, tmp_path, iterations=80) == "work_skipped"


# -- in which precision it computed


def reports(computes: str = "", **details: Any) -> Lie:
    """Computes in a precision, and reports these details and no others."""
    return Lie(computes=computes, evidence=lambda found: replace(found, details=details))


NARROW = ("bf16", "fp16", "int8", "amp-bf16")
#: Of pytorch's session, for each narrow precision.
IN_FP32 = {
    "fp32, and its evidence shows it": Lie(computes="fp32"),
    "fp32, and its weights show it": reports("fp32", weight_dtypes=["float32"], autocast=None),
    "fp32, and its products show it": reports("fp32", computed_in={"float": 0.9, "int8": 0.1}),
    "fp32, and nothing is reported": reports("fp32"),
}


@pytest.mark.parametrize("precision", NARROW)
@pytest.mark.parametrize("name", IN_FP32)
def test_fp32_is_no_narrow_result(name: str, precision: str, tmp_path: Path) -> None:
    found, proof = judged_case("pytorch", IN_FP32[name], tmp_path, precision=precision)
    assert (found, proof) == ("precision_changed", None)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_narrow_is_no_fp32_result(precision: str, tmp_path: Path) -> None:
    assert became("pytorch", Lie(computes=precision), tmp_path) == "precision_changed"
    silent = reports(precision)
    assert became("pytorch", silent, tmp_path) == "wrong_outputs"


@pytest.mark.parametrize("precision", ["fp32", *NARROW])
def test_who_computes_as_asked_is_proven(precision: str, tmp_path: Path) -> None:
    if precision == "int8":
        pytest.importorskip("torchao")
    found, proof = judged_case("pytorch", Lie(), tmp_path, precision=precision)
    assert found == "ok"
    assert proof == PrecisionProof(PrecisionWord.PROVEN)


@pytest.mark.parametrize("precision", ["bf16", "fp16", "amp-bf16"])
def test_who_reports_nothing_is_measured_and_not_proven(precision: str, tmp_path: Path) -> None:
    found, proof = judged_case("pytorch", reports(), tmp_path, precision=precision)
    assert found == "ok"
    assert proof is not None
    assert proof.word == PrecisionWord.NOT_PROVEN
    assert len(proof.warnings) == 1


def test_fp32_outputs_prove_what_nobody_reports(kind: str, tmp_path: Path) -> None:
    found, proof = judged_case(kind, reports(), tmp_path)
    assert (found, proof) == ("ok", PrecisionProof(PrecisionWord.PROVEN))


@pytest.mark.parametrize("precision", ["bf16", "fp16", "int8"])
def test_outputs_that_are_too_exact_for_what_is_reported_are_a_warning(
    precision: str, tmp_path: Path
) -> None:
    """Evidence may be forged; outputs that carry no rounding contradict it."""
    lie = reports("fp32", computed_in={precision: 1.0})
    lie.outputs = lie.step = lambda honest, inputs: {
        name: value * np.float32(1 + 2.6e-7) for name, value in honest(inputs).items()
    }
    found, proof = judged_case("pytorch", lie, tmp_path, precision=precision)
    assert found == "ok"
    assert proof is not None
    assert proof.word == PrecisionWord.NOT_PROVEN
    assert len(proof.warnings) == 1


@pytest.mark.parametrize("share", [-0.5, 3, True, "most"])
def test_a_share_that_is_none_is_bad_evidence(share: Any, tmp_path: Path) -> None:
    lie = reports(computed_in={"float32": share})
    assert became("pytorch", lie, tmp_path) == "bad_evidence"


def twelfth_less(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
    block = honest(inputs, n, timing)
    return replace(block, phase_ns={"step": [round(0.92 * ns) for ns in block.phase_ns["step"]]})


BEYOND = {
    "times of a twelfth less": Lie(sample=twelfth_less),
    "it names the device that was asked for, whichever did the work": said(devices=("cpu:0",)),
}


@pytest.mark.parametrize("name", BEYOND)
def test_beyond_any_check(kind: str, name: str, tmp_path: Path) -> None:
    """docs/measuring.md says so; what is caught one day leaves this list, and the page."""
    assert became(kind, BEYOND[name], tmp_path) == "ok"


def test_work_done_where_inputs_are_prepared_is_beyond_any_check(tmp_path: Path) -> None:
    """Of an engine whose weights nobody can change: else what is looked up would be not_real."""
    lie = Lie()
    lie.prepared = lie.outputs = remembered(lie)
    assert became("remote", lie, tmp_path) == "ok"
