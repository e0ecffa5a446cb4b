"""Lies in side values and columns that no honest engine tells; none is believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from lying import BATCH, CASE, CPU, ITEM_NS, KINDS, WORLD, Lie, measured, opened

from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Device, DeviceMemory
from accelbench.core.vocabulary import Mode
from accelbench.run.verify.plausibility import KnownFacts, remove_implausible

STEP_NS = BATCH * ITEM_NS
GPU = Device("cuda", "a card", memory_bytes=80 * 2**30, power_limit_watts=700.0)
STEP = {"latency_p50_ms": 5.0, "latency_max_ms": 6.0}
TRAINED = {"forward_ms": 2.0, "loss_ms": 0.1, "backward_ms": 2.5, "optimizer_ms": 0.4}


def gone(columns: dict[str, Any], device: Device = GPU, mode: Mode = Mode.INFERENCE) -> set[str]:
    """Return the columns that are removed from the columns of a step of 5 ms."""
    case: Case = replace(CASE, mode=mode)
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
def test_impossible_side_values_are_absent(
    columns: dict[str, Any], device: Device, mode: Mode
) -> None:
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
    ],
    ids=lambda one: str(one)[:40],
)
def test_possible_side_values_stay(columns: dict[str, Any], device: Device, mode: Mode) -> None:
    assert gone(columns, device, mode) == set()


@pytest.mark.parametrize("mb", [1e-6, 1e9])
def test_a_session_whose_memory_is_impossible(kind: str, mb: float) -> None:
    WORLD.__init__()  # type: ignore[misc]
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
def test_a_session_fills_its_own_columns_only(
    method: str, columns: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    WORLD.__init__()  # type: ignore[misc]
    told = type("Telling", (KINDS["remote"],), {method: lambda *_: columns})
    monkeypatch.setitem(KINDS, "telling", told)  # type: ignore[arg-type]
    bench, _ = opened("telling", Lie())
    with pytest.raises(CaseError) as caught:
        measured(bench, 10)
    assert caught.value.reason == "bad_evidence"
