"""Sessions that execute fewer steps than they report, or finish them later; none is ok."""

from dataclasses import replace
from functools import partial

import lying
import pytest
from judging import became
from lies import by_chance_left_out, first_item, half_filled_up, recomputed, thinned
from lying import BATCH, KINDS, WORLD, Lie

from accelbench.core.vocabulary import Timing


def answered_late(keeps):
    """A step only starts its work; whoever asks for its outputs has them computed.

    Args:
        keeps: whether what was computed is kept for whoever asks again.
    """
    lie = Lie()

    def step(honest, inputs):
        WORLD.clock.advance(2_000)
        lie.kept.clear()
        return lie

    def stepped(session, most):
        if not keeps or "found" not in lie.kept:
            lie.kept["found"] = recomputed(session, most)
        return lie.kept["found"]

    lie.step, lie.stepped = step, stepped
    return lie


def whole_at_the_end(less):
    """All steps of a block but the last, which is looked at, do less."""
    lie = Lie()

    def sample(honest, inputs, n, timing):
        lie.kept["left"] = n
        return honest(inputs, n, timing)

    def step(honest, inputs):
        lie.kept["left"] -= 1
        return honest(inputs) if lie.kept["left"] <= 0 else less(honest, inputs)

    lie.sample, lie.step = sample, step
    return lie


def half_from_seven_on(honest, inputs, n, timing):
    return honest(inputs, n, timing) if n < 7 else thinned(2)(honest, inputs, n, timing)


def half_of_long_blocks(honest, inputs, n, timing):
    """Blocks that are longer than those of checks: half of their steps, for the time of all."""
    if n <= 30:
        return honest(inputs, n, timing)
    block = honest(inputs, n // 2, timing)
    each = sum(block.phase_ns["step"]) // n
    return replace(block, steps=n, phase_ns={"step": [each] * n})


def thinned_mostly(share, of):
    """One block of some is done in full."""
    lie = Lie()

    def sample(honest, inputs, n, timing):
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


@pytest.mark.parametrize(
    ("name", "step_ms"),
    [*((name, ms) for name in MANY for ms in (4, 48)), *((name, 120) for name in [*MANY][:5])],
)
def test_how_many_steps_were_done(kind, name, step_ms, tmp_path, monkeypatch):
    monkeypatch.setattr(lying, "ITEM_NS", step_ms * 1_000_000 // BATCH)
    found = became(kind, MANY[name], tmp_path, iterations=12 if step_ms > 4 else 40)
    assert found in {"work_skipped", "cached", "wrong_steps", "unsynchronised"}


def of_a_block(part):
    """Of steps that are timed as a whole, one of so many is done; 0: one alone."""

    def sample(honest, inputs, n, timing):
        done = max(n // part, 1) if part else 1
        return replace(honest(inputs, n if timing is not Timing.WHOLE else done, timing), steps=n)

    return Lie(sample=sample)


def test_steps_too_short_to_be_timed_each(tmp_path, monkeypatch):
    """Time is a script's, the many steps of such blocks are not: few lies."""
    monkeypatch.setattr(lying, "ITEM_NS", 1000)
    assert became("remote", Lie(), tmp_path) == "ok"
    # A block that ends early has fewer times than such a session reports.
    assert became("remote", of_a_block(0), tmp_path) in {"work_skipped", "bad_block"}
    assert became("pytorch", Lie(), tmp_path) == "ok"
    assert became("pytorch", of_a_block(10), tmp_path) in {"work_skipped", "bad_block"}


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("late_ms", [0.6, 8.0])
def test_work_that_is_done_when_outputs_are_asked_for(kind, keeps, late_ms, tmp_path, monkeypatch):
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


def test_steps_that_are_left_out_by_chance(kind, tmp_path):
    """Their single steps are quick now and then, and leave right outputs."""
    found = became(kind, by_chance_left_out(0.45), tmp_path, iterations=400)
    assert found in {"work_skipped", "cached"}


class Blocks(KINDS["remote"]):
    """An engine that is asked for many blocks at once, of which it may do one step each."""

    lies = False

    def unbroken_blocks(self, inputs, steps, samples):
        done = 1 if self.lies else steps
        return [
            replace(self._sampler.sample(inputs, done, Timing.WHOLE), steps=steps)
            for _ in range(samples)
        ]


@pytest.mark.parametrize(("lies", "found"), [(False, "ok"), (True, "work_skipped")])
def test_blocks_that_are_asked_for_at_once(lies, found, tmp_path, monkeypatch):
    monkeypatch.setattr(lying, "ITEM_NS", 1000)
    monkeypatch.setattr(Blocks, "lies", lies)
    monkeypatch.setitem(KINDS, "blocks", Blocks)
    assert became("blocks", Lie(), tmp_path) == found


def test_half_of_the_steps_of_long_blocks(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(lying, "ITEM_NS", 500_000)
    assert became(kind, Lie(), tmp_path, iterations=80) == "ok"
    lie = Lie(sample=half_of_long_blocks)
    assert became(kind, lie, tmp_path, iterations=80) == "work_skipped"
