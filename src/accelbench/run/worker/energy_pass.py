"""The worker's energy pass: a thread reads a meter while the session steps.

It comes after everything that is timed, because each reading takes the interpreter's lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from accelbench.core.case import Case
from accelbench.core.energy import EnergyMeter, EnergyMethod, MeterError, MeterReading
from accelbench.core.protocols import Device, Session
from accelbench.core.vocabulary import Timing
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.detect import detect
from accelbench.hardware.telemetry.energy import energy_meter_of
from accelbench.measure.energy import EnergyPass, EnergyReport, MeterFacts, no_energy
from accelbench.models.inputs import items_per_step

#: RAPL moves each millisecond, NVML's counter each 20 to 100: ends of a window of 5 s are off by
#: 0.2 % each at most.
_READ_SECONDS = 0.01
#: Power is averaged by the device over 25 ms to 1 s: to read it more often tells nothing new.
_POWER_SECONDS = 0.1


class MeterThread:
    """A meter that a thread reads every few milliseconds; repeated values of a counter are
    dropped."""

    def __init__(self, meter: EnergyMeter, seconds: float | None = None) -> None:
        self._meter = meter
        self._is_counter = meter.method is EnergyMethod.COUNTER
        usual = _READ_SECONDS if self._is_counter else _POWER_SECONDS
        self._seconds = usual if seconds is None else seconds
        self._readings: list[MeterReading] = []
        self._failure: MeterError | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self._readings, self._failure = [], None
        self._done.clear()
        self._thread = threading.Thread(target=self._run, name="energy-meter", daemon=True)
        self._thread.start()

    def rest(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def readings(self) -> list[MeterReading]:
        if self._failure is not None:
            raise self._failure
        return list(self._readings)

    def end(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            self._read()
            while not self._done.wait(self._seconds):
                self._read()
        except MeterError as failure:
            self._failure = failure
        except Exception as error:  # a vendor's library: its trouble is the meter's
            self._failure = MeterError(f"{type(error).__name__}: {error}")

    def _read(self) -> None:
        values = self._meter.read()
        last = self._readings[-1].values if self._readings else None
        if values != last or not self._is_counter:
            self._readings.append(MeterReading(time.monotonic_ns(), values))


def devices_of(case: Case, device: Device, machines: int) -> list[Device] | NotAvailable:
    """Return the devices of a case's processes, or why not all of them can be metered."""
    if case.world_size == 1 or (device.hardware == "cpu" and machines == 1):
        return [device]
    if machines > 1:
        return NotAvailable(
            f"the step is of {machines} machines, and this one's meter counts nothing of the others"
        )
    # Process n runs on the nth device of the platform, as torch counts them.
    present = [entry for entry in detect(device.hardware) if isinstance(entry, Device)]
    if len(present) < case.world_size:
        return NotAvailable(
            f"{case.world_size} processes take part, and {len(present)} devices are found"
        )
    return present[: case.world_size]


def measured_energy(
    session: Session,
    case: Case,
    devices: Sequence[Device],
    step_ns: float,
    phase: Callable[[str], None],
) -> EnergyReport:
    """Return the energy of a case on an open session, or why there is none."""
    meter = energy_meter_of(devices)
    if isinstance(meter, NotAvailable):
        return no_energy(meter.reason)
    try:
        inputs = session.prepare(case)
        session.compile(inputs)
        session.sample(inputs, 1, Timing.EACH)  # it may compile or allocate
        facts = MeterFacts(meter.source, meter.scope, meter.method, meter.ranges)
        items = items_per_step(case.model, case.shapes, case.mode)
        energy = EnergyPass(session, MeterThread(meter), facts, phase=phase)
        return energy.measure(inputs, step_ns, items)
    finally:
        meter.close()
