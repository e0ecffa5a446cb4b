"""Lies in side values and columns that no honest engine tells; none is believed."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from judging import became
from lies import first_value
from lying import BATCH, CASE, CPU, ITEM_NS, KINDS, WORLD, Lie, measured, opened

from accelbench.core.protocols import Block, Device, DeviceMemory
from accelbench.core.vocabulary import Mode
from accelbench.models.inputs import make_inputs
from accelbench.run.verify.plausibility import KnownFacts, remove_implausible
from refusals import refusal

STEP_NS = BATCH * ITEM_NS
GPU = Device("cuda", "a card", memory_bytes=80 * 2**30, power_limit_watts=700.0)
STEP = {"latency_p50_ms": 5.0, "latency_max_ms": 6.0}
TRAINED = {"forward_ms": 2.0, "loss_ms": 0.1, "backward_ms": 2.5, "optimizer_ms": 0.4}


def gone(columns, device=GPU, mode=Mode.INFERENCE):
    """Return the columns that are removed from the columns of a step of 5 ms."""
    case = replace(CASE, mode=mode)
    facts = KnownFacts(case, device, fastest_ns=5e6)
    left, reasons = remove_implausible({**STEP, **columns}, facts)
    assert {name for name, value in left.items() if value is None} == set(reasons)
    return set(reasons)


@pytest.mark.parametrize(
    ("columns", "device", "mode"),
    [
        ({"power_watts": 1e7, "energy_joules": 5e4}, GPU, Mode.INFERENCE),
        ({"power_watts": 1e7, "energy_joules": 5e4}, CPU, Mode.INFERENCE),
        ({name: 20 * ms for name, ms in TRAINED.items()}, GPU, Mode.TRAINING),
        ({"prefill_ms": 10.0, "decode_ms": 90.0}, GPU, Mode.INFERENCE),
        ({"embed_ms": 10.0, "retrieve_ms": 40.0, "generate_ms": 40.0}, GPU, Mode.INFERENCE),
        ({"device_memory_peak_mb": 1e-6, "memory_peak_mb": 1e-6}, GPU, Mode.INFERENCE),
        ({"device_memory_peak_mb": 1e9, "memory_peak_mb": 1e9}, GPU, Mode.INFERENCE),
        ({"device_memory_peak_mb": 1e7, "memory_peak_mb": 1e7}, GPU, Mode.INFERENCE),
        ({"memory_peak_mb": 1e9}, CPU, Mode.INFERENCE),
        ({"host_memory_peak_mb": 1e9}, GPU, Mode.INFERENCE),
        ({"first_inference_ms": 1e-3}, GPU, Mode.INFERENCE),
        ({"device_time_ms": 1e-4}, GPU, Mode.INFERENCE),
        ({"communication_share": 1.7}, GPU, Mode.INFERENCE),
        ({"data_load_ms": -3.0}, GPU, Mode.INFERENCE),
        ({"straggler_ratio": float("nan")}, GPU, Mode.INFERENCE),
    ],
    ids=lambda one: str(one)[:40],
)
def test_impossible_side_values_are_absent(columns, device, mode):
    assert gone(columns, device, mode) == set(columns)


@pytest.mark.parametrize(
    ("columns", "device", "mode"),
    [
        ({"power_watts": 900.0, "energy_joules": 4.5}, GPU, Mode.INFERENCE),
        ({"power_watts": 350.0}, CPU, Mode.INFERENCE),
        (TRAINED, GPU, Mode.TRAINING),
        ({name: 2.2 * ms for name, ms in TRAINED.items()}, GPU, Mode.TRAINING),
        ({"device_memory_peak_mb": 79_000.0, "memory_peak_mb": 79_000.0}, GPU, Mode.INFERENCE),
        ({"first_inference_ms": 5.0, "device_time_ms": 4.0}, GPU, Mode.INFERENCE),
        ({"prefill_ms": 4.0, "ttft_ms": 2.0}, GPU, Mode.INFERENCE),  # half of it was read by then
    ],
    ids=lambda one: str(one)[:40],
)
def test_possible_side_values_stay(columns, device, mode):
    assert gone(columns, device, mode) == set()


@pytest.mark.parametrize("mb", [1e-6, 1e9])
def test_a_session_whose_memory_is_impossible(kind, mb):
    WORLD.__init__()
    size = round(mb * 2**20)
    bench, _ = opened(kind, Lie(memory=DeviceMemory(size, size, size, "counter")))
    found = measured(bench, 10)
    assert found["metrics"]["device_memory_peak_mb"] is None
    assert {"device_memory_peak_mb", "memory_peak_mb"} <= set(found["null_reasons"])


# -- columns that are not the session's


@pytest.mark.parametrize(
    ("method", "columns"),
    [
        ("loaded", {"accuracy": 1.7}),
        ("loaded", {"latency_mean_ms": 0.001}),
        ("loaded", {"status": "ok", "emulated": False}),
        ("loaded", {"verification": "ok", "steps_verified": "ok"}),
        ("visits", {"first_visit_ms": 900.0, "throughput": 1e9}),
        ("exchanged", {"ranks": [], "power_watts": 5.0}),
    ],
)
def test_a_session_fills_its_own_columns_only(method, columns, monkeypatch):
    WORLD.__init__()
    told = type("Telling", (KINDS["remote"],), {method: lambda *_: columns})
    monkeypatch.setitem(KINDS, "telling", told)
    bench, _ = opened("telling", Lie())
    with refusal("bad_evidence"):
        measured(bench, 10)


# -- blocks that give the checks other times than the result


class Shrinking(int):
    """A time that adds up to what passed, and is written as a tenth of it."""

    def __add__(self, other):
        return 10 * int(self) + int(other)

    __radd__ = __add__


class Unstable(Block):
    """A block whose times are honest when they are first read only."""

    reads: dict[int, int] = {}  # noqa: RUF012 - by block

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name != "phase_ns":
            return found
        reads = Unstable.reads
        reads[id(self)] = reads.get(id(self), 0) + 1
        if reads[id(self)] <= 8:
            return found
        return {phase: [ns // 10 for ns in times] for phase, times in found.items()}


def shrunk(block):
    return replace(block, phase_ns={"step": [Shrinking(ns // 10) for ns in block.phase_ns["step"]]})


def test_times_that_add_up_to_something_else(kind, tmp_path):
    lie = Lie(sample=lambda honest, inputs, n, timing: shrunk(honest(inputs, n, timing)))
    assert became(kind, lie, tmp_path) == "bad_block"


def kept_and_changed():
    """Blocks are changed after they were checked, as a thread could do."""
    lie = Lie()
    lie.kept["times"] = []

    def sample(honest, inputs, n, timing):
        for times in lie.kept["times"]:
            times[:] = [max(ns // 10, 1) for ns in times]
        block = honest(inputs, n, timing)
        times = list(block.phase_ns["step"])
        lie.kept["times"] = [times]
        return replace(block, phase_ns={"step": times})

    lie.sample = sample
    return lie


def unstable():
    def sample(honest, inputs, n, timing):
        Unstable.reads.clear()
        block = honest(inputs, n, timing)
        return Unstable(block.steps, timing, dict(block.phase_ns))

    return Lie(sample=sample)


@pytest.mark.parametrize("lie", [kept_and_changed, unstable])
def test_times_that_change_after_they_were_checked_do_not_count(kind, lie):
    WORLD.__init__()
    found = measured(opened(kind, lie())[0], 20)
    assert found["metrics"]["latency_p50_ms"] >= STEP_NS / 1e6
    assert min(found["samples"]["step"]) >= STEP_NS


# -- engines that look for the check


def asked_by(*names):
    """Return whether a module with one of these names is on the stack."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if any(name in str(frame.f_globals.get("__name__")) for name in names):
            return True
    return False


def lazy_unless(is_watched):
    """Steps are honest while the engine believes that it is watched; others repeat the last one."""
    lie = Lie()

    def step(honest, inputs):
        if is_watched(inputs) or "found" not in lie.kept:
            lie.kept["found"] = honest(inputs)
        else:
            WORLD.clock.advance(10_000)
        return lie.kept["found"]

    lie.step = step
    return lie


SEEDED = first_value(make_inputs(CASE.model, CASE.shapes, 0, CASE.mode))
WATCHED = {
    "by the inputs of the job's seed": lazy_unless(lambda inputs: first_value(inputs) != SEEDED),
    "by a low sum of the inputs": lazy_unless(lambda inputs: first_value(inputs) < 0),
}


@pytest.mark.parametrize("name", WATCHED)
def test_engines_that_recognise_checks(kind, name, tmp_path):
    lie = WATCHED[name]
    lie.kept.clear()
    assert became(kind, lie, tmp_path) != "ok"


def test_engines_that_inspect_the_stack_are_beyond_any_check(kind, tmp_path):
    """docs/measuring.md names engines that recognise the checks and are honest while they last."""
    lie = lazy_unless(lambda _: asked_by("accelbench.run.verify"))
    assert became(kind, lie, tmp_path) == "ok"


def confident_exit(honest, inputs):
    """Items with a small first value end early, with a constant for outputs."""
    (features,) = inputs.values()
    found = honest({"features": features})["scores"]
    WORLD.clock.advance(-ITEM_NS * len(features) // 2)
    easy = np.asarray(features)[:, 0] < 0
    whole = np.where(easy[:, None], np.float32(0.5), np.asarray(found))
    return {"scores": torch.from_numpy(whole) if torch.is_tensor(found) else whole}


def other_inputs(honest, inputs):
    """Steps use inputs that are prepared faster, such as zeros."""
    return honest({name: values * 0 for name, values in inputs.items()})


def quantised(honest, inputs):
    """Outputs as of weights with 8 bits, only in timed steps."""
    found = honest(inputs)["scores"]
    scale = abs(found).max() / 127
    rounded = torch.round(found / scale) if torch.is_tensor(found) else np.round(found / scale)
    return {"scores": rounded * scale}


def on_disk(folder):
    """Outputs are stored in a file for each input, and read from there."""
    lie = Lie()

    def step(honest, inputs):
        (features,) = inputs.values()
        path = folder / f"{abs(hash(np.asarray(features).tobytes()))}.npy"
        if not path.exists():
            np.save(path, np.asarray(honest(inputs)["scores"]))
        WORLD.clock.advance(30_000)
        whole = np.load(path)
        return {"scores": torch.from_numpy(whole) if torch.is_tensor(features) else whole}

    lie.step = lie.outputs = step
    return lie


@pytest.mark.parametrize("step", [confident_exit, other_inputs, quantised])
def test_steps_that_compute_less(kind, step, tmp_path):
    assert became(kind, Lie(step=step), tmp_path) == "wrong_steps"


def test_outputs_that_are_read_from_files(kind, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    assert became(kind, on_disk(files), tmp_path) in {"cached", "not_real", "work_skipped"}
