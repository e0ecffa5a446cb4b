"""Vendor peaks and memory bandwidths of devices, by which times are scaled between them.

This is the only table of NVIDIA cards and of CPUs. `hardware/rooflines.py` adds the memory and
the int8 rate of those that can be simulated. Peaks are dense. Products of 16 bits have two rates:
`half` with sums in fp32, and `half_fp16_sums` with sums in fp16. GeForce cards double the second,
which their box states. One rule: estimates, predictions and simulations take `half`, as PyTorch,
ONNX Runtime and JAX keep sums in fp32. Whether a time is possible is judged by `highest`.

A CPU's fp32 peak is cores × clock × operations a clock; `half` repeats it if the CPU has no 16-bit
matrix unit. Efficient cores of hybrid CPUs multiply in half the width, and the base clock of those
CPUs is that of a power limit which they are rarely held to: four fifths of the turbo clocks are
taken.

Documented peak of a device in a precision, and the rate that is implausible because of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from accelbench.core.nouns import digits


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What limits a device, from its vendor's documents."""

    name: str
    kind: str
    half: float  # sums in fp32; 1e12 operations a second, a product and its sum being two
    fp32: float
    bandwidth: float  # 1e9 bytes a second
    source: str
    half_fp16_sums: float | None = None  # sums in fp16; None if no faster than `half`
    tf32: float | None = None  # fp32 inputs rounded to TF32; None without such matrix units

    @property
    def highest(self) -> float:
        """The rate that no product of 16 bits or more exceeds."""
        return max(self.half, self.fp32, self.half_fp16_sums or 0.0)

    def peak(self, precision: str) -> float:
        """The peak that a precision's products meet, in 1e12 operations a second."""
        return self.fp32 if precision in {"fp32", "float32", "fp64"} else self.half


@lru_cache(maxsize=1024)
def facts_of(name: str) -> DeviceFacts | None:
    """The facts of a device by the name that a driver or a table gives it."""
    bare = _bare(name)
    return next((facts for facts in _TABLE if _bare(facts.name) == bare), None)


def known_devices() -> tuple[DeviceFacts, ...]:
    """Every device whose facts are known."""
    return _TABLE


def _bare(name: str) -> str:
    text = re.sub(r"\((r|tm|c)\)", " ", name.lower())
    text = re.sub(r"@.*$|\b\d+-core\b|\b\d+th gen\b", " ", text)
    text = re.sub(r"\b(nvidia|geforce|amd|intel|tesla|graphics|gpu|cpu|core|processor|edition)\b",
                  " ", text)  # fmt: skip
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text).split())


def _gpu(name: str, half: float, fp32: float, bandwidth: float, source: str) -> DeviceFacts:
    return DeviceFacts(name, "cuda", half, fp32, bandwidth, source, tf32=_tf32(source, name, half))


def _tf32(source: str, name: str, half: float) -> float | None:
    """Return the rate of TF32, which is half that of 16 bits; cards before Ampere have none."""
    older = source == _TURING or name.startswith(_BEFORE_AMPERE)
    return None if older else half / 2


def _geforce(name: str, half: float, fp32: float, bandwidth: float, source: str) -> DeviceFacts:
    """A card that multiplies twice as fast with sums in fp16."""
    tf32 = _tf32(source, name, half)
    return DeviceFacts(name, "cuda", half, fp32, bandwidth, source, 2 * half, tf32)


def _cpu(
    name: str, cores: int, gigahertz: float, per_clock: int, bandwidth: float, source: str
) -> DeviceFacts:
    peak = cores * gigahertz * per_clock / 1e3
    return DeviceFacts(name, "cpu", peak, peak, bandwidth, source)


def _hybrid(
    name: str, fast: tuple[int, float], small: tuple[int, float], bandwidth: float
) -> DeviceFacts:
    """A CPU with two kinds of cores, each as its number and turbo clock in GHz."""
    peak = 0.8 * (fast[0] * fast[1] * 32 + small[0] * small[1] * 16) / 1e3
    return DeviceFacts(name, "cpu", peak, peak, bandwidth, _HYBRID)


_HYBRID = "Intel product specifications: four fifths of turbo clocks, 32 and 16 operations a clock"
_ADA = "NVIDIA Ada GPU architecture whitepaper"
_AMPERE = "NVIDIA Ampere GA102 GPU architecture whitepaper"
_BLACKWELL = "NVIDIA RTX Blackwell GPU architecture whitepaper"
_TURING = "NVIDIA Turing GPU architecture whitepaper"
_BEFORE_AMPERE = ("GTX ", "TITAN ", "P100", "V100", "T4")
_SHEET = "NVIDIA datasheet of the card, without sparsity"
_INTEL = "Intel product specifications: cores × base clock × operations a clock of its AVX units"
_AMD = "AMD product specifications: cores × base clock × operations a clock of its AVX units"

_TABLE = (
    _gpu("GTX 1080 Ti", 11.3, 11.3, 484, "NVIDIA GTX 1080 Ti specifications; no matrix units"),
    _gpu("TITAN V", 110, 14.9, 653, "NVIDIA TITAN V specifications"),
    _gpu("P100-PCIE-16GB", 18.7, 9.3, 732, _SHEET),
    _gpu("V100-PCIE-16GB", 112, 14, 900, _SHEET),
    _gpu("V100-SXM2-16GB", 125, 15.7, 900, _SHEET),
    _gpu("V100-SXM2-32GB", 125, 15.7, 900, _SHEET),
    _gpu("T4", 65, 8.1, 320, _SHEET),
    _gpu("TITAN RTX", 130.5, 16.3, 672, _TURING),
    _geforce("RTX 2060", 25.8, 6.5, 336, _TURING),
    _geforce("RTX 2070", 29.9, 7.5, 448, _TURING),
    _geforce("RTX 2080", 40.3, 10.1, 448, _TURING),
    _geforce("RTX 2080 Ti", 53.8, 13.4, 616, _TURING),
    _geforce("RTX 2070 SUPER", 36.3, 9.1, 448, _TURING),
    _geforce("RTX 2080 SUPER", 44.6, 11.2, 496, _TURING),
    _gpu("A10", 125, 31.2, 600, _SHEET),
    _gpu("A10G", 70, 31.5, 600, "AWS and NVIDIA figures of A10G"),
    _gpu("A30", 165, 10.3, 933, _SHEET),
    _gpu("A40", 149.7, 37.4, 696, _SHEET),
    _gpu("A100-PCIE-40GB", 312, 19.5, 1555, _SHEET),
    _gpu("A100-SXM4-40GB", 312, 19.5, 1555, _SHEET),
    _gpu("A100-SXM4-80GB", 312, 19.5, 2039, _SHEET),
    _gpu("A100 80GB PCIe", 312, 19.5, 1935, _SHEET),
    _gpu("RTX A4000", 76.7, 19.2, 448, _SHEET),
    _gpu("RTX A5000", 111.1, 27.8, 768, _SHEET),
    _gpu("RTX A6000", 154.8, 38.7, 768, _SHEET),
    _geforce("RTX 3060", 25.4, 12.7, 360, _AMPERE),
    _geforce("RTX 3060 Ti", 32.4, 16.2, 448, _AMPERE),
    _geforce("RTX 3070", 40.6, 20.3, 448, _AMPERE),
    _geforce("RTX 3070 Ti", 43.5, 21.7, 608, _AMPERE),
    _geforce("RTX 3080", 59.5, 29.8, 760, _AMPERE),
    _geforce("RTX 3080 Ti", 68.2, 34.1, 912, _AMPERE),
    _geforce("RTX 3090", 71, 35.6, 936, _AMPERE),
    _geforce("RTX 3090 Ti", 80, 40, 1008, _AMPERE),
    _gpu("L4", 121, 30.3, 300, _SHEET),
    _gpu("L40", 181, 90.5, 864, _SHEET),
    _gpu("L40S", 362, 91.6, 864, _SHEET),
    _geforce("RTX 4060", 30.2, 15.1, 272, _ADA),
    _geforce("RTX 4060 Ti", 44.1, 22.1, 288, _ADA),
    _geforce("RTX 4070", 58.3, 29.1, 504, _ADA),
    _geforce("RTX 4070 SUPER", 71, 35.5, 504, _ADA),
    _geforce("RTX 4070 Ti", 80.2, 40.1, 504, _ADA),
    _geforce("RTX 4070 Ti SUPER", 88.2, 44.1, 672, _ADA),
    _geforce("RTX 4080", 97.5, 48.7, 717, _ADA),
    _geforce("RTX 4080 SUPER", 104.4, 52.2, 736, _ADA),
    _geforce("RTX 4090", 165.2, 82.6, 1008, _ADA),
    _gpu("RTX 4000 Ada Generation", 106.9, 26.7, 360, _SHEET),
    _gpu("RTX 5000 Ada Generation", 261.1, 65.3, 576, _SHEET),
    _gpu("RTX 6000 Ada Generation", 364.2, 91.1, 960, _SHEET),
    _gpu("H100", 989.5, 67, 3350, _SHEET),
    _gpu("H100 80GB HBM3", 989.5, 67, 3350, _SHEET),
    _gpu("H100 SXM5 80GB", 989.5, 67, 3350, _SHEET),
    _gpu("H100 PCIe", 756, 51, 2000, _SHEET),
    _gpu("H100 NVL", 835, 60, 3900, _SHEET),
    _gpu("H200", 989.5, 67, 4800, _SHEET),
    _gpu("GH200 480GB", 989.5, 67, 4000, _SHEET),
    _gpu("B200", 2250, 80, 8000, _SHEET),
    _geforce("RTX 5060 Ti", 47.4, 23.7, 448, _BLACKWELL),
    _geforce("RTX 5070", 61.7, 30.9, 672, _BLACKWELL),
    _geforce("RTX 5070 Ti", 87.9, 43.9, 896, _BLACKWELL),
    _geforce("RTX 5080", 112.6, 56.3, 960, _BLACKWELL),
    _geforce("RTX 5090", 209.5, 104.8, 1792, _BLACKWELL),
    _gpu("RTX PRO 6000", 503.8, 126, 1792, _SHEET),
    _gpu("RTX PRO 6000 Blackwell", 503.8, 126, 1792, _SHEET),
    _gpu("RTX PRO 6000 Blackwell Workstation", 503.8, 126, 1792, _SHEET),
    _gpu("RTX PRO 6000 Blackwell Server", 468, 117, 1597, _SHEET),
    _gpu("RTX PRO 6000 Blackwell Max-Q Workstation", 438.9, 110, 1792, _SHEET),
    _cpu("Core i9-10940X", 14, 3.3, 64, 93.9, _INTEL),
    _hybrid("Core i7-12700H", (6, 4.7), (8, 3.5), 76.8),
    _hybrid("Core i9-12900K", (8, 5.1), (8, 3.9), 76.8),
    _hybrid("Core i9-13900K", (8, 5.4), (16, 4.3), 89.6),
    _hybrid("Core i9-14900K", (8, 5.6), (16, 4.4), 89.6),
    _cpu("Xeon Platinum 8259CL", 24, 2.5, 64, 140.8, _INTEL),
    _cpu("Xeon Platinum 8375C", 32, 2.9, 64, 204.8, _INTEL),
    DeviceFacts("Xeon Platinum 8488C", "cpu", 118.0, 7.37, 307.2, f"{_INTEL}; AMX"),
    _cpu("Ryzen 9 5950X", 16, 3.4, 32, 51.2, _AMD),
    _cpu("Ryzen 9 7950X", 16, 4.5, 32, 83.2, _AMD),
    _cpu("Ryzen 9 9950X", 16, 4.3, 64, 89.6, _AMD),
    _cpu("Ryzen Threadripper 7980X", 64, 3.2, 32, 166.4, _AMD),
    _cpu("EPYC 7763", 64, 2.45, 32, 204.8, _AMD),
    _cpu("EPYC 7R13", 48, 2.65, 32, 204.8, _AMD),
    _cpu("EPYC 9654", 96, 2.4, 32, 460.8, _AMD),
)


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
    """Peaks of one unit of a chip that boards name in different ways."""

    pattern: str  # matches the names of devices with the chip, in lower case
    hardware: str  # the platform that computes on the unit
    teraops: Mapping[int, float]  # 1e12 operations a second by the number of bits
    source: str  # the documents, and the calculation if they give units and a clock


_CHIPS = (
    _ChipPeaks(r"\brk3588s?\b", "cpu", {32: 0.211, 16: 0.422},
               "Rockchip RK3588 datasheet and Arm: 4 × 2.4 GHz × 16 and 4 × 1.8 GHz × 8 "
               "operations"),
    _ChipPeaks(r"\brk3588s?\b|\bmali-g610\b.*\bmp4\b", "vulkan", {32: 0.512, 16: 1.024},
               "Rockchip RK3588 datasheet and Arm: Mali-G610 MP4, 4 cores × 128 operations × 1 "
               "GHz"),
    _ChipPeaks(r"\brk3399\b", "cpu", {32: 0.077}, "Rockchip RK3399 datasheet and Arm: 2 × 1.8 "
               "GHz × 8 and 4 × 1.5 GHz × 8 operations"),
    _ChipPeaks(r"\bbcm2711\b|\braspberry pi 4\b", "cpu", {32: 0.058},
               "Raspberry Pi 4 product brief and Arm: 4 × 1.8 GHz × 8 operations"),
    _ChipPeaks(r"\bbcm2712\b|\braspberry pi 5\b", "cpu", {32: 0.154, 16: 0.307},
               "Raspberry Pi 5 product brief and Arm: 4 × 2.4 GHz × 16 operations"),
    _ChipPeaks(r"\bhailo-8\b", "hailo", {8: 26.0}, "Hailo-8 product brief"),
    _ChipPeaks(r"\bhailo-8l\b", "hailo", {8: 13.0}, "Hailo-8L product brief"),
    _ChipPeaks(r"\bhailo-15h\b", "hailo", {8: 20.0}, "Hailo-15 product brief"),
)  # fmt: skip


@lru_cache(maxsize=4096)
def documented_peak(
    device_name: str, hardware: str, precision: str, device_count: int = 1
) -> float | None:
    """Return the highest documented operations per second of devices; None without a document.

    "2x NAME" is two devices. An unknown precision counts as the narrowest type.
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
