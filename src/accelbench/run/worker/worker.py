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
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.catalog.data import ready_decoders
from accelbench.catalog.index_errors import index_advice
from accelbench.catalog.inputs import items_per_step
from accelbench.core.abilities import (
    DropoutSwitchable,
    OutOfProcess,
    RealInputs,
    Reusable,
)
from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock, cpu_seconds
from accelbench.core.errors import AccelbenchError, CaseError, OutOfMemoryError, UnsupportedError
from accelbench.core.identity import plain
from accelbench.core.protocols import ArtifactFormat, Job, Runtime, Session
from accelbench.core.serial import case_from_json, job_from_json
from accelbench.core.vocabulary import Provenance, Quality, Status
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.hostmemory import give_back_freed_memory
from accelbench.hardware.thread_times import read_thread_times
from accelbench.measure.block_validation import refuse_bad_time
from accelbench.measure.energy import EnergyReport, no_energy
from accelbench.measure.intervals import Interval
from accelbench.measure.loop import Measurement, Question, measure
from accelbench.run.plan.measuring_rules import rules_from_json
from accelbench.run.process.wire import Channel
from accelbench.run.verify.compile_proof import refuse_uncompiled
from accelbench.run.verify.plausibility import samples_left
from accelbench.run.worker.case_checks import CaseChecks
from accelbench.run.worker.energy_pass import devices_of, measured_energy
from accelbench.run.worker.load_checks import ReadTimes, SideChecks
from accelbench.run.worker.loss_curve import loss_curve
from accelbench.run.worker.memory_meter import WorkerMeter
from accelbench.run.worker.output_comparison import (
    OutputComparison,
    drawn,
    from_fp64,
    from_last_places,
    left,
)
from accelbench.run.worker.profile_pass import profile
from accelbench.run.worker.session_columns import (
    noted,
    skipped,
    with_inputs,
    with_ranks,
    with_visits,
)
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
    """Return the reported time of a step: the smaller of median and mean; of blocks the mean."""
    metrics = measurement.metrics
    mean = float(metrics["latency_mean_ms"])
    return min(float(metrics.get("latency_p50_ms") or mean), mean) * 1e6


class CaseBench:
    """One worker's model, and what the conductor may ask of it."""

    def __init__(
        self,
        runtime: Runtime,
        reporter: Reporter,
        wall: Clock | None = None,
        read_times: ReadTimes = read_thread_times,
    ) -> None:
        """Open nothing yet.

        Args:
            runtime: the engine.
            reporter: hears of each measurement.
            wall: a clock that the runtime does not own; the system's unless given.
            read_times: reads the times of the worker's threads.
        """
        self._runtime = runtime
        self._reporter = reporter
        # A script's time is nobody's.
        measured = runtime.info.provenance is Provenance.MEASURED
        self._wall = (wall or MonotonicClock()) if measured else None
        self._read_times = read_times
        self._meter = WorkerMeter()
        self._session: Session | None = None
        self._seed = 0
        self._job: Job | None = None
        self._checks: CaseChecks | None = None
        self._side: SideChecks | None = None
        self._comparison: OutputComparison | None = None
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
        start = self._now()
        session = self._session = self._runtime.open(job)
        opening_ns = self._now() - start
        self._job, self._scored = job, None
        if settings.data and not isinstance(session, RealInputs):
            raise UnsupportedError(
                "no_real_inputs",
                f"the runtime {self._runtime.info.name} is not fed with real inputs",
                "Leave out --data.",
            )
        self._seed = settings.seed
        self._side = side = SideChecks(session, job, self._wall, self._read_times)
        self._checks = CaseChecks(
            session,
            job.device,
            self._seed,
            self._runtime.clock(),
            self._wall,
            side.read_threads,
        )
        self._comparison = OutputComparison(session, self._seed, self._wall)
        self._meter.watch(session)
        for what, ns in session.timings.items():
            refuse_bad_time(what, ns)
        reasons = self._side.judge_opening(opening_ns)
        return {
            "timings": {w: ns for w, ns in session.timings.items() if f"{w}_ms" not in reasons},
            "null_reasons": reasons,
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
        checks, side = self._checks, self._side
        assert checks is not None  # as the session is there
        assert side is not None
        give_back_freed_memory()

        def steady_state_over(question: Question, inputs: Any) -> None:
            side.end_steady_state()
            checks.steady_state_over(question, inputs)

        measured = measure(
            session,
            case,
            rules_from_json(request["rules"]),
            self._runtime.clock(),
            self._meter,
            self._reporter,
            items_per_step(case.model, case.shapes, case.mode),
            self._wall,
            steady_state_over,
            checks.watch(case),
            side.begin_steady_state,
        )
        result = with_visits(session, case, with_inputs(session, measured))
        self._reporter.phase("communication")
        result = with_ranks(session, case, result)
        details = result.evidence.details
        uncompiled = refuse_uncompiled(case, details, result.metrics.get("compile_ms"))
        self._reporter.phase("self-check")
        alone = request.get("alone", False) and not self._runtime.info.compiles
        checked = checks.of(case, _said_ns(measured), alone)
        if checked.too_busy:
            result = replace(result, quality=Quality.UNUSABLE)
        energy = self._energy(session, case, _said_ns(measured))
        used = side.judge_load(case, result)
        result = used.applied_to(result)
        metrics = {**plain(result.metrics), "steps_verified": checked.steps_verified}
        columns, reasons = side.keep_plausible(case, measured, {**metrics, **energy.columns})
        warnings = [*result.warnings, *skipped(result), *noted(result), *uncompiled]
        warnings += checked.warnings
        samples = samples_left(result.samples, reasons)
        return {
            **plain(result),
            "metrics": columns,
            "null_reasons": {**energy.reasons, **used.reasons, **reasons},
            "self_check": checked.self_check,
            "warnings": [*warnings, *energy.warnings],
            "samples": {name: list(values) for name, values in samples.items()},
            "sampling": {name: dict(result.sampling[name]) for name in samples},
        }

    def described(self, error: BaseException) -> dict[str, Any]:
        """Return an exception as `describe` does; of an own model it names the input to correct."""
        found = describe(error)
        model = None if self._job is None else self._job.case.model
        if (
            model is not None
            and model.is_own
            and (advice := index_advice(str(found["message"]), model.inputs))
        ):
            return {**found, "advice": advice}
        return found

    def _now(self) -> int:
        return 0 if self._wall is None else self._wall.now_ns()

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
        timed = self._checks.training if self._checks is not None else None
        return loss_curve(session, request, self._runtime.clock(), self._wall, timed)

    def _outputs(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return left(self._opened(), self._seed, request)

    def _fp64(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return from_fp64(self._opened(), self._seed, request)

    def _last_places(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return from_last_places(self._opened(), self._seed, request)

    def _drawn(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return drawn(self._opened(), self._seed, request)

    def _verify(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._comparison is not None  # as the session is there
        return self._comparison.compare(request)

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
                found = bench.described(error)
                channel.send({"event": "error", **found, "traceback": trace})
    finally:
        if runtime.info.reopens:
            # Where no kernel ends what a worker has started, the worker has to.
            bench.close()
