"""A device's meters, read between blocks."""

from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Quality
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry.common import Clocks, ForeignProcess
from accelbench.run.process.worker_client import DeviceWatch


class RecordedMeters:
    """Answers in turn."""

    source = "recorded"

    def __init__(self, throttled, foreign=()):
        self._throttled = iter(throttled)
        self._mhz = iter((1980.0, 1410.0, 1980.0))
        self._foreign = foreign

    def throttled(self):
        return next(self._throttled)

    def clocks(self):
        return Clocks(next(self._mhz))

    def power_watts(self):
        return NotAvailable("no counter")

    def temperature_celsius(self):
        return 61.0

    def energy_millijoules(self):
        return NotAvailable("no counter")

    def device_memory_used(self):
        return NotAvailable("no counter")

    def foreign_processes(self, own=()):
        return tuple(p for p in self._foreign if p.pid not in own)

    def close(self):
        return None


def test_meters_tell_throttling_and_other_processes():
    watch = DeviceWatch(RecordedMeters([(), ("power cap",), ()]))
    for _ in range(3):
        watch.look()
    assert watch.quality() is Quality.THROTTLED
    assert "power cap" in watch.warnings()[0]
    report = watch.report()
    assert report["device_clock_mhz"] == [1410.0, 1980.0]
    assert report["device_power_watts"] is None
    assert report["device_temperature_celsius"] == [61.0, 61.0]

    watch = DeviceWatch(RecordedMeters([()]))
    watch.look()
    assert watch.quality() is None
    assert watch.warnings() == []
    watch = DeviceWatch(RecordedMeters([()], (ForeignProcess(7, None), ForeignProcess(8, 1))))
    watch.look(own_pid=7)
    assert watch.warnings() == ["1 other processes were on the device while it was measured."]
    watch = DeviceWatch.of(Device("cpu", "host"))
    watch.look()
    assert watch.report() == {}
    assert watch.quality() is None
