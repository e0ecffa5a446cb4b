"""The conductor's side of task accuracy: whether it is asked for, and what comes of the answer.

Whatever becomes of it, what was timed stands: its columns say why they are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from accelbench.core.accuracy_columns import OF_ACCURACY
from accelbench.core.case import Case
from accelbench.core.job_settings import JobSettings
from accelbench.core.outcome import Outcome
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Mode, Status
from accelbench.run.process.worker_client import WorkerClient, WorkerTroubleError

OFF = "off"


def scored(
    talk: WorkerClient,
    case: Case,
    outcome: Outcome,
    settings: JobSettings,
    reopen: Callable[[], None],
) -> Outcome:
    """What was timed with what its outputs are worth against labels, or why that is not known.

    Args:
        talk: with the worker that timed it; afterwards it has none where it came to nothing.
        case: what was timed.
        outcome: what became of it.
        settings: of the run.
        reopen: opens the case's model once more.
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
    """What a worker is asked that has the case's model open."""
    return {"do": "accuracy", "case": case_to_json(case)}


def passed_over(case: Case, settings: JobSettings) -> str:
    """Why a case's accuracy is not asked for; "" where it is."""
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
    if not case.model.is_own and case.model.weights_from(settings.weights) == "random":
        return "its weights are random: --weights names others"
    return ""


def with_accuracy(outcome: Outcome, answer: Mapping[str, Any]) -> Outcome:
    """What was timed with the accuracy that a worker tells."""
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
    """What was timed, with the reason why there is no accuracy; a warning where one was wanted."""
    warnings = [*outcome.warnings, f"Accuracy was not measured: {why}"] if warn else None
    reasons = dict.fromkeys(OF_ACCURACY, why)
    return replace(
        outcome,
        warnings=outcome.warnings if warnings is None else warnings,
        null_reasons={**reasons, **outcome.null_reasons},
    )
