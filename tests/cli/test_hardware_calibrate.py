"""`accelbench hardware --calibrate`: what is measured of which devices, shown and kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shells import Command

from accelbench.core.calibration import DeviceCalibration
from accelbench.core.errors import SurroundingsError
from accelbench.core.protocols import Absent, Device
from accelbench.hardware import detect
from accelbench.run import calibrating
from accelbench.store.database import Database
from made_up_calibration import made_calibration, with_collectives

HERE = {
    "cpu": [Device("cpu", "A processor", count=2)],
    "cuda": [Device("cuda", "A card", n, memory_bytes=2**34 + n) for n in range(2)],
    "mps": [Absent("mps", "this is no Mac", "Use one")],
    "rocm": [Absent("rocm", "no AMD GPU", "Fit one")],
    "openvino": [Device("openvino", "A processor")],
}


@pytest.fixture
def hardware(command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command on a made-up machine, whose probes take no time."""
    monkeypatch.setattr(detect, "detect", lambda name: HERE[name])
    monkeypatch.setattr(detect, "detect_all", lambda: HERE)

    def calibrate(
        device: Device, hear: Callable[[int, int], None], processes: int
    ) -> DeviceCalibration:
        hear(1, 1)
        return made_calibration(device, bf16=3.25e12, day=f"2026-03-0{1 + device.ordinal}")

    monkeypatch.setattr(calibrating, "calibrate", calibrate)
    return command("hardware")


def peaks() -> list[tuple[Any, ...]]:
    sql = "SELECT hardware, device_name, peak_compute_flops FROM hardware_info ORDER BY ALL"
    return Database(Path("accelbench.duckdb")).query(sql)[1]


def test_a_device_is_calibrated_shown_and_kept(hardware):
    code, out, err = hardware("--calibrate", "--hardware", "cpu")
    assert code == 0, err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "cpu: A processor, torch 2.13.0, 2 threads, 2026-03-01 05:06 UTC" in lines
    assert "matmul fp32 100 GFLOP/s 99.0 … 102 1024³" in lines
    assert "matmul bf16 3.25 TFLOP/s 3.22 … 3.31 1024³" in lines
    assert "memory fp32 20.0 GB/s 19.8 … 20.4 triad, 3 × 64 MiB" in lines
    assert "L2 cache fp32 80.0 GB/s 79.2 … 81.6 copy, 2 × 256 KiB" in lines
    assert "launch fp32 2.00 µs 1.98 … 2.04 1 value" in lines
    assert "left out: probe/matmul-4096 fp32: a step would take about 3 s" in lines
    assert "8 probes, 40 blocks, all of them kept." in lines
    assert peaks() == [("cpu", "A processor", 100e9)]


def test_without_a_name_it_is_every_device_that_pytorch_serves(hardware):
    assert hardware("--calibrate")[0] == 0
    assert [(kind, name) for kind, name, _ in peaks()] == [
        ("cpu", "A processor"), ("cuda", "A card"), ("cuda", "A card"),
    ]  # fmt: skip


def test_one_of_several_cards_is_named_by_its_number(hardware):
    found = hardware.json("--calibrate", "cuda:1")
    (calibration,) = found["calibrations"]
    assert calibration["fingerprint"] == HERE["cuda"][1].fingerprint
    assert all(len(figure["samples_ns"]) == 5 for figure in calibration["figures"])


def test_hardware_shows_the_newest_calibration_with_its_day(hardware):
    assert "Calibrated" not in hardware()[1]
    hardware("--calibrate", "cpu")
    out = " ".join(hardware()[1].split())
    assert (
        "cpu:0 fp32 100 GFLOP/s, bf16 3.25 TFLOP/s, memory 20.0 GB/s (2026-03-01, torch 2.13.0)"
        in out
    )
    document = hardware.json()["hardware"]
    (processor,) = document["cpu"]["devices"]
    assert processor["calibration"]["peak_flops"] == {"fp32": 100e9, "bf16": 3.25e12}
    assert processor["calibration"]["bandwidth_bytes_per_s"] == 20e9
    assert processor["calibration"]["launch_s"] == 2e-6
    assert [card["calibration"] for card in document["cuda"]["devices"]] == [None, None]


def test_collectives_are_timed_where_processes_are_several_and_shown_afterwards(
    hardware, monkeypatch
):
    counts: list[int] = []

    def calibrate(device: Device, hear: object, processes: int) -> DeviceCalibration:
        counts.append(processes)
        return with_collectives(made_calibration(device), processes)

    monkeypatch.setattr(calibrating, "calibrate", calibrate)
    code, out, err = hardware("--calibrate", "cpu", "--processes", "2")
    assert (code, counts) == (0, [2]), err
    assert "about 50 s" in err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "all_reduce 1MiB 584 1.79 1.79 1.74 … 1.85" in lines
    said = " ".join(hardware()[1].split())
    assert "cpu:0 2 ranks: all_reduce 1.99 GB/s, 60.5 µs; all_gather 0.827 GB/s, 72.6 µs" in said
    (processor,) = hardware.json()["hardware"]["cpu"]["devices"]
    (timed,) = processor["collectives"]
    assert timed["ranks"] == 2
    assert {entry["collective"] for entry in timed["figures"]} == {
        "all_reduce", "all_gather", "reduce_scatter", "broadcast",
    }  # fmt: skip
    assert timed["figures"][0]["bytes"] == 1024
    assert timed["figures"][0]["seconds"] == pytest.approx(60.5e-6, rel=1e-3)
    # What is stored of the device itself has nothing of them.
    assert peaks() == [("cpu", "A processor", 100e9)]


def test_peaks_from_a_busy_machine_are_shown_as_such(hardware, monkeypatch):
    def calibrate(device: Device, hear: object, processes: int) -> DeviceCalibration:
        return replace(made_calibration(device), warnings=("Others used 40 %.",))

    monkeypatch.setattr(calibrating, "calibrate", calibrate)
    assert "warning: Others used 40 %." in hardware("--calibrate", "cpu")[1]
    assert "torch 2.13.0, beside other work)" in " ".join(hardware("cpu")[1].split())


def test_what_pytorch_does_not_serve_has_no_probes(hardware):
    code, _, err = hardware("--calibrate", "openvino")
    assert code == 2
    assert "There are no probes for 'openvino'" in err
    assert not Path("accelbench.duckdb").exists()


def test_a_device_that_is_named_and_not_here_is_said_with_its_reason(hardware):
    code, _, err = hardware("--calibrate", "mps")
    assert code == 3
    assert "mps is not here: this is no Mac." in err
    code, _, err = hardware("--calibrate", "cuda:7")
    assert code == 3
    assert "There is no device 'cuda:7' here." in err


def test_a_calibration_that_fails_stores_nothing_of_its_device(hardware, monkeypatch):
    def fails(device: Device, hear: object, processes: int) -> DeviceCalibration:
        raise SurroundingsError("No probe could be timed.", "Look.")

    monkeypatch.setattr(calibrating, "calibrate", fails)
    code, _, err = hardware("--calibrate", "cpu")
    assert code == 3
    assert "No probe could be timed. Look." in err
    assert peaks() == []


def test_a_device_that_fails_does_not_keep_the_next_one_from_its_calibration(hardware, monkeypatch):
    """A PyTorch built for the CPU alone, on a machine with cards."""

    def calibrate(device: Device, hear: object, processes: int) -> DeviceCalibration:
        if device.hardware == "cpu":
            raise SurroundingsError("No figure of the CPU.")
        return made_calibration(device)

    monkeypatch.setattr(calibrating, "calibrate", calibrate)
    code, out, err = hardware("--calibrate", "--hardware", "cpu", "cuda:0", "--json")
    assert code == 3
    assert "No figure of the CPU." in err
    assert [entry["device_name"] for entry in json.loads(out)["calibrations"]] == ["A card"]
    assert [kind for kind, _, _ in peaks()] == ["cuda"]


def test_a_database_that_cannot_be_read_does_not_hide_the_hardware(hardware):
    Path("accelbench.duckdb").write_bytes(b"no database" * 100)
    code, out, err = hardware("cpu")
    assert code == 0
    assert "A processor" in out
    assert "accelbench.duckdb" in err
    code, _, _ = hardware("cpu", "--db", "accelbench.duckdb")
    assert code == 3
