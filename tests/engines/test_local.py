"""Sampling in process: the exact order of clock, step and synchronise, and the collector off."""

import contextlib
import gc

import pytest

from accelbench.core.vocabulary import Timing
from accelbench.engines.shared.local import LocalSampler


class Recorder:
    """An engine on a clock that ticks at every reading, and notes every call."""

    def __init__(self):
        self.calls = []
        self.time = 0
        self.collecting = []

    def now_ns(self):
        self.calls.append("now")
        return self.time

    def tick_ns(self):
        return 1.0

    def step(self, inputs):
        self.calls.append("step")
        self.collecting.append(gc.isenabled())
        self.time += 7

    def synchronize(self):
        self.calls.append("sync")
        self.time += 100

    def split(self, inputs, mark):
        self.calls.append("forward")
        self.time += 10
        mark("forward")
        self.calls.append("backward")
        self.time += 20
        mark("backward")

    @contextlib.contextmanager
    def around(self):
        self.calls.append("enter")
        try:
            yield
        finally:
            self.calls.append("leave")


class Timer:
    def __init__(self, engine):
        self._engine = engine

    def record(self):
        self._engine.calls.append("event")
        return self._engine.time

    def elapsed_ns(self, start, end):
        self._engine.calls.append("elapsed")
        return end - start


def sampler(engine, asynchronous, **more):
    return LocalSampler(
        clock=engine,
        step=engine.step,
        synchronize=engine.synchronize if asynchronous else None,
        **more,
    )


def test_readings_of_each_step_and_of_blocks():
    engine = Recorder()
    block = sampler(engine, asynchronous=False).sample(None, 3, Timing.EACH)
    assert engine.calls == ["now", "step", "now"] * 3
    assert block.phase_ns == {"step": [7, 7, 7]}
    assert (block.steps, block.timing) == (3, Timing.EACH)

    engine = Recorder()
    block = sampler(engine, asynchronous=True).sample(None, 2, Timing.EACH)
    assert engine.calls == ["sync"] + ["now", "step", "sync", "now"] * 2
    assert block.phase_ns == {"step": [107, 107]}

    engine = Recorder()
    block = sampler(engine, asynchronous=True).sample(None, 3, Timing.WHOLE)
    assert engine.calls == ["sync", "now", "step", "step", "step", "sync", "now"]
    assert block.phase_ns == {"step": [3 * 7 + 100]}
    engine = Recorder()
    block = sampler(engine, asynchronous=False).sample(None, 3, Timing.WHOLE)
    assert engine.calls == ["now", "step", "step", "step", "now"]
    assert block.phase_ns == {"step": [21]}


def test_phases_are_waited_for_on_a_device():
    engine = Recorder()
    block = sampler(engine, asynchronous=True, split=engine.split).sample(None, 2, Timing.PHASES)
    one = ["sync", "now", "forward", "sync", "now", "backward", "sync", "now"]
    assert engine.calls == one * 2
    assert block.phase_ns == {"forward": [110, 110], "backward": [120, 120]}

    engine = Recorder()
    block = sampler(engine, asynchronous=False, split=engine.split).sample(None, 1, Timing.PHASES)
    assert "sync" not in engine.calls
    assert block.phase_ns == {"forward": [10], "backward": [20]}
    engine = Recorder()
    block = sampler(engine, asynchronous=True, timer=Timer(engine)).sample(None, 2, Timing.DEVICE)
    assert engine.calls == ["event", "step", "event"] * 2 + ["sync", "elapsed", "elapsed"]
    assert block.phase_ns == {"step": [7, 7]}


@pytest.mark.parametrize("timing", [Timing.PHASES, Timing.DEVICE])
def test_what_a_session_does_not_offer_is_refused(timing):
    with pytest.raises(ValueError, match="has no"):
        sampler(Recorder(), asynchronous=True).sample(None, 1, timing)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("timing", [Timing.EACH, Timing.WHOLE])
def test_the_collector_is_off_inside_and_as_before_after(timing, on):
    engine = Recorder()
    (gc.enable if on else gc.disable)()
    try:
        sampler(engine, asynchronous=False).sample(None, 3, timing)
        assert gc.isenabled() is on
    finally:
        gc.enable()
    assert engine.collecting == [False] * 3


def test_the_collector_comes_back_after_an_error_too():
    engine = Recorder()

    def failing(inputs):
        raise RuntimeError("broken")

    broken = LocalSampler(clock=engine, step=failing, around=engine.around)
    with pytest.raises(RuntimeError, match="broken"):
        broken.sample(None, 1, Timing.EACH)
    assert gc.isenabled()
    assert engine.calls[0] == "enter"
    assert engine.calls[-1] == "leave"


def test_modes_and_compilations_are_those_of_the_block():
    engine = Recorder()
    sampler(engine, asynchronous=False, around=engine.around).sample(None, 2, Timing.EACH)
    assert engine.calls == ["enter", "now", "step", "now", "now", "step", "now", "leave"]

    totals = iter([(3, 300), (5, 900)])
    block = sampler(Recorder(), asynchronous=False, compiled=lambda: next(totals)).sample(
        None, 1, Timing.EACH
    )
    assert (block.compilations, block.compile_ns) == (2, 600)


class Left:
    """What a step leaves; how many there are is known."""

    alive = 0

    def __init__(self):
        Left.alive += 1

    def __del__(self):
        Left.alive -= 1


@pytest.mark.parametrize("timing", [Timing.EACH, Timing.WHOLE])
@pytest.mark.parametrize("waits", [True, False])
def test_what_the_last_step_left_is_kept_and_no_other_beside_it(timing, waits):
    """Two at a time would be in the peak of every memory figure."""
    engine, before = Recorder(), []

    def step(inputs):
        before.append(Left.alive)
        return Left()

    sampler = LocalSampler(engine, step, engine.synchronize if waits else None)
    for _ in range(2):
        sampler.sample(None, 3, timing)
        assert isinstance(sampler.left, Left)
        assert Left.alive == 1
    assert before == [0] * 6
