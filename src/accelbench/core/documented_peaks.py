"""Documented peak of a device in a precision, and the rate that is implausible because of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from accelbench.core.device_facts import DeviceFacts, facts_of
from accelbench.core.nouns import digits

#: An imported result is implausible if its rate exceeds the documented peak by this factor. Boost
#: clocks exceed base clocks by up to 1.6, and sparsity doubles the rate of matrix units.
MOST_OF_PEAK = 3.0
#: Bits of a precision with an unknown name: the narrowest type has the highest peak.
_UNKNOWN_BITS = 4
#: Keys of `implausible_rate`, in the order of the calculation.
OPERATIONS, MILLISECONDS, RATE, PEAK = (
    *("operations", "milliseconds"),
    *("operations_per_second", "documented_peak"),
)


@dataclass(frozen=True, slots=True)
class _ChipPeaks:
    """Peaks of one unit of a chip that boards name in different ways.

    Attributes:
        pattern: matches the names of devices with the chip, in lower case.
        hardware: the platform that computes on the unit.
        teraops: 1e12 operations a second by the number of bits.
        source: the documents, and the calculation if they give units and a clock.
    """

    pattern: str
    hardware: str
    teraops: Mapping[int, float]
    source: str


_CHIPS = (
    _ChipPeaks(
        r"\brk3588s?\b",
        "cpu",
        {32: 0.211, 16: 0.422},
        "Rockchip RK3588 datasheet and Arm: 4 × 2.4 GHz × 16 and 4 × 1.8 GHz × 8 operations",
    ),
    _ChipPeaks(
        r"\brk3588s?\b|\bmali-g610\b.*\bmp4\b",
        "vulkan",
        {32: 0.512, 16: 1.024},
        "Rockchip RK3588 datasheet and Arm: Mali-G610 MP4, 4 cores × 128 operations × 1 GHz",
    ),
    _ChipPeaks(
        r"\brk3399\b",
        "cpu",
        {32: 0.077},
        "Rockchip RK3399 datasheet and Arm: 2 × 1.8 GHz × 8 and 4 × 1.5 GHz × 8 operations",
    ),
    _ChipPeaks(
        r"\bbcm2711\b|\braspberry pi 4\b",
        "cpu",
        {32: 0.058},
        "Raspberry Pi 4 product brief and Arm: 4 × 1.8 GHz × 8 operations",
    ),
    _ChipPeaks(
        r"\bbcm2712\b|\braspberry pi 5\b",
        "cpu",
        {32: 0.154, 16: 0.307},
        "Raspberry Pi 5 product brief and Arm: 4 × 2.4 GHz × 16 operations",
    ),
    _ChipPeaks(r"\bhailo-8\b", "hailo", {8: 26.0}, "Hailo-8 product brief"),
    _ChipPeaks(r"\bhailo-8l\b", "hailo", {8: 13.0}, "Hailo-8L product brief"),
    _ChipPeaks(r"\bhailo-15h\b", "hailo", {8: 20.0}, "Hailo-15 product brief"),
)


@lru_cache(maxsize=4096)
def documented_peak(
    device_name: str, hardware: str, precision: str, device_count: int = 1
) -> float | None:
    """Return the highest documented operations per second of devices in a precision.

    Args:
        device_name: from a driver or a table; "2x NAME" is two devices.
        hardware: the platform, as chips have a CPU and a GPU.
        precision: in any spelling. An unknown one counts as the narrowest type.
        device_count: devices that share a step; the name may count them too.

    Returns:
        None if no document of the device is known.
    """
    count, times, single = device_name.partition("x ")
    several = bool(times) and count.isdecimal()
    units = max(device_count, int(count) if several else 1)
    name, bits = single if several else device_name, bits_of(precision)
    facts = facts_of(name)
    teraops = _peaks_of_facts(facts) if facts is not None else _peaks_of_chip(name, hardware)
    return None if teraops is None else _widened(teraops, bits) * units * 1e12


def bits_of(precision: str) -> int:
    """Return the number of bits of the narrowest type in the name of a precision."""
    found = [int(bits) for bits in re.findall(r"\d+", precision)]
    known = [bits for bits in found if bits in (4, 8, 16, 32, 64)]
    return min(32, *known) if known else _UNKNOWN_BITS


def describe_rate(rate: Mapping[str, float] | None) -> str:
    """Return the calculation of an implausible rate; empty if there is none."""
    if not rate or not all(rate.get(name) for name in (OPERATIONS, MILLISECONDS, RATE, PEAK)):
        return ""
    return (
        f"{digits(rate[OPERATIONS] / 1e9)} GFLOP in {digits(rate[MILLISECONDS])} ms are"
        f" {digits(rate[RATE] / 1e12)} TFLOP/s,"
        f" {digits(rate[RATE] / rate[PEAK])} times the documented peak of"
        f" {digits(rate[PEAK] / 1e12)} TFLOP/s"
    )


def _peaks_of_facts(facts: DeviceFacts) -> Mapping[int, float]:
    # AVX-512 VNNI multiplies 8 bits at four times the rate of fp32, matrix units at twice 16 bits.
    narrow = 4.0 * facts.fp32 if facts.kind == "cpu" else 0.0
    highest = facts.highest
    return {32: max(facts.fp32, facts.tf32 or 0.0), 16: highest, 8: max(2.0 * highest, narrow)}


def _peaks_of_chip(name: str, hardware: str) -> Mapping[int, float] | None:
    for chip in _CHIPS:
        if chip.hardware == hardware and re.search(chip.pattern, name.lower()):
            return chip.teraops
    return None


def _widened(teraops: Mapping[int, float], bits: int) -> float:
    """Return the peak of a type; each halving of its bits doubles the nearest documented rate."""
    if bits in teraops:
        return teraops[bits]
    wider = [known for known in teraops if known > bits]
    if wider:
        return teraops[min(wider)] * min(wider) / bits
    return max(teraops.values())  # a wider type is not faster
