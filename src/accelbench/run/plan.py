"""From a request to an ordered list of cases: pure, so that `--dry-run` shows exactly it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product

from accelbench.core.case import Case, Option, Shapes, Target
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Absent, Device, Runtime
from accelbench.core.words import Mode, Status

_log = logging.getLogger(__name__)

DEFAULT_BATCH_SIZES = (1, 8, 32, 128)

#: Estimated bytes of a case, None where nobody knows.
Estimate = Callable[[Case], int | None]

#: Bytes free for a model on a device, None where nobody knows.
Free = Callable[[Device], int | None]


@dataclass(frozen=True)
class Request:
    """What a command asked for, names already resolved."""

    models: tuple[ModelSpec, ...]
    hardware: tuple[str, ...] = ()  # empty: everything present
    runtimes: tuple[str, ...] = ()  # empty: each platform's default
    batch_sizes: tuple[int, ...] = ()  # empty: the default ones, as far as memory allows
    sequence_lengths: tuple[int, ...] = ()
    image_sizes: tuple[int, ...] = ()
    precisions: tuple[str, ...] = ("fp32",)
    mode: Mode = Mode.INFERENCE
    options: Mapping[str, Option] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """Why a case will not be tried."""

    status: Status
    reason: str
    message: str
    advice: str


@dataclass(frozen=True)
class Planned:
    """A case, the device it will run on, and why it will not be tried, if so."""

    case: Case
    device: Device | None
    refusal: Refusal | None = None


@dataclass(frozen=True)
class Plan:
    """The ordered list of cases a command expands to, with what a reader should know."""

    cases: tuple[Planned, ...]
    notes: tuple[str, ...] = ()

    def groups(self) -> Iterator[list[Planned]]:
        """Cases that one worker can measure in turn: the same in all but the batch size.

        Batches then ascend within a worker: after a larger case, what the engine's
        allocator keeps would be counted to a smaller one.
        """

        def key(planned: Planned) -> tuple[str, ...]:
            case = planned.case
            options = ",".join(f"{k}={v}" for k, v in sorted(case.options.items()))
            shapes = replace(case.shapes, batch=0)
            asked = (case.model.id, case.target, case.precision, case.mode, case.scenario)
            return tuple(map(str, (*asked, case.world_size, options, shapes)))

        for _, group in groupby(self.cases, key):
            yield list(group)


@dataclass(frozen=True)
class Place:
    """A target with its device, or with the reason why it has none."""

    target: Target
    device: Device | None
    refusal: Refusal | None = None


def places(
    request: Request,
    found: Mapping[str, Sequence[Device | Absent]],
    runtimes: Mapping[str, Runtime],
) -> tuple[list[Place], list[str]]:
    """Every target of a request, and notes about platforms left out."""
    notes: list[str] = []
    chosen: list[Place] = []
    named = bool(request.hardware)
    wanted = request.hardware or tuple(
        name for name, entries in found.items() if any(isinstance(e, Device) for e in entries)
    )
    for full_name in wanted:
        name, _, rest = full_name.partition(":")
        serving = _serving(name, request.runtimes, runtimes)
        if not serving:
            text = _unserved(name, request.runtimes)
            if named or request.runtimes:
                refusal = Refusal(Status.UNSUPPORTED, "no_runtime", text, _served(runtimes))
                runtime = request.runtimes[0] if request.runtimes else "none"
                chosen.append(Place(Target(runtime, name, rest or None), None, refusal))
            else:
                notes.append(f"{name} is present, but {text}; left out.")
            continue
        device, refusal_or_none = _device(name, rest, found.get(name, ()))
        chosen += [
            Place(Target(runtime, name, _named(device, rest)), device, refusal_or_none)
            for runtime in serving
        ]
    if request.runtimes and not named:
        # "everything present" by a named engine means everything that engine serves.
        chosen = [place for place in chosen if place.refusal is None] or chosen
    return chosen, notes


def _named(device: Device | None, rest: str) -> str | None:
    """What a target says beside its platform: the kind of unit, else what was typed."""
    return (device.unit if device else "") or rest or None


def _serving(
    hardware: str, wanted: Sequence[str], runtimes: Mapping[str, Runtime]
) -> tuple[str, ...]:
    if wanted:
        return tuple(r for r in wanted if hardware in runtimes[r].info.hardware)
    return tuple(n for n, runtime in runtimes.items() if hardware in runtime.info.default_for)


def _unserved(hardware: str, wanted: Sequence[str]) -> str:
    if wanted:
        return f"{', '.join(wanted)} does not run on {hardware}"
    return f"no runtime of this installation runs on {hardware}"


def _served(runtimes: Mapping[str, Runtime]) -> str:
    platforms = sorted({h for r in runtimes.values() for h in r.info.default_for})
    return f"Platforms that can be measured here: {', '.join(platforms)}."


def _device(
    name: str, ordinal: str, entries: Sequence[Device | Absent]
) -> tuple[Device | None, Refusal | None]:
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


def expand(
    request: Request,
    found: Mapping[str, Sequence[Device | Absent]],
    runtimes: Mapping[str, Runtime],
    estimate: Estimate,
    free: Free,
) -> Plan:
    """Every case of a request in the order in which it will be measured."""
    where, notes = places(request, found, runtimes)
    cases: dict[tuple[str, ...], Planned] = {}
    for model, place, precision in product(request.models, where, request.precisions):
        sequences, images = _shape_axes(model, request)
        for sequence, image in product(sequences, images):
            asked = [
                Case(
                    model=model,
                    target=place.target,
                    precision=precision,
                    shapes=Shapes(batch=batch, sequence=sequence, image=image),
                    mode=request.mode,
                    options=request.options,
                )
                for batch in sorted(set(request.batch_sizes or DEFAULT_BATCH_SIZES))
            ]
            if not request.batch_sizes:
                asked, shortened = _shorten(asked, place.device, estimate, free)
                notes += shortened
            for case in asked:
                planned = _judge(case, place, runtimes)
                # "cuda" and "cuda:0" may be one device: a case is measured once.
                device = str(planned.device) if planned.device else case.target.place
                cases.setdefault((case.case_id, device), planned)
    return Plan(tuple(cases.values()), tuple(notes))


def _shape_axes(
    model: ModelSpec, request: Request
) -> tuple[Sequence[int | None], Sequence[int | None]]:
    sequences: Sequence[int | None] = (model.sequence,)
    images: Sequence[int | None] = (model.image,)
    if model.sequence is not None and request.sequence_lengths:
        sequences = sorted(set(request.sequence_lengths))
    if model.image is not None and request.image_sizes:
        images = sorted(set(request.image_sizes))
    return sequences, images


def _shorten(
    asked: list[Case], device: Device | None, estimate: Estimate, free: Free
) -> tuple[list[Case], list[str]]:
    """Leave out default batch sizes that cannot fit; the smallest always stays."""
    room = free(device) if device else None
    if room is None:
        return asked, []
    kept = [c for i, c in enumerate(asked) if i == 0 or (estimate(c) or 0) <= room]
    left_out = asked[len(kept) :]
    if not left_out:
        return asked, []
    batches = ", ".join(str(c.shapes.batch) for c in left_out)
    need = (estimate(left_out[0]) or 0) / 2**30
    first = asked[0]
    text = (
        f"{first.model.id} {first.precision} on {first.target}: batch {batches} left out,"
        f" an estimated {need:.1f} GiB is needed and {room / 2**30:.1f} GiB is free;"
        " ask with --batch-sizes to try them."
    )
    return kept, [text]


def _judge(case: Case, place: Place, runtimes: Mapping[str, Runtime]) -> Planned:
    if place.refusal is not None or place.device is None:
        return Planned(case, place.device, place.refusal)
    limit = case.model.max_sequence
    if limit is not None and (case.shapes.sequence or 0) > limit:
        return Planned(
            case,
            place.device,
            Refusal(
                Status.UNSUPPORTED,
                "sequence_too_long",
                f"{case.model.id} takes at most {limit} tokens, not {case.shapes.sequence}",
                f"Use --sequence-lengths up to {limit}.",
            ),
        )
    return Planned(case, place.device, _asked(runtimes[case.target.runtime], case, place.device))


def _asked(runtime: Runtime, case: Case, device: Device) -> Refusal | None:
    """What the runtime itself has against the case; a plugin that cannot say fails it alone."""
    try:
        support = runtime.supports(case, device)
    except Exception as error:
        _log.debug("%s.supports", runtime.info.name, exc_info=error)
        return Refusal(
            Status.FAILED,
            "runtime_broken",
            f"asking {runtime.info.name} failed: {type(error).__name__}: {error}",
            "Run again with --debug, and report it to the runtime's author.",
        )
    if support.ok:
        return None
    return Refusal(Status.UNSUPPORTED, support.reason, support.message, support.advice)
