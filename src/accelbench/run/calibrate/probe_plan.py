"""Probes of a device: which sizes, by its caches and memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from accelbench.core.calibration import ProbeKind, ProbeSpec
from accelbench.core.precision import bytes_per_weight
from accelbench.core.protocols import Device

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
    """What sizes of probes follow from.

    Attributes:
        hardware: the platform.
        caches: bytes of each level, nearest first, all that the probes' threads can use.
        memory: bytes that are free, or that there are; None where that is not known.
        attention: batch, heads and width of a head.
    """

    hardware: str
    caches: Mapping[str, int]
    memory: int | None
    attention: tuple[int, int, int]


def sizes_of(
    device: Device, told: Mapping[str, int], threads: int, attention: tuple[int, int, int]
) -> DeviceSizes:
    """What sizes follow from on a device.

    Args:
        device: as its detector describes it.
        told: the caches that the engine tells of.
        threads: of the engine on the host.
        attention: batch, heads and width of a head.
    """
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
    """The probes of a device, small before large: a large one is left out where it would be slow.

    Limits that are asked for most come first: what follows can fail without them.
    """
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
    """What a step would take by that of a smaller probe of its kind; None without such.

    Args:
        spec: the probe.
        before: the one that was timed before it.
        seconds: what a step of that took.
    """
    alike = before is not None and (before.kind, before.precision) == (spec.kind, spec.precision)
    return seconds * spec.work / before.work if alike and before else None
