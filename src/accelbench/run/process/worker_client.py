"""The conductor's client of workers: requests, how workers end, a device's meters, and
observers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from accelbench.core import processes
from accelbench.core.case import Case
from accelbench.core.errors import CaseError, SurroundingsError
from accelbench.core.model import AnalyticCost
from accelbench.core.protocols import Absent, Device, Job, Runtime
from accelbench.core.run_options import JobSettings, RunSettings
from accelbench.core.serial import job_to_json
from accelbench.core.vocabulary import Outcome, Quality, Status
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry import telemetry_for
from accelbench.hardware.telemetry.common import NullTelemetry, Telemetry
from accelbench.run.messages import ENGINE_GONE, KILLED_FOR_MEMORY, NO_WORKER, TIMED_OUT
from accelbench.run.plan.request import Estimate, Free, Planned
from accelbench.run.plan.run_forecast import Budget
from accelbench.run.process.wire import ClosedError
from accelbench.run.process.worker_pool import Worker, WorkerPool


@dataclass(frozen=True)
class Progress:
    """The state of the case that is being measured."""

    phase: str
    samples: int = 0
    median_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None


class Observer(Protocol):
    """A listener to a run, called in order and only between blocks."""

    def devices(self, entries: Sequence[Device | Absent]) -> None:
        """Hear which devices the run will use, before anything else."""
        return

    def started(self, run_id: str, launches: int, estimate: tuple[float, float] | None) -> None:
        """Hear that the run begins, and between how many seconds it will take, if that is known."""
        return

    def note(self, text: str) -> None:
        return

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        return

    def progress(self, progress: Progress) -> None:
        return

    def case_finished(self, row: Mapping[str, Any]) -> None:
        return


class SilentObserver(Observer):
    """An observer that does nothing."""


class DeviceWatch:
    """Readings of a device's meters during one case."""

    # Meters are read while a worker waits between two blocks: reading them during a sample would
    # disturb it, and after the case the device is idle. The host's CPU has its counters in
    # snapshots.

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._throttled: set[str] = set()
        self._clocks: list[float] = []
        self._watts: list[float] = []
        self._temperatures: list[float] = []
        self._foreign = 0

    @classmethod
    def of(cls, device: Device | None) -> DeviceWatch:
        """Return the watch of a device; without meters it reads nothing."""
        if device is None or device.hardware == "cpu":
            return cls(NullTelemetry("the host is watched by snapshots"))
        return cls(telemetry_for(device))

    def look(self, own_pid: int | None = None) -> None:
        if isinstance(self._telemetry, NullTelemetry):
            return
        held = self._telemetry.throttled()
        if not isinstance(held, NotAvailable):
            self._throttled.update(held)
        clocks = self._telemetry.clocks()
        if not isinstance(clocks, NotAvailable) and clocks.compute_mhz is not None:
            self._clocks.append(clocks.compute_mhz)
        for kept, reading in (
            (self._watts, self._telemetry.power_watts()),
            (self._temperatures, self._telemetry.temperature_celsius()),
        ):
            if not isinstance(reading, NotAvailable):
                kept.append(reading)
        foreign = self._telemetry.foreign_processes(() if own_pid is None else (own_pid,))
        if not isinstance(foreign, NotAvailable):
            self._foreign = max(self._foreign, len(foreign))

    def report(self) -> Mapping[str, Any]:
        if isinstance(self._telemetry, NullTelemetry):
            return {}
        return {
            "device_meters": self._telemetry.source,
            "device_throttled": sorted(self._throttled),
            "device_clock_mhz": _range(self._clocks),
            "device_power_watts": _range(self._watts),
            "device_temperature_celsius": _range(self._temperatures),
            "device_foreign_processes": self._foreign,
        }

    def quality(self) -> Quality | None:
        return Quality.THROTTLED if self._throttled else None

    def warnings(self) -> list[str]:
        notes = []
        if self._throttled:
            held = ", ".join(sorted(self._throttled))
            notes.append(f"The device held its clocks down while it was measured: {held}.")
        if self._foreign:
            notes.append(
                f"{self._foreign} other processes were on the device while it was measured."
            )
        return notes

    def close(self) -> None:
        self._telemetry.close()


def _range(values: list[float]) -> list[float] | None:
    return [min(values), max(values)] if values else None


def open_request(
    settings: JobSettings,
    case: Case,
    device: Device,
    artefact: str | None = None,
    spill: Path | None = None,
) -> dict[str, Any]:
    """Return the request that opens a case's model on a device."""
    job = Job(case, device, settings, artefact, None if spill is None else str(spill))
    return {"do": "open", "job": job_to_json(job)}


@dataclass(frozen=True)
class WorkerContext:
    """The parts of a run that are needed to start and ask workers."""

    settings: RunSettings
    worker_pool: WorkerPool
    runtimes: Mapping[str, Runtime]
    observer: Observer
    budget: Budget
    estimate: Estimate
    free: Free
    cost: Callable[[Planned], AnalyticCost | None]


#: The phases that a worker names, which label a progress line, after "while".
_WORDS = {
    "accuracy": "measuring accuracy",
    "average memory": "measuring its average memory",
    "communication": "measuring communication",
    "compile": "compiling",
    "device timers": "timing by the device's own timers",
    "energy": "measuring energy",
    "energy: idle": "measuring the idle device's power",
    "first inference": "running the first inference",
    "phases": "timing the phases of a step",
    "prepare": "preparing",
    "self-check": "comparing the model with itself",
    "steady state": "measuring the steady state",
    "warm-up": "warming up",
}


def phase_said(phase: str) -> str:
    """Return a phase as it follows the word "while"."""
    return _WORDS.get(phase, phase)


_log = logging.getLogger(__name__)


class WorkerTroubleError(Exception):
    """The outcome of a case whose worker could not do what it was asked."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome

    @classmethod
    def of(cls, error: CaseError) -> WorkerTroubleError:
        return cls(Outcome(Status.FAILED, error.reason, error.message, error.advice))


class WorkerClient:
    """The conductor's conversation with one worker after another."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._settings = context.settings
        self._worker: Worker | None = None
        self.opened: Mapping[str, Any] = {}  # what opening the model told
        self.cpu_seconds = 0.0
        self.watch = DeviceWatch.of(None)

    @property
    def begun(self) -> bool:
        """Whether a worker has a model open."""
        return self._worker is not None and bool(self.opened)

    def start(self, runtime: Runtime) -> None:
        """Start a fresh worker of an engine; raise WorkerTroubleError if that fails."""
        self._context.observer.progress(Progress("starting"))
        try:
            self._worker = self._context.worker_pool.worker(runtime, self._settings.threads)
        except SurroundingsError as error:
            raise WorkerTroubleError(_no_worker(error.message, error.advice)) from error
        except (ClosedError, TimeoutError) as error:
            message = f"no worker could be started: {error or 'it did not answer in time'}"
            raise WorkerTroubleError(_no_worker(message, "Run again with --debug.")) from error

    def open(
        self, planned: Planned, artefact: str | None = None, spill: Path | None = None
    ) -> None:
        """Open a case's model in a fresh or kept worker; raise WorkerTroubleError if that fails."""
        runtime = self._context.runtimes.get(planned.case.target.runtime)
        if runtime is None:
            gone = ENGINE_GONE.outcome(Status.UNSUPPORTED, name=planned.case.target.runtime)
            raise WorkerTroubleError(gone)
        if self._worker is None:
            self.start(runtime)
        self._context.observer.progress(Progress("loading"))
        device = planned.device
        assert device is not None
        request = open_request(self._settings, planned.case, device, artefact, spill)
        self.opened = self.ask(request, "loading")
        self.cpu_seconds = self.opened["cpu_seconds"]

    def ask(self, request: Mapping[str, Any], doing: str) -> dict[str, Any]:
        """Return the answer to a request; raise WorkerTroubleError for every other ending."""
        worker = self._worker
        assert worker is not None
        kills_before = processes.out_of_memory_kills()
        left = self._context.budget.left()
        patience = self._settings.timeout if left is None else min(self._settings.timeout, left)
        deadline = time.monotonic() + patience
        phase = doing
        try:
            worker.channel.send(request)
            while True:
                message = worker.channel.receive(max(deadline - time.monotonic(), 0.001))
                event = message.pop("event")
                if event == "done":
                    return message
                if event == "error":
                    raise WorkerTroubleError(_from_error(message))
                if event == "phase":
                    phase = message["name"]
                    self._context.observer.progress(Progress(phase))
                elif event == "progress":
                    self.watch.look(worker.pid)
                    self._context.observer.progress(Progress(phase, **message))
                worker.channel.send({"do": "go"})
        except TimeoutError as error:
            if self._context.budget.exhausted:
                raise WorkerTroubleError(out_of_budget(self._settings.budget)) from error
            late = TIMED_OUT.outcome(Status.TIMEOUT, seconds=patience, phase=phase_said(phase))
            raise WorkerTroubleError(late) from error
        except ClosedError as error:
            self._worker = None
            outcome = self._died(worker, phase, kills_before)
            raise WorkerTroubleError(outcome) from error

    def _died(self, worker: Worker, phase: str, kills_before: int | None) -> Outcome:
        status = worker.fate()
        kills = processes.out_of_memory_kills()
        if status == -9 and kills_before is not None and (kills or 0) > kills_before:
            return KILLED_FOR_MEMORY.outcome(Status.OUT_OF_MEMORY, phase=phase_said(phase))
        words = worker.last_words()
        how = processes.describe_end(status)
        if status is not None and status >= 0:  # nothing killed it, and ours does not end so
            how += ": code that it ran ended it, as os._exit does"
        return Outcome(
            Status.FAILED,
            "killed" if status in (-9, None) else "crash",
            f"the worker ended while {phase_said(phase)} ({how})"
            + (f"; it said: {words}" if words else ""),
            "A fresh worker went on with the next case. Run again with --debug for its log.",
        )

    def keep(self) -> None:
        """Close the open model and keep the worker, if it can."""
        if not self.begun:
            return
        try:
            self.cpu_seconds = self.ask({"do": "leave"}, "leaving")["cpu_seconds"]
            self.opened = {}
        except WorkerTroubleError:
            self.drop()

    def drop(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None
        self.opened = {}
        self.cpu_seconds = 0.0


def _no_worker(message: str, advice: str) -> Outcome:
    return Outcome(Status.FAILED, NO_WORKER, message.rstrip("."), advice)


def _from_error(message: Mapping[str, Any]) -> Outcome:
    _log.info("worker: %s", message.get("traceback"))
    advice = message["advice"] or "Run again with --debug to see where it was raised."
    return Outcome(Status(message["status"]), message["reason"], message["message"], advice)


def out_of_budget(budget: float | None) -> Outcome:
    """Return the outcome of a case for which no time is left."""
    return Outcome(
        Status.SKIPPED,
        "budget",
        f"the budget of {budget:.0f} s was used up" if budget else "the budget was used up",
        "Allow more with --budget, or ask for fewer cases.",
    )
