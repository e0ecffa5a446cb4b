"""The worker: opens one model and measures the cases it is given, smallest batch first.

It answers requests {"do": NAME, …} of the conductor, which `CaseBench` lists, until that hangs up.
Between blocks it reports and waits for "go": what the conductor then draws or writes disturbs no
sample.

The measuring rules of a run, as plain JSON for workers and journals.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from accelbench.core.abilities import (
    DropoutSwitchable,
    OutOfProcess,
    PageVisits,
    RankExchange,
    RealInputs,
    Reusable,
    TrainingReference,
)
from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock, cpu_seconds
from accelbench.core.errors import AccelbenchError, CaseError, OutOfMemoryError, UnsupportedError
from accelbench.core.identity import to_plain
from accelbench.core.profile import Profiling, group_by_kind
from accelbench.core.protocols import ArtifactFormat, DeviceMemory, Job, Runtime, Session
from accelbench.core.serial import case_from_json, job_from_json
from accelbench.core.vocabulary import MIB, Provenance, Quality, Status, Timing
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.hostmemory import (
    HostMemory,
    MemorySampler,
    PageUse,
    read_page_use,
    release_freed_memory,
)
from accelbench.hardware.thread_times import read_thread_times
from accelbench.measure.block_validation import refuse_bad_time
from accelbench.measure.energy import EnergyReport, no_energy
from accelbench.measure.intervals import Interval
from accelbench.measure.loop import BlockRequest, Measurement, Rules, measure
from accelbench.measure.losses import LossLog
from accelbench.measure.stopping import StoppingRule
from accelbench.measure.validated_session import CheckedSession
from accelbench.measure.warmup import WarmupRule
from accelbench.models.data import ready_decoders
from accelbench.models.find import index_advice
from accelbench.models.inputs import items_per_step
from accelbench.run.messages import BAD_MEMORY, OTHERS_COLUMNS
from accelbench.run.process.wire import Channel
from accelbench.run.verify.plausibility import samples_left
from accelbench.run.verify.precision_proof import refuse_uncompiled
from accelbench.run.verify.timed_steps import CHANCE
from accelbench.run.verify.training_steps import TrainingSteps, WeightMoves
from accelbench.run.worker.case_checks import (
    CaseChecks,
    ReadTimes,
    SideChecks,
    devices_of,
    measured_energy,
)
from accelbench.run.worker.output_comparison import (
    OutputComparison,
    drawn,
    from_fp64,
    from_last_places,
    left,
)
from accelbench.run.worker.task_accuracy import task_accuracy


def rules_from_json(body: Mapping[str, Any]) -> Rules:
    """{"iterations", "warmup", "seconds"}: null means by the design's rules."""
    limit = round(float(body.get("seconds") or 10.0) * 1e9)
    return Rules(
        warmup=WarmupRule(fixed=body.get("warmup"), budget_ns=limit),
        stopping=StoppingRule(fixed=body.get("iterations"), time_limit_ns=limit),
    )


#: The columns that a session may fill itself: every other one is measured, or the run's own.
_OF_INPUTS = frozenset(("data_load_ms", "data_digest"))
_OF_VISITS = frozenset(("first_visit_ms", "repeat_visit_ms"))
_OF_RANKS = frozenset((
    *("communication_ms", "communication_share", "exposed_communication_ms", "straggler_ratio"),
))  # fmt: skip


def with_inputs(session: Session, measurement: Measurement) -> Measurement:
    """Add the columns of real inputs, and their notes as warnings."""
    if not isinstance(session, RealInputs):
        return measurement
    notes = measurement.evidence.details.get("data", {}).get("notes", ())
    return replace(
        measurement,
        metrics={**measurement.metrics, **_only(session.loaded(), _OF_INPUTS)},
        warnings=[*measurement.warnings, *notes],
    )


def with_visits(session: Session, case: Case, measurement: Measurement) -> Measurement:
    """Add how long users wait when they visit a page for the first time, and again."""
    if not isinstance(session, PageVisits):
        return measurement
    told = session.visits(case, measurement.metrics["first_inference_ms"])
    columns = _only(told, _OF_VISITS)
    return replace(measurement, metrics={**measurement.metrics, **columns})


def with_ranks(session: Session, case: Case, measurement: Measurement) -> Measurement:
    """Add the time that several processes communicate; the evidence has each process's."""
    if not isinstance(session, RankExchange):
        return measurement
    columns = dict(session.exchanged(case))
    ranks, evidence = columns.pop("ranks"), measurement.evidence
    together = {**evidence.details.get("distributed", {}), "communication": ranks}
    details = {**evidence.details, "distributed": together}
    return replace(
        measurement,
        metrics={**measurement.metrics, **_only(columns, _OF_RANKS)},
        evidence=replace(evidence, details=details),
    )


def _only(columns: Mapping[str, Any], allowed: frozenset[str]) -> Mapping[str, Any]:
    """Return the columns; raise CaseError if one is not the session's to fill."""
    if others := sorted(set(columns) - allowed):
        raise OTHERS_COLUMNS.error(names=", ".join(others))
    return columns


def skipped(measurement: Measurement) -> list[str]:
    """Return a warning about training steps that overflowed, if there were any."""
    count = measurement.evidence.details.get("training", {}).get("skipped_steps")
    if not count:
        return []
    steps = "1 training step" if count == 1 else f"{count} training steps"
    return [f"{steps} overflowed in fp16, changed no weight, and took part in the figures."]


def noted(measurement: Measurement) -> Sequence[str]:
    """Return the notes of a session about how it ran."""
    notes: Sequence[str] = measurement.evidence.details.get("notes", ())
    return notes


#: Profilers write down every call: a few steps tell as much as many, and a long one is enough.
MOST_STEPS = 5
WORTH_NS = 500_000_000


def profile(session: Session, case: Case, runtime: str, folder: str | None) -> dict[str, Any]:
    """Return the engine's profile of a few steps, or why there is none."""
    if not isinstance(session, Profiling):
        return {"profile": None, "why_not": f"the runtime {runtime} has no profiler"}
    inputs = session.prepare(case)
    session.compile(inputs)
    # The first step may compile or allocate; the second says how many are worth while.
    session.sample(inputs, 1, Timing.EACH)
    [ns] = session.sample(inputs, 1, Timing.EACH).phase_ns["step"]
    steps = max(1, min(MOST_STEPS, WORTH_NS // max(ns, 1)))
    engine_profile = session.profile(inputs, steps, Path(folder) if folder else None)
    body = {
        "engine": session.evidence().engine,
        **to_plain(engine_profile),
        "explained": engine_profile.explained_share,
        "kinds": [
            {name: value for name, value in to_plain(operator).items() if name != "name"}
            for operator in group_by_kind(engine_profile)
        ],
    }
    return {"profile": body, "why_not": None}


class WorkerMeter:
    """The memory that a model adds to a worker: of the host by the kernel, of the device by its
    allocator."""

    def __init__(self) -> None:
        self._host = HostMemory.start()
        self._session: Session | None = None
        self._sampler: MemorySampler | None = None

    def watch(self, session: Session) -> None:
        self._session = session
        if isinstance(session, OutOfProcess):
            self._host = session.host_memory

    def reset(self) -> None:
        self._host.reset_peak()
        if self._session is not None:
            self._session.reset_memory()

    def sample(self, work: Callable[[], object]) -> None:
        session = self._session
        known = session is not None and session.device_memory() is not None
        read_device = _current(session) if session is not None and known else None
        with MemorySampler(self._host, read_device) as self._sampler:
            work()

    def columns(self) -> Mapping[str, Any]:
        """Return peaks since the reset, and averages over the work that was sampled."""
        peak = self._host.peak_bytes()
        sampler = self._sampler
        average = sampler.host_average if sampler is not None and self._host.known else None
        average = _at_most(average, peak)
        columns: dict[str, Any] = {
            "host_memory_peak_mb": _mb(peak),
            "memory_peak_mb": _mb(peak),
            "memory_source": self._host.source,
            "host_memory_avg_mb": _mb(average),
            "memory_avg_mb": _mb(average),
        }
        device = self._session.device_memory() if self._session else None
        if device is None:
            return columns
        device_peak = device.peak_bytes
        if device_peak is None and sampler is not None:
            device_peak = sampler.device_peak  # the allocator has no counter: the highest sample
        device_average = sampler.device_average if sampler is not None else None
        return {
            **columns,
            "device_memory_reserved_mb": _mb(device.reserved_bytes),
            "device_memory_peak_mb": _mb(device_peak),
            "memory_peak_mb": _mb(device_peak),
            "memory_source": device.source,
            "device_memory_avg_mb": _mb(device_average),
            "memory_avg_mb": _mb(device_average),
        }


def _current(session: Session) -> Callable[[], int | None]:
    def read() -> int | None:
        memory: DeviceMemory | None = session.device_memory()
        return memory.current_bytes if memory else None

    return read


def _at_most(average: float | None, peak: float | None) -> float | None:
    # Samples are taken before the peak is reset, so they can be higher.
    return average if average is None or peak is None else min(average, peak)


def _mb(value: float | None) -> float | None:
    if value is None:
        return None
    if not 0 <= value < float("inf"):
        raise BAD_MEMORY.error(value=value)
    return value / MIB


def loss_curve(
    session: Session,
    request: Mapping[str, Any],
    clock: Clock,
    wall: Clock | None,
    timed: TrainingSteps | None,
) -> dict[str, Any]:
    """Train from a fresh start without dropout; return the losses, and which weights moved.

    A reference may get a `nudge` or `narrow` products. `timed` are the steps of the timed case.
    """
    # Blocks have random lengths: what trains only in the last step of a block has another curve.
    log = LossLog()
    checked = CheckedSession(session, clock, wall, log.record).session
    reference = session if isinstance(session, TrainingReference) else None
    nudge, narrow = request.get("nudge", 0.0), request.get("narrow", False)
    with cast("DropoutSwitchable", session).without_dropout():
        inputs = nudge_inputs(checked.prepare(case_from_json(request["case"])), nudge)
        if nudge and reference is not None:
            reference.nudge(nudge)
        moves = WeightMoves(session, request.get("draw", 0))
        with reference.narrow_products() if reference and narrow else nullcontext():
            left = request["steps"]
            while left:
                block = min(left, CHANCE.randint(1, request["steps"]))
                checked.sample(inputs, block, Timing.EACH)
                left -= block
        moved, still = moves.end()
    idle = timed.idle(moved) if timed is not None else []
    return {"losses": log.losses, "moved": moved, "still": still, "idle": idle}


def nudge_inputs(inputs: Any, by: float) -> Any:
    """Return a torch session's inputs with numbers a little larger; ids and labels as they are."""
    if not by:
        return inputs
    return {
        name: value * (1 + by) if value.is_floating_point() else value
        for name, value in inputs.items()
    }


class Reporter:
    """Reports to the conductor, and waits while it listens."""

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
    """Return an exception as a result's status, reason, message and advice."""
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
    from accelbench.engines.artifacts.cache import Cache
    from accelbench.engines.artifacts.make import make
    from accelbench.engines.artifacts.recipe import Recipe

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
    """Return the reported time of a step: the smaller of median and mean; for blocks the mean."""
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
        read_pages: Callable[[], PageUse | None] = read_page_use,
    ) -> None:
        """Open nothing yet. `wall` is a clock that the engine does not own; the system's by
        default."""
        self._runtime = runtime
        self._reporter = reporter
        # A script's time is nobody's.
        measured = runtime.info.provenance is Provenance.MEASURED
        self._wall = (wall or MonotonicClock()) if measured else None
        self._read_times = read_times
        self._read_pages = read_pages
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
            "outputs": partial(self._as_reference, left),
            "fp64": partial(self._as_reference, from_fp64),
            "last_places": partial(self._as_reference, from_last_places),
            "drawn": partial(self._as_reference, drawn),
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
        """Return the processor time of this worker and of processes that work for it."""
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
        self._side = side = SideChecks(session, job, self._wall, self._read_times, self._read_pages)
        self._checks = CaseChecks(
            session, job.device, self._seed, self._runtime.clock(), self._wall, side.read_threads
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
        """Close the model; what it has started elsewhere ends with it."""
        if self._session is not None:
            self._session.close()

    def _measure(self, request: Mapping[str, Any]) -> dict[str, Any]:
        session, case = self._opened(), case_from_json(request["case"])
        checks, side = self._checks, self._side
        assert checks is not None  # as the session is there
        assert side is not None
        release_freed_memory()

        def steady_state_over(question: BlockRequest, inputs: Any) -> None:
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
        result = side.judge_pages(result).applied_to(used.applied_to(result))
        metrics = {**to_plain(result.metrics), "steps_verified": checked.steps_verified}
        columns, reasons = side.keep_plausible(case, measured, {**metrics, **energy.columns})
        warnings = [*result.warnings, *skipped(result), *noted(result), *uncompiled]
        warnings += checked.warnings
        samples = samples_left(result.samples, reasons)
        return {
            **to_plain(result),
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
            and model.is_user_model
            and (advice := index_advice(str(found["message"]), model.inputs))
        ):
            return {**found, "advice": advice}
        return found

    def _now(self) -> int:
        return 0 if self._wall is None else self._wall.now_ns()

    def _energy(self, session: Session, case: Case, step_ns: float) -> EnergyReport:
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

    def _as_reference(
        self, do: Callable[[Session, int, Mapping[str, Any]], dict[str, Any]], request: Any
    ) -> dict[str, Any]:
        return do(self._opened(), self._seed, request)

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
