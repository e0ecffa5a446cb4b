"""Sessions that do less work in timed steps than for their outputs; none is ok."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from judging import became
from lies import (
    by_chance_left_out,
    cached,
    early,
    first_item,
    half,
    half_filled_up,
    left_out,
    recomputed,
    remembered,
)
from lying import BATCH, CASE, CPU, ITEM_NS, KINDS, WORLD, Lie

from accelbench.core.protocols import Job
from accelbench.core.vocabulary import Timing
from accelbench.run.worker.case_checks import CaseChecks


def narrow(step, inputs):
    found = step(inputs)["scores"]
    if isinstance(found, torch.Tensor):
        return {"scores": found.bfloat16().float()}
    return {"scores": found.astype(np.float16).astype(np.float32) * np.float32(1 + 2e-3)}


def every_other():
    lie = Lie()

    def step(honest, inputs):
        """Every second call gives what the first one gave."""
        lie.kept["calls"] = lie.kept.get("calls", 0) + 1
        if lie.kept["calls"] % 2 or lie.kept.get("of") is not inputs:
            lie.kept["found"], lie.kept["of"] = honest(inputs), inputs
        else:
            WORLD.clock.advance(10_000)
        return lie.kept["found"]

    lie.step = step
    return lie


def computed_before():
    """Of inputs that are new everything is computed before the first step is timed."""
    lie = Lie()
    lie.outputs = remembered(lie)

    def sample(honest, inputs, n, timing):
        honest(inputs, 1, timing)
        return honest(inputs, n, timing)

    lie.sample = sample
    return lie


def said_to_compile():
    """What a first step with new inputs takes is said to be compiling."""
    lie = Lie()
    lie.outputs = remembered(lie)

    def sample(honest, inputs, n, timing):
        block = honest(inputs, n, timing)
        whole = sum(block.phase_ns["step"])
        return replace(block, compile_ns=whole - 1000) if whole > 1_000_000 else block

    lie.sample = sample
    return lie


def looked_up(key_of, uses=1):
    """Outputs are kept by a key of the inputs, once that was used so often."""
    lie = Lie()

    def step(honest, inputs):
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


def whole_content(features):
    return bytes(np.ascontiguousarray(features))


def of_sizes(is_lazy):
    """Of blocks of some sizes only the first step is done."""
    lie = early(lambda kept: is_lazy(kept["size"]))
    begun = lie.sample
    assert begun is not None

    def sample(honest, inputs, n, timing):
        lie.kept["size"] = n
        return begun(honest, inputs, n, timing)

    lie.sample = sample
    return lie


def one_behind():
    """Each step gives what the one before has computed."""
    lie = Lie()

    def step(honest, inputs):
        found = honest(inputs)
        before, lie.kept["found"] = lie.kept.get("found", found), found
        return before

    lie.step = step
    return lie


def half_of_the_features(step, inputs):
    """The first half of each sequence stands for the second one."""
    (features,) = inputs.values()
    WORLD.clock.advance(-len(features) * ITEM_NS // 2)
    twice = np.tile(np.asarray(features)[:, :8], (1, 2))
    return step({"features": torch.from_numpy(twice) if torch.is_tensor(features) else twice})


def with_noise(step, inputs):
    """A narrower type, whose error is hidden under noise."""
    found = np.asarray(step(inputs)["scores"])
    noise = np.random.default_rng(3).standard_normal(found.shape)
    whole = (found * (1 + 5e-4 * noise)).astype(np.float32)
    is_torch = torch.is_tensor(next(iter(inputs.values())))
    return {"scores": torch.from_numpy(whole) if is_torch else whole}


def stale():
    """What it gave first it gives for ever."""
    lie = Lie()

    def step(honest, inputs):
        WORLD.clock.advance(100_000)
        if "found" not in lie.kept:
            lie.kept["found"] = honest(inputs)
        return lie.kept["found"]

    lie.step = step
    return lie


def sleeping(honest, inputs):
    WORLD.clock.advance(500_000)


def ones(honest, inputs):
    return {"scores": np.ones((len(next(iter(inputs.values()))), 24), np.float32)}


def drawn(honest, inputs):
    draw = np.random.default_rng(WORLD.clock.time_ns)
    return {"scores": draw.standard_normal((len(next(iter(inputs.values()))), 24), np.float32)}


def shifted(honest, inputs):
    return {name: one + 0.1 for name, one in honest(inputs).items()}


def of_the_first(honest, inputs):
    found = honest(inputs)["scores"]
    return {"scores": np.repeat(np.asarray(found)[:1], len(found), 0)}


def last_of_a_block(honest, inputs, n, timing):
    """One step is done, and its time is said to be that of all of them."""
    block = honest(inputs, 1, timing)
    each = sum(block.phase_ns["step"]) // n
    found = [each * n] if timing is Timing.WHOLE else [each] * n
    return replace(block, steps=n, phase_ns={"step": found})


def computed_late():
    """A cache; of inputs that it has not seen the last step of a block computes alone."""
    lie = Lie()
    look = remembered(lie)
    lie.outputs = look

    def sample(honest, inputs, n, timing):
        lie.kept["left"] = n
        return honest(inputs, n, timing)

    def step(honest, inputs):
        lie.kept["left"] -= 1
        if lie.kept["left"] > 0:
            WORLD.clock.advance(10_000)
            return None
        return look(honest, inputs)

    lie.sample, lie.step = sample, step
    return lie


def partly_remembered(share):
    """A step costs less by this share with inputs that it has seen."""
    lie = Lie()

    def step(honest, inputs):
        seen = lie.kept.get("of") is inputs
        lie.kept["of"] = inputs
        before = WORLD.clock.time_ns
        found = honest(inputs)
        WORLD.clock.time_ns -= int(share * (WORLD.clock.time_ns - before)) if seen else 0
        return found

    lie.step = step
    return lie


def late(every):
    """The device is waited for at the end of a block alone, or at every so manieth step."""
    lie = Lie(waits=False)

    def sample(honest, inputs, n, timing):
        lie.kept["left"] = n
        return honest(inputs, n, timing)

    def step(honest, inputs):
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
    "one step of three": (
        left_out(lambda number: number % 3 != 1), {"cached", "work_skipped"}
    ),
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


def test_who_keeps_nothing_of_its_steps_is_measured_with_a_warning(tmp_path):
    """A runtime of another package, say, that was written before anybody asked."""

    class Forgetful(KINDS["remote"]):
        stepped = None

    WORLD.__init__()
    session = Forgetful(Job(CASE, CPU), Lie())
    checks = CaseChecks(session, CPU, 0, WORLD.clock, WORLD.clock)
    checks.steady_state_over()
    found = checks.of(CASE, BATCH * ITEM_NS, alone=False)
    assert found.steps_verified == "not_done"
    assert any("keeps nothing of what they leave" in one for one in found.warnings)


@pytest.mark.parametrize("name", WORK)
def test_what_work_was_done(kind, name, tmp_path):
    lie, reasons = WORK[name]
    lie.kept.clear()
    assert became(kind, lie, tmp_path) in reasons


@pytest.mark.parametrize("value", [-3.4e38, -math.inf, 2e38])
def test_weights_that_cannot_be_doubled_are_what_they_were(value):
    """As a mask may be: twice it is infinite, and half of that too."""
    session = KINDS["pytorch"](Job(CASE, CPU), Lie())
    weights = list(session._module.parameters())
    with torch.no_grad():
        weights[0][0, 0] = value
    before = [one.clone() for one in weights]
    with session.other_weights():
        assert not torch.equal(weights[0], before[0])
    assert all(torch.equal(*pair) for pair in zip(weights, before, strict=True))


def test_work_done_where_inputs_are_prepared_is_beyond_any_check(tmp_path):
    """Of an engine whose weights nobody can change: else what is looked up would be not_real."""
    lie = Lie()
    lie.prepared = lie.outputs = remembered(lie)
    assert became("remote", lie, tmp_path) == "ok"
