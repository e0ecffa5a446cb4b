"""Stored models in order for a task on some hardware. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from accelbench.catalog.find import every_model
from accelbench.core.model import ModelSpec
from accelbench.core.rows import Json, number, text
from accelbench.core.vocabulary import Provenance

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
    spec = _spec(model)
    if spec is None:
        return family in _FAMILIES[task]
    return any(word in spec.task for word in _TASKS[task])


def may_do(task: str, model: str, family: str | None) -> bool:
    """Whether nobody says what a model is for, and so it may be for this."""
    return task in _TASKS and not family and _spec(model) is None


def _spec(model: str) -> ModelSpec | None:
    return next((spec for spec in every_model() if spec.id == model), None)


def ranked(answers: Mapping[str, Json]) -> list[dict[str, object]]:
    """Models by what their best hardware does in a second; those without a figure come last.

    Tokens and images cannot be compared with each other: models are in order within what is
    counted of them, and what most models are counted in comes first.

    Args:
        answers: an answer of `select_hardware` for each model.
    """
    entries: list[dict[str, object]] = []
    for name, answer in answers.items():
        first = answer.get("primary_recommendation")
        scores = _part(_part(answer, "all_scores"), str(first)) if first else {}
        predictions = _part(scores, "predictions")
        if predictions.get("provenance") == Provenance.PREDICTED:
            predictions = {}  # nothing is ranked by what nobody has measured
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
    """What an answer, or a part of it, holds under a name; nothing where it holds none."""
    part = answer.get(name)
    return part if isinstance(part, Mapping) else {}


def _unit(entry: Json) -> str:
    return text(entry, "throughput_unit")
