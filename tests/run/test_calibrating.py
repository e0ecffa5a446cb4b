"""A calibration as a whole: a worker that times this machine, and what becomes of its death."""

import json

import pytest

from accelbench.core.calibration import DeviceCalibration, ProbeKind
from accelbench.core.errors import SurroundingsError
from accelbench.core.protocols import Device
from accelbench.hardware.cpu import CpuDetector
from accelbench.run import calibrating
from made_up_calibration import PROCESSOR, calibrated_store, made_calibration

#: A worker without torch that says what a test has it say, then what is in its environment.
FAKE = "made_up_calibration_worker"


@pytest.fixture(scope="module")
def here():
    (device,) = CpuDetector().detect()
    assert isinstance(device, Device)
    heard = []
    calibration = calibrating.calibrate(device, 0.2, lambda done, of: heard.append((done, of)))
    return device, calibration, heard


def test_every_probe_of_a_cpu_has_a_figure_or_a_reason(here):
    device, calibration, heard = here
    kinds = {figure.spec.kind for figure in calibration.figures}
    assert {ProbeKind.MATRIX, ProbeKind.MEMORY, ProbeKind.LAUNCH, ProbeKind.ATTENTION} <= kinds
    assert heard[-1][0] == heard[-1][1] == len(calibration.figures) + len(calibration.refusals)
    assert all(refusal.reason for refusal in calibration.refusals)
    assert (calibration.fingerprint, calibration.hardware) == (device.fingerprint, "cpu")
    assert calibration.engine.startswith("torch ")
    assert calibration.threads


def test_its_figures_are_possible_and_follow_from_its_blocks(here):
    for figure in here[1].figures:
        seconds = sorted(figure.samples_ns)[len(figure.samples_ns) // 2] / figure.steps / 1e9
        rate = seconds if figure.spec.kind is ProbeKind.LAUNCH else figure.spec.work / seconds
        assert figure.value == pytest.approx(rate, rel=0.5)
    limits = here[1].limits
    assert 1e8 < limits.peaks["fp32"] < 1e14
    assert 1e8 < limits.bandwidth < 1e13


def test_it_is_the_same_when_it_is_read_from_its_fact(here):
    body = json.loads(json.dumps(here[1].to_body()))
    assert DeviceCalibration.from_body({**body, "run_id": "r"}) == here[1]


def fake_worker(monkeypatch, folder, *lines, end=""):
    """A worker that says these lines, and then ends as it is told."""
    said = "".join(f"print({json.dumps(json.dumps(line))}, flush=True)\n" for line in lines)
    (folder / f"{FAKE}.py").write_text(f"import os, sys\n{said}{end}\n")
    monkeypatch.setattr(calibrating, "WORKER", FAKE)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")


BEGIN = {"engine": "torch 9", "threads": 2, "facts": {}, "probes": 3}


def probe(name, kind="matrix product"):
    spec = {"kind": kind, "name": name, "precision": "fp32", "size": 8, "work": 1e6}
    return {"probe": spec, "steps": 1, "samples_ns": [1000] * 5}


def test_what_a_worker_had_said_when_it_died_is_kept_and_its_death_is_said(monkeypatch, tmp_path):
    crash = "print('{\"probe\": ', flush=True)\nos.abort()"
    fake_worker(monkeypatch, tmp_path, BEGIN, probe("probe/a"), end=crash)
    calibration = calibrating.calibrate(PROCESSOR, 0.1)
    assert [figure.spec.name for figure in calibration.figures] == ["probe/a"]
    assert calibration.refusals[-1].reason == "the worker ended before its last probe"
    assert calibration.limits is None  # without a bandwidth


def test_a_worker_that_cannot_measure_says_why(monkeypatch, tmp_path):
    fake_worker(monkeypatch, tmp_path, end="raise RuntimeError('no driver')")
    with pytest.raises(SurroundingsError, match=r"A processor .*RuntimeError: no driver"):
        calibrating.calibrate(PROCESSOR, 0.1)
    failed = {"failed": "PyTorch 9 sees no cuda device 0", "advice": "Install one."}
    fake_worker(monkeypatch, tmp_path, failed)
    with pytest.raises(SurroundingsError, match=r"sees no cuda device 0\. Install one\."):
        calibrating.calibrate(PROCESSOR, 0.1)


def test_a_worker_that_hangs_is_ended(monkeypatch, tmp_path):
    hang = "import time\ntime.sleep(60)"
    fake_worker(monkeypatch, tmp_path, BEGIN, probe("probe/a"), end=hang)
    monkeypatch.setattr(calibrating, "START_SECONDS", 0.5)
    calibration = calibrating.calibrate(PROCESSOR, 0.1)
    assert len(calibration.figures) == 1
    assert calibration.refusals


def test_the_database_has_peaks_with_their_provenance_and_every_block(tmp_path):
    database = calibrated_store(tmp_path / "a.duckdb", made_calibration(bf16=300e9))
    assert rows(
        database,
        "SELECT device_name, peak_compute_flops, peak_bandwidth_bytes_per_s, peaks_source,"
        " peaks_measured_at::VARCHAR FROM hardware_info",
    ) == [
        ("A processor", 100e9, 20e9, "measured by hardware --calibrate with torch 2.13.0",
         "2026-03-04 05:06:07"),
    ]  # fmt: skip
    figures = made_calibration(bf16=300e9).figures
    assert rows(
        database,
        "SELECT count(*), sum(len(samples)), count(DISTINCT calibration_id)"
        " FROM device_calibrations",
    ) == [(len(figures), 5 * len(figures), 1)]
    assert rows(
        database,
        "SELECT kind, value, value_low, unit, steps_per_block FROM device_calibrations"
        " WHERE probe = 'probe/launch'",
    ) == [("launch", 2e-6, 2e-6 * 0.99, "s", 10)]


def test_calibrating_again_replaces_the_peaks_and_keeps_the_blocks(tmp_path):
    database = calibrated_store(
        tmp_path / "a.duckdb", made_calibration(), made_calibration(fp32=80e9, day="2026-03-05")
    )
    sql = "SELECT peak_compute_flops, peaks_measured_at::DATE::VARCHAR FROM hardware_info"
    assert rows(database, sql) == [(80e9, "2026-03-05")]
    sql = "SELECT count(DISTINCT calibration_id) FROM device_calibrations"
    assert rows(database, sql) == [(2,)]


def test_it_is_no_run_and_no_result(tmp_path):
    database = calibrated_store(tmp_path / "a.duckdb", made_calibration())
    tables = database.status()["tables"]
    assert isinstance(tables, dict)
    assert (tables["benchmark_runs"], tables["benchmark_results"]) == (0, 0)
    assert database.status()["models"] == []


@pytest.mark.parametrize(
    ("around", "says"),
    [
        ({"foreign": 0.4, "steal": 0.01, "quota_stopped": None}, ["Other processes used 40 % of"]),
        ({"foreign": 0.05, "steal": 0.08}, ["The hypervisor gave 8 % of"]),
        ({"foreign": None, "steal": None, "quota_stopped": 0.2}, ["The CPU quota stopped it"]),
        ({"foreign": 0.05, "steal": 0.01, "quota_stopped": 0.0}, []),
    ],
)
def test_what_took_time_from_the_probes_is_warned_of(around, says):
    warnings = calibrating.disturbances(around)
    assert [warning[: len(start)] for warning, start in zip(warnings, says, strict=True)] == says
    assert all("peaks may be too low" in warning for warning in warnings)


class MadeUpMachine:
    """A machine whose CPUs were at work for ten seconds, whoever's work it was."""

    def before(self):
        return None

    def after(self, before, worker_cpu_seconds):
        return {"foreign": (10.0 - worker_cpu_seconds) / 10.0}, []


@pytest.mark.parametrize(("own", "disturbed"), [(9.9, False), (4.0, True)])
def test_the_probes_own_work_is_no_disturbance(monkeypatch, tmp_path, own, disturbed):
    monkeypatch.setattr(calibrating, "Surroundings", MadeUpMachine)
    fake_worker(monkeypatch, tmp_path, BEGIN, probe("probe/a"), {"ended": own})
    calibration = calibrating.calibrate(PROCESSOR, 0.1)
    assert bool(calibration.warnings) is disturbed
    assert calibration.conditions["environment"] == {"foreign": pytest.approx(1.0 - own / 10.0)}
    assert not calibration.refusals


def rows(database, sql):
    return database.query(sql)[1]
