"""Bounds of values that a session reports or the kernel counts: values beyond one are removed.

No bound is close to what was measured: 21 tiny models on four engines had 1.3 to 125 times the
bytes that a step reads, and first steps of 1.03 to 9.3 times the fastest one. Rates of operations
that no device reaches are refused. A step's parts are timed in a pass of their own, which
synchronises between them: if they do not add up to the step, the result has a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from accelbench.core.case import Case
from accelbench.core.columns import BY_NAME, step_ms
from accelbench.core.device_facts import facts_of
from accelbench.core.errors import AccelbenchError
from accelbench.core.plausible_values import STEP_TIMES
from accelbench.core.precision import bytes_per_weight
from accelbench.core.protocols import Device
from accelbench.core.ranges import (
    ACCELERATOR_OPERATIONS,
    LEAST_MEMORY_MB,
    MEMORY_MB,
    PHASE_TIMES,
    POWER_EACH_W,
)
from accelbench.core.vocabulary import MIB, Mode
from accelbench.hardware.common import is_processor
from accelbench.models.cost import flops, parts, weight_bytes_read
from accelbench.run.messages import TOO_MANY_OPERATIONS

#: Operations a second of one core that nothing reaches: one with two 512-bit units at 6 GHz does
#: 0.4e12 in fp32, one with matrix tiles 25e12 in narrow types.
_CORE_FP32, _CORE_NARROW = 0.5e12, 5e13


def refuse_implausible(case: Case, device: Device, said_ns: float) -> None:
    """Raise CaseError for more operations a second than the device can do."""
    from accelbench.models.cost import flops

    try:
        operations = flops(case.model, case.shapes, case.mode)
    except AccelbenchError:
        return  # not counted: nothing can be said
    if not operations or said_ns <= 0:
        return
    reached = operations / (said_ns / 1e9)
    most = fastest(device, case.precision)
    if reached > most:
        raise TOO_MANY_OPERATIONS.error(reached=reached, device=device.name, most=most)


def fastest(device: Device, precision: str) -> float:
    """Return a rate of operations, per second, that no such device reaches."""
    if is_processor(device):
        each = _CORE_FP32 if precision == "fp32" else _CORE_NARROW
        return each * max(device.count, 1)
    return ACCELERATOR_OPERATIONS


Columns = Mapping[str, Any]
#: By mode, the columns of a step's parts, in ways to divide it that exclude each other.
PARTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "training": (("forward_ms", "loss_ms", "backward_ms", "optimizer_ms"),),
    "inference": (("prefill_ms", "decode_ms"), ("embed_ms", "retrieve_ms", "generate_ms")),
}
#: The columns that cannot be, each with its reason.
Found = Iterator[tuple[str, str]]

#: Bytes a second that nothing writes: 500 DDR5 channels together, or HBM of the next generation.
#: Mapping a file is not writing, but it took more than 1 µs for each 10 MB.
_MEMORY_RATE = 1e13
#: Nothing that Python calls makes a model in less; two readings of a clock alone take 0.1 µs.
_LEAST_OPENING_MS = 1e-3
#: Two parts of opening that leave out more than this of it are not its parts. On a CPU alone: the
#: first use of an accelerator takes seconds that belong to neither.
_LEAST_SHARE, _SHORT_OPENING_MS = 0.05, 50.0
#: The smaller part of the weights may be folded into constants, or lie in a narrower type.
_WEIGHTS_SHARE = 0.5
#: A file of a model's owner may hold weights of four bits, whatever type it computes in.
_OWN_BYTES = 0.5
#: A first step contains a step. The fastest of all steps can have met a faster moment.
_STEP_SHARE = 0.5
#: Starting a kernel takes the host up to 50 times as long as the shortest kernel runs.
_DEVICE_SHARE = 0.01
#: Twice the documented peak: weights with a pattern of zeros can be skipped.
_PEAK_TIMES = 2.0
#: Devices exceed their power limit for some milliseconds, never for seconds.
_POWER_TIMES = 2.0
#: Drivers move what does not fit to the host's memory, which may be larger than the device's.
_MEMORY_TIMES = 8.0


@dataclass(frozen=True)
class KnownFacts:
    """Facts of a launch that do not come from its session."""

    case: Case
    device: Device
    in_process: bool = True  # the worker's own process does the work
    opening_ns: int | None = None  # from asking for a session to having it, by the worker's clock
    compiling_ns: int | None = None  # the same for compiling ahead of the first step
    fastest_ns: float | None = None  # the fastest step, warm-up included


def remove_implausible(
    columns: Columns, facts: KnownFacts
) -> tuple[dict[str, Any], dict[str, str]]:
    """Replace values that cannot be by None; return the columns and the reasons."""
    present = {name: value for name, value in columns.items() if value is not None}
    reasons = {name: why for check in CHECKS for name, why in check(present, facts)}
    return {name: None if name in reasons else columns[name] for name in columns}, reasons


def samples_left(samples: Mapping[str, Any], reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return the samples without those that removed values were computed from."""
    gone = {f"phase:{name.removesuffix('_ms')}" for name in reasons}
    gone |= {"device"} if "device_time_ms" in reasons else set()
    gone |= {"tokens"} if "ttft_ms" in reasons or "tpot_ms" in reasons else set()
    return {name: values for name, values in samples.items() if name not in gone}


# -- every column


def _ranges(columns: Columns, _: KnownFacts) -> Found:
    for name, value in columns.items():
        column = BY_NAME.get(name)
        if column is None or column.range is None or isinstance(value, (str, bool)):
            continue
        numbers = value if isinstance(value, (list, tuple)) else [value]
        if why := next(filter(None, map(column.range.explain_misfit, numbers)), ""):
            yield name, why


# -- memory


def _host_memory(columns: Columns, facts: KnownFacts) -> Found:
    least = _weights(facts, counted=True)
    if not is_processor(facts.device) or least is None:
        return
    names = ["host_memory_peak_mb", "host_memory_avg_mb"]
    if "device_memory_peak_mb" not in columns:
        names += ["memory_peak_mb", "memory_avg_mb"]
    yield from _too_small(columns, names, least)


def _device_memory(columns: Columns, facts: KnownFacts) -> Found:
    least = _weights(facts, counted=is_processor(facts.device)) or _weights(facts, counted=False)
    if "device_memory_peak_mb" not in columns or least is None:
        return
    names = ["device_memory_peak_mb", "device_memory_avg_mb", "device_memory_reserved_mb"]
    yield from _too_small(columns, [*names, "memory_peak_mb", "memory_avg_mb"], least)


def _impossible_memory(columns: Columns, facts: KnownFacts) -> Found:
    """Compare device memory with what an allocator gives at least, and with what is installed."""
    installed = facts.device.memory_bytes
    peak = columns.get("device_memory_peak_mb")
    if peak is None or installed is None:
        most = MEMORY_MB.most
    else:
        most = _MEMORY_TIMES * facts.case.world_size * installed / MIB
    for name in ("device_memory_peak_mb", "device_memory_avg_mb", "device_memory_reserved_mb"):
        value = columns.get(name)
        if value is None or (value == 0 or LEAST_MEMORY_MB <= value <= most):
            continue
        yield name, f"{value:.3g} MB is not a possible size of the device's memory"
        # The model's memory is the device's if the device has its own.
        own = name.removeprefix("device_")
        if columns.get(own) == value:
            yield own, f"{value:.3g} MB is not a possible size of the device's memory"


def _too_small(columns: Columns, names: list[str], least: float) -> Found:
    for name in names:
        if name in columns and columns[name] * MIB < least:
            whole = least / _WEIGHTS_SHARE / MIB
            yield name, f"{columns[name]:.3g} MB cannot hold weights of {whole:.3g} MB"


def _weights(facts: KnownFacts, *, counted: bool) -> float | None:
    """Return the bytes of weights that must lie in one process's memory, or None.

    With `counted` only those that a step reads: the others may stay in their file.
    """
    case = facts.case
    each = _OWN_BYTES if case.model.is_user_model else bytes_per_weight(case.precision)
    try:
        whole = weight_bytes_read(case.model, each) if counted else case.model.parameters * each
    except AccelbenchError:
        return None
    return None if not whole else _WEIGHTS_SHARE * whole / case.world_size


# -- opening and compiling


def _opening(columns: Columns, facts: KnownFacts) -> Found:
    told = {name: columns[name] for name in ("build_ms", "load_ms") if name in columns}
    if facts.opening_ns is None or not told:
        return
    took, total = facts.opening_ns / 1e6, sum(told.values())
    if total > 1.01 * took:
        why = f"build and load took {total:.3g} ms together, and opening the model {took:.3g} ms"
        yield from ((name, why) for name in told)
        return
    covers = len(told) == 2 and facts.in_process and is_processor(facts.device)
    if covers and took > _SHORT_OPENING_MS and total < _LEAST_SHARE * took:
        why = f"build and load explain {total:.3g} ms of the {took:.3g} ms that opening took"
        yield from ((name, why) for name in told)
        return
    name = next(iter(told))  # the first of the two makes or reads the weights
    weights = _weights(facts, counted=False) or 0.0
    least = max(_LEAST_OPENING_MS, weights / _MEMORY_RATE * 1e3)
    if told[name] < least:
        yield name, f"{told[name]:.3g} ms is too short to make or read the weights"


def _compiling(columns: Columns, facts: KnownFacts) -> Found:
    if facts.compiling_ns is None or "compile_ms" not in columns:
        return
    told, took = columns["compile_ms"], facts.compiling_ns / 1e6
    if took > _SHORT_OPENING_MS and told < _LEAST_SHARE * took:
        yield "compile_ms", f"{told:.3g} ms is far less than the {took:.3g} ms that compiling took"


# -- steps and their parts


def _first_steps(columns: Columns, facts: KnownFacts) -> Found:
    least = _STEP_SHARE * (facts.fastest_ns or 0.0) / 1e6
    for name in ("first_inference_ms", "first_visit_ms", "repeat_visit_ms"):
        if name in columns and columns[name] < least:
            why = f"{columns[name]:.3g} ms is less than half of the fastest step"
            yield name, why


def _device_time(columns: Columns, facts: KnownFacts) -> Found:
    name = "device_time_ms"
    if name not in columns:
        return
    if is_processor(facts.device):
        yield name, "the host's processor has no event timers"
    elif columns[name] < _DEVICE_SHARE * (facts.fastest_ns or 0.0) / 1e6:
        yield name, f"{columns[name]:.3g} ms is less than 1 % of the fastest step"
    elif (least := _at_the_peak(_operations(facts), facts)) and columns[name] < least:
        yield name, _too_fast(columns[name], least)


def _phases(columns: Columns, facts: KnownFacts) -> Found:
    for name, operations in _part_operations(facts):
        least = _at_the_peak(operations, facts)
        if least and name in columns and columns[name] < least:
            yield name, _too_fast(columns[name], least)


def _phase_sums(columns: Columns, facts: KnownFacts) -> Found:
    longest = max((columns[name] for name in STEP_TIMES if name in columns), default=None)
    for parts_of_step in PARTS[facts.case.mode.value] if longest is not None else ():
        names = [name for name in parts_of_step if name in columns]
        total = sum(columns[name] for name in names)
        if longest is not None and total > PHASE_TIMES * longest + 1:
            why = f"the parts of a step took {total:.3g} ms, and the slowest step {longest:.3g} ms"
            yield from ((name, why) for name in names)


def _tokens(columns: Columns, facts: KnownFacts) -> Found:
    """Compare the times of tokens with the request's parts, timed in the same pass."""
    if "ttft_ms" not in columns or "prefill_ms" not in columns:
        return
    more = max((facts.case.shapes.new_tokens or 1) - 1, 0)
    span = columns["ttft_ms"] + more * columns.get("tpot_ms", 0.0)
    whole = columns["prefill_ms"] + columns.get("decode_ms", 0.0)
    if span < _STEP_SHARE * whole:
        why = f"the last token came after {span:.3g} ms of a request of {whole:.3g} ms"
        yield from ((name, why) for name in ("ttft_ms", "tpot_ms") if name in columns)
    elif columns["ttft_ms"] < _STEP_SHARE * columns["prefill_ms"]:
        yield "ttft_ms", "the first token came before half of the prompt was read"


def _part_operations(facts: KnownFacts) -> Iterator[tuple[str, float | None]]:
    """Give the columns of parts whose operations are counted, with their number."""
    case = facts.case
    if case.mode is Mode.TRAINING:
        try:
            forward = flops(case.model, case.shapes)
        except AccelbenchError:
            return
        # The backward pass multiplies with the weights, and with the inputs, once each.
        yield from (("forward_ms", forward), ("backward_ms", forward))
        return
    try:
        works = parts(case.model, case.shapes, "fp32", case.mode) or {}
    except AccelbenchError:
        return
    for part, work in works.items():
        yield f"{part}_ms", work.flops
        if part == "prefill":
            yield "ttft_ms", work.flops
        elif part == "decode" and (case.shapes.new_tokens or 0) > 1:
            yield "tpot_ms", work.flops / ((case.shapes.new_tokens or 0) - 1)


def _operations(facts: KnownFacts) -> float | None:
    try:
        return flops(facts.case.model, facts.case.shapes, facts.case.mode)
    except AccelbenchError:
        return None


def _at_the_peak(operations: float | None, facts: KnownFacts) -> float | None:
    """Return the milliseconds that operations take at a rate that no such device reaches."""
    device, rate = facts.device, fastest(facts.device, facts.case.precision)
    # A CPU is documented at its base clock, which turbo clocks exceed.
    documented = None if is_processor(device) else facts_of(device.name, device.hardware)
    if documented is not None:
        rate = min(rate, _PEAK_TIMES * max(documented.teraops.values()) * 1e12)
    return None if operations is None else operations / rate / facts.case.world_size * 1e3


def _too_fast(ms: float, least: float) -> str:
    return f"{ms:.3g} ms is too short for its operations: the device's peak rate takes {least:.3g}"


# -- several processes, and power


def _communication(columns: Columns, _: KnownFacts) -> Found:
    whole, exposed = columns.get("communication_ms"), columns.get("exposed_communication_ms")
    if whole is not None and exposed is not None and exposed > 1.01 * whole:
        yield (
            "exposed_communication_ms",
            f"{exposed:.3g} ms is more than all communication, {whole:.3g} ms",
        )


def _power(columns: Columns, facts: KnownFacts) -> Found:
    limit = facts.device.power_limit_watts
    watts = columns.get("power_watts")
    most = _POWER_TIMES * limit if limit else POWER_EACH_W
    if watts is None or watts <= most * facts.case.world_size:
        return
    why = f"{watts:.3g} W is more than {most:.3g} W for each device"
    for name in columns:
        if name == "power_watts" or name.endswith("_joules"):
            yield name, why


CHECKS: tuple[Callable[[Columns, KnownFacts], Found], ...] = (
    _ranges,
    _host_memory,
    _device_memory,
    _impossible_memory,
    _opening,
    _compiling,
    _first_steps,
    _device_time,
    _phases,
    _phase_sums,
    _tokens,
    _communication,
    _power,
)


#: Of the step, what its parts may add up to more or less. The pass has few steps, so its medians
#: are rougher than the step's: at the highest priority on two busy cores, ten of twelve splits in
#: training came within 11 % of the step, and two that something disturbed to 0.66 and 2.25 times.
LIMIT = 0.25
_TRAINING = ("forward", "loss", "backward", "optimizer")
_REQUESTS = (("embed", "retrieve", "generate"), ("prefill", "decode"))


def share(row: Mapping[str, Any]) -> float | None:
    """Return the sum of a step's parts as a share of the step; None if a part is unknown."""
    # A request of one token is its prefill alone, and has no parts to add up.
    whole = step_ms(row)
    times = [row.get(f"{name}_ms") for name in _names(row)]
    known = [float(time) for time in times if time is not None]
    return sum(known) / whole if whole and known and len(known) == len(times) else None


def look(body: MutableMapping[str, Any]) -> None:
    """Warn in a result whose parts are not those of its step."""
    ratio = share(body)
    if ratio is None or abs(ratio - 1) <= LIMIT:
        return
    *most, last = _names(body)
    text = (
        f"{', '.join(most).capitalize()} and {last} add up to {ratio:.2f} times the step: they are"
        " timed in a pass of their own, which waits for the device between them, or something"
        " disturbed one of the two. Take them for shares, not for times."
    )
    body["warnings"] = [*(body.get("warnings") or ()), text]


def _names(row: Mapping[str, Any]) -> tuple[str, ...]:
    if row.get("mode") == Mode.TRAINING.value:
        return _TRAINING
    return next((p for p in _REQUESTS if row.get(f"{p[0]}_ms") is not None), ())
