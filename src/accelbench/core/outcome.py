"""The outcome of a case: what became of it, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accelbench.core.vocabulary import Status


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    status: Status
    reason: str = ""
    message: str = ""
    advice: str = ""
    measurement: Mapping[str, Any] = field(default_factory=dict)  # as the worker sent it
    opened: Mapping[str, Any] = field(default_factory=dict)  # what opening the model told
    warnings: Sequence[str] = ()
    quality: str | None = None  # one that the surroundings impose on the measurement's own
    null_reasons: Mapping[str, str] = field(default_factory=dict)  # of columns left empty
    environment: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    workarounds: Sequence[str] = ()


def with_first_cause(outcome: Outcome, first: Outcome) -> Outcome:
    """Return the outcome of the last workaround with the cause and advice of the first try."""
    if outcome.status is Status.OK or first.message in outcome.message:
        return outcome
    message = f"{outcome.message}; at first: {first.message}"
    return replace(outcome, message=message, advice=first.advice or outcome.advice)
