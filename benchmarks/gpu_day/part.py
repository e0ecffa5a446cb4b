"""Part of a GPU day: what its measurement is given, and how it records figures and checks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
#: One thing that a part has found, on its way to the process that keeps it: kind, name, value.
Send = Callable[[tuple[str, str, Any]], None]


class NotHereError(Exception):
    """Something that a part needs is absent on this machine; the text is the reason."""


@dataclass(frozen=True)
class Day:
    """Settings that every part of one day reads."""

    hardware: str
    dry: bool
    folder: Path  # scratch space, removed afterwards

    def pick(self, full: T, dry: T) -> T:
        """The first value on a GPU's day, the second in the dry form."""
        return dry if self.dry else full


class Recorder:
    """Figures and checks of one part, sent as they are made: an end of the part loses none."""

    def __init__(self, day: Day, deadline: float, send: Send) -> None:
        self.day = day
        self._deadline = deadline
        self._send = send

    def seconds_left(self) -> float:
        """Seconds until this part is ended."""
        return max(0.0, self._deadline - time.monotonic())

    def figure(self, name: str, value: Any) -> None:
        """Keep a measured value."""
        self._send(("figure", name, value))

    def absent(self, name: str, reason: str) -> None:
        """Keep the reason why there is no figure of this name."""
        print(f"  {name}: absent, {reason}", flush=True)
        self._send(("figure", name, {"absent": reason}))

    def check(self, what: str, value: Any, limit: Any, reached: bool | None) -> None:
        """Keep a value beside its limit; None says that it is not judged here."""
        said = {True: "reached", False: "NOT REACHED", None: "not judged in the dry form"}[reached]
        print(f"  {what}: {value} (limit {limit}) {said}", flush=True)
        self._send(
            ("check", what, {"what": what, "value": value, "limit": limit, "reached": reached})
        )

    def same(self, what: str, value: Any, expected: Any) -> None:
        """Check a value that must be this one."""
        self.check(what, value, expected, value == expected)

    def at_most(self, what: str, value: float | None, limit: float) -> None:
        """Check a value from above; a missing one has not reached its limit."""
        self.check(what, value, f"≤ {limit:g}", value is not None and value <= limit)

    def at_least(self, what: str, value: float | None, limit: float) -> None:
        """Check a value from below."""
        self.check(what, value, f"≥ {limit:g}", value is not None and value >= limit)

    def timing(self, what: str, value: float, limit: float) -> None:
        """Check a ratio of times: on a GPU's day only, the dry form repeats too little to judge."""
        if self.day.dry:
            self.check(what, value, f"≤ {limit:g}", None)
        else:
            self.at_most(what, value, limit)


@dataclass(frozen=True)
class Part:
    """One subject of the day."""

    name: str
    seconds: float  # expected on a data-centre GPU; its share of the day at least
    measure: Callable[[Recorder], None]
    slack: float = 1.6  # on a cold or slow machine it may take this much longer
