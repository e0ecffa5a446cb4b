"""What is said to a worker, and how every other ending than an answer is told."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.core import processes
from accelbench.core.errors import CaseError, SurroundingsError
from accelbench.core.outcome import Outcome
from accelbench.core.protocols import Runtime
from accelbench.core.vocabulary import Status
from accelbench.run.plan.request import Planned
from accelbench.run.process.device_meters import DeviceWatch
from accelbench.run.process.observer import Progress
from accelbench.run.process.open_request import open_request
from accelbench.run.process.phase_words import phase_said
from accelbench.run.process.wire import ClosedError
from accelbench.run.process.worker_context import WorkerContext
from accelbench.run.process.worker_pool import Worker

_log = logging.getLogger(__name__)

#: A reason that others look for.
NO_WORKER = "worker_did_not_start"


class WorkerTroubleError(Exception):
    """A worker could not do what it was asked; carries what became of the case."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome

    @classmethod
    def of(cls, error: CaseError) -> WorkerTroubleError:
        """A case that fails by what was found of it here, not by what its worker met."""
        return cls(Outcome(Status.FAILED, error.reason, error.message, error.advice))


class WorkerClient:
    """The conductor with one worker after another."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._settings = context.settings
        self._worker: Worker | None = None
        self.opened: Mapping[str, Any] = {}  # what opening the model told
        self.cpu_seconds = 0.0
        self.watch = DeviceWatch.of(None)

    @property
    def begun(self) -> bool:
        """Whether a worker is there that has a model open."""
        return self._worker is not None and bool(self.opened)

    def start(self, runtime: Runtime) -> None:
        """A fresh worker of a runtime; raises TroubleError."""
        self._context.observer.progress(Progress("starting"))
        try:
            self._worker = self._context.worker_pool.worker(runtime, self._settings.job.threads)
        except SurroundingsError as error:
            raise WorkerTroubleError(_no_worker(error.message, error.advice)) from error
        except (ClosedError, TimeoutError) as error:
            message = f"no worker could be started: {error or 'it did not answer in time'}"
            raise WorkerTroubleError(_no_worker(message, "Run again with --debug.")) from error

    def open(
        self, planned: Planned, artefact: str | None = None, spill: Path | None = None
    ) -> None:
        """A worker that has the case's model open, a fresh one but where one was kept.

        Raises:
            TroubleError: it could not be opened.
        """
        runtime = self._context.runtimes.get(planned.case.target.runtime)
        if runtime is None:
            raise WorkerTroubleError(_no_runtime(planned.case.target.runtime))
        if self._worker is None:
            self.start(runtime)
        self._context.observer.progress(Progress("loading"))
        device = planned.device
        assert device is not None
        request = open_request(self._settings.job, planned.case, device, artefact, spill)
        self.opened = self.ask(request, "loading")
        self.cpu_seconds = self.opened["cpu_seconds"]

    def ask(self, request: Mapping[str, Any], doing: str) -> dict[str, Any]:
        """One request and its answer; every other ending raises TroubleError."""
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
            raise WorkerTroubleError(_timed_out(phase, patience)) from error
        except ClosedError as error:
            self._worker = None
            outcome = self._died(worker, phase, kills_before)
            raise WorkerTroubleError(outcome) from error

    def _died(self, worker: Worker, phase: str, kills_before: int | None) -> Outcome:
        """What a worker died of that hung up by itself."""
        status = worker.fate()
        kills = processes.out_of_memory_kills()
        if status == -9 and kills_before is not None and (kills or 0) > kills_before:
            return Outcome(
                Status.OUT_OF_MEMORY,
                "killed_for_memory",
                f"the kernel killed the worker for memory while {phase_said(phase)}",
            )
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
        """What is open has served: the worker gives it up and stays for the next, if it can."""
        if not self.begun:
            return
        try:
            self.cpu_seconds = self.ask({"do": "leave"}, "leaving")["cpu_seconds"]
            self.opened = {}
        except WorkerTroubleError:
            self.drop()

    def drop(self) -> None:
        """End the worker, if there is one."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None
        self.opened = {}
        self.cpu_seconds = 0.0


def _no_worker(message: str, advice: str) -> Outcome:
    return Outcome(Status.FAILED, NO_WORKER, message.rstrip("."), advice)


def _no_runtime(name: str) -> Outcome:
    return Outcome(
        Status.UNSUPPORTED,
        "no_runtime",
        f"the runtime {name} is not installed here any more",
        "Install what provides it, and start a new run.",
    )


def _from_error(message: Mapping[str, Any]) -> Outcome:
    _log.info("worker: %s", message.get("traceback"))
    advice = message["advice"] or "Run again with --debug to see where it was raised."
    return Outcome(Status(message["status"]), message["reason"], message["message"], advice)


def _timed_out(phase: str, patience: float) -> Outcome:
    return Outcome(
        Status.TIMEOUT,
        "timeout",
        f"not finished after {patience:g} s, ended while {phase_said(phase)}",
        "Allow more time with --timeout, or use a smaller batch.",
    )


def out_of_budget(budget: float | None) -> Outcome:
    """The run's time is over."""
    return Outcome(
        Status.SKIPPED,
        "budget",
        f"the budget of {budget:.0f} s was used up" if budget else "the budget was used up",
        "Allow more with --budget, or ask for fewer cases.",
    )
