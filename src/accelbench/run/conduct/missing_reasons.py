"""Why a column of a result is empty: one sentence a column, so that no NULL is a riddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.core.accuracy_columns import OF_ACCURACY
from accelbench.core.axes import AXES, Part, columns
from accelbench.core.column import Column
from accelbench.core.columns import COLUMNS, metric_columns
from accelbench.core.vocabulary import Mode, Status
from accelbench.measure.energy import ENERGY_FIGURES

_GENERATES = {
    *columns(Part.REQUEST), "tokens_per_second", "ttft_ms", "tpot_ms", "prefill_ms",
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
_ALWAYS = {
    "reason": "nothing is wrong",
    "message": "nothing is wrong",
    "advice": "nothing is wrong",
    "compile_ms": "nothing was compiled",
    "device_time_ms": "the device has no event timers",
    "device_memory_peak_mb": "the device has no memory of its own",
    "device_memory_avg_mb": "the device has no memory of its own",
    "device_memory_reserved_mb": "the device has no memory of its own",
    "host_memory_peak_mb": "this system does not tell a process's peak",
    "host_memory_avg_mb": "this system does not tell a process's memory",
    "memory_peak_mb": "no counter of this system tells it",
    "memory_avg_mb": "no counter of this system tells it",
    "memory_source": "no counter of this system tells it",
    "memory_estimate_mb": "not counted for this model at these sizes",
    **dict.fromkeys(ENERGY_FIGURES, "energy was not asked for: --energy measures it"),
    **dict.fromkeys(OF_ACCURACY, "no labelled data was given: --data names it"),
    "cost_usd": "no price of this device was given",
    "verification_error": "not verified against a reference",
    "verification_tolerance": "not verified against a reference",
    "flops": "not counted at these sizes, in this precision, with these options",
    "bytes_moved": "not counted at these sizes, in this precision, with these options",
    "implausible_rate": "the rate is plausible, or no document has a peak of the device",
    "extra": "no plugin has added a metric",
    "data_load_ms": "the inputs are synthetic: nothing was loaded",
    "data_digest": "the inputs are synthetic",
    "outputs_digest": "the outputs were looked at with the first case of the worker",
    **{axis.column: axis.why_absent for axis in AXES},
    "latency_ci_low_ms": "too few samples for an interval",
    "latency_ci_high_ms": "too few samples for an interval",
    "lag1_autocorrelation": "fewer than three samples, or all are alike",
    "unexplained_share": "the time is a script's, or there was no question beside the first",
    "cpu_wait_share": "the system does not count how long threads wait for a CPU",
    "steps_verified": "nothing was measured",
    "precision_proof": "nothing was measured",
    "threads": "the engine does not tell how many it uses",
    "device_name": "no device was found",
    "device_fingerprint": "no device was found",
    "device": "the platform's first device was meant",
    "quality": "nothing was judged",
    "evidence": "the engine tells nothing of where it ran",
    "series_key": "it never got as far as an engine",
    "weights_digest": "the engine does not show its weights",
    "build_ms": "the engine does not time it apart",
    "load_ms": "the engine does not time it apart",
}


def why_null(body: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    """A reason for every column of the registry that a result's body leaves empty.

    Args:
        body: the result, without "nulls".
        given: reasons that whoever could not fill a column has already told.
    """
    empty = [column for column in COLUMNS if column.name != "nulls" and _empty(body, column)]
    return {column.name: given.get(column.name) or _why(column, body) for column in empty}


def not_measured() -> dict[str, str]:
    """A reason for every figure of a case that was looked at and not timed."""
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
    """What follows from what the case is."""
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
    """What follows from how many samples there are, and how they were taken."""
    if name not in _SINGLE_STEPS:
        return None
    timing = (body.get("sampling") or {}).get("step", {}).get("timing")
    if timing == "whole":
        return "steps too short for the clock were timed in blocks"
    if name in _OF_PERCENTILES:
        return _percentile(name, body)
    return "too few samples"


def _percentile(name: str, body: Mapping[str, Any]) -> str:
    """Why a percentile, or an end of its interval, is not given."""
    of = _OF_PERCENTILES[name]
    share, samples, independent = _PERCENTILES[of]
    count = body.get("sample_count") or 0
    if body.get(f"{of}_ms") is None:
        return f"it needs {samples} samples and has {count}"
    if name.endswith("_high_ms"):
        return f"no sample is surely above p{share}: that needs {independent} independent ones"
    return f"no sample is surely below p{share}"
