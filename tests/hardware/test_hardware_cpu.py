"""The CPU in full, from the records of four machines and of two systems without /proc."""

import json
import sys

import pytest
from hardware_records import AMD_GUEST, GRACE, XEON_V2, RecordedCommands, RecordedFiles, cpu_tree

from accelbench.core.protocols import Device
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.cpu import CpuDetector, linux_facts, mac_facts, psutil_facts
from accelbench.hardware.cpufacts import Cache, Topology, clean_name, cpu_list, hypervisor


def facts(record, machine="x86_64"):
    found = linux_facts(RecordedFiles(record), machine)
    assert found is not None
    return found


def test_a_xeon_with_amx_in_a_container():
    xeon = facts(XEON_V2)
    assert (xeon.model, xeon.vendor) == ("Intel Xeon Platinum 8480+", "Intel")
    assert xeon.topology == Topology(sockets=2, cores=4, threads=8, numa_nodes=2)
    assert xeon.caches == (
        Cache("L1d", 48 * 1024, 4),
        Cache("L1i", 32 * 1024, 4),
        Cache("L2", 2 * 2**20, 4),
        Cache("L3", 105 * 2**20, 2),
    )
    assert {"AMX", "AMX INT8", "AMX BF16", "AVX-512 FP16", "AVX-512 VNNI"} <= set(
        xeon.instruction_sets
    )
    assert "AMX FP16" not in xeon.instruction_sets
    assert xeon.virtualisation is None
    assert xeon.scaling.governor == "powersave"
    assert (xeon.scaling.minimum_mhz, xeon.scaling.maximum_mhz) == (800, 3800)
    assert xeon.scaling.boost is True
    assert xeon.effective_cpus <= 1.5
    assert xeon.effective_memory == 2 * 2**30
    # 2 GiB less the group's working set: 1 GiB in use, half of it cache that can go.
    assert xeon.memory_available == 2**30 + 2**29


def test_arm_servers_are_named_by_their_cores():
    grace = facts(GRACE, "aarch64")
    assert (grace.model, grace.vendor) == ("ARM Neoverse-V2", "ARM")
    assert grace.topology == Topology(1, 72, 72, 1)
    assert grace.instruction_sets == ("NEON", "FP16", "DOTPROD", "I8MM", "BF16", "SVE", "SVE2")
    assert grace.virtualisation is None

    record = {**GRACE, "/proc/cpuinfo": GRACE["/proc/cpuinfo"].replace("0xd4f", "0xeee")}
    assert facts(record, "aarch64").model == "ARM part 0xeee"
    big = GRACE["/proc/cpuinfo"].replace("0xd4f", "0xd0b")
    little = GRACE["/proc/cpuinfo"].replace("0xd4f", "0xd05")
    record = {**GRACE, "/proc/cpuinfo": little + little + big}
    assert facts(record, "aarch64").model == "ARM Cortex-A55 + Cortex-A76"


@pytest.mark.parametrize(
    ("cpuinfo", "product", "guest"),
    [
        ("flags : fpu hypervisor", "", "a hypervisor that does not name itself"),
        ("flags : fpu", "KVM", None),  # the flag is trusted alone
        ("Features : asimd", "Amazon EC2 c7g.large", "Amazon EC2 c7g.large"),
        ("Features : asimd", "Amazon EC2 c7g.metal", None),
        ("Features : asimd", "ProLiant", None),
    ],
)
def test_who_is_a_guest(cpuinfo, product, guest):
    assert hypervisor(cpuinfo, product, "") == guest


def test_a_guest_says_so_and_what_it_cannot_know():
    guest = facts(AMD_GUEST)
    assert guest.virtualisation == "QEMU Standard PC (Q35)"
    assert isinstance(guest.scaling, NotAvailable)
    assert "cpufreq" in guest.scaling.reason
    assert guest.limits.cpu_quota is None
    assert guest.limits.memory_limit_bytes is None
    assert guest.limits.cgroup == "v1"
    assert guest.effective_memory == guest.memory_total


def test_the_fingerprint_knows_nothing_that_drifts():
    later = dict(AMD_GUEST)
    later["/proc/meminfo"] = later["/proc/meminfo"].replace("24252808", "1252808")
    later["/proc/cpuinfo"] += "cpu MHz : 4000.0\nbogomips : 9.9\n"
    one, two = (
        CpuDetector(RecordedFiles(r), system="linux", machine="x86_64").detect()[0]
        for r in (AMD_GUEST, later)
    )
    assert one.details != two.details
    assert one.fingerprint == two.fingerprint


def test_what_a_record_lacks_is_not_available():
    record = {k: v for k, v in XEON_V2.items() if "no_turbo" not in k}
    details = facts(record).details()
    assert details["scaling"]["boost"].startswith("not available (")
    assert facts({**GRACE, **cpu_tree(cores=4, threads_per_core=2, sockets=2)}).topology == (
        Topology(2, 4, 8, 1)
    )

    device = CpuDetector(RecordedFiles(XEON_V2), system="linux", machine="x86_64").detect()[0]
    again = json.loads(json.dumps(device.details))
    assert again["topology"]["cores"] == 4
    assert again["limits"]["cpu_quota"] == 1.5
    assert device.count == 4

    found = mac_facts(RecordedCommands({}), "arm64")
    assert found.topology.threads >= 1
    assert found.caches == ()
    found = psutil_facts("AMD64")
    assert found.memory_total > 0
    assert found.topology.sockets is None
    assert found.limits.effective_cpus(8) == 8


M3 = """
machdep.cpu.brand_string: Apple M3 Pro
hw.packages: 1
hw.physicalcpu: 11
hw.logicalcpu: 11
hw.memsize: 19327352832
hw.l1dcachesize: 65536
hw.l1icachesize: 131072
hw.l2cachesize: 4194304
hw.optional.neon: 1
hw.optional.arm.FEAT_FP16: 1
hw.optional.arm.FEAT_I8MM: 1
hw.optional.arm.FEAT_SME: 0
"""


def test_an_apple_chip_by_sysctl():
    m3 = mac_facts(RecordedCommands({"sysctl": M3}), "arm64")
    assert (m3.model, m3.vendor, m3.memory_total) == ("Apple M3 Pro", "Apple", 18 * 2**30)
    assert m3.topology == Topology(1, 11, 11, None)
    assert m3.instruction_sets == ("NEON", "FP16", "I8MM")
    assert m3.caches[0] == Cache("L1d", 65536, None)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("AMD EPYC 9355 32-Core Processor", "AMD EPYC 9355"),
        ("Intel(R) Core(TM) i7-10700 CPU @ 2.90GHz", "Intel Core i7-10700"),
        ("12th Gen Intel(R) Core(TM) i9-12900K", "12th Gen Intel Core i9-12900K"),
        ("AMD Ryzen 7 7840U w/ Radeon 780M Graphics", "AMD Ryzen 7 7840U w/ Radeon 780M Graphics"),
    ],
)
def test_names_lose_filler_but_not_the_model(raw, clean):
    assert clean_name(raw) == clean


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", [0, 1, 2, 3, 8]), ("0", [0]), ("", []), (None, [])]
)
def test_cpu_lists(text, cpus):
    assert cpu_list(text) == cpus


def test_this_machine_has_a_cpu():
    (device,) = CpuDetector().detect()
    assert isinstance(device, Device)
    assert device.name
    assert device.count >= 1
    assert device.memory_bytes > 2**20
    if sys.platform == "linux":
        assert device.details["instruction_sets"]
