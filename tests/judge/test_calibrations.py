"""Calibrations of a store: the newest of each device, and what is none."""

from __future__ import annotations

from dataclasses import replace

from accelbench.core.calibration import COLLECTIVE_WARNINGS, ProbeKind
from accelbench.core.facts import DEVICE_CALIBRATED, Fact
from accelbench.core.protocols import Device
from accelbench.judge.calibrations import (
    calibrations,
    calibrations_at,
    stored_collectives,
    stored_limits,
)
from accelbench.judge.machines import machine_of
from accelbench.store.journal import Journal
from made_up_calibration import (
    PROCESSOR,
    calibrated_store,
    made_calibration,
    probe_figure,
    with_collectives,
)

CARD = Device("cuda", "A card")


def test_of_each_device_the_newest_counts(tmp_path):
    database = calibrated_store(
        tmp_path / "a.duckdb",
        made_calibration(fp32=2e9, day="2026-03-06"),
        made_calibration(fp32=1e9, day="2026-03-05"),
        made_calibration(CARD, fp32=9e12, day="2026-01-01"),
    )
    assert [(entry.device_name, entry.measured_at[:10]) for entry in calibrations(database)] == [
        ("A card", "2026-01-01"), ("A processor", "2026-03-06"),
    ]  # fmt: skip
    limits = stored_limits(database)
    assert limits["cpu", "A processor"].peaks == {"fp32": 2e9}
    assert limits["cuda", "A card"].peaks == {"fp32": 9e12}
    assert limits["cpu", "A processor"].day == "2026-03-06"


def test_of_two_devices_of_a_name_the_one_calibrated_last_counts(tmp_path):
    larger = Device("cpu", "A processor", count=64)
    database = calibrated_store(
        tmp_path / "a.duckdb",
        made_calibration(fp32=2e9, day="2026-03-05"),
        made_calibration(larger, fp32=60e9, day="2026-03-06"),
    )
    assert len(calibrations(database)) == 2
    assert stored_limits(database)["cpu", "A processor"].peaks["fp32"] == 60e9


def test_a_merged_database_brings_its_calibrations(tmp_path):
    calibrated_store(tmp_path / "other.duckdb", made_calibration(fp32=3e9, day="2026-03-09"))
    database = calibrated_store(tmp_path / "a.duckdb", made_calibration(fp32=2e9))
    database.merge(tmp_path / "other.duckdb")
    assert stored_limits(database)["cpu", "A processor"].peaks["fp32"] == 3e9


def test_what_is_no_calibration_is_passed_over(tmp_path):
    database = calibrated_store(tmp_path / "a.duckdb", made_calibration())
    with Journal.create(database.journals, "odd") as journal:
        journal.append(Fact(DEVICE_CALIBRATED, "odd", {"fingerprint": "f", "figures": "none"}))
        journal.append(Fact(DEVICE_CALIBRATED, "odder", {"figures": [{"value": 1}]}))
    database.fill()
    assert [entry.fingerprint for entry in calibrations(database)] == [PROCESSOR.fingerprint]


def test_where_there_is_no_database_there_are_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)
    calibrated_store(tmp_path / "a.duckdb", made_calibration())
    heard: list[str] = []
    assert calibrations_at(None, heard.append).devices == []
    assert len(calibrations_at(tmp_path / "a.duckdb", heard.append).devices) == 1
    assert not heard


def test_collectives_outlive_a_calibration_without_them(tmp_path):
    two = with_collectives(made_calibration(day="2026-03-04"))
    four = with_collectives(made_calibration(day="2026-03-05"), ranks=4)
    database = calibrated_store(
        tmp_path / "a.duckdb", two, four, made_calibration(day="2026-03-06", fp32=7e9)
    )
    known = [(timed.ranks, timed.day) for timed in stored_collectives(database)]
    assert known == [(2, "2026-03-04"), (4, "2026-03-05")]
    found = calibrations_at(tmp_path / "a.duckdb", lambda _: None)
    assert [(timed.ranks, timed.day) for timed in found.collectives] == known
    assert [entry.measured_at[:10] for entry in found.devices] == ["2026-03-06"]


def test_collectives_beside_other_work_give_way_to_quiet_ones(tmp_path):
    quiet = with_collectives(made_calibration(day="2026-03-04"))
    busy = with_collectives(made_calibration(day="2026-03-05"))
    busy = replace(busy, conditions={COLLECTIVE_WARNINGS: ("Others used 40 %.",)})
    database = calibrated_store(tmp_path / "a.duckdb", quiet, busy)
    (timed,) = stored_collectives(database)
    assert (timed.day, timed.warnings) == ("2026-03-04", ())
    (timed,) = stored_collectives(calibrated_store(tmp_path / "b.duckdb", busy))
    assert timed.warnings == ("Others used 40 %.",)


def test_collectives_are_of_the_machine_that_is_asked_about(tmp_path):
    lab = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 24 * 2**30}
    database = calibrated_store(
        tmp_path / "a.duckdb", with_collectives(made_calibration()), machine=lab
    )
    assert len(stored_collectives(database, str(machine_of("", lab)))) == 1
    assert stored_collectives(database, "elsewhere (A processor, 2 CPUs, 24 GiB)") == []


def test_a_collective_that_does_not_say_its_ranks_is_passed_over(tmp_path):
    odd = probe_figure(1e9, ProbeKind.COLLECTIVE, "all_reduce-of-somebody")
    known = made_calibration()
    assert replace(known, figures=(*known.figures, odd)).collectives == []


def test_peaks_are_of_the_best_size_and_autocast_meets_its_narrow_type():
    limits = made_calibration(bf16=300e9, int8=500e9).limits
    assert limits is not None
    assert limits.peaks == {"fp32": 100e9, "bf16": 300e9, "int8": 500e9}
    assert limits.bandwidth == 20e9
    assert (limits.peak("amp-bf16"), limits.peak("int8"), limits.peak("fp16")) == (
        300e9,
        500e9,
        None,
    )
