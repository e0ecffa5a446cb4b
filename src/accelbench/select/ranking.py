"""Stored models in order for a task on some hardware. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.catalog.find import every_model

#: The catalogue's tasks, and kinds of models, that the documents' tasks stand for.
_TASKS: Mapping[str, tuple[str, ...]] = {
    "classification": ("classification", "detection"),
    "generation": ("generation", "to-text", "to-image"),
    "embedding": ("feature", "embedding", "similarity", "zero-shot"),
    "speech_recognition": ("speech", "recognition"),
}
#: Of models that are no catalogue's, the families that do such work.
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "classification": ("vision",),
    "generation": ("text_generation",),
    "embedding": ("embedding",),
    "speech_recognition": ("audio",),
}


def does(task: str, model: str, family: str | None) -> bool:
    """Whether a model is for a task; training and fine-tuning are for all."""
    if task not in _TASKS:
        return True
    spec = next((one for one in every_model() if one.id == model), None)
    if spec is None:
        return family in _FAMILIES[task]
    return any(word in spec.task for word in _TASKS[task])


def ranked(answers: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Models by what their best hardware does in a second; those without a figure come last.

    Args:
        answers: an answer of `select_hardware` for each model.
    """
    found: list[dict[str, Any]] = []
    for name, answer in answers.items():
        first = answer["primary_recommendation"]
        scores = answer["all_scores"].get(first, {}) if first else {}
        said = scores.get("predictions", {})
        found.append(
            {
                "model": name,
                "hardware": first,
                "device": scores.get("device"),
                "runtime": scores.get("runtime"),
                "precision": scores.get("precision"),
                "basis": scores.get("basis"),
                "latency": said.get("latency"),
                "throughput": said.get("throughput"),
            }
        )
    return sorted(found, key=_place)


def _place(one: Mapping[str, Any]) -> tuple[Any, ...]:
    measured = one["basis"] == "measured"
    return one["throughput"] is None, not measured, -(one["throughput"] or 0.0), one["model"]
