"""The worker's side of energy: a meter read by a thread, and what is asked of no meter."""

import threading
from dataclasses import replace

import pytest
from fixed_machine import models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.energy import EnergyMethod, MeterError
from accelbench.core.protocols import Absent, Device
from accelbench.core.run_options import RunSettings
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry import energy
from accelbench.hardware.telemetry.rapl import NO_POWERCAP, POWERCAP_VARIABLE
from accelbench.measure.energy import ENERGY_COLUMN_NAMES, EnergyRules
from accelbench.run.plan import run_forecast
from accelbench.run.worker import case_checks
from accelbench.run.worker.case_checks import MeterThread, devices_of, measured_energy


class SteppedMeter:
    """Gives the next of its readings each time, and says when they are all read."""

    source = scope = "made up"
    ranges = (None,)

    def __init__(self, *values, method):
        self._values = iter(values)
        self.method = method
        self.exhausted = threading.Event()
        self._last = 0.0

    def read(self):
        value = next(self._values, None)
        if value is None:
            self.exhausted.set()
            return (self._last,)
        if isinstance(value, Exception):
            self.exhausted.set()
            raise value
        self._last = value
        return (value,)

    def close(self):
        return None


def watched(meter):
    watch = MeterThread(meter, seconds=0.0)
    watch.begin()
    assert meter.exhausted.wait(30)
    watch.end()
    return watch


def test_updates_of_a_counter_and_readings_of_power_count():
    watch = watched(SteppedMeter(1.0, 1.0, 2.0, 2.0, 3.0, method=EnergyMethod.COUNTER))
    readings = watch.readings()
    assert [reading.values for reading in readings] == [(1.0,), (2.0,), (3.0,)]
    times = [reading.at_ns for reading in readings]
    assert times == sorted(times)

    watch = watched(SteppedMeter(50.0, 50.0, 51.0, method=EnergyMethod.INTEGRATED))
    assert [r.values for r in watch.readings()[:3]] == [(50.0,), (50.0,), (51.0,)]


@pytest.mark.parametrize("error", [MeterError("GPU is lost"), OSError("no such device")])
def test_a_meter_that_fails_in_the_thread_is_told_outside(error):
    watch = watched(SteppedMeter(1.0, error, method=EnergyMethod.COUNTER))
    with pytest.raises(MeterError, match=str(error)):
        watch.readings()


CPU = Device("cpu", "A processor")
CASE = Case(models("bert-tiny")[0], Target("pytorch", "cpu"), "fp32", Shapes(4, 16), "training")


def test_without_a_meter_nothing_is_stepped_and_the_reason_stands(monkeypatch, tmp_path):
    monkeypatch.setenv(POWERCAP_VARIABLE, str(tmp_path))
    monkeypatch.setattr(energy, "energy_meter", lambda *_: NO_POWERCAP)
    nothing = None
    report = measured_energy(nothing, nothing, [CPU], 1e6, lambda phase: None)
    assert not report.columns
    assert set(report.reasons) == set(ENERGY_COLUMN_NAMES)
    assert set(report.reasons.values()) == {f"not available: {NO_POWERCAP.reason}"}
    assert report.warnings == (f"Energy was not measured: {NO_POWERCAP.reason}.",)


GPUS = [Device("cuda", "A GPU", ordinal=n, details={"uuid": f"GPU-{n}"}) for n in range(4)]


def ranks(hardware, count):
    return replace(CASE, target=Target("pytorch", hardware), world_size=count)


def test_each_process_s_gpu_is_metered(monkeypatch):
    present = [Absent("cuda", "GPU 9 is lost", ""), *GPUS]
    monkeypatch.setattr(case_checks, "detect", lambda hardware: present)
    assert devices_of(ranks("cuda", 3), GPUS[0], 1) == GPUS[:3]
    assert devices_of(ranks("cuda", 1), GPUS[2], 1) == [GPUS[2]]
    assert devices_of(ranks("cuda", 5), GPUS[0], 1) == NotAvailable(
        "5 processes take part, and 4 devices are found"
    )


def test_processes_that_share_a_cpu_are_metered_once_and_other_machines_not():
    assert devices_of(ranks("cpu", 2), CPU, 1) == [CPU]
    for hardware, device in (("cpu", CPU), ("cuda", GPUS[0])):
        assert devices_of(ranks(hardware, 4), device, 2) == NotAvailable(
            "the step is of 2 machines, and this one's meter counts nothing of the others"
        )


def test_a_dry_run_counts_the_pass_where_there_is_a_meter(monkeypatch):
    group = [type("P", (), {"device": CPU}), type("P", (), {"device": CPU})]
    settings = RunSettings(run_id="", energy=True, launches=3)
    monkeypatch.setattr(run_forecast, "_has_meter", lambda device: True)
    assert run_forecast.energy_seconds([group], settings) == 6 * EnergyRules().seconds
    assert run_forecast.energy_seconds([group], settings.with_values(energy=False)) == 0
    monkeypatch.setattr(run_forecast, "_has_meter", lambda device: False)
    assert run_forecast.energy_seconds([group], settings) == 0
