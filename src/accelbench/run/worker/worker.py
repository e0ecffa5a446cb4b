"""The worker: opens one model and measures the cases it is given, smallest batch first.

It answers {"do": "open", "job"} and {"do": "measure", "case", "rules"}; without timing
anything, {"do": "losses", "case", "steps"} trains without dropout, {"do": "outputs", "case",
"folder", "draw"} leaves what a reference gives in a folder, {"do": "verify", …} holds
outputs against that, {"do": "fp64", …} says how far it is from itself in fp64, {"do":
"last_places", …} by the last places of its inputs, {"do": "profile", "case", "folder"} where a
step's time goes, {"do": "accuracy", "case"} answers labelled samples, and {"do": "export", …}
makes an artefact. It ends when the conductor hangs up.
Between blocks it reports and waits for "go": what the conductor then draws or writes disturbs no
sample.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.catalog.data import ready_decoders
from accelbench.catalog.inputs import items_per_step
from accelbench.core.abilities import (
    DropoutSwitchable,
    OutOfProcess,
    PageVisits,
    RankExchange,
    RealInputs,
    Reusable,
)
from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock, cpu_seconds
from accelbench.core.errors import AccelbenchError, CaseError, OutOfMemoryError, UnsupportedError
from accelbench.core.identity import plain
from accelbench.core.protocols import ArtifactFormat, Job, Runtime, Session
from accelbench.core.serial import case_from_json, job_from_json
from accelbench.core.vocabulary import Provenance, Status, Timing
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.hostmemory import give_back_freed_memory
from accelbench.measure.block_validation import refuse_bad_time
from accelbench.measure.energy import EnergyReport, no_energy
from accelbench.measure.intervals import Interval
from accelbench.measure.loop import Measurement, measure
from accelbench.measure.losses import LossLog
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.plan.measuring_rules import rules_from_json
from accelbench.run.process.wire import Channel
from accelbench.run.worker.case_checks import CaseChecks
from accelbench.run.worker.energy_pass import devices_of, measured_energy
from accelbench.run.worker.memory_meter import WorkerMeter
from accelbench.run.worker.output_comparison import (
    compared,
    drawn,
    from_fp64,
    from_last_places,
    left,
)
from accelbench.run.worker.profile_pass import profile
from accelbench.run.worker.task_accuracy import task_accuracy


class Reporter:
    """Tells the conductor where the measurement stands, and waits while it listens."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def phase(self, name: str) -> None:
        self._say({"event": "phase", "name": name})

    def progress(self, samples: int, median_ns: float, interval: Interval | None) -> None:
        low, high = (interval.low, interval.high) if interval else (None, None)
        self._say(
            {
                "event": "progress",
                "samples": samples,
                "median_ns": median_ns,
                "low_ns": low,
                "high_ns": high,
            }
        )

    def _say(self, message: Mapping[str, Any]) -> None:
        self._channel.send(message)
        self._channel.receive()  # the conductor has drawn and written what it wanted to


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as a result's status, reason, message and advice."""
    if isinstance(error, CaseError):
        return {
            "status": error.status,
            "reason": error.reason,
            "message": error.message,
            "advice": error.advice,
        }
    if isinstance(error, AccelbenchError):
        return {
            "status": Status.FAILED,
            "reason": "surroundings",
            "message": error.message,
            "advice": error.advice,
        }
    if isinstance(error, MemoryError):
        return describe(OutOfMemoryError("the host has no memory left"))
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    return {
        "status": "failed",
        "reason": "exception",
        "message": text,
        "advice": "Run again with --debug to see where it was raised.",
    }


def with_inputs(session: Session, measurement: Measurement) -> Measurement:
    """Add what is known of real inputs; what a reader should know of them is a warning."""
    if not isinstance(session, RealInputs):
        return measurement
    notes = measurement.evidence.details.get("data", {}).get("notes", ())
    return replace(
        measurement,
        metrics={**measurement.metrics, **session.loaded()},
        warnings=[*measurement.warnings, *notes],
    )


def with_visits(session: Session, case: Case, measurement: Measurement) -> Measurement:
    """Add how long a user waits who comes for the first time, and again."""
    if not isinstance(session, PageVisits):
        return measurement
    columns = session.visits(case, measurement.metrics["first_inference_ms"])
    return replace(measurement, metrics={**measurement.metrics, **columns})


def with_ranks(session: Session, case: Case, measurement: Measurement) -> Measurement:
    """Add what several processes spend on each other, each one's own in the evidence."""
    if not isinstance(session, RankExchange):
        return measurement
    columns = dict(session.exchanged(case))
    ranks, evidence = columns.pop("ranks"), measurement.evidence
    together = {**evidence.details.get("distributed", {}), "communication": ranks}
    details = {**evidence.details, "distributed": together}
    return replace(
        measurement,
        metrics={**measurement.metrics, **columns},
        evidence=replace(evidence, details=details),
    )


def skipped(measurement: Measurement) -> list[str]:
    """What a reader should know of steps that did not step, and were timed all the same."""
    count = measurement.evidence.details.get("training", {}).get("skipped_steps")
    if not count:
        return []
    steps = "1 training step" if count == 1 else f"{count} training steps"
    return [f"{steps} overflowed in fp16, changed no weight, and took part in the figures."]


def noted(measurement: Measurement) -> Sequence[str]:
    """What a session itself says that a reader should know of how it ran."""
    notes: Sequence[str] = measurement.evidence.details.get("notes", ())
    return notes


def nudged(inputs: Any, by: float) -> Any:
    """A torch session's inputs, numbers a little larger; ids and labels as they are."""
    if not by:
        return inputs
    return {
        name: value * (1 + by) if value.is_floating_point() else value
        for name, value in inputs.items()
    }


def _exported(request: Mapping[str, Any]) -> dict[str, Any]:
    """Make an artefact; nothing else happens in this worker."""
    from accelbench.artifacts.cache import Cache
    from accelbench.artifacts.make import make
    from accelbench.artifacts.recipe import Recipe

    recipe = Recipe(
        case_from_json(request["case"]),
        ArtifactFormat(request["format"], request["static"]),
        request["seed"],
        request["weights"],
        request["trust_remote_code"],
        tuple(request["workarounds"]),
    )
    spill = Path(request["spill"]) if request.get("spill") else None
    return {"folder": str(make(recipe, Cache(), spill).folder)}


def _said_ns(measurement: Measurement) -> float:
    """What a step took. Of blocks the mean alone is known; of steps, some may be a cache's."""
    metrics = measurement.metrics
    return float(metrics.get("latency_p50_ms") or metrics["latency_mean_ms"]) * 1e6


class CaseBench:
    """One worker's model, and what the conductor may ask of it."""

    def __init__(self, runtime: Runtime, reporter: Reporter, wall: Clock | None = None) -> None:
        """`wall` is a clock that the runtime does not own: the system's."""
        self._runtime = runtime
        self._reporter = reporter
        # A script's time is nobody's.
        measured = runtime.info.provenance is Provenance.MEASURED
        self._wall = (wall or MonotonicClock()) if measured else None
        self._meter = WorkerMeter()
        self._session: Session | None = None
        self._seed = 0
        self._job: Job | None = None
        self._checks: CaseChecks | None = None
        self._scored: dict[str, Any] | None = None  # of the open model, whatever the batch
        self._asks: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "open": self._open,
            "measure": self._measure,
            "losses": self._losses,
            "outputs": self._outputs,
            "fp64": self._fp64,
            "last_places": self._last_places,
            "drawn": self._drawn,
            "verify": self._verify,
            "profile": self._profile,
            "accuracy": self._accuracy,
            "export": _exported,
            "leave": self._leave,
        }

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked; every error is left to the caller."""
        return {**self._asks[request["do"]](request), "cpu_seconds": self._cpu_seconds()}

    def _cpu_seconds(self) -> float:
        """Of all that is done for this worker, wherever."""
        elsewhere = self._session.cpu_seconds() if isinstance(self._session, OutOfProcess) else 0.0
        return cpu_seconds() + elsewhere

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        job = job_from_json(request["job"])
        settings = job.settings
        if settings.data and self._session is None:
            ready_decoders()
            self._meter = WorkerMeter()  # the decoders are not of the model's memory
        session = self._session = self._runtime.open(job)
        self._job, self._scored = job, None
        if settings.data and not isinstance(session, RealInputs):
            raise UnsupportedError(
                "no_real_inputs",
                f"the runtime {self._runtime.info.name} is not fed with real inputs",
                "Leave out --data.",
            )
        self._seed = settings.seed
        self._checks = CaseChecks(
            session, job.device, self._seed, self._runtime.clock(), self._wall
        )
        self._meter.watch(session)
        for what, ns in session.timings.items():
            refuse_bad_time(what, ns)
        return {
            "timings": dict(session.timings),
            "weights_digest": session.weights_digest,
            "threads": session.evidence().details.get("threads"),
        }

    def _leave(self, request: Mapping[str, Any]) -> dict[str, Any]:
        session = self._opened()
        if not isinstance(session, Reusable):
            raise ValueError("what is open cannot be left")
        session.leave()
        return {}

    def close(self) -> None:
        """Give back what is open; what it has started elsewhere ends with it."""
        if self._session is not None:
            self._session.close()

    def _measure(self, request: Mapping[str, Any]) -> dict[str, Any]:
        session, case = self._opened(), case_from_json(request["case"])
        checks = self._checks
        assert checks is not None  # as the session is there
        give_back_freed_memory()
        measured = measure(
            session,
            case,
            rules_from_json(request["rules"]),
            self._runtime.clock(),
            self._meter,
            self._reporter,
            items_per_step(case.model, case.shapes, case.mode),
            self._wall,
            checks.steady_state_over,
        )
        result = with_visits(session, case, with_inputs(session, measured))
        self._reporter.phase("communication")
        result = with_ranks(session, case, result)
        self._reporter.phase("self-check")
        alone = request.get("alone", False) and not self._runtime.info.compiles
        checked = checks.of(case, _said_ns(measured), alone)
        energy = self._energy(session, case, _said_ns(measured))
        metrics = {**plain(result.metrics), "steps_verified": checked.steps_verified}
        warnings = [*result.warnings, *skipped(result), *noted(result), *checked.warnings]
        return {
            **plain(result),
            "metrics": {**metrics, **energy.columns},
            "null_reasons": energy.reasons,
            "self_check": checked.self_check,
            "warnings": [*warnings, *energy.warnings],
            "samples": {name: list(values) for name, values in result.samples.items()},
        }

    def _energy(self, session: Session, case: Case, step_ns: float) -> EnergyReport:
        """Energy of the case, where it was asked for."""
        job = self._job
        if job is None or not job.settings.energy:
            return EnergyReport()
        if self._wall is None:
            return no_energy("the time is a script's, and nothing runs in it")
        devices = devices_of(case, job.device, job.settings.nodes)
        if isinstance(devices, NotAvailable):
            return no_energy(devices.reason)
        return measured_energy(session, case, devices, step_ns, self._reporter.phase)

    def _losses(self, request: Mapping[str, Any]) -> dict[str, Any]:
        session = self._opened()
        if not isinstance(session, DropoutSwitchable):
            raise UnsupportedError(
                "dropout",
                f"the runtime {self._runtime.info.name} cannot train without dropout",
                "Its losses are in loss_per_step.",
            )
        log = LossLog()
        checked = CheckedSession(session, self._runtime.clock(), self._wall, log.note).session
        with session.without_dropout():
            inputs = checked.prepare(case_from_json(request["case"]))
            inputs = nudged(inputs, request.get("nudge", 0.0))
            checked.sample(inputs, request["steps"], Timing.EACH)
        return {"losses": log.losses}

    def _outputs(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return left(self._opened(), self._seed, request)

    def _fp64(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return from_fp64(self._opened(), self._seed, request)

    def _last_places(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return from_last_places(self._opened(), self._seed, request)

    def _drawn(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return drawn(self._opened(), self._seed, request)

    def _verify(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return compared(self._opened(), self._seed, request)

    def _profile(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = self._runtime.info.name
        return profile(self._opened(), case_from_json(request["case"]), name, request["folder"])

    def _accuracy(self, request: Mapping[str, Any]) -> dict[str, Any]:
        session, job = self._opened(), self._job
        assert job is not None  # as the session is there
        self._reporter.phase("accuracy")
        if self._scored is None:
            self._scored = task_accuracy(session, case_from_json(request["case"]), job.settings)
        return self._scored

    def _opened(self) -> Session:
        if self._session is None:
            raise ValueError("nothing is open")
        return self._session


def serve(channel: Channel, runtime: Runtime) -> None:
    """Do what the conductor asks until it hangs up."""
    bench = CaseBench(runtime, Reporter(channel))
    try:
        while True:
            request = channel.receive()
            try:
                channel.send({"event": "done", **bench.answer(request)})
            except Exception as error:
                trace = traceback.format_exc()
                sys.stderr.write(trace)
                channel.send({"event": "error", **describe(error), "traceback": trace})
    finally:
        if runtime.info.reopens:
            # Where no kernel ends what a worker has started, the worker has to.
            bench.close()
