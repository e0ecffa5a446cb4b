"""The process in which a device's probes are timed: one device, then it ends.

    python -m accelbench.run.calibration_worker REQUEST

REQUEST is JSON: the device, and the seconds of all probes together. It answers in lines of JSON:
the engine and the number of probes; each probe's blocks, or why it has none; the processor time.
What the engine prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from accelbench.core.calibration import ProbeKind, ProbeSpec
from accelbench.core.clock import MonotonicClock, cpu_seconds
from accelbench.core.errors import AccelbenchError
from accelbench.core.identity import to_plain
from accelbench.core.jsonc import loads
from accelbench.core.precision import bytes_per_weight
from accelbench.core.protocols import Device
from accelbench.core.serial import device_from_json
from accelbench.engines.pytorch.device_probes import attention_shape, cache_bytes, step_of
from accelbench.engines.pytorch.places import TorchPlace, place_for
from accelbench.run.calibrating import ProbeBlocks, time_probe

#: Sides of matrices. On a CPU 2048 fills all cores and their caches; an accelerator of this
#: decade needs four times that in narrow types.
_SIDES_ON_CPUS = (256, 512, 1024, 2048, 4096)
_SIDES_ELSEWHERE = (1024, 2048, 4096, 8192, 16384)
_PRECISIONS = ("fp32", "bf16", "fp16", "int8")
_SEQUENCE = {"cpu": 1024}
_SEQUENCE_ELSEWHERE = 2048
#: A probe may hold so much of a device's memory.
_SHARE_OF_MEMORY = 0.125
#: Two arrays of twice the last cache hold four times as much as it.
_CACHES_AN_ARRAY = 2
_FEWEST_BYTES = {"cpu": 2**26}
_FEWEST_BYTES_ELSEWHERE = 2**28
#: Both arrays of a cache probe take half of the cache: the rest is others'.
_SHARE_OF_CACHE = 0.5
_PAGE = 4096


@dataclass(frozen=True)
class DeviceSizes:
    """Properties of a device that determine the sizes of probes."""

    hardware: str  # the platform
    #: bytes of each level, nearest first, all that the probes' threads can use.
    caches: Mapping[str, int]
    memory: int | None  # bytes that are free, or that there are; None where that is not known
    attention: tuple[int, int, int]  # batch, heads and width of a head


def sizes_of(
    device: Device, told: Mapping[str, int], threads: int, attention: tuple[int, int, int]
) -> DeviceSizes:
    """Return the properties of a device, with the caches that the engine reports."""
    if device.hardware != "cpu":
        return DeviceSizes(device.hardware, told, device.memory_bytes, attention)
    free = device.details.get("memory_available") or device.memory_bytes
    caches = {
        cache["name"]: cache["bytes"] * min(cache["instances"] or 1, threads)
        for cache in device.details.get("caches", ())
        if cache["name"] in ("L2", "L3")
    }
    return DeviceSizes(device.hardware, dict(sorted(caches.items())), free, attention)


def probes_for(sizes: DeviceSizes) -> list[ProbeSpec]:
    """Return the probes of a device, small before large; those asked for most come first."""
    # What follows can fail without them. Large ones are left out if they would be slow.
    return [
        *_products(sizes, "fp32"),
        *_memory(sizes),
        *(spec for precision in _PRECISIONS[1:] for spec in _products(sizes, precision)),
        *_caches(sizes),
        ProbeSpec(ProbeKind.LAUNCH, "probe/launch", "fp32", 1, 1.0),
        *_attention(sizes),
    ]


def _products(sizes: DeviceSizes, precision: str) -> Iterator[ProbeSpec]:
    sides = _SIDES_ON_CPUS if sizes.hardware == "cpu" else _SIDES_ELSEWHERE
    width = bytes_per_weight(precision)
    # Two matrices and their product, which is in int32 where they are in int8.
    for side in sides:
        held = side * side * (2 * width + max(width, 4 if precision == "int8" else 0))
        if sizes.memory is None or held <= sizes.memory * _SHARE_OF_MEMORY:
            work = 2.0 * side**3
            yield ProbeSpec(ProbeKind.MATRIX, f"probe/matmul-{side}", precision, side, work)


def _memory(sizes: DeviceSizes) -> Iterator[ProbeSpec]:
    """Bytes that a step names: what a cache writes back unasked is not counted, as in STREAM."""
    last = max(sizes.caches.values(), default=0)
    size = max(_FEWEST_BYTES.get(sizes.hardware, _FEWEST_BYTES_ELSEWHERE), _CACHES_AN_ARRAY * last)
    if sizes.memory is not None:
        size = min(size, int(sizes.memory * _SHARE_OF_MEMORY) // 3)
    size = _whole_pages(size)
    yield ProbeSpec(ProbeKind.MEMORY, "probe/memory-copy", "fp32", size, 2.0 * size)
    yield ProbeSpec(ProbeKind.MEMORY, "probe/memory-triad", "fp32", size, 3.0 * size)


def _caches(sizes: DeviceSizes) -> Iterator[ProbeSpec]:
    for level, total in sizes.caches.items():
        size = _whole_pages(int(total * _SHARE_OF_CACHE) // 2)
        yield ProbeSpec(ProbeKind.CACHE, f"probe/cache-{level}", "fp32", size, 2.0 * size)


def _attention(sizes: DeviceSizes) -> Iterator[ProbeSpec]:
    batch, heads, width = sizes.attention
    length = _SEQUENCE.get(sizes.hardware, _SEQUENCE_ELSEWHERE)
    work = 4.0 * batch * heads * length**2 * width
    for precision in _PRECISIONS[: 2 if sizes.hardware == "cpu" else 3]:
        name = f"probe/attention-{length}"
        yield ProbeSpec(ProbeKind.ATTENTION, name, precision, length, work)


def _whole_pages(size: int) -> int:
    return max(size // _PAGE, 1) * _PAGE


def expected_seconds(spec: ProbeSpec, before: ProbeSpec | None, seconds: float) -> float | None:
    """Return what a step would take, judged by the probe before it; None if that is of another
    kind."""
    alike = before is not None and (before.kind, before.precision) == (spec.kind, spec.precision)
    return seconds * spec.work / before.work if alike and before else None


#: A probe whose step would take longer than this share of its time is left out.
_LONGEST_STEP = 0.5
_LONGEST_REASON = 160

Send = Callable[[dict[str, Any]], None]


def time_all(
    specs: list[ProbeSpec], seconds: float, timed: Callable[[ProbeSpec], ProbeBlocks], send: Send
) -> None:
    """Time probes one after the other, small before large, and send each answer."""
    before: ProbeSpec | None = None
    took = 0.0
    for spec in specs:
        expected = expected_seconds(spec, before, took)
        if expected is not None and expected > seconds * _LONGEST_STEP:
            about = f"{expected:.0f}" if expected >= 10 else f"{expected:.2g}"
            reason = f"a step would take about {about} s"
            send({"refused": {**_named(spec), "reason": reason}})
            continue
        try:
            blocks = timed(spec)
        except Exception as error:
            send({"refused": {**_named(spec), "reason": _reason(error)}})
            continue
        before, took = spec, blocks.step_seconds
        send({"probe": to_plain(spec), "steps": blocks.steps, "samples_ns": blocks.samples_ns})


def _named(spec: ProbeSpec) -> dict[str, str]:
    return {"name": spec.name, "precision": spec.precision}


def _reason(error: Exception) -> str:
    text = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]} …"


def serve(request: dict[str, Any], send: Send) -> None:
    """Time the probes of a device."""
    import torch

    device = device_from_json(request["device"])
    place = place_for(torch, device.hardware, device.ordinal)
    threads = torch.get_num_threads()
    shape = attention_shape(device.hardware)
    sizes = sizes_of(device, cache_bytes(torch, place.device), threads, shape)
    specs = probes_for(sizes)
    send({
        "engine": f"torch {torch.__version__}", "threads": threads, "facts": place.facts(),
        "probes": len(specs),
    })  # fmt: skip
    each = float(request["seconds"]) / len(specs)
    with torch.inference_mode():
        time_all(specs, each, lambda spec: _timed(torch, place, spec, each), send)


def _timed(torch: Any, place: TorchPlace, spec: ProbeSpec, seconds: float) -> ProbeBlocks:
    step = step_of(torch, spec, place.device)
    return time_probe(step, place.synchronize, seconds, MonotonicClock())


def main(arguments: list[str]) -> None:
    """Answer one request on what standard output was when it began."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(answer: dict[str, Any]) -> None:
        channel.write(json.dumps(answer) + "\n")
        channel.flush()

    try:
        serve(loads(arguments[0]), send)
    except AccelbenchError as error:
        send({"failed": error.message, "advice": error.advice})
    else:
        send({"ended": cpu_seconds()})


if __name__ == "__main__":
    main(sys.argv[1:])
