"""Where a request runs, and whether everything that was named has a result.

Platforms and engines by name become devices, reasons why not, or documents with `--simulate`. What
was named is kept with the run, so that a resumed run is held to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accelbench.core.case import Case, Target
from accelbench.core.device_facts import (
    DeviceFacts,
    devices_on,
    facts_of,
    find_devices,
    typical_device,
)
from accelbench.core.errors import UsageError
from accelbench.core.plugins import HARDWARE, find_entry_points
from accelbench.core.protocols import (
    Absent,
    Device,
    Inventory,
    Runtime,
    RuntimeInfo,
    SetUp,
    Support,
)
from accelbench.core.unusable_reasons import SIMULATION, simulation_of
from accelbench.core.vocabulary import Mode, Outcome, Status
from accelbench.run.plan.request import AUTO, Planned, Refusal, Request

#: What a case comes to on a device that is not here.
Simulate = Callable[[Case, DeviceFacts], Outcome]

#: Where a precision is taken, and was seen to be computed in fp32: its peak is nobody's.
_WIDENED = {("webgpu", "int8"), ("wasm", "fp16")}


def counted_as(row: Mapping[str, Any]) -> str:
    """Return the word a result is counted under: what is simulated is no success and no failure."""
    if simulation_of(row) is None:
        return str(row["status"])
    return "simulated" if row["status"] == Status.OK else "not simulated"


def measured_of(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Results without those that were only calculated."""
    return [row for row in rows if simulation_of(row) is None]


def refusal_of(case: Case, info: RuntimeInfo, roofline: DeviceFacts) -> Refusal | None:
    """What speaks against a case beforehand: by its runtime's card, and by the document."""
    if case.world_size > 1:
        return _no(
            "distributed",
            "a step of several is not calculated: nothing is known of what they exchange",
            "Leave out --distributed, or --simulate.",
        )
    if case.mode is Mode.TRAINING and info.consumes != "torch":
        return _no("mode", f"the {info.name} runtime does not train", "Use --mode inference.")
    if case.generates and not info.generates:
        return _no(
            "generation",
            f"the {info.name} runtime does not generate token by token",
            "Ask for a forward pass: --new-tokens 0.",
        )
    if case.compiled and info.consumes != "torch":
        return _no(
            "option",
            f"the {info.name} runtime does not take the option compile",
            "Leave out --compile.",
        )
    if (case.target.hardware, case.precision) in _WIDENED:
        return _no(
            "precision",
            f"the {info.name} runtime computes {case.precision} graphs in fp32 there",
            "Use --precision fp32, or another device.",
        )
    both = [name for name in roofline.teraops if name in info.precisions]
    if case.precision in both:
        return None
    if case.precision in info.precisions:
        why = f"{roofline.name} has no documented peak in {case.precision}"
    else:
        why = f"the {info.name} runtime does not run {case.precision}"
    advice = f"Use --precision {','.join(both)}." if both else "Name another device."
    return _no("precision", why, advice)


def _no(reason: str, message: str, advice: str) -> Refusal:
    return Refusal(Status.UNSUPPORTED, reason, message, advice)


#: What runs in a browser pays for it, and by how much no maker of a device documents.
_IN_A_BROWSER = ("webgpu", "webnn", "wasm")


def stand_in(hardware: str, named: str, inventory: Inventory) -> Device | DeviceFacts | None:
    """Return the documented device for one that is not here; the device itself if it is, after all.

    Called only where nothing found answers to the name. An ordinal asks for something in this
    machine, not for a device that people know; and a card that another platform sees is here,
    so it is measured, by a name that the platform knows, or not at all.
    """
    known = [facts for facts in devices_on(hardware) if facts.bandwidth]
    if re.fullmatch(r"\d{1,2}", named) or not known:
        return None
    typical = typical_device(hardware, named)
    candidates = [typical] if typical else find_devices(named, hardware)
    candidates = [facts for facts in candidates if facts.bandwidth]
    if len(candidates) != 1:
        what = "several documents" if candidates else "no document"
        raise UsageError(
            f"--simulate knows {what} of {hardware}:{named}, which is not here.",
            f"Documented for {hardware}: {', '.join(d.short for d in candidates or known)}.",
        )
    meant = candidates[0]
    here = [candidate for candidate in inventory.get(hardware, ()) if isinstance(candidate, Device)]
    for device in here:
        if facts_of(device.name, hardware) is meant:
            return device
    everywhere = (
        entry for entries in inventory.values() for entry in entries if isinstance(entry, Device)
    )
    if here and any(facts_of(neighbour.name, hardware) is meant for neighbour in everywhere):
        return None
    return meant


def remark(hardware: str, named: str, meant: DeviceFacts) -> str:
    """What a reader has to know of a place whose figures are simulated."""
    text = (
        f"{hardware}:{meant.short} is not here: its figures are simulated from the documented"
        f" roofline of {meant.name}, a limit, not a measurement."
    )
    if named != meant.short:
        text += f" It is what {hardware}{f':{named}' if named else ''} alone stands for."
    if hardware in _IN_A_BROWSER:
        text += " What a browser adds is not in them."
    return text


@dataclass(frozen=True)
class TargetDevice:
    """A target with its device, or with the reason why it has none.

    One with a roofline has no device either, and is simulated.
    """

    target: Target
    device: Device | None
    refusal: Refusal | None = None
    roofline: DeviceFacts | None = None


def places(
    request: Request, inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> tuple[list[TargetDevice], list[str]]:
    """Return every target of a request, and notes about platforms left out."""
    notes: list[str] = []
    chosen: list[TargetDevice] = []
    unserved: list[str] = []
    named = bool(request.hardware)
    wanted = request.hardware or tuple(
        name for name, entries in inventory.items() if any(isinstance(e, Device) for e in entries)
    )
    for full_name in wanted:
        name, _, rest = full_name.partition(":")
        serving = _serving(name, request, runtimes)
        if not serving:
            text = _unserved(name, request)
            if named or request.runtimes:
                refusal = Refusal(
                    Status.UNSUPPORTED, "no_runtime", text, _served(request, runtimes)
                )
                runtime = request.runtimes[0] if request.runtimes else "none"
                chosen.append(TargetDevice(Target(runtime, name, rest or None), None, refusal))
            else:
                unserved.append(name)
            continue
        waiting = [] if named or request.runtimes else _not_set_up(serving, runtimes)
        if waiting:
            notes += [f"{name} is present, but {state.message}; left out." for state in waiting]
            continue
        device, refusal_or_none = device_of(name, rest, inventory.get(name, ()))
        if device is None and named and request.simulate:
            meant = stand_in(name, rest, inventory)
            if isinstance(meant, DeviceFacts):
                notes.append(remark(name, rest, meant))
                chosen += [
                    TargetDevice(Target(runtime, name, meant.short), None, roofline=meant)
                    for runtime in serving
                ]
                continue
            device, refusal_or_none = meant, None if meant else refusal_or_none
        chosen += [
            TargetDevice(Target(runtime, name, _named(device, rest)), device, refusal_or_none)
            for runtime in serving
        ]
    if request.runtimes and not named:
        # "everything present" by a named engine means everything that engine serves.
        chosen = [place for place in chosen if place.refusal is None] or chosen
    return chosen, [*_without_runtime(unserved, request), *notes]


def _without_runtime(names: Sequence[str], request: Request) -> list[str]:
    if len(names) < 2:
        return [f"{name} is present, but {_unserved(name, request)}; left out." for name in names]
    every = f"{', '.join(names[:-1])} and {names[-1]}"
    does = "runs" if request.file_format is None else f"opens {request.file_format.graph}s"
    return [f"{every} are present, but no runtime of this installation {does} there; left out."]


def _named(device: Device | None, rest: str) -> str | None:
    """What a target says beside its platform: the kind of unit, else what was typed."""
    return (device.unit if device else "") or rest or None


def _serving(hardware: str, request: Request, runtimes: Mapping[str, Runtime]) -> tuple[str, ...]:
    if request.runtimes:
        return tuple(r for r in request.runtimes if hardware in runtimes[r].info.hardware)
    usual = tuple(n for n, runtime in runtimes.items() if hardware in runtime.info.default_for)
    wanted = request.file_format
    if wanted is None:
        return usual
    able = [
        n for n, r in runtimes.items() if hardware in r.info.hardware and wanted in r.info.files
    ]
    # A platform's usual engine may open no files: then the first does that people have.
    first = sorted(able, key=lambda name: runtimes[name].info.place)[:1]
    return tuple(name for name in usual if name in able) or tuple(first)


def _not_set_up(serving: Sequence[str], runtimes: Mapping[str, Runtime]) -> list[Support]:
    states = [
        runtime.ready()
        for runtime in map(runtimes.__getitem__, serving)
        if isinstance(runtime, SetUp)
    ]
    missing = [state for state in states if not state.ok]
    return missing if len(missing) == len(serving) else []


def _unserved(hardware: str, request: Request) -> str:
    if request.runtimes:
        return f"{', '.join(request.runtimes)} does not run on {hardware}"
    if request.file_format is not None:
        return f"no runtime of this installation opens {request.file_format.graph}s on {hardware}"
    return f"no runtime of this installation runs on {hardware}"


def _served(request: Request, runtimes: Mapping[str, Runtime]) -> str:
    wanted, named = request.file_format, set(request.runtimes) or set(runtimes)
    platforms: set[str] = set()
    for name in named & set(runtimes):
        info = runtimes[name].info
        if wanted is None:
            platforms.update(info.hardware if request.runtimes else info.default_for)
        elif wanted in info.files:
            platforms.update(info.hardware)
    if not platforms:
        return "Leave --framework out, or name another."
    subject = "It" if request.runtimes and len(named) == 1 else "This installation"
    does = "runs" if wanted is None else f"opens {wanted.graph}s"
    return f"{subject} {does} on {', '.join(sorted(platforms))}: name one by --hardware."


def device_of(
    name: str, ordinal: str, entries: Sequence[Device | Absent]
) -> tuple[Device | None, Refusal | None]:
    """The device that is meant by a platform and an ordinal, kind or name; or why there is none."""
    devices = [e for e in entries if isinstance(e, Device)]
    if not devices:
        absent = next((e for e in entries if isinstance(e, Absent)), None)
        reason = absent.reason if absent else "nothing here knows how to look for it"
        remedy = absent.remedy if absent else "accelbench hardware shows what is present."
        return None, Refusal(
            Status.UNSUPPORTED, "hardware_absent", f"{name} is not present: {reason}", remedy
        )
    if not ordinal:
        return devices[0], None
    for device in devices:
        if ordinal.lower() in (str(device.ordinal), device.unit, device.name.lower()):
            return device, None
    meant = find_devices(ordinal, name)
    same = [d for d in devices if len(meant) == 1 and facts_of(d.name, name) is meant[0]]
    if same:
        return same[0], None
    return None, Refusal(
        Status.UNSUPPORTED,
        "device_absent",
        f"{name} has no device {ordinal}",
        f"It has {', '.join(str(d) for d in devices)}.",
    )


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


def named(
    request: Request,
    precisions: Sequence[str],
    inventory: Inventory,
    runtimes: Mapping[str, Runtime],
) -> dict[str, Any]:
    """Return the named runtimes, precisions and, by platform, the places of its results."""
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
    """Return the same of several requests: each thing that one of them names."""
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
            elsewhere = not own and kind == "runtime" and name in find_entry_points(HARDWARE)
            why = _ELSEWHERE.format(name) if elsewhere else _why(measured_of(own))
            targets.append(MissingTarget(kind, name, why))
    return targets


def missing_places(targets: Iterable[MissingTarget]) -> list[str]:
    """Return for each reason all names that have no result for it: "on cpu, with jax: reason"."""
    names_by_reason: dict[str, list[str]] = {}
    for target in targets:
        place = f"{_PREPOSITIONS[target.kind]} {target.name}"
        names_by_reason.setdefault(target.why, []).append(place)
    return [f"{', '.join(names)}: {why}" for why, names in names_by_reason.items()]


def planned_rows(cases: Iterable[Planned], tried: Iterable[Planned]) -> list[dict[str, Any]]:
    """Return what `lacking` reads of the results of a plan whose `tried` cases are measured."""
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
    """Return why a run measured nothing at all; empty if it did, or was only to calculate."""
    every = list(rows)
    if not _lacks(every):
        return ""
    return f"Nothing was measured: {_why(measured_of(every))}"


def _lacks(rows: Sequence[Row]) -> bool:
    measured = measured_of(rows)
    only_calculated = bool(rows) and not measured
    return not only_calculated and all(row["status"] != Status.OK.value for row in measured)


def _why(rows: Sequence[Row]) -> str:
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
