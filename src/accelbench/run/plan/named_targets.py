"""What a command named, and whether anything was measured of it.

A platform, a runtime or a precision that somebody names is wanted; one of a set, or of the
defaults, is taken where it is there. What was named is kept with the run, so that a resumed one is
held to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accelbench.core.plugins import HARDWARE, registered
from accelbench.core.protocols import Inventory, Runtime
from accelbench.core.provenance import SIMULATION
from accelbench.core.vocabulary import Mode, Status
from accelbench.run.plan.request import AUTO, Planned, Request
from accelbench.run.plan.simulated_cases import measured_of
from accelbench.run.plan.targets import places

#: Of run_started, where what was named is kept.
NAMED = "named"
_PREPOSITIONS = {"hardware": "on", "runtime": "with", "precision": "in"}
#: OpenVINO runs on the CPU, and is yet named as a platform: who names both means that.
_ELSEWHERE = "it is a platform of its own, and no platform that was named. Add it: --hardware …,{}"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class MissingTarget:
    """Something that was named, and of which no result is ok."""

    kind: str  # hardware, runtime or precision
    name: str
    why: str

    def __str__(self) -> str:
        return f"Nothing was measured {self.place}"

    @property
    def place(self) -> str:
        """The name with its preposition, and the reason."""
        return f"{_PREPOSITIONS[self.kind]} {self.name}: {self.why}"


def named(
    request: Request,
    precisions: Sequence[str],
    inventory: Inventory,
    runtimes: Mapping[str, Runtime],
) -> dict[str, Any]:
    """What of a request was named, as a run keeps it.

    Args:
        request: What is asked for.
        precisions: Of its precisions those that were typed; it has one where none was.
        inventory: What is present.
        runtimes: What is installed.

    Returns:
        Runtimes and precisions, and for each platform as it was typed its places: the columns
        hardware and device of the results that it will have.
    """
    return {
        "hardware": {
            name: [
                [place.target.hardware, str(place.device or "") or place.target.device]
                for place in places(replace(request, hardware=(name,)), inventory, runtimes)[0]
            ]
            for name in request.hardware
            if name != AUTO
        },
        "runtime": list(request.runtimes),
        "precision": list(precisions),
    }


def named_by(
    requests: Sequence[Request],
    precisions: Sequence[str],
    inventory: Inventory,
    runtimes: Mapping[str, Runtime],
) -> dict[str, Any]:
    """The same of several requests: each thing that one of them names."""
    every = [named(request, precisions, inventory, runtimes) for request in requests]
    places: dict[str, list[list[str | None]]] = {}
    for name, found in (entry for one in every for entry in one["hardware"].items()):
        before = places.setdefault(name, [])
        before.extend(place for place in found if place not in before)
    return {
        "hardware": places,
        "runtime": list(dict.fromkeys(name for one in every for name in one["runtime"])),
        "precision": list(precisions),
    }


def lacking(named: Mapping[str, Any], rows: Iterable[Row]) -> list[MissingTarget]:
    """Of what was named, that of which no result is ok; what is only calculated lacks nothing."""
    every = list(rows)
    wanted = [
        *(("hardware", name, _at(places)) for name, places in named.get("hardware", {}).items()),
        *(("runtime", name, _by(name)) for name in named.get("runtime", ())),
        *(("precision", name, _in(name)) for name in named.get("precision", ())),
    ]
    targets = []
    for kind, name, belongs in wanted:
        own = [row for row in every if belongs(row)]
        if _lacks(own):
            elsewhere = not own and kind == "runtime" and name in registered(HARDWARE)
            why = _ELSEWHERE.format(name) if elsewhere else _why(measured_of(own))
            targets.append(MissingTarget(kind, name, why))
    return targets


def planned_rows(cases: Iterable[Planned], tried: Iterable[Planned]) -> list[dict[str, Any]]:
    """Return what `lacking` reads of the results that a plan would have.

    Args:
        cases: of the plan.
        tried: those of them that would be tried, and count as measured.
    """
    keys = {planned.key for planned in tried}
    return [
        {
            "hardware": planned.case.target.hardware,
            "device": str(planned.device or "") or planned.case.target.device,
            "runtime": planned.case.target.runtime,
            "precision": planned.case.precision,
            "mode": planned.case.mode.value,
            "status": (Status.OK if planned.key in keys else _status(planned)).value,
            "message": planned.refusal.message if planned.refusal else None,
            "advice": planned.refusal.advice if planned.refusal else None,
            "conditions": {} if planned.roofline is None else {SIMULATION: {}},
        }
        for planned in cases
    ]


def _status(planned: Planned) -> Status:
    return planned.refusal.status if planned.refusal else Status.OUT_OF_MEMORY


def nothing_measured(rows: Iterable[Row]) -> str:
    """Why a run measured nothing at all; empty where it did, or was only to calculate."""
    every = list(rows)
    if not _lacks(every):
        return ""
    return f"Nothing was measured: {_why(measured_of(every))}"


def _lacks(rows: Sequence[Row]) -> bool:
    measured = measured_of(rows)
    only_calculated = bool(rows) and not measured
    return not only_calculated and all(row["status"] != Status.OK.value for row in measured)


def _why(rows: Sequence[Row]) -> str:
    """In the words of the first of its results, with its advice."""
    if not rows:
        return "the plan has no such case. accelbench run --dry-run shows it."
    first = rows[0]
    message = str(first.get("message") or first.get("reason") or first["status"])
    return f"{message.rstrip('.')}. {first.get('advice') or ''}".strip()


def _at(places: Sequence[Sequence[str | None]]) -> Callable[[Row], bool]:
    wanted = {tuple(place) for place in places}
    platforms = {place[0] for place in places}

    def belongs(row: Row) -> bool:
        device = row.get("device")  # None: nothing took it, as where no node of a fleet could
        return (row["hardware"], device) in wanted or (
            device is None and row["hardware"] in platforms
        )

    return belongs


def _by(name: str) -> Callable[[Row], bool]:
    return lambda row: row["runtime"] == name


def _in(name: str) -> Callable[[Row], bool]:
    """Training in half precision is autocast, and stored by the shorter name."""

    def belongs(row: Row) -> bool:
        stored = name.removeprefix("amp-") if row["mode"] == Mode.TRAINING.value else name
        return bool(row["precision"] == stored)

    return belongs
