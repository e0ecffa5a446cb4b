"""The outcome of a case: what became of it, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
