"""Sessions that report impossible side values: these values are absent, with a reason."""

import itertools
from dataclasses import replace

import lying
import pytest
import torch
from lies import STEP_MS, thinned
from lying import WORLD, Lie, measured, opened

from accelbench.core.errors import CaseError
from accelbench.core.protocols import DeviceMemory
from accelbench.core.vocabulary import Quality
from accelbench.hardware.hostmemory import PageUse
from accelbench.hardware.thread_times import ThreadTimes
from accelbench.run.verify.precision_proof import refuse_uncompiled
from refusals import refusal


def first_step_compiles():
    """The first step is said to be all compiling but a microsecond."""
    lie = Lie()

    def sample(honest, inputs, n, timing):
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


@pytest.mark.parametrize("name", SIDE)
def test_values_that_cannot_be_are_absent(kind, name):
    lie, gone = SIDE[name]
    lie.kept.clear()
    WORLD.__init__()
    bench, _ = opened(kind, lie)
    found = measured(bench, 10)
    assert {n for n in gone if found["metrics"].get(n) is not None} == set()
    assert gone <= set(found["null_reasons"])
    assert "device" not in found["samples"]
    assert found["sampling"].keys() == found["samples"].keys()


@pytest.mark.parametrize("name", OPENING)
def test_times_of_opening_that_cannot_be_are_absent(kind, name):
    lie, gone = OPENING[name]
    WORLD.__init__()
    told = opened(kind, lie)[1]
    assert set(told["null_reasons"]) == gone[kind]
    assert not {f"{what}_ms" for what in told["timings"]} & gone[kind]


def test_a_first_step_while_the_model_is_opened_is_beyond_any_check(kind):
    """docs/measuring.md names it: one step more is within what opening may leave unexplained."""
    WORLD.__init__()
    bench, told = opened(kind, Lie(opening_ns=2 * 10**9))
    assert told["null_reasons"] == {}
    assert measured(bench, 10)["metrics"]["first_inference_ms"] is not None


def test_an_honest_session_keeps_every_value(kind):
    WORLD.__init__()
    bench, told = opened(kind, Lie(compile=10**9, compiling_ns=10**9))
    found = measured(bench, 10)
    assert told["null_reasons"] == {}
    assert told["timings"]["load"] == lying.LOAD_NS
    assert set(found["null_reasons"]) == {"cpu_wait_share"}
    assert found["metrics"]["compile_ms"] == 1000.0
    assert found["metrics"]["first_inference_ms"] > STEP_MS


def times_of(threads, machine_ns):
    """A reader of threads that ran and waited for so long between two readings, a second apart."""
    readings = itertools.count()

    def read(_):
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
def test_threads_are_those_that_were_busy_and_had_a_cpu(threads, machine, known, usable):
    WORLD.__init__()
    bench, _ = opened("pytorch", Lie(), read_times=times_of(threads, machine))
    found = measured(bench, 10)
    assert ("threads" not in found["null_reasons"]) is known
    assert (found["quality"] != Quality.UNUSABLE) is usable
    assert found["metrics"]["cpu_wait_share"] == pytest.approx(
        threads[0][1] / sum(threads[0]), abs=1e-9
    )


@pytest.mark.parametrize(
    ("faults", "system_s", "warned"),
    [(10_400, 0.28, True), (1_000, 0.28, False), (10_400, 0.1, False)],
)
def test_memory_that_each_step_touches_anew_is_warned_of_in_the_process_that_measures(
    faults, system_s, warned
):
    WORLD.__init__()
    readings = iter([PageUse(7, 1.0, 1.0), PageUse(7 + faults, 2.0 - system_s, 1.0 + system_s)])
    bench, _ = opened("pytorch", Lie(), read_pages=lambda: next(readings))
    found = measured(bench, 10)
    details = found["evidence"]["details"]
    assert details.get("page_faults_per_step") == faults / 10
    assert details.get("system_time_share") == system_s
    assert any("memory pages anew" in warning for warning in found["warnings"]) is warned


@pytest.mark.parametrize(
    ("ran", "waited", "named"),
    [(S // 20, 0, True), (S // 20, S // 2, False), (9 * S // 10, 0, False)],
)
def test_work_that_is_not_done_by_the_worker_is_named(ran, waited, named):
    """Another process or device does it, which the evidence does not name."""
    WORLD.__init__()
    bench, _ = opened("pytorch", Lie(), read_times=times_of([(ran, waited)], 2 * S))
    assert any("had work for" in warning for warning in measured(bench, 10)["warnings"]) is named


@pytest.mark.parametrize(("waiting", "ended"), [(2 * S // 3, "unusable"), (S // 10, "refused")])
def test_no_case_fails_by_times_alone_while_others_have_the_cpus(kind, waiting, ended):
    """Others have them after the steady state, while its times are compared with single steps."""
    readings = itertools.count()

    def read(_):
        at = next(readings)
        waited = max(0, at - 1) * waiting
        ran = at * S - waited
        return ThreadTimes(at * S, ran, {1: ran}, {1: waited}, 2 * at * S, 2)

    WORLD.__init__()
    bench, _ = opened(kind, Lie(sample=thinned(2)), read_times=read)
    try:
        found = measured(bench)["quality"]
    except CaseError as error:
        found = "refused" if error.reason == "work_skipped" else error.reason
    assert found == ended


@pytest.mark.parametrize("kind", ["pytorch"])
def test_steps_that_run_eagerly_are_not_compiled(kind, monkeypatch):
    """TORCHDYNAMO_DISABLE makes torch.compile return the module as it is, without a word."""
    monkeypatch.setattr(torch, "compile", lambda module, **_: module)
    compiled = replace(lying.CASE, options={"compile": True})
    WORLD.__init__()
    bench, _ = opened(kind, Lie(), case=compiled)
    with refusal("compile_failed"):
        measured(bench, 10, compiled)


@pytest.mark.parametrize("details", [{}, {"compiled_graphs": 1}])
def test_compilation_that_nothing_shows_is_not_proven(details):
    """Engines of other packages may show neither graphs nor a time."""
    compiled = replace(lying.CASE, options={"compile": True})
    assert bool(refuse_uncompiled(compiled, details, None)) is not bool(details)
    assert not refuse_uncompiled(compiled, details, 5.0)
    assert not refuse_uncompiled(lying.CASE, details, None)
