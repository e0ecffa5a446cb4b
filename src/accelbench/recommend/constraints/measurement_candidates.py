"""Measurements that are worthwhile under limits: options that may fit and may be better.

Memory and the time of a step grow with the batch. The largest batch that keeps their limits is
bracketed by at most doubling, starting where the counted memory ends, then by halving.

The `run` command that measures what an answer or an option lacks, or why there is none.

Its result answers the same question: it has the same sizes and circumstances as the results that
it is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from accelbench.core.case import Shapes, engine_options
from accelbench.core.devices import (
    EITHER,
    FP32,
    default_precision,
    parse_device_count,
    sharing_unit,
)
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.plugins import ENGINES, find_entry_points
from accelbench.core.precision import parse_precision
from accelbench.core.protocols import Device
from accelbench.core.rows import Row, number
from accelbench.core.run_command import (
    batch_arguments,
    framework_arguments,
    mode_arguments,
    precision_arguments,
    run_command,
    size_arguments,
)
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.detect import list_platforms
from accelbench.hardware.telemetry.energy import energy_meter
from accelbench.models.inputs import settle
from accelbench.recommend.constraints.limits import METERED, Limits
from accelbench.recommend.constraints.options import Option
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import ITEMS, counted, sizes_of
from accelbench.recommend.evidence.model_evidence import own_shapes
from accelbench.recommend.figures import counted_memory
from accelbench.recommend.query import GENERATING, SIZES, Query

#: What `run` takes after a platform's colon. A device's whole name has spaces, which split lists.
_ORDINAL = re.compile(r"\d{1,2}|cpu|gpu|npu", re.IGNORECASE)
_FLAGS = {"compile": "--compile", "gradient_checkpointing": "--gradient-checkpointing"}
_FLAGS |= {"pure": "--pure"}
#: Weights that `run` takes by default.
_RANDOM = "random"


@dataclass(frozen=True)
class MeasurementTarget:
    """What new results are compared with, and where they are stored."""

    sizes: Mapping[str, int] = field(default_factory=dict)  # of a step, by the store's columns
    #: what else the results of the model have in common
    circumstances: Mapping[str, object] = field(default_factory=dict)
    where: Sequence[str] = ()  # words of `run` that name the store
    unwritable: str = ""  # why no result can be stored there
    sharers: str = EITHER  # what several share a step as, such as devices
    energy: bool = False  # whether energy is measured, as a limit requires


#: A measurement in the words of `run`: its `command`, or why there is none as `unmeasurable`.
Words = dict[str, Any]


@dataclass(frozen=True)
class Remedy:
    """The command that measures a candidate, or why there is none, and the device it requires."""

    command: str | None
    why: str = ""
    device: str = ""

    def __str__(self) -> str:
        if self.command is None:
            return f"No command measures it as it stands: {self.why}."
        on = f", where there is {self.device}" if self.device else ""
        return f"To measure{on}: {self.command}"


class _NoCommandError(Exception):
    """Why there is no command."""


def remedy(
    query: Query,
    candidate: Candidate,
    target: MeasurementTarget,
    engine: str | None = None,
    precision: str | None = None,
) -> Remedy:
    """Return what measures a question on a candidate, by an engine if it is not the default."""
    precision = query.precision or precision or default_precision(candidate.platform, engine)
    words = _words(query, candidate.name, precision, query.batch, target.sizes)
    if query.spec is not None and query.mode == Mode.INFERENCE and not words["shapes"]:
        # A forward pass could not be compared with the requests that other platforms answer.
        own = own_shapes(query.spec)
        words["shapes"] = {name: own[name] for name in GENERATING if name in own}
    if optimizer := target.circumstances.get("optimizer"):
        words["options"] = {"optimizer": str(optimizer)}
    words = _with_command(query, {**words, "runtime": engine}, target)
    device = "" if _ORDINAL.fullmatch(candidate.device) else candidate.device
    return Remedy(words["command"], words.get("unmeasurable", ""), device)


def case(query: Query, option: Option, target: MeasurementTarget) -> Words:
    """Return the measurement that answers what an option leaves open."""
    row = option.row
    words: Words = {
        **_words(query, option.hardware, option.precision, option.batch_size, sizes_of(row)),
        "device": option.device,
        "runtime": option.runtime or None,
        "options": option.settings,
        "weights": _weights(query, row.get("weights")),
        "data": _folder(row.get("data_source")),
    }
    if row.get("provenance") == Provenance.IMPORTED and (own := engine_options(option.settings)):
        return {
            **words,
            "command": None,
            "unmeasurable": f"its settings ({', '.join(sorted(own))}) are those of its source",
        }
    beside = replace(target, circumstances=row, sharers=sharing_unit(row))
    return _with_command(query, words, beside, is_measured=True)


def unmeasured(
    query: Query, candidate: Candidate, precision: str, batch: int, target: MeasurementTarget
) -> Words:
    """Return the measurement of a candidate by the default engine of its platform."""
    words = _words(query, candidate.name, precision, batch, {})
    return _with_command(query, {**words, "device": candidate.device or None}, target)


def _words(
    query: Query, hardware: str, precision: str, batch: int, sizes: Mapping[str, int]
) -> Words:
    return {
        "model": query.names[0],
        "hardware": hardware,
        "device": None,
        "runtime": None,
        "precision": precision,
        "batch_size": batch,
        "mode": query.mode,
        "shapes": _shapes(query, {**query.shapes, **sizes}),
        "options": {},
        "weights": _RANDOM,
        "data": None,
    }


def _shapes(query: Query, sizes: Mapping[str, int | None]) -> dict[str, int]:
    """Return sizes as `run` takes them: a forward pass of a model that generates has no tokens."""
    training = query.mode == Mode.TRAINING
    shapes = {
        name: int(value)
        for name, value in sizes.items()
        if value is not None and not (training and name in GENERATING)
    }
    makes = query.spec.generation if query.spec is not None and not training else None
    if makes is not None and shapes.get("sequence_length") and not shapes.get("new_tokens"):
        shapes["new_tokens"] = 0
    elif makes is not None and shapes.keys() & set(GENERATING):
        # Without a number, an engine that cannot generate would compute a forward pass.
        shapes.setdefault("new_tokens", makes.new_tokens)
    return shapes


def _weights(query: Query, weights: str | None) -> str:
    if weights and query.spec is not None and weights in query.spec.hub_ids:
        return "hub"
    return _folder(weights) or _RANDOM


def _folder(source: str | None) -> str | None:
    """Return a folder of this machine; the names of other sources lead nowhere here."""
    return str(source) if source and str(source).startswith("/") else None


def _with_command(
    query: Query, words: Words, target: MeasurementTarget, *, is_measured: bool = False
) -> Words:
    if target.energy:
        words = {**words, "energy": True}
    try:
        return {**words, "command": _command(query, words, target, is_measured=is_measured)}
    except _NoCommandError as error:
        return {**words, "command": None, "unmeasurable": str(error)}


def _command(query: Query, words: Words, target: MeasurementTarget, *, is_measured: bool) -> str:
    _refuse_unknown_model(query)
    hardware = _hardware(words["hardware"])
    _refuse_circumstances(target.circumstances, target.sharers)
    if words["runtime"] and words["runtime"] not in find_entry_points(ENGINES):
        raise _NoCommandError(f"the engine {words['runtime']} is not here")
    precision = _precision(query, words["precision"])
    if query.spec is not None and not is_measured:
        _refuse_sizes(query.spec, words["batch_size"], words["shapes"])
    if target.unwritable:
        raise _NoCommandError(target.unwritable)
    return run_command(
        words["model"],
        hardware,
        batch_arguments(words["batch_size"]),
        mode_arguments(words["mode"]),
        framework_arguments(words["runtime"]),
        precision,
        size_arguments(words["shapes"]),
        _settings(words),
        ("--energy",) if target.energy else (),
        target.where,
    )


def _refuse_unknown_model(query: Query) -> None:
    """Refuse what is neither in the catalogue nor a file, a folder or code here."""
    spec, name = query.spec, query.names[0]
    if spec is not None:
        if query.mode != Mode.INFERENCE and spec.training is None:
            raise _NoCommandError(f"the catalogue does not say how {spec.id} is trained")
        return
    if not query.model:
        raise _NoCommandError("no model is named")
    if not any(Path(path).exists() for path in (name, name.rpartition(":")[0]) if path):
        raise _NoCommandError(
            f"{query.model} is neither in the catalogue nor here: start accelbench in the folder of"
            " its file or code, or give --models-file"
        )


def _hardware(name: str) -> str:
    platform, _, device = name.partition(":")
    if platform not in _platforms():
        raise _NoCommandError(
            f"{platform} is hardware that no plugin knows: its results come by accelbench db import"
        )
    if parse_device_count(device)[0] > 1:
        raise _NoCommandError(f"{device} is several devices, and run measures one")
    return f"{platform}:{device.lower()}" if _ORDINAL.fullmatch(device) else platform


@cache
def _platforms() -> frozenset[str]:
    return frozenset(list_platforms())


def _precision(query: Query, precision: str) -> tuple[str, ...]:
    try:
        parse_precision(precision)
    except UsageError as error:
        raise _NoCommandError(f"run measures in no {precision}") from error
    return precision_arguments(precision) if query.precision or precision != FP32 else ()


def _refuse_sizes(spec: ModelSpec, batch: int, sizes: Mapping[str, int]) -> None:
    fields: dict[str, Any] = {SIZES[name]: value for name, value in sizes.items()}
    try:
        settled = settle(spec, Shapes(batch, **fields))
    except AccelbenchError as error:
        raise _NoCommandError(error.message.rstrip(".")) from error
    for name, value in sizes.items():
        if value and getattr(settled, SIZES[name]) != value:
            raise _NoCommandError(f"{spec.id} has no {name.replace('_', ' ')} to be set")


def _refuse_circumstances(circumstances: Row, sharers: str) -> None:
    """Refuse circumstances that no run has: requests at once, several devices."""
    if circumstances.get("scenario") not in (None, SINGLE_STREAM):
        raise _NoCommandError(f"the known results are of the scenario {circumstances['scenario']}")
    if (number(circumstances, "world_size") or 1) > 1:
        raise _NoCommandError(
            f"the known results are of {circumstances['world_size']} {sharers} together"
        )


def _settings(words: Words) -> Iterator[str]:
    options = words["options"]
    yield from (flag for name, flag in _FLAGS.items() if options.get(name))
    if options.get("threads") is not None:
        yield from ("--threads", str(options["threads"]))
    if words["mode"] == Mode.TRAINING and options.get("optimizer") not in (None, "adamw"):
        yield from ("--optimizer", str(options["optimizer"]))
    for name, value in sorted(engine_options(options).items()):
        spelt = str(value).lower() if isinstance(value, bool) else str(value)
        yield from ("--option", f"{words['runtime']}.{name}={spelt}")
    if words["weights"] != _RANDOM:
        yield from ("--weights", words["weights"])
    if words["data"]:
        yield from ("--data", words["data"])


def are_mixed(options: Iterable[Option]) -> bool:
    """Return whether rates have units that do not compare, such as tokens and items."""
    return len({counted(option.unit) for option in options}) > 1


def unit_in(options: Iterable[Option]) -> str:
    """Return the unit of most options, which limited rates and costs are taken to have."""
    units = [counted(option.unit) for option in options]
    return min(
        set(units), key=lambda unit: (-units.count(unit), unit != ITEMS, unit), default=ITEMS
    )


def compares_memory(options: Iterable[Option]) -> bool:
    """Return whether the memory of all options is known."""
    return all(option.memory is not None for option in options)


def pareto(options: Sequence[Option]) -> list[Option]:
    """Return the options that no other beats in latency, rate, and memory if all know theirs."""
    mixed, by_memory = are_mixed(options), compares_memory(options)

    def figures(option: Option) -> tuple[float, ...]:
        memory = (option.memory.high,) if by_memory and option.memory else ()
        return (option.time, -(option.pace if mixed else option.throughput), *memory)

    every = [figures(option) for option in options]

    def beaten(mine: tuple[float, ...]) -> bool:
        return any(
            all(a <= b for a, b in zip(theirs, mine, strict=True)) and theirs != mine
            for theirs in every
        )

    front = [option for option, mine in zip(options, every, strict=True) if not beaten(mine)]
    return sorted(front, key=lambda option: (option.time, option.order))


#: Platforms that compute on the host's CPU.
_OF_THE_HOST = ("cpu", "wasm")


def host_unmetered() -> str:
    """Return why the energy of the host's CPU cannot be measured; "" if it can."""
    meter = energy_meter(Device("cpu", ""))
    if isinstance(meter, NotAvailable):
        return meter.reason
    meter.close()
    return ""


def why_unmetered(platforms: Iterable[str]) -> str:
    """Return why energy can be measured on none of some platforms; "" if it may be on one.

    For accelerators only a run can find out, by their drivers.
    """
    if all(platform.partition(":")[0] in _OF_THE_HOST for platform in platforms):
        return host_unmetered()
    return ""


#: Batches that are considered if none is named, as far as the counted memory allows.
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
#: Limits of values whose intervals more launches narrow.
_NARROWED = frozenset({"max_latency_ms", "min_throughput"})
#: So many options that may be better, or may fit, next to the best.
_MOST = 3


def worth_measuring(
    query: Query,
    limits: Limits,
    options: Sequence[Option],
    candidates: Sequence[Candidate],
    batches: Sequence[int],
    here: MeasurementTarget,
) -> list[Words]:
    """Return the best option that fits, and those that may be better or may fit.

    If none fits, each hardware without results is added at its first batch.
    """
    fits = sorted((option for option in options if not option.why), key=lambda one: one.order)
    cases = [case(query, option, here) for option in [*fits[:1], *_promising(options, fits)]]
    if fits:
        return cases
    known = {option.hardware for option in options}
    others = []
    for candidate in candidates:
        precision = query.precision or default_precision(candidate.platform)
        batch = first_batch(query, limits, precision, batches)
        if candidate.name not in known and batch is not None:
            others.append(unmeasured(query, candidate, precision, batch, here))
    able = [other for other in others if other["command"]]
    return cases + (able or ([] if cases else others[:1]))  # it has the reason


def first_batch(query: Query, limits: Limits, precision: str, batches: Sequence[int]) -> int | None:
    """Return the first batch to measure; None if the counted memory allows none.

    It is the largest that fits; the smallest if the time of a step is limited, because all batches
    are too slow if that is.
    """
    among = sorted(batches or BATCHES)
    sizes = sizes_meant(query)
    fitting = []
    for batch in among:
        memory = counted_memory(query, batch, precision, sizes)
        if memory is None:
            return among[0]
        if limits.memory_mb is None or memory <= limits.memory_mb:
            fitting.append(batch)
    if not fitting:
        return None
    return fitting[0] if limits.max_latency_ms is not None else fitting[-1]


def sizes_meant(query: Query) -> dict[str, int]:
    """Return the named sizes, completed by the model's own."""
    own = own_shapes(query.spec)
    if query.shapes.get("sequence_length") or not query.shapes.get("new_tokens", 1):
        own = {name: value for name, value in own.items() if name not in GENERATING}
    return {**own, **query.shapes}


def _promising(options: Sequence[Option], fits: Sequence[Option]) -> Iterator[Option]:
    """Yield options that may be the best, or else may fit, the most probable first."""
    able = (option for option in options if option not in fits[:1] and _tells(option))
    may = [
        option
        for option in able
        if option.probability > 0.0 or (option.why and all(why.open for why in option.why))
    ]
    yield from sorted(may, key=lambda option: (-option.probability, option.order))[:_MOST]


def _tells(option: Option) -> bool:
    if {why.limit for why in option.why} == {"max_cost"} and option.cost is None:
        return False
    imported = option.row.get("provenance") == Provenance.IMPORTED
    # More launches narrow an interval that contains the limit.
    is_wide = any(why.limit in _NARROWED and why.open for why in option.why)
    # It may have been measured without --energy.
    is_unmetered = any(why.limit in METERED and why.open for why in option.why)
    return not option.measured or (imported and bool(option.why)) or is_wide or is_unmetered


#: Precisions that are tried if none is named.
PRECISIONS = ("fp32", "fp16", "bf16", "int8")
#: No larger batch is tried.
LARGEST = 4096
#: The bracket ends at a sixteenth of the batch: launches differ by about as much.
NARROW = 16


def next_batch(tried: Mapping[int, float], first: int, among: Sequence[int] = ()) -> int | None:
    """Return the batch to measure next; None if the search has ended."""
    if among:
        return _next_of(tried, sorted(among))
    if not tried:
        return first
    most = largest(tried) or 0
    least = min((b for b, takes in tried.items() if takes > 1.0 and b > most), default=None)
    if least is None:
        return min(_beyond(most, tried[most]), LARGEST) if most < LARGEST else None
    if least - most <= max(1, most // NARROW):
        return None
    # If nothing fits yet, the bracket starts at 0.
    return (most + least) // 2


def largest(tried: Mapping[int, float]) -> int | None:
    """Return the largest batch that kept the limits; a smaller one may miss them by noise."""
    return max((batch for batch, takes in tried.items() if takes <= 1.0), default=None)


def _beyond(batch: int, takes: float) -> int:
    """Return a batch that should just not fit, by the share of a smaller one."""
    bracket = 1.0 + 1.0 / NARROW
    growth = min(max(bracket / takes, bracket), 2.0) if takes > 0.0 else 2.0
    return max(batch + 1, round(batch * growth))


def _next_of(tried: Mapping[int, float], among: Sequence[int]) -> int | None:
    most = largest(tried) or 0
    missed = min((b for b, takes in tried.items() if takes > 1.0 and b > most), default=None)
    open_ones = [
        batch
        for batch in among
        if batch > most and batch not in tried and (missed is None or batch < missed)
    ]
    return open_ones[len(open_ones) // 2] if open_ones else None


def searches(limits: Limits) -> bool:
    """Return whether a limit concerns what grows with the batch."""
    return limits.memory_mb is not None or limits.max_latency_ms is not None


def to_search(
    query: Query,
    limits: Limits,
    options: Sequence[Option],
    candidates: Sequence[Candidate],
    among: Sequence[int],
    here: MeasurementTarget,
) -> list[Words]:
    """Return the first measurement of each way to search.

    These are each candidate's default engine in each precision, and the ways that were measured.
    """
    cases: dict[tuple[str, ...], Words] = {}
    precisions = (query.precision,) if query.precision else PRECISIONS
    for candidate in candidates:
        for precision in precisions:
            batch = _first(query, limits, precision, among)
            words = unmeasured(query, candidate, precision, batch, here)
            cases.setdefault((candidate.name, precision, ""), words)
    for option in _measured_here(options):
        batch = _first(query, limits, option.precision, among)
        words = case(query, replace(option, batch_size=batch), here)
        key = (
            option.hardware,
            option.precision,
            option.runtime,
            str(sorted(option.settings.items())),
        )
        cases.setdefault(key, words)
    return list(cases.values())


def _measured_here(options: Sequence[Option]) -> Iterator[Option]:
    for option in options:
        if option.measured and option.row.get("provenance") == Provenance.MEASURED:
            yield option


def _first(query: Query, limits: Limits, precision: str, among: Sequence[int]) -> int:
    """Return the largest batch of the counted memory; 1 if the time of a step is limited."""
    if among:
        return _next_of({}, sorted(among)) or among[0]
    if limits.memory_mb is None or limits.max_latency_ms is not None:
        return 1
    sizes, low, high = sizes_meant(query), 1, LARGEST
    if counted_memory(query, 1, precision, sizes) is None:
        return 1
    while low < high:
        middle = (low + high + 1) // 2
        memory = counted_memory(query, middle, precision, sizes)
        if memory is not None and memory <= limits.memory_mb:
            low = middle
        else:
            high = middle - 1
    return low
