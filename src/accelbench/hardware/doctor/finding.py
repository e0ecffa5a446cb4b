"""What a check found. Plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from accelbench.hardware.doctor.world import World


class Health(StrEnum):
    """How it stands with one thing."""

    OK = "ok"
    HINT = "hint"  # works; something is worth knowing before measuring
    MISSING = "missing"  # optional, and not here
    BROKEN = "broken"  # here, and does not work
    CLASH = "clash"  # here, and in the way of something else that is here


#: What makes the doctor's answer a no.
ILL = frozenset({Health.BROKEN, Health.CLASH})


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    health: Health
    said: str
    remedy: str = ""  # what mends it; for missing things, what brings it
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DoctorCheck:
    """One question to the machine. It may take seconds: checks are asked side by side."""

    group: str
    name: str  # what is looked at, for when the check itself fails
    ask: Callable[[World], list[Finding]]
