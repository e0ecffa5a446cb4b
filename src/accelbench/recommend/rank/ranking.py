"""Stored models ranked for a task, and advice on several devices for one model. Pure.

No time on several devices is predicted: it depends on their connection, which was not measured.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from accelbench.core.case import Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.model import ModelSpec
from accelbench.core.rows import Json, number, text
from accelbench.core.vocabulary import MIB, Mode, Provenance
from accelbench.models.cost import memory_estimate_bytes
from accelbench.models.find import every_model
from accelbench.recommend.query.query import Query

#: The documents' tasks → words in the catalogue's tasks.
_TASKS: Mapping[str, tuple[str, ...]] = {
    "classification": ("classification", "detection"),
    "generation": ("generation", "to-text", "to-image"),
    "embedding": ("feature", "embedding", "similarity", "zero-shot"),
    "speech_recognition": ("speech", "recognition"),
}
#: The same for models of no catalogue → their families.
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "classification": ("vision",),
    "generation": ("text_generation",),
    "embedding": ("embedding",),
    "speech_recognition": ("audio",),
}


def does(task: str, model: str, family: str | None) -> bool:
    """Return whether a model is for a task; training and fine-tuning suit all."""
    if task not in _TASKS:
        return True
    spec = _spec(model)
    if spec is None:
        return family in _FAMILIES[task]
    return any(word in spec.task for word in _TASKS[task])


def may_do(task: str, model: str, family: str | None) -> bool:
    """Return whether the task of a model is unknown, so that it may be this one."""
    return task in _TASKS and not family and _spec(model) is None


def _spec(model: str) -> ModelSpec | None:
    return next((spec for spec in every_model() if spec.id == model), None)


def ranked(answers: Mapping[str, Json]) -> list[dict[str, object]]:
    """Return models by the throughput of their best hardware, those without a result last.

    The answers are those of `select_hardware` by model. Rates of tokens and images do not compare:
    models are ranked within a unit, and the unit of most models comes first.
    """
    entries: list[dict[str, object]] = []
    for name, answer in answers.items():
        first = answer.get("primary_recommendation")
        scores = _part(_part(answer, "all_scores"), str(first)) if first else {}
        predictions = _part(scores, "predictions")
        if predictions.get("provenance") == Provenance.PREDICTED:
            predictions = {}  # predictions rank no models
        entries.append(
            {
                "model": name,
                "hardware": first,
                "device": scores.get("device"),
                "runtime": scores.get("runtime"),
                "precision": scores.get("precision"),
                "sizes": answer.get("sizes", {}),
                "basis": scores.get("basis"),
                "provenance": scores.get("provenance"),
                "rests_on": scores.get("rests_on", []),
                "sources": scores.get("sources", []),
                "latency": predictions.get("latency"),
                "throughput": predictions.get("throughput"),
                "throughput_unit": predictions.get("throughput_unit"),
            }
        )
    units = Counter(_unit(entry) for entry in entries if entry["throughput"] is not None)

    def place(entry: Json) -> tuple[bool, int, str, bool, float, str]:
        rate, unit = number(entry, "throughput"), _unit(entry)
        measured = entry["basis"] == "measured"
        return rate is None, -units[unit], unit, not measured, -(rate or 0.0), text(entry, "model")

    return sorted(entries, key=place)


def _part(answer: Json, name: str) -> Json:
    part = answer.get(name)
    return part if isinstance(part, Mapping) else {}


def _unit(entry: Json) -> str:
    return text(entry, "throughput_unit")


#: Platforms whose frameworks have a way for several devices.
DISTRIBUTES = ("cuda", "rocm", "tpu", "cpu")
#: Weight, gradient and two moments of AdamW in fp32; a forward pass keeps weights alone.
_TRAINING_BYTES, _INFERENCE_BYTES = 16, 4
_GIB = 2**30


def advised(query: Query, ranked: Iterable[str]) -> dict[str, object] | None:
    """Return the advice on several devices; None if one was asked for."""
    given = query.distributed
    if given is None or given["gpu_count"] < 2:
        return None
    count, gib = given["gpu_count"], given["max_memory_gb"]
    able = [name for name in dict.fromkeys(ranked) if name in DISTRIBUTES]
    needed = _needed(query)
    strategy, fits, why = _strategy(query, needed, count, gib)
    return {
        "gpu_count": count,
        "max_memory_gb": gib,
        "hardware": able,
        "memory_needed_gb": None if needed is None else needed / _GIB,
        "strategy": strategy,
        "fits": fits,
        "reason": why,
        "speed": "not predicted: what connects the devices was not measured",
    }


def _needed(query: Query) -> float | None:
    """Bytes that one device would need alone, at its share of the batch."""
    count = query.distributed["gpu_count"] if query.distributed else 1
    share = max(1, math.ceil(query.batch / count))
    if query.spec is not None:
        try:
            estimate = memory_estimate_bytes(
                query.spec, Shapes(share), query.precision or "fp32", query.mode
            )
        except AccelbenchError:
            estimate = None
        if estimate is not None:
            return float(estimate)
    parameters = query.size.parameters
    if parameters is None:
        return None
    each = _TRAINING_BYTES if query.mode == Mode.TRAINING else _INFERENCE_BYTES
    return float(parameters) * each


def _strategy(
    query: Query, needed: float | None, count: int, gib: float | None
) -> tuple[str, bool | None, str]:
    """How to part the model, whether that fits, and why."""
    training = query.mode == Mode.TRAINING
    whole = "ddp" if training else "replicas"
    if needed is None:
        return whole, None, "how many weights the model has is not known"
    mb = f"{needed / MIB:,.0f} MB"
    if gib is None:
        return whole, None, f"it needs {mb} on each device; how much each has was not said"
    if needed <= gib * _GIB:
        return whole, True, f"{mb} fit on each of {count} devices"
    parted = "fsdp" if training else "sharded"
    each = needed / count
    fits = each <= gib * _GIB
    note = f"{mb} do not fit on one device; parted among {count} they are {each / MIB:,.0f} MB each"
    return parted, fits, note if fits else f"{note}, which do not fit either"
