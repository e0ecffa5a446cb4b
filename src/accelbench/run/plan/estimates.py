"""What can be known of a case before it is tried: memory, cost, and roughly how long it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from accelbench.core.case import Case
from accelbench.core.devices import card_of
from accelbench.core.errors import AccelbenchError
from accelbench.core.model import AnalyticCost
from accelbench.core.precision import bytes_per_weight
from accelbench.core.protocols import Device
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.machine import snapshot
from accelbench.hardware.telemetry import telemetry_for
from accelbench.hardware.telemetry.energy import energy_meter_of
from accelbench.models.cost import (
    UNCOUNTED_OPTIONS,
    flops,
    inference_rank_bytes,
    memory_estimate_bytes,
    rank_memory_bytes,
)
from accelbench.models.cost import cost as analytic_cost
from accelbench.run.plan.request import Plan, Planned

#: Operations a second that one core, or one accelerator, has been seen to reach on whole
#: models, slow and fast: only to tell minutes from hours, never stored.
_PER_CORE = (5e9, 100e9)
_PER_ACCELERATOR = (5e11, 3e14)
_BUILD_PARAMETERS_PER_SECOND = 50e6
START_SECONDS = 6.0
_LEAST_SECONDS = 0.4
_PROFILE_SECONDS = 1.5  # beside building it once more; seen of small models


def memory(case: Case) -> int | None:
    """Estimated bytes of a case; of one that is not counted, what its weights alone take.

    Of one that several processes share, what the largest of them takes.
    """
    if case.world_size > 1:
        return memory_of_rank(case)
    try:
        counted = memory_estimate_bytes(
            case.model, case.shapes, case.precision, case.mode, case.options
        )
    except AccelbenchError:
        counted = None
    return weights_alone(case) if counted is None else counted


def memory_of_rank(case: Case) -> int:
    """The same of each process of a case that several share."""
    try:
        if case.mode is Mode.TRAINING:
            counted = rank_memory_bytes(
                case.model, case.shapes, case.precision, case.options, case.world_size
            )
        else:
            counted = inference_rank_bytes(case.model, case.shapes, case.precision, case.world_size)
    except AccelbenchError:
        counted = None
    if counted is not None:
        return counted
    parts = case.world_size if case.options.get("strategy") in ("fsdp2", "fsdp") else 1
    return weights_alone(case) // parts


def of_process(case: Case, estimate: int | None) -> int | None:
    """An estimate as it is compared with a process's peak.

    Devices that are parts of a processor have one process, whose memory is of all of them.
    """
    info = card_of(case.target.runtime)
    apart = case.target.hardware != "cpu" or info is None or info.ranks == "processes"
    return estimate if estimate is None or apart else estimate * case.world_size


def weights_alone(case: Case) -> int:
    """No case takes less: its weights and, where it trains, gradients and the optimizer's moments.

    Autocast has fp32 weights; so has training, unless it is purely half.
    """
    if case.mode is not Mode.TRAINING:
        return case.model.parameters * bytes_per_weight(case.precision)
    pure = bool(case.options.get("pure"))
    moments = 1 if case.options.get("optimizer") == "sgd" else 2
    return case.model.parameters * (2 if pure else 4) * (2 + moments)


def cost(case: Case) -> AnalyticCost | None:
    """Analytic cost of one step; None where not counted."""
    if any(name in case.options for name in UNCOUNTED_OPTIONS):
        return None
    try:
        return analytic_cost(case.model, case.shapes, case.precision, case.mode)
    except AccelbenchError:
        return None


def free(device: Device) -> int | None:
    """Bytes free for a model on a device now; the device's whole memory where use is not told."""
    if device.hardware == "cpu":
        return snapshot().memory_available
    telemetry = telemetry_for(device)
    used = telemetry.device_memory_used()
    telemetry.close()
    if device.memory_bytes is None or isinstance(used, NotAvailable):
        return device.memory_bytes
    return max(device.memory_bytes - used, 0)


def conditions(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Of the environment, what a comparison must list when it differs."""
    kept = (
        *("packages", "python", "effective_cpus", "effective_memory"),
        *("variables", "allocator", "kernel"),
    )
    return {name: environment.get(name) for name in kept}


def seconds_of_all(arms: Iterable[tuple[Plan, RunSettings]]) -> tuple[float, float]:
    """The same of a run's arms together."""
    ranges = [seconds(plan, settings) for plan, settings in arms]
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)


def seconds(plan: Plan, settings: RunSettings) -> tuple[float, float]:
    """Between how many seconds a plan takes, very roughly: from its operations, not measured."""
    low = high = 0.0
    groups = tried_groups(plan)
    profiled = profile_seconds(groups) if settings.profile else 0.0
    for tried in groups:
        build = build_seconds(tried[0])
        low += build
        high += build
        for planned in tried:
            fast, slow = case_seconds(planned, settings)
            low += fast
            high += slow
    if low:
        low += START_SECONDS
        high += START_SECONDS
    metered = energy_seconds(groups, settings)
    low, high = (end * settings.launches + profiled + metered for end in (low, high))
    if settings.budget is not None:
        low, high = min(low, settings.budget), min(high, settings.budget)
    return low, high


def tried_groups(plan: Plan) -> list[list[Planned]]:
    """What each worker will try at all: what cannot fit is refused and takes no time."""
    rooms: dict[str, int | None] = {}

    def is_tried(planned: Planned) -> bool:
        if planned.refusal is not None or planned.device is None:
            return False
        need, device = memory(planned.case), planned.device
        if str(device) not in rooms:
            rooms[str(device)] = free(device)
        room = rooms[str(device)]
        return need is None or room is None or need <= room

    groups = ([p for p in group if is_tried(p)] for group in plan.groups())
    return [group for group in groups if group]


def build_seconds(planned: Planned) -> float:
    """How long a model is built, from its number of weights."""
    return seconds_to_build(planned.case.model.parameters)


def seconds_to_build(weights: int) -> float:
    """The same of a number of weights."""
    return weights / _BUILD_PARAMETERS_PER_SECOND


def profile_seconds(groups: Iterable[Iterable[Planned]]) -> float:
    """How long the profiles of cases take, each in a session of its own."""
    return sum(build_seconds(planned) + _PROFILE_SECONDS for group in groups for planned in group)


def energy_seconds(groups: Iterable[Iterable[Planned]], settings: RunSettings) -> float:
    """How long energy passes take, of all launches: none where a device has no meter."""
    if not settings.energy or settings.verify == "only":
        return 0.0
    from accelbench.measure.energy import EnergyRules

    devices = [planned.device for group in groups for planned in group if planned.device]
    metered = {str(device): _has_meter(device) for device in devices}
    cases = sum(metered[str(device)] for device in devices)
    return cases * settings.launches * EnergyRules().seconds


def _has_meter(device: Device) -> bool:
    meter = energy_meter_of([device])
    if isinstance(meter, NotAvailable):
        return False
    meter.close()
    return True


def case_seconds(planned: Planned, settings: RunSettings) -> tuple[float, float]:
    """Between how many seconds a case takes once it is built, from its operations."""
    case, device = planned.case, planned.device
    assert device is not None
    operations = _operations(case)
    slow_rate, fast_rate = (
        (_PER_CORE[0], _PER_CORE[1] * max(device.count, 1))
        if device.hardware == "cpu"
        else _PER_ACCELERATOR
    )
    fast_step, slow_step = operations / fast_rate, operations / slow_rate
    if settings.iterations is not None:
        steps = settings.iterations + (settings.warmup or 10) + 2
        return (_LEAST_SECONDS / 2 + steps * fast_step, 1.0 + steps * slow_step)
    # Forty steps where they are short; of long ones the rules take a dozen, warm-up included.
    fast = _LEAST_SECONDS + min(40 * fast_step, max(13.0, 12 * fast_step))
    return (fast, max(fast, 13.0, 12 * slow_step))


def _operations(case: Case) -> float:
    try:
        counted = flops(case.model, case.shapes, case.mode)
    except AccelbenchError:
        counted = None
    # Not counted: two operations a weight and token is the usual order of magnitude, and
    # twice as many again backward.
    shapes = case.shapes
    tokens = shapes.batch * (
        (shapes.prompt_tokens or shapes.sequence or 1) + (shapes.new_tokens or 0)
    )
    each = 6.0 if case.mode is Mode.TRAINING else 2.0
    return counted or each * case.model.parameters * tokens
