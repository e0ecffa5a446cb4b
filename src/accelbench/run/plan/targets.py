"""Where a request runs: platforms and runtimes by name become devices, or reasons why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelbench.core.case import Target
from accelbench.core.protocols import Absent, Device, Inventory, Runtime, SetUp, Support
from accelbench.core.vocabulary import Status
from accelbench.hardware.rooflines import Roofline
from accelbench.run.plan.request import Refusal, Request
from accelbench.run.plan.stand_ins import remark, stand_in


@dataclass(frozen=True)
class TargetDevice:
    """A target with its device, or with the reason why it has none.

    One with a roofline has no device either, and is simulated.
    """

    target: Target
    device: Device | None
    refusal: Refusal | None = None
    roofline: Roofline | None = None


def places(
    request: Request,
    inventory: Inventory,
    runtimes: Mapping[str, Runtime],
) -> tuple[list[TargetDevice], list[str]]:
    """Every target of a request, and notes about platforms left out."""
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
            if isinstance(meant, Roofline):
                notes.append(remark(name, rest, meant))
                chosen += [
                    TargetDevice(Target(runtime, name, meant.name), None, roofline=meant)
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
    """What is said of platforms that nothing serves: one note, of a file they are often many."""
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
    """What is missing of those that serve a platform, where none of them can."""
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
    """The platforms that would be served, whether they are here or not."""
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
    return None, Refusal(
        Status.UNSUPPORTED,
        "device_absent",
        f"{name} has no device {ordinal}",
        f"It has {', '.join(str(d) for d in devices)}.",
    )
