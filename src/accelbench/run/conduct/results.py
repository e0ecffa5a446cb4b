"""Composing a result: what was asked, what was found, and everything a reader must know.

The body of a result uses the names of the column registry; the raw samples
ride along under "samples". Nothing is computed here that was not handed in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from accelbench.catalog.inputs import axis, tensors, throughput_unit
from accelbench.core.axes import AXES
from accelbench.core.case import PROTOCOL_VERSION, QUESTION, Case, result_id, series_key
from accelbench.core.identity import plain
from accelbench.core.job_settings import JobSettings
from accelbench.core.model import AnalyticCost
from accelbench.core.outcome import Outcome
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import MIB, Mode, Provenance
from accelbench.core.worth import usable
from accelbench.run.conduct.missing_reasons import why_null
from accelbench.run.plan.request import Planned


@dataclass(frozen=True)
class LaunchFacts:
    """What is the same for every result of a launch."""

    run_id: str
    launch: int  # from 1
    arm: str = ""
    job: JobSettings = field(default_factory=JobSettings)


def launch_numbers(count: int) -> range:
    """Return the numbers of the launches of a case, from 1."""
    return range(1, count + 1)


def identity_of(launch_facts: LaunchFacts, planned: Planned) -> str:
    """Return the result_id that a case will have in a launch.

    If no precision was named, it is the same whichever one an engine computes the file in: a run
    that is resumed finds the result.
    """
    case = planned.case
    if planned.as_stored and case.model.file is not None:
        case = replace(case, precision=case.model.file.precision)
    device = str(planned.device) if planned.device else case.target.place
    return result_id(launch_facts.run_id, case, device, launch_facts.launch, launch_facts.arm)


def compose(
    launch_facts: LaunchFacts,
    planned: Planned,
    outcome: Outcome,
    provenance: Provenance,
    cost: AnalyticCost | None,
    started_at: str,
    finished_at: str,
    estimate_bytes: int | None = None,
    compiles: bool = False,
) -> dict[str, Any]:
    """The body of a result fact; `compiles` is of a runtime that always does."""
    case, device = planned.case, planned.device
    measured = outcome.measurement
    evidence = measured.get("evidence")
    threads = _threads(outcome, launch_facts.job.threads)
    fingerprint = device.fingerprint if device else ""
    body: dict[str, Any] = {
        "result_id": identity_of(launch_facts, planned),
        "run_id": launch_facts.run_id,
        "case_id": case.case_id,
        # What never got as far as an engine belongs to no line of history: its threads are unknown.
        "series_key": series_key(case, fingerprint, threads) if outcome.opened else None,
        "launch": launch_facts.launch,
        "arm": launch_facts.arm,
        **_what_was_asked(case, device),
        "weights": _weights(launch_facts.job.weights, case),
        "seed": launch_facts.job.seed,
        "threads": threads,
        "data_source": launch_facts.job.data or "synthetic",
        "status": outcome.status.value,
        "reason": outcome.reason or None,
        "message": outcome.message or None,
        "advice": outcome.advice or None,
        "compiled": case.compiled or compiles,
        "provenance": provenance.value,
        "quality": _quality(outcome, measured),
        "warnings": [*measured.get("warnings", ()), *outcome.warnings],
        "evidence": evidence,
        "emulated": _emulated(device, evidence),
        "verification": "not_done",
        **measured.get("metrics", {}),
        **_opened(outcome.opened),
        "conditions": {**outcome.conditions, QUESTION: case.unlisted},
        "environment": dict(outcome.environment),
        "protocol_version": PROTOCOL_VERSION,
        "workarounds": list(outcome.workarounds),
        "started_at": started_at,
        "finished_at": finished_at,
    }
    body |= _self_check(outcome) | _tokens(case, body)
    if estimate_bytes is not None:
        body["memory_estimate_mb"] = estimate_bytes / MIB
    if cost is not None:
        body["flops"], body["bytes_moved"] = cost.flops, cost.bytes_moved
    if "samples" in measured:
        body["samples"] = measured["samples"]
        body["sampling"] = measured["sampling"]
    body["nulls"] = why_null(body, {**_uncounted(case), **outcome.null_reasons})
    return body


def _uncounted(case: Case) -> dict[str, str]:
    """Why the work of what its owner brought is not known."""
    own = case.model.own
    why = "" if own is None else own.uncounted
    return dict.fromkeys(("flops", "bytes_moved"), why) if why else {}


def _quality(outcome: Outcome, measured: Mapping[str, Any]) -> str | None:
    """What the surroundings impose goes before the measurement's own, unless that is of no use."""
    own = measured.get("quality")
    return own if not usable(measured) else outcome.quality or own


def _emulated(device: Device | None, evidence: Mapping[str, Any] | None) -> bool | None:
    """Known of some devices before, of a browser's adapter only when a page has asked for it."""
    if device is None:
        return None
    return device.emulated or bool((evidence or {}).get("emulated"))


def _self_check(outcome: Outcome) -> dict[str, Any]:
    """What the worker saw of the model's own consistency; it refuses what is not real."""
    checked = outcome.measurement.get("self_check")
    if checked is None:
        return {"self_check": "failed" if outcome.reason == "not_real" else "not_done"}
    return {"self_check": checked["verdict"], "outputs_digest": checked["outputs_digest"]}


def _tokens(case: Case, body: Mapping[str, Any]) -> dict[str, Any]:
    mean = body.get("latency_mean_ms")
    if not case.generates or not mean:
        return {}
    return {"tokens_per_second": case.shapes.batch * (case.shapes.new_tokens or 0) / mean * 1e3}


def _what_was_asked(case: Case, device: Device | None) -> dict[str, Any]:
    model, shapes = case.model, case.shapes
    trains = case.mode is Mode.TRAINING
    return {
        "model": model.id,
        "family": model.family.value,
        "architecture": model.architecture.value,
        "modality": ",".join(model.modalities),
        "task": model.task,
        "model_size": model.size,
        "parameters": model.parameters,
        "hardware": case.target.hardware,
        "runtime": case.target.runtime,
        "device": str(device) if device else case.target.device,
        "device_name": device.name if device else None,
        "device_fingerprint": device.fingerprint if device else None,
        "precision": case.precision,
        "batch_size": shapes.batch,
        **{dimension.column: getattr(shapes, dimension.field) for dimension in AXES},
        "input_shape": json.dumps(input_shapes(case)),
        "mode": case.mode.value,
        "scenario": case.scenario,
        "world_size": case.world_size,
        "options": plain(case.options),
        "optimizer": case.options.get("optimizer", "adamw") if trains else None,
        "throughput_unit": throughput_unit(model, shapes, case.mode),
    }


def input_shapes(case: Case) -> dict[str, list[int | None]]:
    """The shape of every input, with the case's sizes filled in.

    Nothing is checked: this describes cases that were refused as well.
    """
    model, shapes = case.model, case.shapes
    if case.mode is Mode.TRAINING and model.training is None:
        return {}
    return {
        tensor.name: [s if isinstance(s, int) else axis(model, s, shapes) for s in tensor.shape]
        for tensor in tensors(model, shapes, case.mode)
    }


def _opened(opened: Mapping[str, Any]) -> dict[str, Any]:
    timings = opened.get("timings", {})
    return {
        "build_ms": timings["build"] / 1e6 if "build" in timings else None,
        "load_ms": timings["load"] / 1e6 if "load" in timings else None,
        "weights_digest": opened.get("weights_digest"),
    }


def _weights(source: str, case: Case) -> str:
    """Which weights: random, the folder, the id that the hub was asked for, or an owner's own."""
    if case.model.code is not None and case.model.code.package:
        return "random"
    if case.model.is_own:
        return "file" if case.model.file is not None else "code"
    source = case.model.weights_from(source)
    return case.model.hub_ids[0] if source == "hub" and case.model.hub_ids else source


def _threads(outcome: Outcome, setting: int | None) -> int | None:
    """Return the engine's own number of threads, else the one asked for; None if more were busy."""
    if "threads" in outcome.null_reasons:
        return None
    evidence = outcome.measurement.get("evidence") or {}
    for used in (outcome.opened.get("threads"), evidence.get("details", {}).get("threads")):
        if isinstance(used, int):
            return used
    return setting
