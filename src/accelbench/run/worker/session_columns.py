"""What a session itself adds to a measurement: columns, and sentences that a reader should know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from accelbench.core.abilities import PageVisits, RankExchange, RealInputs
from accelbench.core.case import Case
from accelbench.core.protocols import Session
from accelbench.measure.loop import Measurement


def with_inputs(session: Session, measurement: Measurement) -> Measurement:
    """Add the columns of real inputs, and their notes as warnings."""
    if not isinstance(session, RealInputs):
        return measurement
    notes = measurement.evidence.details.get("data", {}).get("notes", ())
    return replace(
        measurement,
        metrics={**measurement.metrics, **session.loaded()},
        warnings=[*measurement.warnings, *notes],
    )


def with_visits(session: Session, case: Case, measurement: Measurement) -> Measurement:
    """Add how long users wait when they visit a page for the first time, and again."""
    if not isinstance(session, PageVisits):
        return measurement
    columns = session.visits(case, measurement.metrics["first_inference_ms"])
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
        metrics={**measurement.metrics, **columns},
        evidence=replace(evidence, details=details),
    )


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
