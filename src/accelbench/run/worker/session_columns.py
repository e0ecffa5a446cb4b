"""What a session itself adds to a measurement: columns, and sentences that a reader should know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from accelbench.core.abilities import PageVisits, RankExchange, RealInputs
from accelbench.core.case import Case
from accelbench.core.errors import RUNTIMES_FAULT, CaseError
from accelbench.core.protocols import Session
from accelbench.measure.loop import Measurement

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
        raise CaseError(
            "bad_evidence",
            f"the engine reports values for {', '.join(others)}, which accelbench measures itself",
            RUNTIMES_FAULT,
        )
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
