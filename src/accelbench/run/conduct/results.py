"""Composing a result: the configuration, its measurement, and the reason of each empty column."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelbench.core.axes import AXES, Part, size_columns
from accelbench.core.case import PROTOCOL_VERSION, QUESTION, Case, result_id, series_key
from accelbench.core.columns import ACCURACY_COLUMN_NAMES, COLUMNS, Column, metric_columns
from accelbench.core.identity import to_plain
from accelbench.core.model import AnalyticCost
from accelbench.core.protocols import Device
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import MIB, Mode, Outcome, Provenance, Quality, Status
from accelbench.measure.energy import ENERGY_COLUMN_NAMES
from accelbench.models.inputs import axis, tensors, throughput_unit
from accelbench.run.plan.request import Planned

_GENERATES = {
    *size_columns(Part.REQUEST), "tokens_per_second", "ttft_ms", "tpot_ms", "prefill_ms",
    "decode_ms",
}  # fmt: skip
_PARTS = {"forward_ms", "loss_ms", "backward_ms", "optimizer_ms"}
TRAINS = _PARTS | {
    "optimizer", "loss_first", "loss_last", "loss_per_step", "convergence", "convergence_steps",
}  # fmt: skip
_OF_RANKS = {
    "scaling_efficiency", "communication_ms", "communication_share", "exposed_communication_ms",
    "straggler_ratio",
}  # fmt: skip
RETRIEVES = {"embed_ms", "retrieve_ms", "generate_ms"}
#: Percentiles, by the beginning of their columns' names: per cent, the samples from which on they
#: are given, and the independent ones from which on their interval has an upper end.
_PERCENTILES = {
    "latency_p90": (90, 10, 36),
    "latency_p95": (95, 20, 72),
    "latency_p99": (99, 100, 368),
}
_OF_PERCENTILES = {
    f"{name}_{of}": name for name in _PERCENTILES for of in ("ms", "low_ms", "high_ms", "rough")
}
_SINGLE_STEPS = {
    "latency_p50_ms", "latency_min_ms", "latency_max_ms", "latency_std_ms", *_OF_PERCENTILES,
}  # fmt: skip

#: Columns whose emptiness means the same wherever they are empty.
_ALWAYS: dict[str, str] = {
    **tomllib.loads(Path(__file__).with_name("null_reasons.toml").read_text(encoding="utf-8")),
    **dict.fromkeys(ENERGY_COLUMN_NAMES, "energy was not asked for: --energy measures it"),
    **dict.fromkeys(ACCURACY_COLUMN_NAMES, "no labelled data was given: --data names it"),
    **{axis.column: axis.why_absent for axis in AXES},
}


def why_null(body: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    """Return a reason for every column that a result's body leaves empty; `given` reasons go
    first."""
    empty = [column for column in COLUMNS if column.name != "nulls" and _empty(body, column)]
    return {column.name: given.get(column.name) or _why(column, body) for column in empty}


def not_measured() -> dict[str, str]:
    """Return a reason for every metric of a case that was verified and not timed."""
    return {column.name: "only verified, not measured" for column in metric_columns()}


_VISITS = frozenset({"first_visit_ms", "repeat_visit_ms"})
_UNKNOWN = "not known"  # no rule explains it: tests hold that this is said nowhere


def _empty(body: Mapping[str, Any], column: Column) -> bool:
    return body.get(column.name) is None


def _why(column: Column, body: Mapping[str, Any]) -> str:
    name = column.name
    if body.get("status") != Status.OK and column.role not in ("identity", "case"):
        return f"the case is {body.get('status')}: there is no figure"
    if name in _VISITS:
        return _visit(name, body)
    return _kind_of_case(name, body) or _sampling(name, body) or _ALWAYS.get(name, _UNKNOWN)


def _kind_of_case(name: str, body: Mapping[str, Any]) -> str | None:
    trains = body.get("mode") == Mode.TRAINING
    if name in TRAINS:
        return _of_training(name, body) if trains else "nothing is trained"
    if name in _OF_RANKS:
        alone = (body.get("world_size") or 1) == 1
        return "a step is one process's" if alone else "the runtime does not tell it"
    generates = body.get("new_tokens")
    if name in RETRIEVES and body.get("architecture") != "rag":
        return "nothing is retrieved"
    if name in RETRIEVES and not generates:
        return "of a rag model only a whole request is split"
    if name in _GENERATES and not generates:
        return "nothing is generated"
    if name in ("tpot_ms", "decode_ms") and generates == 1:
        return "no token comes after the first"
    if name in ("prefill_ms", "decode_ms") and body.get("architecture") == "rag":
        return "a rag request is split into embed, retrieve and generate"
    if name in _GENERATES | RETRIEVES:
        return "the runtime does not tell the parts of a request"
    if name == "sequence_length" and generates:
        return "see prompt_tokens and new_tokens"
    return None


def _of_training(name: str, body: Mapping[str, Any]) -> str:
    details = (body.get("evidence") or {}).get("details") or {}
    if name in _PARTS and (details.get("training") or {}).get("one_program"):
        return "forward, loss, backward and optimizer are fused into one program"
    return "the runtime does not tell it"


def _visit(name: str, body: Mapping[str, Any]) -> str:
    details = (body.get("evidence") or {}).get("details") or {}
    if "visits" not in details:
        return "it is no page that users come to"
    if name == "repeat_visit_ms" and "repeat" not in details["visits"]:
        return "the page was visited once: browser.first_visit=no"
    return "the page was visited for another batch size, and stayed"


def _sampling(name: str, body: Mapping[str, Any]) -> str | None:
    if name not in _SINGLE_STEPS:
        return None
    timing = (body.get("sampling") or {}).get("step", {}).get("timing")
    if timing == "whole":
        return "steps too short for the clock were timed in blocks"
    if name in _OF_PERCENTILES:
        return _percentile(name, body)
    return "too few samples"


def _percentile(name: str, body: Mapping[str, Any]) -> str:
    of = _OF_PERCENTILES[name]
    share, samples, independent = _PERCENTILES[of]
    count = body.get("sample_count") or 0
    if body.get(f"{of}_ms") is None:
        return f"it needs {samples} samples and has {count}"
    if name.endswith("_high_ms"):
        return f"no sample is surely above p{share}: that needs {independent} independent ones"
    return f"no sample is surely below p{share}"


@dataclass(frozen=True)
class LaunchFacts:
    """Facts that all results of a launch share."""

    run_id: str
    launch: int  # from 1
    arm: str = ""
    job: JobSettings = field(default_factory=JobSettings)


def launch_numbers(count: int) -> range:
    """Return the numbers of the launches of a case, from 1."""
    return range(1, count + 1)


def identity_of(launch_facts: LaunchFacts, planned: Planned) -> str:
    """Return the result_id that a case has in a launch."""
    case = planned.case
    device = str(planned.device) if planned.device else case.target.hardware_label
    return result_id(launch_facts.run_id, case, device, launch_facts.launch, launch_facts.arm)


def identities_of(launch_facts: LaunchFacts, planned: Planned) -> tuple[str, ...]:
    """Return every result_id that a planned case may have in a launch."""
    # If no precision was named, an engine may compute a file in fp32 instead of the stored
    # precision.
    if not planned.as_stored or planned.case.model.file is None:
        return (identity_of(launch_facts, planned),)
    precisions = dict.fromkeys((planned.case.precision, planned.case.model.file.precision, "fp32"))
    return tuple(
        identity_of(launch_facts, replace(planned, case=replace(planned.case, precision=name)))
        for name in precisions
    )


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
    """Return the body of a result fact; `compiles` is of an engine that always compiles."""
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
        "conditions": {**outcome.conditions, QUESTION: case.identity_without_columns},
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
    own = case.model.user_source
    why = "" if own is None else own.uncounted
    return dict.fromkeys(("flops", "bytes_moved"), why) if why else {}


def _quality(outcome: Outcome, measured: Mapping[str, Any]) -> str | None:
    """Return the quality that the surroundings impose, or the measurement's own if it is
    unusable."""
    own = measured.get("quality")
    return own if own == Quality.UNUSABLE else outcome.quality or own


def _emulated(device: Device | None, evidence: Mapping[str, Any] | None) -> bool | None:
    """Return whether a device is emulated: some engines know only after a page has asked for it."""
    if device is None:
        return None
    return device.emulated or bool((evidence or {}).get("emulated"))


def _self_check(outcome: Outcome) -> dict[str, Any]:
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
        "options": to_plain(case.options),
        "optimizer": case.options.get("optimizer", "adamw") if trains else None,
        "throughput_unit": throughput_unit(model, shapes, case.mode),
    }


def input_shapes(case: Case) -> dict[str, list[int | None]]:
    """Return the shape of every input, with the case's sizes; refused cases have them too."""
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
    if case.model.code is not None and case.model.code.package:
        return "random"
    if case.model.is_user_model:
        return "file" if case.model.file is not None else "code"
    source = case.model.weights_setting(source)
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
