"""The roofline model: no step is faster than its work at a device's documented limits. Pure.

    time of a part = max(operations ÷ operations a second, bytes ÷ bytes a second)

A request's prefill and decode are parts of their own, one after the other: the first is
mostly bound by operations, the second by memory, and a maximum over both together would
let one hide behind the other. docs/simulating.md has the rules with their reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelbench.core.case import Case
from accelbench.core.device_facts import DeviceFacts
from accelbench.core.errors import AccelbenchError
from accelbench.core.vocabulary import Mode, Outcome, Status
from accelbench.models.cost import UNCOUNTED_OPTIONS, Work, parts
from accelbench.models.inputs import items_per_step

COMPUTE, MEMORY = "compute", "memory"

#: Of int8 no bytes are counted, since they depend on the quantiser. Each value takes one byte
#: at least, where fp32's takes four: a quarter of those is a limit all the same.
_INT8_SHARE = 0.25


@dataclass(frozen=True)
class Bound:
    """One part of a step at a device's limits."""

    part: str
    work: Work
    compute_ms: float
    memory_ms: float

    @property
    def ms(self) -> float:
        return max(self.compute_ms, self.memory_ms)

    @property
    def binds(self) -> str:
        """Which limit it meets first."""
        return COMPUTE if self.compute_ms >= self.memory_ms else MEMORY

    def to_dict(self) -> dict[str, Any]:
        """As a result holds it."""
        return {
            "part": self.part,
            "flops": self.work.flops,
            "bytes_moved": self.work.bytes_moved,
            "compute_ms": self.compute_ms,
            "memory_ms": self.memory_ms,
            "binds": self.binds,
        }


def bounds(
    works: Mapping[str, Work], operations_per_second: float, bytes_per_second: float
) -> list[Bound]:
    """Each part of a step at a device's limits, in order."""
    return [
        Bound(
            name,
            work,
            work.flops / operations_per_second * 1e3,
            work.bytes_moved / bytes_per_second * 1e3,
        )
        for name, work in works.items()
    ]


def simulated(case: Case, device: DeviceFacts) -> Outcome:
    """What a case comes to at the documented limits of a device that is not here."""
    peak, works = device.operations_per_second(case.precision), work_of(case)
    if works is None or peak is None:
        return Outcome(
            Status.UNSUPPORTED,
            "not_counted",
            f"the operations and bytes of {case} are not counted, so no roofline bounds it",
            "Use the model's default sizes, and for training fp32 with AdamW.",
        )
    limits = bounds(works, peak, device.bytes_per_second)
    longest = max(limits, key=lambda bound: bound.ms)
    return Outcome(
        Status.OK,
        measurement={"metrics": _metrics(case, limits)},
        conditions={
            "method": "roofline",
            "precision": case.precision,
            "operations_per_second": peak,
            "binds": longest.binds,
            "parts": [bound.to_dict() for bound in limits],
        },
    )


def work_of(case: Case) -> Mapping[str, Work] | None:
    """The parts of a step and their work; None where it is not counted."""
    if any(name in case.options for name in UNCOUNTED_OPTIONS):
        return None
    narrow = case.precision == "int8" and case.mode is Mode.INFERENCE
    try:
        works = parts(case.model, case.shapes, "fp32" if narrow else case.precision, case.mode)
    except AccelbenchError:
        return None
    if works is None or not narrow:
        return works
    return {n: Work(w.flops, w.bytes_moved * _INT8_SHARE) for n, w in works.items()}


def _metrics(case: Case, limits: list[Bound]) -> dict[str, float]:
    """The columns that follow from the time of a step; all others can only be measured."""
    seconds = sum(bound.ms for bound in limits) / 1e3
    metrics = {
        "latency_mean_ms": seconds * 1e3,
        "throughput": items_per_step(case.model, case.shapes, case.mode) / seconds,
    }
    times = {bound.part: bound.ms for bound in limits}
    if "prefill" in times:
        metrics["ttft_ms"] = times["prefill"]
        if case.procedure != "rag":  # whose reading is embedding and retrieving as well
            metrics["prefill_ms"] = times["prefill"]
    if "decode" in times:
        metrics["tpot_ms"] = times["decode"] / ((case.shapes.new_tokens or 0) - 1)
        if case.procedure != "rag":
            metrics["decode_ms"] = times["decode"]
    return metrics
