"""One launch of one group of cases: a fresh worker, the smallest batch first.

Whatever happens to the worker — an error, a crash, a kill, a hang, no memory —
becomes a result with a reason and an advice, durable before anyone is told.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from accelbench.core.case import Case
from accelbench.core.errors import SurroundingsError
from accelbench.core.facts import RESULT, Fact, utc_now
from accelbench.core.serial import case_to_json
from accelbench.core.words import Mode, Provenance, Status
from accelbench.run import lifeline
from accelbench.run.asking import open_request
from accelbench.run.context import Context
from accelbench.run.devicewatch import DeviceWatch
from accelbench.run.observer import Progress
from accelbench.run.plan import Planned
from accelbench.run.reference import Curve, losses_request
from accelbench.run.results import Asked, Outcome, compose
from accelbench.run.wire import ClosedError
from accelbench.run.workshop import Worker, describe_end

_log = logging.getLogger(__name__)

#: Reasons that others look for.
ESTIMATED = "out_of_memory_estimated"
NO_WORKER = "worker_did_not_start"


class _TroubleError(Exception):
    """A worker could not do what it was asked; carries what became of the case."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class GroupLaunch:
    """The cases that one worker can measure in turn."""

    def __init__(
        self, context: Context, asked: Asked, cases: Sequence[Planned], first: int, total: int
    ) -> None:
        self._context = context
        self._settings = context.settings
        self._asked = asked
        self._cases = cases
        self._first = first
        self._total = total
        self._worker: Worker | None = None
        self._opened: Mapping[str, Any] = {}
        self._open_trouble: Outcome | None = None
        self._cpu_seconds = 0.0
        self._watch = DeviceWatch.of(None)
        self._rules: Mapping[str, Any] = {}
        self._measured_before = 0  # by the worker in hand
        self._room: int | None = None  # bytes free when no worker of ours held any
        self._fitted: int | None = None  # largest batch that was measured
        self._too_large: int | None = None  # smallest batch that ran out of memory

    def run(self) -> None:
        """Measure each case; the worker is gone afterwards whatever happens."""
        try:
            for i, planned in enumerate(self._cases):
                self._one(planned, self._first + i)
        finally:
            self._drop_worker()

    def _one(self, planned: Planned, number: int) -> None:
        context = self._context
        context.observer.case_started(planned.case, self._asked.launch, number, self._total)
        refused = self._refused(planned)
        if refused is None and self._worker is None:
            context.references.gather(context, self._cases)
            self._warm_up_template(planned)
        started_at = utc_now()
        self._watch = DeviceWatch.of(planned.device)
        before = context.surroundings.before()
        cpu_before = self._cpu_seconds
        try:
            outcome = refused or self._measured(planned)
        except _TroubleError as trouble:
            outcome = replace(trouble.outcome, opened=self._opened)
            self._drop_worker()
        context.budget.case_over()
        if outcome.status is Status.OK:
            self._fitted = planned.case.shapes.batch
            own = max(self._cpu_seconds - cpu_before, 0.0)
            environment, warnings = context.surroundings.after(
                before, own, self._opened.get("threads")
            )
            outcome = replace(
                outcome,
                quality=self._watch.quality(),
                environment={**environment, **self._watch.report()},
                warnings=[*warnings, *self._watch.warnings()],
            )
            if planned.case.mode is Mode.TRAINING:  # when nothing is watched any more
                outcome = self._compared(planned.case, outcome)
        elif outcome.status is Status.OUT_OF_MEMORY:
            if self._open_trouble is None and outcome.reason != ESTIMATED:
                self._too_large = self._too_large or planned.case.shapes.batch
            outcome = replace(outcome, advice=self._memory_advice(planned))
        self._watch.close()
        self._record(planned, outcome, started_at)
        if outcome.status is Status.OK:
            self._measured_before += 1

    def _warm_up_template(self, planned: Planned) -> None:
        """Have the engine imported before the case begins; failing is told by the case."""
        runtime = self._context.runtimes.get(planned.case.target.runtime)
        if runtime is None:
            return
        self._context.observer.progress(Progress("starting"))
        try:
            self._context.workshop.warm(runtime, self._settings.threads)
        except (SurroundingsError, ClosedError, TimeoutError) as error:
            _log.debug("warming up: %s", error)

    def _record(self, planned: Planned, outcome: Outcome, started_at: str) -> None:
        context = self._context
        runtime = context.runtimes.get(planned.case.target.runtime)
        body = compose(
            self._asked,
            planned,
            replace(outcome, conditions={**context.conditions, **self._conditions()}),
            runtime.info.provenance if runtime else Provenance.MEASURED,
            context.cost(planned),
            started_at,
            utc_now(),
            context.estimate(planned.case),
        )
        context.repeats.look(body)
        with lifeline.undisturbed():
            context.append(Fact(RESULT, body["result_id"], body))
            context.tally.add(outcome.status.value)
            context.observer.case_finished(body)

    def _conditions(self) -> dict[str, Any]:
        """What may differ between two results of one case in this very run."""
        return {
            "rules": self._rules,
            # The first case of a worker meets an engine that has computed nothing yet.
            "cases_before_in_worker": self._measured_before,
        }

    # -- before a worker is asked

    def _refused(self, planned: Planned) -> Outcome | None:
        """What is known without trying."""
        if planned.refusal is not None:
            no = planned.refusal
            return Outcome(no.status, no.reason, no.message, no.advice)
        if self._context.budget.exhausted:
            return _out_of_budget(self._settings.budget)
        if self._open_trouble is not None:
            return self._open_trouble
        if self._too_large is not None and planned.case.shapes.batch > self._too_large:
            return Outcome(
                Status.SKIPPED,
                "smaller_batch_out_of_memory",
                f"batch {self._too_large} ran out of memory, so this larger one was not tried",
                self._memory_advice(planned),
            )
        return self._cannot_fit(planned)

    def _cannot_fit(self, planned: Planned) -> Outcome | None:
        """Refuse before allocating what cannot be there."""
        if self._worker is None and planned.device is not None:
            # Looked at while nothing is loaded: the estimate counts the weights as well.
            self._room = self._context.free(planned.device)
        need, room = self._context.estimate(planned.case), self._room
        if need is None or room is None or need <= room:
            return None
        return Outcome(
            Status.OUT_OF_MEMORY,
            ESTIMATED,
            f"an estimated {_gib(need)} is needed and {_gib(room)} is free; nothing was allocated",
        )

    def _memory_advice(self, planned: Planned) -> str:
        """The largest batch that fitted, and the small variant."""
        case = planned.case
        parts = []
        if self._fitted is not None:
            parts.append(f"The largest batch that fitted is {self._fitted}.")
        elif self._open_trouble is None:
            fits = self._largest_estimate(planned)
            if fits is not None:
                parts.append(f"By estimate the largest batch that fits is {fits}.")
        if case.model.small_variant:
            parts.append(f"A smaller model of this kind is {case.model.small_variant}.")
        elif not parts:
            parts.append("Use a smaller batch, a shorter sequence or a narrower precision.")
        return " ".join(parts)

    def _largest_estimate(self, planned: Planned) -> int | None:
        room = self._room
        batch = planned.case.shapes.batch
        while room is not None and batch > 1:
            batch //= 2
            case = replace(planned.case, shapes=replace(planned.case.shapes, batch=batch))
            need = self._context.estimate(case)
            if need is None:
                return None
            if need <= room:
                return batch
        return None

    # -- with a worker

    def _measured(self, planned: Planned) -> Outcome:
        if self._worker is None:
            try:
                self._open(planned)
            except _TroubleError as trouble:
                # Loading does not depend on the batch: it would end the same way for the
                # others. Being killed from outside, or out of budget, would not.
                if trouble.outcome.reason not in ("budget", "killed"):
                    said = f"{trouble.outcome.message}; not tried again at another batch size"
                    self._open_trouble = replace(trouble.outcome, message=said)
                raise
        self._rules = {
            "iterations": self._settings.iterations,
            "warmup": self._settings.warmup,
            "seconds": self._context.budget.steady_seconds(),
        }
        case = case_to_json(planned.case)
        request = {"do": "measure", "case": case, "rules": self._rules}
        answer = self._ask(request, "measuring")
        self._cpu_seconds = answer["cpu_seconds"]
        return Outcome(Status.OK, measurement=answer, opened=self._opened)

    def _compared(self, case: Case, outcome: Outcome) -> Outcome:
        """Add how far the loss falls; whatever becomes of that, the measurement stands."""
        references, metrics = self._context.references, outcome.measurement["metrics"]
        verdict = references.known(self._context, case, metrics)
        if verdict is None:
            self._context.observer.progress(Progress("convergence"))
            try:
                answer = self._ask(losses_request(case), "training to compare")
                self._cpu_seconds = answer["cpu_seconds"]
                curve = Curve(answer["losses"])
            except _TroubleError as trouble:
                curve = Curve(why=f"training to compare failed: {trouble.outcome.message}")
                self._drop_worker()
            verdict = references.judge(case, curve)
        columns, why_not = verdict
        measurement = {**outcome.measurement, "metrics": {**metrics, **columns}}
        return replace(outcome, measurement=measurement, null_reasons=why_not)

    def _open(self, planned: Planned) -> None:
        settings = self._settings
        runtime = self._context.runtimes.get(planned.case.target.runtime)
        if runtime is None:
            raise _TroubleError(_no_runtime(planned.case.target.runtime))
        self._context.observer.progress(Progress("starting"))
        try:
            self._worker = self._context.workshop.worker(runtime, settings.threads)
        except SurroundingsError as error:
            raise _TroubleError(_no_worker(error.message, error.advice)) from error
        except (ClosedError, TimeoutError) as error:
            said = f"no worker could be started: {error or 'it did not answer in time'}"
            raise _TroubleError(_no_worker(said, "Run again with --debug.")) from error
        self._context.observer.progress(Progress("loading"))
        device = planned.device
        assert device is not None
        self._opened = self._ask(open_request(settings, planned.case, device), "loading")
        self._cpu_seconds = self._opened["cpu_seconds"]

    def _ask(self, request: Mapping[str, Any], doing: str) -> dict[str, Any]:
        """One request and its answer; every other ending raises _TroubleError."""
        worker = self._worker
        assert worker is not None
        kills_before = lifeline.out_of_memory_kills()
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
                    raise _TroubleError(_from_error(message))
                if event == "phase":
                    phase = message["name"]
                    self._context.observer.progress(Progress(phase))
                elif event == "progress":
                    self._watch.look(worker.pid)
                    self._context.observer.progress(Progress(phase, **message))
                worker.channel.send({"do": "go"})
        except TimeoutError as error:
            if self._context.budget.exhausted:
                raise _TroubleError(_out_of_budget(self._settings.budget)) from error
            raise _TroubleError(_timed_out(phase, patience)) from error
        except ClosedError as error:
            self._worker = None
            outcome = self._died(worker, phase, kills_before)
            raise _TroubleError(outcome) from error

    def _died(self, worker: Worker, phase: str, kills_before: int | None) -> Outcome:
        """What a worker died of that hung up by itself."""
        status = worker.fate()
        kills = lifeline.out_of_memory_kills()
        if status == -9 and kills_before is not None and (kills or 0) > kills_before:
            return Outcome(
                Status.OUT_OF_MEMORY,
                "killed_for_memory",
                f"the kernel killed the worker for memory while {phase}",
            )
        words = worker.last_words()
        return Outcome(
            Status.FAILED,
            "killed" if status in (-9, None) else "crash",
            f"the worker ended while {phase} ({describe_end(status)})"
            + (f"; it said: {words}" if words else ""),
            "A fresh worker went on with the next case. Run again with --debug for its log.",
        )

    def _drop_worker(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None
        self._opened = {}
        self._cpu_seconds = 0.0
        self._measured_before = 0


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
    _log.debug("worker: %s", message.get("traceback"))
    advice = message["advice"] or "Run again with --debug to see where it was raised."
    return Outcome(Status(message["status"]), message["reason"], message["message"], advice)


def _timed_out(phase: str, patience: float) -> Outcome:
    return Outcome(
        Status.TIMEOUT,
        "timeout",
        f"not finished after {patience:g} s, ended while {phase}",
        "Allow more time with --timeout, or use a smaller batch.",
    )


def _out_of_budget(budget: float | None) -> Outcome:
    return Outcome(
        Status.SKIPPED,
        "budget",
        f"the budget of {budget:.0f} s was used up" if budget else "the budget was used up",
        "Allow more with --budget, or ask for fewer cases.",
    )


def _gib(value: float) -> str:
    return f"{value / 2**30:.1f} GiB"
