"""From a request to an ordered list of cases, and matrices of values as combinations. Pure.

`exclude` takes combinations away first. An entry of `include` then adds its other keys to every
combination that has its values of the axes; if there is none, it is a combination of its own.

The plan of a request on this machine, by the devices and runtimes that are here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from accelbench.core.case import Case, Option
from accelbench.core.errors import CaseError, UsageError
from accelbench.core.formatting import join_first
from accelbench.core.model import ModelSpec
from accelbench.core.option_types import drop_defaults
from accelbench.core.plugins import (
    ENGINES,
    HARDWARE,
    PluginError,
    find_entry_points,
    load,
    load_all,
    warn_once,
)
from accelbench.core.protocols import Device, Inventory, Runtime
from accelbench.core.vocabulary import Mode, Status
from accelbench.engines.shared.names import known_runtimes, no_such_runtime
from accelbench.hardware.machine import threads_of_each
from accelbench.models.inputs import settle
from accelbench.run.plan import run_forecast
from accelbench.run.plan.request import (
    Distribution,
    Estimate,
    Free,
    Plan,
    Planned,
    Refusal,
    Request,
    TellsFree,
    grouped,
    united,
    unused,
)
from accelbench.run.plan.sharing import one_process, shapes_of, shared_out, usual_batches
from accelbench.run.plan.targets import TargetDevice, device_of, places, refusal_of


def untrainable(case: Case) -> Refusal | None:
    """Training of a model that nothing says how it is trained."""
    if case.mode is not Mode.TRAINING or case.model.training is not None:
        return None
    message = f"the catalogue does not say how {case.model.id} is trained"
    advice = "Use --mode inference."
    if case.model.file is not None:
        message = f"{case.model.id} is an exported graph, which is not trained"
    if case.model.code is not None:
        message = f"{case.model.id} does not say how it is trained"
        advice = "Give it a loss and example_labels, or use --mode inference."
    if "custom" in case.model.sets:
        class_name = case.model.builder.rpartition(":")[2]
        message = f"{class_name}, the class of {case.model.id}, does not tell how it is trained"
        advice = (
            "Name a class with a head, such as BertForSequenceClassification, in the config's"
            " architectures or as the entry's class, or use --mode inference."
        )
    return Refusal(Status.UNSUPPORTED, "mode", message, advice)


def unopened(runtime: Runtime, case: Case) -> Refusal | None:
    """Return a file or a callable that the runtime does not open, or not in that precision."""
    file, wanted, name = case.model.graph, case.model.format, runtime.info.name
    if wanted is not None and wanted not in runtime.info.files:
        return Refusal(
            Status.UNSUPPORTED,
            "format",
            f"the {name} runtime does not open {wanted.graph}s",
            "Leave out --framework: each platform has an engine that does, or is left out.",
        )
    if file is None:
        return None
    lacking = [name for name in file.custom if name.rpartition(":")[0] not in runtime.info.domains]
    if lacking:
        return Refusal(
            Status.UNSUPPORTED,
            "operator",
            f"the {name} runtime has no operator {join_first(lacking)}",
            "Leave it out of the graph, or measure the part that is of ONNX's operators.",
        )
    if file.precision != "fp32" and case.precision not in (file.precision, "fp32"):
        what = f"{case.model.id} is stored in {file.precision}"
        advice = f"Use --precision {file.precision}, or name the file in fp32 that it was made of."
        return Refusal(Status.UNSUPPORTED, "precision", what, advice)
    if file.precision == "int8" and case.precision != "int8":
        return Refusal(
            Status.UNSUPPORTED,
            "precision",
            f"{case.model.id} is quantised: its products are of int8",
            "Use --precision int8, or name the file that it was quantised from.",
        )
    return None


_log = logging.getLogger(__name__)


def expand(
    request: Request,
    inventory: Inventory,
    runtimes: Mapping[str, Runtime],
    estimate: Estimate,
    free: Free,
) -> Plan:
    """Return every case of a request in the order in which it will be measured."""
    return expand_all((request,), inventory, runtimes, estimate, free)


def expand_all(
    requests: Sequence[Request],
    inventory: Inventory,
    runtimes: Mapping[str, Runtime],
    estimate: Estimate,
    free: Free,
) -> Plan:
    """Return every case of some requests in the order in which it will be measured.

    They are measured in one run: engines that cannot generate are compared with all others.
    """
    placed = [places(request, inventory, runtimes) for request in requests]
    here = _TextWork(runtimes, (place for where, _ in placed for place in where if _is_here(place)))
    # What is only calculated must not change what is measured beside it.
    away = _TextWork(runtimes, (p for where, _ in placed for p in where if not _is_here(p)))
    notes: dict[str, None] = {}
    cases: dict[tuple[str, str], Planned] = {}
    for request, (where, remarks) in zip(requests, placed, strict=True):
        others = [f"Simulated: {note}" for note in away.explain(request)]
        notes |= dict.fromkeys((*remarks, *here.explain(request), *others))
        for model, place, asked, mode in product(
            request.models, where, request.precisions, request.modes
        ):
            precision, told = _usual_precision(place, asked, mode, request, runtimes)
            notes |= dict.fromkeys(told)
            own = _own_options(place, request, runtimes)
            work = here if _is_here(place) else away
            groups = (
                group
                for what in work.requests_for(place, request, mode)
                for group in _asked_of(model, place, precision, mode, what, own)
            )
            for group in groups:
                kept = group
                if request.distribution is not None:
                    room = _room(place, free)
                    shared, told = _together(
                        group, place, request, inventory, runtimes, estimate, room
                    )
                    notes |= dict.fromkeys(told)
                    for planned in shared:
                        cases.setdefault(planned.key, planned)
                    continue
                if not request.batch_sizes:
                    kept, shortened = _shorten(group, _room(place, free), estimate)
                    notes |= dict.fromkeys(shortened)
                for case in kept:
                    planned = _judge(case, place, runtimes)
                    if request.as_stored:
                        planned, told = _widened(planned, place, runtimes)
                        planned = replace(planned, as_stored=True)
                        notes |= dict.fromkeys(told)
                    cases.setdefault(planned.key, planned)
    planned_cases = list(cases.values())
    idle = unused(united(requests), [planned.case for planned in planned_cases])
    notes |= dict.fromkeys(idle)
    if all(request.simulate for request in requests) and not away.names:
        notes[
            "--simulate changes nothing: what was named is here, is a number, or has no document."
        ] = None
    ordered = planned_cases if len(requests) == 1 else grouped(planned_cases)
    return Plan(tuple(ordered), tuple(notes))


def placed(case: Case, inventory: Inventory, runtimes: Mapping[str, Runtime]) -> Planned:
    """Return a case that was planned elsewhere, with the device of this machine that it means."""
    target = case.target
    name, runtime = target.runtime, runtimes.get(target.runtime)
    if runtime is None:
        text = f"the runtime {name} is not installed here"
        advice = f"Installed: {', '.join(sorted(runtimes))}."
        return Planned(case, None, Refusal(Status.UNSUPPORTED, "no_runtime", text, advice))
    entries = inventory.get(target.hardware, ())
    device, refusal = device_of(target.hardware, target.device or "", entries)
    return _judge(case, TargetDevice(target, device, refusal), runtimes)


def _is_here(place: TargetDevice) -> bool:
    return place.roofline is None


class _TextWork:
    """Whole requests and forward passes: which of them an engine measures of models that generate.

    Engines that generate measure whole requests. If another engine of the run cannot, they measure
    one forward pass too, which every engine can be compared by.
    """

    def __init__(self, runtimes: Mapping[str, Runtime], where: Iterable[TargetDevice]) -> None:
        every = list(where)
        self.names = {place.target.runtime for place in every}
        able = {place.target.runtime for place in every if place.refusal is None}
        self._cannot = sorted(n for n in able if n in runtimes and not runtimes[n].info.generates)

    def requests_for(self, place: TargetDevice, request: Request, mode: Mode) -> Sequence[Request]:
        if mode is not Mode.INFERENCE or not self._is_mixed(request):
            return [request]
        forward = replace(request, new_tokens=(0,))
        return [forward] if place.target.runtime in self._cannot else [request, forward]

    def explain(self, request: Request) -> list[str]:
        if Mode.INFERENCE not in request.modes or not self._is_mixed(request):
            return []
        note = (
            f"{' and '.join(self._cannot)} cannot generate text: these engines measure one forward"
            " pass. Engines that can generate measure whole requests and a forward pass."
        )
        return [note]

    def _is_mixed(self, request: Request) -> bool:
        generates = any(model.generation for model in request.models)
        return bool(self._cannot and generates and not request.new_tokens)


def _own_options(
    place: TargetDevice, request: Request, runtimes: Mapping[str, Runtime]
) -> dict[str, Option]:
    name, hardware = place.target.runtime, place.target.hardware
    values = request.runtime_options.get(name)
    return drop_defaults(values, runtimes[name].info.options, hardware) if values else {}


def _usual_precision(
    place: TargetDevice, asked: str, mode: Mode, request: Request, runtimes: Mapping[str, Runtime]
) -> tuple[str, list[str]]:
    """Return the precision, which is the engine's first if none is named and it lacks fp32.

    An emulated device keeps fp32, and its refusal, unless the hardware is named: one int8 step of
    bert-tiny takes a second in QNN's emulation, and its times are no device's.
    """
    device, runtime = place.device, runtimes.get(place.target.runtime)
    if not request.is_precision_free or mode is Mode.TRAINING or runtime is None or device is None:
        return asked, []
    known = runtime.info.precisions
    if asked in known or not known or (device.emulated and not request.hardware):
        return asked, []
    return known[0], [f"{place.target} lacks {asked}: it is measured in {known[0]}."]


def _asked_of(
    model: ModelSpec,
    place: TargetDevice,
    precision: str,
    mode: Mode,
    request: Request,
    own: Mapping[str, Option],
) -> Iterator[list[Case]]:
    """Cases that differ in their batch alone, one list for each of the other sizes."""
    options = {**request.options, **own}
    if mode is Mode.TRAINING:
        options |= request.training_options
        # Training in half precision is autocast anyway: one question has one name.
        precision = precision.removeprefix("amp-")
    batches = sorted(set(request.batch_sizes or usual_batches(model)))
    for shapes in shapes_of(model, request, mode):
        yield [
            Case(
                model=model,
                target=place.target,
                precision=precision,
                shapes=replace(shapes, batch=batch),
                mode=mode,
                options=options,
            )
            for batch in batches
        ]


def _together(
    group: Sequence[Case],
    place: TargetDevice,
    request: Request,
    inventory: Inventory,
    runtimes: Mapping[str, Runtime],
    estimate: Estimate,
    free: int | None,
) -> tuple[list[Planned], list[str]]:
    """Return a group of cases in one process and in several."""
    how = request.distribution
    assert how is not None
    here = how.processes // how.nodes
    room = how.memory_bytes
    if room is None and free is not None:
        room = free // here if place.target.hardware == "cpu" else free
    if not request.batch_sizes and group[0].mode is Mode.TRAINING:  # an inferred batch stays whole
        even = [case for case in group if case.shapes.batch % how.processes == 0]
        group = even or [replace(group[0], shapes=replace(group[0].shapes, batch=how.processes))]
    threads = threads_of_each(_threads(request), here)
    runtime = runtimes.get(place.target.runtime)
    alone: list[Planned] = []
    together: list[Planned] = []
    notes: list[str] = []
    for case in group:
        shared = shared_out(
            case, how, room, estimate, lambda c: place.device is None or _takes(runtime, c, place)
        )
        notes += shared.notes
        planned = _judge(shared.case, place, runtimes)
        absent = _one_machine(runtime, how) or _too_few(place, inventory, here)
        planned = replace(planned, refusal=planned.refusal or absent or shared.refusal)
        together.append(planned)
        if how.baseline and planned.refusal is None:
            alone.append(_judge(one_process(shared.case, threads), place, runtimes))
    return [*alone, *together], notes


def _threads(request: Request) -> int | None:
    threads = request.options.get("threads")
    return None if threads is None else int(threads)


def _takes(runtime: Runtime | None, case: Case, place: TargetDevice) -> bool:
    if runtime is None or place.device is None or not runtime.info.distributes:
        return False
    return _asked(runtime, case, place.device) is None


def _one_machine(runtime: Runtime | None, how: Distribution) -> Refusal | None:
    """Machines that do not meet, as their runtime shares a step within one alone."""
    if how.nodes == 1 or runtime is None or runtime.info.several_machines:
        return None
    return Refusal(
        Status.UNSUPPORTED,
        "distributed",
        f"the {runtime.info.name} runtime shares a step among the devices of one machine",
        "Leave out --nnodes, or use --framework pytorch.",
    )


def _too_few(place: TargetDevice, inventory: Inventory, wanted: int) -> Refusal | None:
    """Of a platform of devices each process has one of its own; on a CPU they share it."""
    hardware = place.target.hardware
    if hardware == "cpu" or place.device is None:
        return None
    count = sum(isinstance(entry, Device) for entry in inventory.get(hardware, ()))
    if count >= wanted:
        return None
    devices = f"{count} device{'s' if count != 1 else ''}"
    return Refusal(
        Status.UNSUPPORTED,
        "device_absent",
        f"{hardware} has {devices} here, and {wanted} processes need one each",
        f"Use --gpu-count {count}, or --hardware cpu." if count > 1 else "Use --hardware cpu.",
    )


def _room(place: TargetDevice, free: Free) -> int | None:
    if place.roofline is not None:
        return place.roofline.memory_bytes
    return free(place.device) if place.device else None


def _shorten(
    cases: list[Case], room: int | None, estimate: Estimate
) -> tuple[list[Case], list[str]]:
    if room is None:
        return cases, []
    kept = [c for i, c in enumerate(cases) if i == 0 or (estimate(c) or 0) <= room]
    left_out = [c for c in cases if all(c is not case for case in kept)]
    if not left_out:
        return cases, []
    batches = ", ".join(str(c.shapes.batch) for c in left_out)
    need = min(estimate(c) or 0 for c in left_out) / 2**30
    first = cases[0]
    text = (
        f"{first.model.id} {first.precision} {first.mode} on {first.target}:"
        f" batch {batches} left out, an estimated"
        f" {need:.1f} GiB is needed and {room / 2**30:.1f} GiB is free;"
        " ask with --batch-sizes to try them."
    )
    return kept, [text]


def _judge(case: Case, place: TargetDevice, runtimes: Mapping[str, Runtime]) -> Planned:
    if place.roofline is not None:
        info = runtimes[case.target.runtime].info
        no = untrainable(case) or _unfit(case) or refusal_of(case, info, place.roofline)
        return Planned(case, None, no, place.roofline)
    if place.refusal is not None or place.device is None:
        return Planned(case, place.device, place.refusal)
    refusal = untrainable(case) or _unfit(case)
    if refusal is None:
        refusal = _asked(runtimes[case.target.runtime], case, place.device)
    return Planned(case, place.device, refusal)


def _widened(
    planned: Planned, place: TargetDevice, runtimes: Mapping[str, Runtime]
) -> tuple[Planned, list[str]]:
    """A case of a file in halves in fp32, where its engine would compute that under fp16's name.

    OpenVINO's own exporter stores halves, and CPUs have no use for them but to read them.
    """
    case, refusal = planned.case, planned.refusal
    if refusal is None or refusal.reason != "precision" or case.precision not in ("fp16", "bf16"):
        return planned, []
    wide = _judge(replace(case, precision="fp32"), place, runtimes)
    if wide.refusal is not None:
        return planned, []
    stored = f"{case.model.id} is stored in {case.precision}"
    return wide, [
        f"{stored}, in which {case.target} does not compute: it is measured in fp32 there."
    ]


def _unfit(case: Case) -> Refusal | None:
    """Sizes that the model cannot take."""
    try:
        settle(case.model, case.shapes)
    except CaseError as error:
        return Refusal(Status(error.status), error.reason, error.message.rstrip("."), error.advice)
    return None


def _asked(runtime: Runtime, case: Case, device: Device) -> Refusal | None:
    """What the runtime itself has against the case; a plugin that cannot say fails it alone."""
    if (refusal := unopened(runtime, case)) is not None:
        return refusal
    if case.world_size > 1 and not runtime.info.distributes:
        return Refusal(
            Status.UNSUPPORTED,
            "distributed",
            f"the {runtime.info.name} runtime makes each step in one process",
            "Use --framework pytorch, or jax for training.",
        )
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


#: More than anybody measures; a slip in one axis may ask for millions.
MOST_COMBINATIONS = 20_000

#: Of some keys one value each.
Combination = Mapping[str, str]
#: Of some keys several values each: every combination of them.
Block = Mapping[str, tuple[str, ...]]


def combinations(
    axes: Block, include: Iterable[Combination] = (), exclude: Iterable[Combination] = ()
) -> list[dict[str, str]]:
    """The combinations of a matrix, in the order of its values, then those that were added."""
    count = prod(map(len, axes.values())) if axes else 0
    if count > MOST_COMBINATIONS:
        sizes = " × ".join(f"{len(values)} {name}" for name, values in axes.items())
        raise UsageError(
            f"The matrix has {count:,} combinations ({sizes}), and may have {MOST_COMBINATIONS:,}.",
            "Name fewer values, or write several plans.",
        )
    named = list(axes)
    every = [dict(zip(named, values, strict=True)) for values in product(*axes.values())]
    left_out = list(exclude)
    kept = [one for one in every if not any(_has(one, entry) for entry in left_out)] if axes else []
    original, added = [dict(combination) for combination in kept], list[dict[str, str]]()
    for entry in include:
        own = {name: value for name, value in entry.items() if name in axes}
        matching = [made for made, one in zip(kept, original, strict=True) if _has(one, own)]
        for combination in matching:
            combination.update(entry)
        if not matching:
            added.append(dict(entry))
    return kept + added


def _has(combination: Combination, entry: Combination) -> bool:
    return all(combination.get(name) == value for name, value in entry.items())


def blocks(
    combinations: Sequence[Combination], lists: Sequence[str], alone: Iterable[str] = ()
) -> list[dict[str, tuple[str, ...]]]:
    """Return as few blocks as merging the keys of `lists` in turn gives; values of `alone` stand
    for themselves."""
    single = frozenset(alone)
    made: list[dict[str, tuple[str, ...]]] = [
        {name: (value,) for name, value in one.items()} for one in combinations
    ]
    for axis in lists:
        merged: dict[object, dict[str, tuple[str, ...]]] = {}
        for block in made:
            own = block.get(axis)
            others = frozenset((name, values) for name, values in block.items() if name != axis)
            key = (others, own if own is None or single & set(own) else ())
            before = merged.get(key)
            if before is None:
                merged[key] = dict(block)
            elif own is not None:
                before[axis] = tuple(dict.fromkeys((*before[axis], *own)))
        made = list(merged.values())
    return made


def installed_runtimes() -> dict[str, Runtime]:
    """Return every runtime that can be used and chosen, by name; warn of the others."""
    runtimes: dict[str, Runtime] = {}
    names = known_runtimes()
    for name, made in load_all(ENGINES):
        if isinstance(made, PluginError):
            warn_once(str(made), made)
        elif name in names:
            runtimes[name] = made
    return runtimes


def plan_for(request: Request, inventory: Inventory, runtimes: Mapping[str, Runtime]) -> Plan:
    """Return the plan of a request on this machine as it is now, or on those of a fleet."""
    return plan_of((request,), inventory, runtimes)


def plan_of(
    requests: Sequence[Request], inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> Plan:
    """Return one plan for several requests, on this machine as it is now or on a fleet."""
    for request in requests:
        for name in request.runtimes:
            if name not in runtimes:
                _load_named(ENGINES, name)
                raise no_such_runtime(name, sorted(runtimes))
        for platform in request.hardware:
            _load_named(HARDWARE, platform.partition(":")[0])
    free = inventory.free if isinstance(inventory, TellsFree) else run_forecast.free
    return expand_all(requests, inventory, runtimes, run_forecast.memory, free)


def _load_named(group: str, name: str) -> None:
    point = find_entry_points(group).get(name)
    if point is not None:
        load(point)
