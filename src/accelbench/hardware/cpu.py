"""CPU facts: on Linux from files, on macOS from sysctl, on other systems from psutil."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from accelbench.core.identity import to_plain
from accelbench.core.protocols import Absent, Device
from accelbench.hardware import cpufacts
from accelbench.hardware.common import (
    Command,
    Files,
    HardwareError,
    NotAvailable,
    SystemFiles,
    run_command,
)
from accelbench.hardware.cpufacts import NO_CPUFREQ, Cache, Scaling, Topology, scaling
from accelbench.hardware.limits import ResourceLimits, read_limits


@dataclass(frozen=True)
class CpuFacts:
    """Facts about the CPU and the part that this process may use."""

    model: str
    vendor: str
    architecture: str
    topology: Topology
    caches: tuple[Cache, ...]
    instruction_sets: tuple[str, ...]
    memory_total: int | None
    memory_available: int | None
    swap_total: int | None
    scaling: Scaling | NotAvailable
    limits: ResourceLimits
    virtualisation: str | None

    @property
    def effective_cpus(self) -> float:
        return self.limits.effective_cpus(self.topology.threads)

    @property
    def effective_memory(self) -> int | None:
        return (
            None if self.memory_total is None else self.limits.effective_memory(self.memory_total)
        )

    def details(self) -> dict[str, Any]:
        body: dict[str, Any] = to_plain(self)
        if isinstance(self.scaling, NotAvailable):
            body["scaling"] = str(self.scaling)
        elif isinstance(self.scaling.boost, NotAvailable):
            body["scaling"]["boost"] = str(self.scaling.boost)
        body["effective_cpus"] = self.effective_cpus
        body["effective_memory"] = self.effective_memory
        return body


@dataclass(frozen=True)
class CpuDetector:
    """Detector of the host's CPU, which is always present."""

    hardware = "cpu"
    colour = "#4878fc"

    files: Files = field(default_factory=SystemFiles)
    command: Command = run_command
    system: str = sys.platform
    machine: str = field(default_factory=platform.machine)

    def detect(self) -> list[Device | Absent]:
        facts = self.facts()
        return [
            Device(
                hardware="cpu",
                name=facts.model,
                vendor=facts.vendor,
                memory_bytes=facts.memory_total,
                count=facts.topology.cores,
                details=facts.details(),
            )
        ]

    def facts(self) -> CpuFacts:
        if self.system == "linux":
            cpu = linux_facts(self.files, self.machine)
            if cpu is not None:
                return cpu
        if self.system == "darwin":
            return mac_facts(self.command, self.machine)
        return psutil_facts(self.machine)


def linux_facts(files: Files, machine: str) -> CpuFacts | None:
    """Read facts from /proc and /sys, or return None if they show no CPU."""
    cpuinfo = files.text("/proc/cpuinfo") or ""
    arrangement = cpufacts.topology(files)
    if arrangement is None:
        return None
    model, vendor = cpufacts.model_and_vendor(cpuinfo)
    memory = cpufacts.meminfo(files.text("/proc/meminfo"))
    limits = read_limits(files)
    available = memory.get("MemAvailable")
    dmi = "/sys/class/dmi/id"
    return CpuFacts(
        model=model or f"{machine} processor",
        vendor=vendor,
        architecture=machine,
        topology=arrangement,
        caches=cpufacts.caches(files),
        instruction_sets=cpufacts.instruction_sets(cpuinfo),
        memory_total=memory.get("MemTotal"),
        memory_available=None if available is None else limits.available_memory(available),
        swap_total=memory.get("SwapTotal"),
        scaling=scaling(files),
        limits=limits,
        virtualisation=cpufacts.hypervisor(
            cpuinfo, files.text(f"{dmi}/product_name") or "", files.text(f"{dmi}/sys_vendor") or ""
        ),
    )


_SYSCTLS = (
    "machdep.cpu.brand_string", "hw.packages", "hw.physicalcpu", "hw.logicalcpu", "hw.memsize",
    "hw.l1dcachesize", "hw.l1icachesize", "hw.l2cachesize", "hw.l3cachesize", "kern.hv_vmm_present",
    "hw.optional.neon", "hw.optional.arm.FEAT_FP16", "hw.optional.arm.FEAT_DotProd",
    "hw.optional.arm.FEAT_I8MM", "hw.optional.arm.FEAT_BF16", "hw.optional.arm.FEAT_SME",
    "hw.optional.avx2_0", "hw.optional.avx512f",
)  # fmt: skip
_MAC_SETS = {
    "hw.optional.neon": "NEON", "hw.optional.arm.FEAT_FP16": "FP16",
    "hw.optional.arm.FEAT_DotProd": "DOTPROD", "hw.optional.arm.FEAT_I8MM": "I8MM",
    "hw.optional.arm.FEAT_BF16": "BF16", "hw.optional.arm.FEAT_SME": "SME",
    "hw.optional.avx2_0": "AVX2", "hw.optional.avx512f": "AVX-512",
}  # fmt: skip


def read_sysctls(command: Command, names: tuple[str, ...]) -> dict[str, str]:
    """Return the values of those sysctls that exist; a missing one is not an error."""
    try:
        text = command(["sysctl", "-i", *names], 5.0)
    except HardwareError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, separator, value in pairs if separator}


def mac_facts(command: Command, machine: str) -> CpuFacts:
    """Return facts from sysctl, and from psutil those that sysctl lacks."""
    sysctls = read_sysctls(command, _SYSCTLS)
    rest = psutil_facts(machine)
    numbers = {key: int(value) for key, value in sysctls.items() if value.isdigit()}
    levels = (("L1d", "l1d"), ("L1i", "l1i"), ("L2", "l2"), ("L3", "l3"))
    return CpuFacts(
        model=cpufacts.clean_name(sysctls.get("machdep.cpu.brand_string", rest.model)),
        vendor="Apple" if "arm" in machine else "Intel",
        architecture=machine,
        topology=Topology(
            sockets=numbers.get("hw.packages"),
            cores=numbers.get("hw.physicalcpu", rest.topology.cores),
            threads=numbers.get("hw.logicalcpu", rest.topology.threads),
            numa_nodes=None,
        ),
        caches=tuple(
            Cache(name, numbers[key], None)
            for name, short in levels
            if numbers.get(key := f"hw.{short}cachesize")
        ),
        instruction_sets=tuple(name for key, name in _MAC_SETS.items() if numbers.get(key)),
        memory_total=numbers.get("hw.memsize", rest.memory_total),
        memory_available=rest.memory_available,
        swap_total=rest.swap_total,
        scaling=NotAvailable("macOS does not tell how it sets the clocks"),
        limits=ResourceLimits(),
        virtualisation="a virtual machine" if numbers.get("kern.hv_vmm_present") else None,
    )


def psutil_facts(machine: str) -> CpuFacts:
    """Return psutil's facts, which suffice to name and count the CPUs of any system."""
    import psutil

    memory, threads = psutil.virtual_memory(), os.cpu_count() or 1
    return CpuFacts(
        model=cpufacts.clean_name(
            _windows_name() or platform.processor() or f"{machine} processor"
        ),
        vendor="",
        architecture=machine,
        topology=Topology(None, psutil.cpu_count(logical=False) or threads, threads, None),
        caches=(),
        instruction_sets=(),
        memory_total=memory.total,
        memory_available=memory.available,
        swap_total=psutil.swap_memory().total,
        scaling=NO_CPUFREQ if sys.platform == "linux" else NotAvailable("psutil does not tell"),
        limits=ResourceLimits(),
        virtualisation=None,
    )


def _windows_name() -> str:
    try:
        winreg: Any = import_module("winreg")
    except ImportError:
        return ""
    path = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
        return str(winreg.QueryValueEx(key, "ProcessorNameString")[0])


#: Files in the root of every container of Docker and Podman.
_MARKER_FILES = ("/.dockerenv", "/run/.containerenv")
#: Variables that Podman, LXC, systemd-nspawn, build engines and Kubernetes set.
_VARIABLES = ("container", "KUBERNETES_SERVICE_HOST")
#: Parts of a container's cgroup path in the host's hierarchy.
_CGROUPS = ("docker", "kubepods", "containerd", "libpod", "/lxc", "crio-", "buildkit")


def detect_container(files: Files | None = None, variables: Mapping[str, str] | None = None) -> str:
    """Return evidence that this is a container; "" if there is none."""
    files = files or SystemFiles()
    here = os.environ if variables is None else variables
    for path in _MARKER_FILES:
        if files.text(path) is not None:
            return f"{path} is there"
    for name in _VARIABLES:
        if here.get(name):
            return f"the variable {name} is set"
    # The first process has it even if a shell's variables were cleared; only root can read it.
    first = (files.text("/proc/1/environ") or "").split("\0")
    if any(variable.startswith("container=") for variable in first):
        return "the first process was started with the variable container"
    groups = files.text("/proc/1/cgroup") or ""
    engine = next((word for word in _CGROUPS if word in groups), "")
    return f"the first process is in a cgroup of {engine.strip('/-')}" if engine else ""
