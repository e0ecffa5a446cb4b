"""Several devices for one model: whether it fits, and how to part it. Pure; no time is predicted.

How much faster several devices are depends on what connects them, which nothing here has measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from accelbench.catalog.memory import memory_estimate_bytes
from accelbench.core.case import Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.vocabulary import MIB, Mode
from accelbench.select.query.query import Query

#: Platforms whose frameworks have a way for several devices.
DISTRIBUTES = ("cuda", "rocm", "tpu", "cpu")
#: Weight, gradient and two moments of AdamW in fp32; a forward pass keeps weights alone.
_TRAINING_BYTES, _INFERENCE_BYTES = 16, 4
_GIB = 2**30


def advised(query: Query, ranked: Iterable[str]) -> dict[str, object] | None:
    """What the answer says of several devices; None where one was asked for.

    Args:
        query: the question, with its distributed configuration.
        ranked: the candidates' platforms, the first one first.
    """
    given = query.distributed
    if given is None or given["gpu_count"] < 2:
        return None
    count, gib = given["gpu_count"], given["max_memory_gb"]
    able = [name for name in dict.fromkeys(ranked) if name in DISTRIBUTES]
    needed = _needed(query)
    strategy, fits, why = _strategy(query, needed, count, gib)
    return {
        "gpu_count": count,
        "max_memory_gb": gib,
        "hardware": able,
        "memory_needed_gb": None if needed is None else needed / _GIB,
        "strategy": strategy,
        "fits": fits,
        "reason": why,
        "speed": "not predicted: what connects the devices was not measured",
    }


def _needed(query: Query) -> float | None:
    """Bytes that one device would need alone, at its share of the batch."""
    count = query.distributed["gpu_count"] if query.distributed else 1
    share = max(1, math.ceil(query.batch / count))
    if query.spec is not None:
        try:
            estimate = memory_estimate_bytes(
                query.spec, Shapes(share), query.precision or "fp32", query.mode
            )
        except AccelbenchError:
            estimate = None
        if estimate is not None:
            return float(estimate)
    parameters = query.size.parameters
    if parameters is None:
        return None
    each = _TRAINING_BYTES if query.mode == Mode.TRAINING else _INFERENCE_BYTES
    return float(parameters) * each


def _strategy(
    query: Query, needed: float | None, count: int, gib: float | None
) -> tuple[str, bool | None, str]:
    """How to part the model, whether that fits, and why."""
    training = query.mode == Mode.TRAINING
    whole = "ddp" if training else "replicas"
    if needed is None:
        return whole, None, "how many weights the model has is not known"
    mb = f"{needed / MIB:,.0f} MB"
    if gib is None:
        return whole, None, f"it needs {mb} on each device; how much each has was not said"
    if needed <= gib * _GIB:
        return whole, True, f"{mb} fit on each of {count} devices"
    parted = "fsdp" if training else "sharded"
    each = needed / count
    fits = each <= gib * _GIB
    note = f"{mb} do not fit on one device; parted among {count} they are {each / MIB:,.0f} MB each"
    return parted, fits, note if fits else f"{note}, which do not fit either"
