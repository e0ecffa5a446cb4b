"""Sessions that lie, each in a few lines, and what becomes of their case: never ok.

The same lies are told by the pytorch runtime's own session and by one whose engine is elsewhere.
What no check sees is at the end, as docs/measuring.md names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lying
import numpy as np
import pytest
import torch
from lying import BATCH, CASE, CPU, ITEM_NS, KINDS, WORLD, Lie, became

from accelbench.core.protocols import Block, DeviceMemory, Job
from accelbench.core.vocabulary import Timing
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


WORK = {
    "outputs that it has seen, computed by the last step": (
        computed_late(),
        {"cached", "not_real"},
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
    assert found in {"work_skipped", "cached", "wrong_steps"}


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
    assert became("remote", of_a_block(0), tmp_path) == "work_skipped"
    assert became("pytorch", Lie(), tmp_path) == "ok"
    assert became("pytorch", of_a_block(10), tmp_path) == "work_skipped"


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


def twelfth_less(honest: Sample, inputs: Any, n: int, timing: Timing) -> Block:
    block = honest(inputs, n, timing)
    return replace(block, phase_ns={"step": [round(0.92 * ns) for ns in block.phase_ns["step"]]})


def half_remembered() -> Lie:
    """A step costs half as much with inputs that it has seen."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        seen = lie.kept.get("of") is inputs
        lie.kept["of"] = inputs
        before = WORLD.clock.time_ns
        found = honest(inputs)
        WORLD.clock.time_ns -= (WORLD.clock.time_ns - before) // 2 if seen else 0
        return found

    lie.step = step
    return lie


BEYOND = {
    "times of a twelfth less": Lie(sample=twelfth_less),
    "half of a step is remembered": half_remembered(),
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
