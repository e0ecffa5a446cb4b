"""Sampling in process: the exact order of clock, step and synchronise, and the collector off."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from accelbench.core.vocabulary import Timing
from accelbench.engines.shared.local import LocalSampler, Mark


class Recorder:
    """An engine on a clock that ticks at every reading, and notes every call."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.time = 0
        self.collecting: list[bool] = []

    def now_ns(self) -> int:
        self.calls.append("now")
        return self.time

    def tick_ns(self) -> float:
        return 1.0

    def step(self, inputs: Any) -> None:
        self.calls.append("step")
        self.collecting.append(gc.isenabled())
        self.time += 7

    def synchronize(self) -> None:
        self.calls.append("sync")
        self.time += 100

    def split(self, inputs: Any, mark: Mark) -> None:
        self.calls.append("forward")
        self.time += 10
        mark("forward")
        self.calls.append("backward")
        self.time += 20
        mark("backward")

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        self.calls.append("enter")
        try:
            yield
        finally:
            self.calls.append("leave")


class Timer:
    def __init__(self, engine: Recorder) -> None:
        self._engine = engine

    def record(self) -> int:
        self._engine.calls.append("event")
        return self._engine.time

    def elapsed_ns(self, start: int, end: int) -> int:
        self._engine.calls.append("elapsed")
        return end - start


def sampler(engine: Recorder, asynchronous: bool, **more: Any) -> LocalSampler:
    return LocalSampler(
        clock=engine,
        step=engine.step,
        synchronize=engine.synchronize if asynchronous else None,
        **more,
    )


def test_each_step_is_between_two_readings():
    engine = Recorder()
    block = sampler(engine, asynchronous=False).sample(None, 3, Timing.EACH)
    assert engine.calls == ["now", "step", "now"] * 3
    assert block.phase_ns == {"step": [7, 7, 7]}
    assert (block.steps, block.timing) == (3, Timing.EACH)


def test_each_step_of_a_device_is_waited_for_before_the_second_reading():
    engine = Recorder()
    block = sampler(engine, asynchronous=True).sample(None, 2, Timing.EACH)
    assert engine.calls == ["sync"] + ["now", "step", "sync", "now"] * 2
    assert block.phase_ns == {"step": [107, 107]}


def test_a_whole_block_has_two_readings_and_waits_twice():
    engine = Recorder()
    block = sampler(engine, asynchronous=True).sample(None, 3, Timing.WHOLE)
    assert engine.calls == ["sync", "now", "step", "step", "step", "sync", "now"]
    assert block.phase_ns == {"step": [3 * 7 + 100]}
    engine = Recorder()
    block = sampler(engine, asynchronous=False).sample(None, 3, Timing.WHOLE)
    assert engine.calls == ["now", "step", "step", "step", "now"]
    assert block.phase_ns == {"step": [21]}


def test_phases_are_waited_for_one_by_one():
    engine = Recorder()
    block = sampler(engine, asynchronous=True, split=engine.split).sample(None, 2, Timing.PHASES)
    one = ["sync", "now", "forward", "sync", "now", "backward", "sync", "now"]
    assert engine.calls == one * 2
    assert block.phase_ns == {"forward": [110, 110], "backward": [120, 120]}


def test_phases_without_a_device_need_no_waiting():
    engine = Recorder()
    block = sampler(engine, asynchronous=False, split=engine.split).sample(None, 1, Timing.PHASES)
    assert "sync" not in engine.calls
    assert block.phase_ns == {"forward": [10], "backward": [20]}


def test_event_timers_are_read_only_after_the_device_is_done():
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

    def failing(inputs: Any) -> None:
        raise RuntimeError("broken")

    broken = LocalSampler(clock=engine, step=failing, around=engine.around)
    with pytest.raises(RuntimeError, match="broken"):
        broken.sample(None, 1, Timing.EACH)
    assert gc.isenabled()
    assert engine.calls[0] == "enter"
    assert engine.calls[-1] == "leave"


def test_the_engines_mode_is_entered_once_a_block():
    engine = Recorder()
    sampler(engine, asynchronous=False, around=engine.around).sample(None, 2, Timing.EACH)
    assert engine.calls == ["enter", "now", "step", "now", "now", "step", "now", "leave"]


def test_compilations_are_those_of_the_block():
    totals = iter([(3, 300), (5, 900)])
    block = sampler(Recorder(), asynchronous=False, compiled=lambda: next(totals)).sample(
        None, 1, Timing.EACH
    )
    assert (block.compilations, block.compile_ns) == (2, 600)


class Left:
    """What a step leaves; how many there are is known."""

    alive = 0

    def __init__(self) -> None:
        Left.alive += 1

    def __del__(self) -> None:
        Left.alive -= 1


@pytest.mark.parametrize("timing", [Timing.EACH, Timing.WHOLE])
@pytest.mark.parametrize("waits", [True, False])
def test_what_the_last_step_left_is_kept_and_no_other_beside_it(timing, waits):
    """Two at a time would be in the peak of every memory figure."""
    engine, before = Recorder(), []

    def step(inputs: Any) -> Left:
        before.append(Left.alive)
        return Left()

    sampler = LocalSampler(engine, step, engine.synchronize if waits else None)
    for _ in range(2):
        sampler.sample(None, 3, timing)
        assert isinstance(sampler.left, Left)
        assert Left.alive == 1
    assert before == [0] * 6
