"""Sessions that lie about devices, blocks and times, each in a few lines; none is ok."""

import math
import time
from dataclasses import replace

import lying
import numpy as np
import pytest
from judging import became
from lies import STEP_MS, altered, cached, early, said, times
from lying import WORLD, Lie, measured, opened

from accelbench.core.protocols import DeviceMemory
from accelbench.core.vocabulary import Timing
from accelbench.engines.shared.local import LocalSampler
from accelbench.measure.validated_session import CheckedSession
from refusals import refusal

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
    "memory that is no number": Lie(memory=DeviceMemory(math.nan, 5, 5, "counter")),
}


def one_repeated(honest, inputs, n, timing):
    """One step is done, and n times the same is said."""
    block = honest(inputs, 1, timing)
    return replace(block, steps=n, phase_ns={"step": list(block.phase_ns["step"]) * n})


def constant(honest, inputs, n, timing):
    block = honest(inputs, n, timing)
    return (
        block
        if n == 1
        else replace(block, phase_ns={"step": [200_000] * len(block.phase_ns["step"])})
    )


def after_a_while(honest, inputs, n, timing):
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


def test_who_is_honest_is_measured(kind, tmp_path):
    assert became(kind, Lie(), tmp_path) == "ok"


@pytest.mark.parametrize("name", WHERE)
def test_where_it_ran(kind, name, tmp_path):
    lie, reason = WHERE[name]
    assert became(kind, lie, tmp_path) == reason


@pytest.mark.parametrize("name", BLOCKS)
def test_what_a_block_is(kind, name, tmp_path):
    assert became(kind, BLOCKS[name], tmp_path) == "bad_block"


@pytest.mark.parametrize("name", CLOCKS)
def test_what_time_it_took(kind, name, tmp_path):
    assert became(kind, CLOCKS[name], tmp_path) == "wrong_clock"


def test_a_far_engine_under_load_is_measured(tmp_path, monkeypatch):
    """Ten processes beside it: the way there and back takes as long as ten steps."""
    monkeypatch.setattr(lying, "ITEM_NS", 300_000)
    monkeypatch.setattr(lying, "LINK_NS", 30_000_000)
    assert became("remote", Lie(), tmp_path) == "ok"
    for name in ("times by three", "one step repeated"):
        assert became("remote", CLOCKS[name], tmp_path) == "wrong_clock"
    assert became("remote", cached(), tmp_path) != "ok"


#: It cannot be told from a machine that became slower.
EARLY = {
    "six blocks": early(lambda kept: kept["blocks"] < 6),
    "twelve blocks": early(lambda kept: kept["blocks"] < 12),
}


@pytest.mark.parametrize("name", EARLY)
def test_who_is_honest_only_after_the_measurement_is_named(kind, name):
    WORLD.__init__()
    lie = EARLY[name]
    lie.kept.clear()
    found = measured(opened(kind, lie)[0])
    assert found["metrics"]["latency_mean_ms"] < STEP_MS / 2
    assert any("times as long when they were asked for once more" in w for w in found["warnings"])


def test_a_clock_that_the_engine_replaces_is_seen_by_the_worker(monkeypatch):
    """The worker binds its own clock before the engine is opened."""
    from accelbench.core import clock

    wall, true = clock.MonotonicClock(), clock._NOW_NS
    monkeypatch.setattr(clock, "_NOW_NS", lambda: true() // 3)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: true() // 3)
    slow = clock.MonotonicClock()
    session = CheckedSession(Sleeping(slow), slow, wall)
    with refusal("wrong_clock"):
        sample_often(session)


def sample_often(session):
    for _ in range(60):
        session.sample(None, 3, Timing.EACH)


class Sleeping:
    """A session whose steps take two milliseconds."""

    phases = ("step",)

    def __init__(self, clock):
        self._sampler = LocalSampler(clock, lambda _: time.sleep(0.002))

    def sample(self, inputs, n, timing):
        return self._sampler.sample(inputs, n, timing)


def twelfth_less(honest, inputs, n, timing):
    block = honest(inputs, n, timing)
    return replace(block, phase_ns={"step": [round(0.92 * ns) for ns in block.phase_ns["step"]]})


BEYOND = {
    "times of a twelfth less": Lie(sample=twelfth_less),
    "it names the device that was asked for, whichever did the work": said(devices=("cpu:0",)),
}


@pytest.mark.parametrize("name", BEYOND)
def test_beyond_any_check(kind, name, tmp_path):
    """docs/measuring.md says so; what is caught one day leaves this list, and the page."""
    assert became(kind, BEYOND[name], tmp_path) == "ok"
