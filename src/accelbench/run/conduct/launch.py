"""One launch of one group of cases: a fresh worker, the smallest batch first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from accelbench.core.case import Case
from accelbench.core.columns import ACCURACY_COLUMN_NAMES
from accelbench.core.errors import CaseError, SurroundingsError
from accelbench.core.facts import RESULT, Fact, utc_now
from accelbench.core.formatting import add_reference
from accelbench.core.protocols import Runtime
from accelbench.core.run_options import JobSettings
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Mode, Outcome, Provenance, Status, with_first_cause
from accelbench.run.conduct.artifacts import still_as_looked_at
from accelbench.run.conduct.launch_context import LaunchContext
from accelbench.run.conduct.results import LaunchFacts, compose, not_measured
from accelbench.run.messages import ESTIMATED, NOT_VERIFIED, WRONG_OUTPUTS
from accelbench.run.plan.request import Planned
from accelbench.run.plan.run_forecast import of_process
from accelbench.run.process import process_control
from accelbench.run.process.machine_turns import other_run_of
from accelbench.run.process.memory_guard import MemoryGuard
from accelbench.run.process.wire import ClosedError
from accelbench.run.process.worker_client import (
    DeviceWatch,
    Progress,
    WorkerClient,
    WorkerTroubleError,
    out_of_budget,
)
from accelbench.run.verify import plausibility
from accelbench.run.verify.convergence import Curve, losses_request
from accelbench.run.verify.precision_proof import (
    PrecisionProof,
    prove_precision,
    proved,
    refuse_other_precision,
)
from accelbench.run.verify.verdicts import COMPUTES_NOTHING, FAILED, NOT_DONE, Verdict


def refused_by(verdict: Verdict, verify: str) -> Outcome | None:
    """Return the failure that a verdict causes, or None if the case passes."""
    if verdict.word == FAILED:
        return replace(
            WRONG_OUTPUTS.outcome(Status.FAILED, why=verdict.why),
            measurement={"metrics": verdict.columns},
        )
    if verdict.word == NOT_DONE and verify in ("require", "only"):
        option = f"--verify{'-only' if verify == 'only' else ' require'}"
        return NOT_VERIFIED.outcome(Status.FAILED, option=option, why=verdict.why)
    return None


def with_proof(
    case: Case,
    outcome: Outcome,
    verdict: Verdict,
    runtime: Runtime | None,
    columns: Mapping[str, Any],
) -> Outcome:
    """Return the outcome with its verdict and the proof of its precision, or a failure."""
    try:
        proof = _precision_proof(case, outcome, verdict, runtime)
    except CaseError as error:
        failed = WorkerTroubleError.of(error).outcome
        measurement = {"metrics": verdict.columns}
        return replace(failed, opened=outcome.opened, measurement=measurement)
    metrics = {**outcome.measurement.get("metrics", {}), **columns}
    return replace(
        outcome,
        measurement={
            **outcome.measurement,
            "metrics": {**metrics, **verdict.columns, **proof.columns},
        },
        warnings=[*outcome.warnings, *proof.warnings],
        null_reasons={**outcome.null_reasons, **verdict.reasons, **proof.reasons},
    )


def _precision_proof(
    case: Case, outcome: Outcome, verdict: Verdict, runtime: Runtime | None
) -> PrecisionProof:
    if runtime is not None and runtime.info.provenance is not Provenance.MEASURED:
        return PrecisionProof(None, COMPUTES_NOTHING)
    return prove_precision(case, outcome.measurement.get("evidence") or {}, verdict)


OFF = "off"


def scored(
    talk: WorkerClient,
    case: Case,
    outcome: Outcome,
    settings: JobSettings,
    reopen: Callable[[], None],
) -> Outcome:
    """Add a case's task accuracy to its outcome, or the reason why there is none.

    The outcome stays valid if scoring fails; `talk` has no worker afterwards then.
    """
    if outcome.status is not Status.OK or not outcome.measurement.get("metrics"):
        return outcome
    if why := passed_over(case, settings):
        return without_accuracy(outcome, why, warn=False)
    try:
        if not talk.begun:  # verifying took the room, and a fresh one opens the same
            reopen()
        answer = talk.ask(accuracy_request(case), "accuracy")
        talk.cpu_seconds = answer["cpu_seconds"]
    except WorkerTroubleError as trouble:
        talk.drop()
        why = f"{trouble.outcome.message}; --accuracy-samples takes fewer samples"
        return without_accuracy(outcome, why, warn=True)
    return with_accuracy(outcome, answer)


def accuracy_request(case: Case) -> dict[str, Any]:
    """Return the request to a worker that has the case's model open."""
    return {"do": "accuracy", "case": case_to_json(case)}


def passed_over(case: Case, settings: JobSettings) -> str:
    """Return why a case's accuracy is not measured; empty if it is."""
    if settings.accuracy == OFF:
        return "accuracy was not asked for: --accuracy off"
    if settings.data is None:
        return "no labelled data was given: --data names it"
    if case.mode is Mode.TRAINING:
        return "accuracy is of inference"
    if case.generates:
        return "it generates tokens: with --new-tokens 0 a forward pass has logits"
    if case.world_size > 1:
        return "several processes share a step"
    if not case.model.is_user_model and case.model.weights_setting(settings.weights) == "random":
        return "its weights are random: --weights names others"
    return ""


def with_accuracy(outcome: Outcome, answer: Mapping[str, Any]) -> Outcome:
    """Return an outcome with the accuracy that a worker returned."""
    if "why" in answer:
        return without_accuracy(outcome, answer["why"], warn=answer.get("wanted", False))
    measured = outcome.measurement
    columns = {k: v for k, v in answer["columns"].items() if v is not None}
    evidence = measured.get("evidence") or {}
    details = {**(evidence.get("details") or {}), "accuracy": answer["details"]}
    absent = dict.fromkeys(
        (name for name, value in answer["columns"].items() if value is None),
        "one sample has no interval",
    )
    return replace(
        outcome,
        measurement={
            **measured,
            "metrics": {**measured.get("metrics", {}), **columns},
            "evidence": {**evidence, "details": details},
            "warnings": [*measured.get("warnings", ()), *answer["notes"]],
        },
        null_reasons={**outcome.null_reasons, **absent},
    )


def without_accuracy(outcome: Outcome, why: str, *, warn: bool) -> Outcome:
    """Return an outcome with the reason for no accuracy, as a warning too if it was wanted."""
    warnings = [*outcome.warnings, f"Accuracy was not measured: {why}"] if warn else None
    reasons = dict.fromkeys(ACCURACY_COLUMN_NAMES, why)
    return replace(
        outcome,
        warnings=outcome.warnings if warnings is None else warnings,
        null_reasons={**reasons, **outcome.null_reasons},
    )


_log = logging.getLogger(__name__)

#: What ends a worker and is no fault of what it runs.
_OUTSIDE = frozenset({"budget", "killed", "timeout"})


class GroupLaunch:
    """The cases that one worker can measure in turn."""

    def __init__(
        self,
        context: LaunchContext,
        launch_facts: LaunchFacts,
        cases: Sequence[Planned],
        first: int,
        total: int,
    ) -> None:
        self._context = context
        self._settings = context.settings
        self._asked = launch_facts
        self._cases = cases
        self._first = first
        self._total = total
        self._talk = WorkerClient(context)
        self._room = MemoryGuard(context)
        self._open_trouble: Outcome | None = None
        self._rules: Mapping[str, Any] = {}
        self._measured_before = 0  # by the worker in hand
        self._workarounds: tuple[str, ...] = ()
        self._static = False
        self._other_way = ""  # of the artefact that is open
        self._succeeded = False

    def run(self) -> None:
        try:
            for i, planned in enumerate(self._cases):
                self._one(planned, self._first + i)
        finally:
            self._drop_worker()

    def _one(self, planned: Planned, number: int) -> None:
        context, talk = self._context, self._talk
        planned = context.in_floats.apply(planned)
        context.observer.case_started(planned.case, self._asked.launch, number, self._total)
        refused = self._refused(planned)
        if refused is None and not talk.begun:
            context.curves.gather(context, self._cases)
            if not self._succeeded:
                self._workarounds = context.artefacts.first_try(context, planned.case)
            self._gather(planned)
            refused = self._known_wrong(planned)
            self._warm_up_template(planned)
        started_at = utc_now()
        planned, outcome = self._try_ways(planned, refused)
        context.budget.case_over()
        if outcome.status is Status.OK:
            self._room.fitted(planned)
            context.artefacts.remember(context, planned.case, self._workarounds)
        elif outcome.status is Status.OUT_OF_MEMORY:
            if self._open_trouble is None and outcome.reason != ESTIMATED:
                self._room.ran_out(planned)
            advice = self._room.advice(planned, estimate=self._open_trouble is None)
            outcome = replace(outcome, advice=f"{outcome.advice} {advice}".strip())
        if refused is None:
            outcome = replace(outcome, workarounds=self._workarounds)
        self._record(planned, context.in_floats.note(planned, outcome), started_at)
        if outcome.status is Status.OK:
            self._measured_before += 1
        if self._static:
            self._leave(planned)  # what is open is for this batch alone

    def _try_ways(self, planned: Planned, refused: Outcome | None) -> tuple[Planned, Outcome]:
        """Measure a case, in fp32 and with workarounds if needed; return it and its outcome."""
        outcome = first = refused or self._tried(planned)
        if self._context.in_floats.learn(planned, outcome):
            planned, self._open_trouble = self._context.in_floats.apply(planned), None
            self._gather(planned)
            outcome = first = self._tried(planned)
        while (more := self._another_way(planned, outcome)) is not None:
            self._workarounds = more
            self._gather(planned)
            outcome = self._tried(planned)
        return planned, outcome if refused is not None else with_first_cause(outcome, first)

    def _gather(self, planned: Planned) -> None:
        context = self._context
        if context.artefacts.static(context, planned.case, self._workarounds):
            context.verifications.at_each_batch(planned)
        batches = [member.case.shapes.batch for member in self._cases if member.refusal is None]
        context.verifications.gather(context, planned, batches)

    def _another_way(self, planned: Planned, outcome: Outcome) -> tuple[str, ...] | None:
        # Not after another case of the group has succeeded: then the workarounds are not the
        # problem, unless each batch is another graph.
        if self._succeeded and not self._static:
            return None
        more = self._context.artefacts.next_try(
            self._context, planned.case, outcome, self._workarounds
        )
        if more is not None:
            _log.debug("%s: %s; trying with %s", planned.case, outcome.message, ", ".join(more))
            self._open_trouble = None
            self._context.verifications.forget(planned)
            self._drop_worker()
        return more

    def _tried(self, planned: Planned) -> Outcome:
        context, talk = self._context, self._talk
        talk.watch = DeviceWatch.of(planned.device)
        before = context.surroundings.before()
        cpu_before = talk.cpu_seconds
        try:
            outcome = self._measured(planned)
            own = max(talk.cpu_seconds - cpu_before, 0.0)
            environment, warnings = context.surroundings.after(
                before,
                own,
                talk.opened.get("threads") or self._settings.threads,
                outcome.measurement.get("metrics"),
                other_run_of(context.conditions),
            )
            outcome = replace(
                outcome,
                quality=talk.watch.quality(),
                environment={**environment, **talk.watch.report()},
                warnings=[*warnings, *talk.watch.warnings()],
            )
            outcome = self._held(planned, outcome)  # when nothing is watched any more
            outcome = scored(
                talk, planned.case, outcome, self._settings, partial(self._open, planned)
            )
            if not talk.begun:
                self._measured_before = 0
            still_as_looked_at(planned.case)
            self._succeeded = self._succeeded or outcome.status is Status.OK
        except WorkerTroubleError as trouble:
            outcome = replace(trouble.outcome, opened=talk.opened)
            self._drop_worker()
        finally:
            talk.watch.close()
        return outcome

    def _warm_up_template(self, planned: Planned) -> None:
        runtime = self._context.runtimes.get(planned.case.target.runtime)
        if runtime is None:
            return
        self._context.observer.progress(Progress("starting"))
        try:
            self._context.worker_pool.warm(runtime, self._settings.threads)
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
            of_process(planned.case, context.estimate(planned.case)),
            compiles=runtime is not None and runtime.info.compiles,
        )
        context.repeats.look(body)
        context.one_process.look(body, planned, self._settings.nodes)
        plausibility.look(body)
        with process_control.undisturbed():
            context.append(Fact(RESULT, body["result_id"], body))
            context.tally.add(outcome.status.value)
            context.observer.case_finished(body)

    def _conditions(self) -> dict[str, Any]:
        return {
            "rules": self._rules,
            # The first case of a worker meets an engine that has computed nothing yet.
            "cases_before_in_worker": self._measured_before,
        }

    # -- before a worker is asked

    def _refused(self, planned: Planned) -> Outcome | None:
        if planned.refusal is not None:
            return planned.refusal.outcome
        if self._context.budget.exhausted:
            return out_of_budget(self._settings.budget)
        try:
            still_as_looked_at(planned.case)
        except WorkerTroubleError as trouble:
            return trouble.outcome
        if self._open_trouble is not None:
            return self._open_trouble
        if not self._talk.begun:
            self._room.look(planned)
        return self._known_wrong(planned) or self._room.refused(planned)

    def _known_wrong(self, planned: Planned) -> Outcome | None:
        if planned.case.mode is Mode.TRAINING:
            return None  # known by its losses alone
        verdict = self._context.verifications.known(self._context, planned)
        return None if verdict is None else refused_by(verdict, self._settings.verify)

    # -- with a worker

    def _measured(self, planned: Planned) -> Outcome:
        talk = self._talk
        if not talk.begun:
            try:
                self._open(planned)
            except WorkerTroubleError as trouble:
                # Loading does not depend on the batch: it would end the same way for the
                # others. Being killed from outside, or out of budget, would not; nor does it
                # where each batch opens an artefact of its own.
                ways = (self._context, planned.case, self._workarounds)
                alone = self._context.artefacts.static(*ways)
                if not alone and trouble.outcome.reason not in ("budget", "killed"):
                    message = f"{trouble.outcome.message}; not tried again at another batch size"
                    self._open_trouble = replace(trouble.outcome, message=message)
                raise
        if self._settings.verify == "only":
            return Outcome(Status.OK, opened=talk.opened, null_reasons=not_measured())
        self._rules = {
            "iterations": self._settings.iterations,
            "warmup": self._settings.warmup,
            "seconds": self._context.budget.steady_seconds(),
        }
        case = case_to_json(planned.case)
        batches = {member.case.shapes.batch for member in self._cases if member.refusal is None}
        request = {"do": "measure", "case": case, "rules": self._rules, "alone": len(batches) == 1}
        answer = talk.ask(request, "measuring")
        talk.cpu_seconds = answer["cpu_seconds"]
        measurement = {**answer, "evidence": self._proof(planned, answer)}
        reasons = {**talk.opened.get("null_reasons", {}), **answer.get("null_reasons", {})}
        return Outcome(Status.OK, measurement=measurement, opened=talk.opened, null_reasons=reasons)

    def _proof(self, planned: Planned, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an answer's evidence; raise WorkerTroubleError if it shows another device or
        precision."""
        try:
            evidence = proved(answer.get("evidence"), str(planned.device))
            refuse_other_precision(planned.case, evidence)
        except CaseError as error:
            raise WorkerTroubleError.of(error) from error
        return evidence

    def _open(self, planned: Planned) -> None:
        context = self._context
        artefact = context.artefacts.get(context, planned, self._workarounds)
        self._static = artefact is not None and artefact.static
        self._other_way = artefact.other_way if artefact is not None else ""
        spill = self._room.spill(planned, files=0 if artefact else 1)
        self._talk.open(planned, artefact.folder if artefact else None, spill)

    def _held(self, planned: Planned, outcome: Outcome) -> Outcome:
        """Compare outputs with the reference: wrong outputs make the case fail."""
        if planned.case.mode is Mode.TRAINING:
            return self._compared(planned.case, outcome)
        verifications = self._context.verifications
        verdict = verifications.known(self._context, planned)
        if verdict is None:
            self._context.observer.progress(Progress("verifying"))
            try:
                ask = partial(self._talk.ask, doing="verifying")
                answer = ask(verifications.request(self._context, planned))
                self._talk.cpu_seconds = answer["cpu_seconds"]
                evidence = self._proof(planned, answer)
                decisive = verifications.settle_doubts(self._context, planned, answer, ask)
                verdict = verifications.judge(planned, decisive, self._other_way)
                if verdict.word == FAILED:
                    self._drop_worker()  # the reference needs the room, and what is wrong goes
                    verdict = verifications.reconsider(self._context, planned, verdict)
                measurement = {"evidence": evidence, **outcome.measurement}
                if other := verifications.held_against(planned.case):
                    measurement["evidence"] = add_reference(other, measurement["evidence"])
                outcome = replace(outcome, measurement=measurement)
            except WorkerTroubleError as trouble:
                if self._settings.verify == "only" or not _says_nothing(trouble.outcome):
                    raise  # nothing else has shown that it runs, or this shows that it does not
                verdict = verifications.give_up(planned, trouble.outcome.message)
                self._drop_worker()
        return self._with(planned.case, outcome, verdict)

    def _compared(self, case: Case, outcome: Outcome) -> Outcome:
        """Add how far the loss falls; the measurement stays valid if that fails."""
        curves, metrics = self._context.curves, outcome.measurement.get("metrics")
        convergence = curves.known(self._context, case, metrics)
        if convergence is None:
            self._context.observer.progress(Progress("convergence"))
            try:
                answer = self._talk.ask(losses_request(case), "training to compare")
                self._talk.cpu_seconds = answer["cpu_seconds"]
                curve = Curve.of(answer)
            except WorkerTroubleError as trouble:
                curve = Curve(why=f"training to compare failed: {trouble.outcome.message}")
                self._drop_worker()
            convergence = curves.judge(self._context, case, curve)
        new_outcome = replace(outcome, null_reasons={**outcome.null_reasons, **convergence.reasons})
        return self._with(case, new_outcome, convergence.verdict, convergence.columns)

    def _with(
        self,
        case: Case,
        outcome: Outcome,
        verdict: Verdict,
        columns: Mapping[str, Any] = MappingProxyType({}),
    ) -> Outcome:
        """Return an outcome with a verdict, or the failure that the verdict makes of it."""
        refused = refused_by(verdict, self._settings.verify)
        if refused is not None:
            return replace(refused, opened=outcome.opened)
        runtime = self._context.runtimes.get(case.target.runtime)
        return with_proof(case, outcome, verdict, runtime, columns)

    def _leave(self, planned: Planned) -> None:
        runtime = self._context.runtimes.get(planned.case.target.runtime)
        if runtime is not None and runtime.info.reopens:
            self._talk.keep()
        else:
            self._drop_worker()

    def _drop_worker(self) -> None:
        self._talk.drop()
        self._measured_before = 0


def _says_nothing(trouble: Outcome) -> bool:
    """Return whether a comparison ended only for lack of memory or time."""
    return trouble.status is Status.OUT_OF_MEMORY or trouble.reason in _OUTSIDE
