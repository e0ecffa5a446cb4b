"""Facts of a CPU from Linux's files: model, topology, caches and clocks.

Sources: Linux Documentation/ABI/stable/sysfs-devices-system-cpu, and the implementer and part
numbers of util-linux's lscpu-arm.c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from accelbench.hardware.common import Files, NotAvailable, number

#: Usual name of each kernel flag that affects the speed of models.
X86_SETS = {
    "sse4_2": "SSE4.2", "avx2": "AVX2", "fma": "FMA", "f16c": "F16C", "avx_vnni": "AVX-VNNI",
    "avx512f": "AVX-512", "avx512_vnni": "AVX-512 VNNI", "avx512_bf16": "AVX-512 BF16",
    "avx512_fp16": "AVX-512 FP16", "amx_tile": "AMX", "amx_int8": "AMX INT8",
    "amx_bf16": "AMX BF16", "amx_fp16": "AMX FP16",
}  # fmt: skip
ARM_SETS = {
    "asimd": "NEON", "asimdhp": "FP16", "asimddp": "DOTPROD", "i8mm": "I8MM", "bf16": "BF16",
    "sve": "SVE", "sve2": "SVE2", "sme": "SME",
}  # fmt: skip

_ARM_MAKERS = {
    0x41: "ARM", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon",
    0x4E: "NVIDIA", 0x51: "Qualcomm", 0x61: "Apple", 0xC0: "Ampere",
}  # fmt: skip
_ARM_PARTS = {
    (0x41, 0xD03): "Cortex-A53", (0x41, 0xD05): "Cortex-A55", (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76", (0x41, 0xD0C): "Neoverse-N1", (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD49): "Neoverse-N2", (0x41, 0xD4F): "Neoverse-V2", (0x41, 0xD83): "Neoverse-V3AE",
    (0x41, 0xD84): "Neoverse-V3", (0x41, 0xD8E): "Neoverse-N3", (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "TaiShan-v110", (0x4E, 0x004): "Carmel", (0x51, 0x001): "Oryon",
    (0xC0, 0xAC3): "Ampere-1", (0xC0, 0xAC4): "Ampere-1a",
}  # fmt: skip
_X86_MAKERS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}


@dataclass(frozen=True)
class Cache:
    """Level of cache: its size, and the number of instances."""

    name: str  # L1d, L1i, L2, L3
    bytes: int
    instances: int | None  # None if only the size is known


@dataclass(frozen=True)
class Topology:
    """Arrangement of the CPUs."""

    sockets: int | None  # None if unknown
    cores: int
    threads: int
    numa_nodes: int | None


def first_block(cpuinfo: str) -> dict[str, str]:
    """Return the first CPU's lines of /proc/cpuinfo, and lines before any CPU (ARM32, S390)."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, separator, value = line.partition(":")
        key = key.strip()
        if separator and key == "processor" and "processor" in fields:
            break
        if separator:
            fields.setdefault(key, value.strip())
    return fields


def clean_name(name: str) -> str:
    """Return a model name without trademark signs, filler and the frequency."""
    name = re.sub(r"\((?:R|TM|r|tm)\)", "", name)
    name = re.sub(r"\s+(?:CPU|Processor)?\s*@\s*[\d.]+\s*[GM]Hz", "", name)
    name = re.sub(r"\s+\d+-Core Processor\b|\s+(?:CPU|Processor)\b", "", name)
    return " ".join(name.split())


def model_and_vendor(cpuinfo: str) -> tuple[str, str]:
    """Return the CPU's usual name and its maker; empty if /proc lacks them."""
    fields = first_block(cpuinfo)
    vendor_id = fields.get("vendor_id", "")
    vendor = _X86_MAKERS.get(vendor_id, vendor_id)
    if fields.get("model name") and vendor_id:
        return clean_name(fields["model name"]), vendor
    parts = _arm_parts(cpuinfo)
    if not parts:
        return clean_name(fields.get("model name", fields.get("cpu", ""))), vendor
    vendor = _ARM_MAKERS.get(parts[0][0], f"implementer {parts[0][0]:#x}")
    names = [_ARM_PARTS.get(part, f"part {part[1]:#x}") for part in parts]
    return f"{vendor} {' + '.join(names)}", vendor


def _arm_parts(cpuinfo: str) -> list[tuple[int, int]]:
    """Return every kind of core as (implementer, part), little ones first."""
    makers = re.findall(r"^CPU implementer\s*: (\S+)", cpuinfo, re.MULTILINE)
    numbers = re.findall(r"^CPU part\s*: (\S+)", cpuinfo, re.MULTILINE)
    pairs = ((number(m), number(p)) for m, p in zip(makers, numbers, strict=False))
    return list(dict.fromkeys((m, p) for m, p in pairs if m is not None and p is not None))


def instruction_sets(cpuinfo: str) -> tuple[str, ...]:
    """Return which of the sets above this CPU has, in their order."""
    fields = first_block(cpuinfo)
    if "flags" in fields:
        flags, known = fields["flags"].split(), X86_SETS
    else:
        flags, known = fields.get("Features", "").split(), ARM_SETS
    present = frozenset(flags)
    return tuple(name for flag, name in known.items() if flag in present)


def hypervisor(cpuinfo: str, product: str, vendor: str) -> str | None:
    """Return the host of a virtual machine, or None.

    On x86 only the processor's flag is trusted. Other processors have only the firmware's names,
    and a cloud's bare machines have the cloud's name too.
    """
    names = f"{vendor} {product}".strip()
    fields = first_block(cpuinfo)
    if "flags" in fields:
        guest = "hypervisor" in fields["flags"].split()
        return (names or "a hypervisor that does not name itself") if guest else None
    guests = ("kvm", "qemu", "vmware", "virtual", "xen", "amazon ec2", "google compute", "bochs")
    named = any(word in names.lower() for word in guests) and "metal" not in names.lower()
    return names if named else None


def cpu_list(text: str | None) -> list[int]:
    """Parse the kernel's lists of CPUs: "0-3,8"."""
    cpus: list[int] = []
    for part in (text or "").split(","):
        low, _, high = part.strip().partition("-")
        if low.isdigit():
            cpus += range(int(low), int(high or low) + 1)
    return cpus


_CPUS = "/sys/devices/system/cpu"


def online(files: Files) -> list[int]:
    """Return the logical CPUs in use by the kernel."""
    listed = cpu_list(files.text(f"{_CPUS}/online"))
    return listed or [int(n[3:]) for n in files.names(_CPUS) if re.fullmatch(r"cpu\d+", n)]


def topology(files: Files) -> Topology | None:
    """Return sockets, cores, threads and NUMA nodes, or None if the kernel shows no CPUs."""
    cpus = online(files)
    if not cpus:
        return None
    sockets, cores = set(), set()
    for cpu in cpus:
        folder = f"{_CPUS}/cpu{cpu}/topology"
        package = files.text(f"{folder}/physical_package_id") or "0"
        # Core ids may repeat in another die of one package: the siblings' list cannot.
        siblings = files.text(f"{folder}/thread_siblings_list") or str(cpu)
        sockets.add(package)
        cores.add((package, siblings))
    nodes = [n for n in files.names("/sys/devices/system/node") if re.fullmatch(r"node\d+", n)]
    return Topology(len(sockets), len(cores), len(cpus), max(1, len(nodes)))


def caches(files: Files) -> tuple[Cache, ...]:
    """Return every level's size and number; a level of two sizes (big, little cores) twice."""
    instances: dict[tuple[str, int], set[str]] = {}
    for cpu in online(files):
        folder = f"{_CPUS}/cpu{cpu}/cache"
        for index in files.names(folder):
            if not index.startswith("index"):
                continue
            level = files.text(f"{folder}/{index}/level")
            size = _kernel_size(files.text(f"{folder}/{index}/size"))
            if level is None or size is None:
                continue
            kind = files.text(f"{folder}/{index}/type")
            letter = {"Data": "d", "Instruction": "i"}.get(kind or "", "")
            shared = files.text(f"{folder}/{index}/shared_cpu_list") or str(cpu)
            instances.setdefault((f"L{level}{letter}", size), set()).add(shared)
    return tuple(Cache(name, size, len(of)) for (name, size), of in sorted(instances.items()))


def _kernel_size(text: str | None) -> int | None:
    match = re.fullmatch(r"(\d+)([KMG]?)", text or "")
    if match is None:
        return None
    return int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2]]


def meminfo(text: str | None) -> Mapping[str, int]:
    """Parse /proc/meminfo into bytes."""
    sizes = {}
    for line in (text or "").splitlines():
        key, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            sizes[key] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return sizes


#: Reading one frequency may interrupt that CPU; a few are enough to see a trend.
_SAMPLED_CPUS = 8

NO_CPUFREQ = NotAvailable(
    "the kernel shows no cpufreq for this CPU, as on most virtual machines: the host decides"
)


@dataclass(frozen=True)
class Scaling:
    """Limits between the CPU and its highest clock."""

    governor: str  # one name, or several where CPUs differ: "performance, powersave"
    driver: str
    minimum_mhz: float | None
    maximum_mhz: float | None
    boost: bool | NotAvailable


def pick_spaced(cpus: list[int], most: int) -> list[int]:
    """Return at most `most` CPUs, evenly spaced and always the same ones."""
    if len(cpus) <= most:
        return cpus
    return [cpus[i * len(cpus) // most] for i in range(most)]


def scaling(files: Files) -> Scaling | NotAvailable:
    """Return governor, driver, range and boost."""
    governors, lows, highs, drivers = set(), [], [], set()
    for cpu in pick_spaced(online(files), _SAMPLED_CPUS):
        folder = f"{_CPUS}/cpu{cpu}/cpufreq"
        governor = files.text(f"{folder}/scaling_governor")
        if governor is None:
            continue
        governors.add(governor)
        drivers.add(files.text(f"{folder}/scaling_driver") or "")
        lows.append(number(files.text(f"{folder}/scaling_min_freq")))
        highs.append(number(files.text(f"{folder}/scaling_max_freq")))
    if not governors:
        return NO_CPUFREQ
    return Scaling(
        governor=", ".join(sorted(governors)),
        driver=", ".join(sorted(drivers - {""})),
        minimum_mhz=min((low / 1000 for low in lows if low is not None), default=None),
        maximum_mhz=max((high / 1000 for high in highs if high is not None), default=None),
        boost=boost(files),
    )


def governor(files: Files) -> str | NotAvailable:
    """Return only the governor's name, which is fast enough for snapshots."""
    names = {
        name
        for cpu in pick_spaced(online(files), _SAMPLED_CPUS)
        if (name := files.text(f"{_CPUS}/cpu{cpu}/cpufreq/scaling_governor")) is not None
    }
    return ", ".join(sorted(names)) if names else NO_CPUFREQ


def boost(files: Files) -> bool | NotAvailable:
    """Return whether clocks may exceed the nominal one (turbo)."""
    no_turbo = number(files.text(f"{_CPUS}/intel_pstate/no_turbo"))
    if no_turbo is not None:
        return no_turbo == 0
    for path in (f"{_CPUS}/cpufreq/boost", f"{_CPUS}/cpu0/cpufreq/boost"):
        value = number(files.text(path))
        if value is not None:
            return value == 1
    return NotAvailable("neither intel_pstate/no_turbo nor cpufreq/boost exists")


def frequencies_mhz(files: Files) -> dict[int, float]:
    """Return the current frequency of a few CPUs; empty if the kernel does not show them."""
    frequencies = {}
    for cpu in pick_spaced(online(files), _SAMPLED_CPUS):
        value = number(files.text(f"{_CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq"))
        if value is not None:
            frequencies[cpu] = value / 1000
    return frequencies
