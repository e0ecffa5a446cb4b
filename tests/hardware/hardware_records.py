"""Recorded answers: the files, commands and libraries of machines that are not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accelbench.hardware.common import ToolMissingError


class RecordedFiles:
    """A machine's files as a mapping of path to text."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = {path: text.strip() for path, text in files.items()}

    def text(self, path: str) -> str | None:
        return self.files.get(path)

    def names(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        return sorted({p[len(start) :].split("/")[0] for p in self.files if p.startswith(start)})


class RecordedCommands:
    """What commands print, by their first word."""

    def __init__(self, outputs: Mapping[str, str]) -> None:
        self.outputs = outputs
        self.asked: list[list[str]] = []

    def __call__(self, args: Sequence[str], timeout: float) -> str:
        assert timeout > 0
        self.asked.append(list(args))
        if args[0] not in self.outputs:
            raise ToolMissingError(f"{args[0]} cannot be started")
        return self.outputs[args[0]]


def cpu_tree(
    cores: int,
    threads_per_core: int = 1,
    sockets: int = 1,
    caches: Sequence[tuple[int, str, str, int]] = (),
    nodes: int = 1,
) -> dict[str, str]:
    """/sys/devices/system of a machine; caches are (level, type, size, CPUs sharing one)."""
    cpus = cores * threads_per_core
    base = "/sys/devices/system/cpu"
    tree = {f"{base}/online": f"0-{cpus - 1}" if cpus > 1 else "0"}
    for cpu in range(cpus):
        core = cpu % cores  # as Linux counts: the second threads come after all the first ones
        siblings = ",".join(str(core + cores * t) for t in range(threads_per_core))
        tree[f"{base}/cpu{cpu}/topology/physical_package_id"] = str(core * sockets // cores)
        tree[f"{base}/cpu{cpu}/topology/thread_siblings_list"] = siblings
        for index, (level, kind, size, sharing) in enumerate(caches):
            folder = f"{base}/cpu{cpu}/cache/index{index}"
            group = core * threads_per_core // sharing
            tree[f"{folder}/level"] = str(level)
            tree[f"{folder}/type"] = kind
            tree[f"{folder}/size"] = size
            tree[f"{folder}/shared_cpu_list"] = f"group {group}"
    for node in range(nodes):
        tree[f"/sys/devices/system/node/node{node}/cpulist"] = "0"
    return tree


XEON_INFO = """
processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz
physical id	: 0
siblings	: 8
core id		: 0
cpu cores	: 4
flags		: fpu sse4_2 avx f16c avx2 fma avx_vnni avx512f \
avx512_bf16 avx512_vnni avx512_fp16 amx_bf16 amx_tile amx_int8

processor	: 1
vendor_id	: GenuineIntel
flags		: fpu
"""

#: Two sockets, four cores, eight threads; a container with a quota of 1.5 CPUs and 2 GiB.
XEON_V2 = {
    "/proc/cpuinfo": XEON_INFO,
    "/proc/meminfo": """
MemTotal:       263835892 kB
MemFree:        100000000 kB
MemAvailable:   200000000 kB
SwapTotal:       2097148 kB
SwapFree:        2097148 kB
HugePages_Total:       0
""",
    "/proc/self/cgroup": "0::/user.slice/bench.scope",
    "/proc/self/mountinfo": (
        "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
    ),
    "/sys/fs/cgroup/user.slice/bench.scope/cpu.max": "max 100000",
    "/sys/fs/cgroup/user.slice/bench.scope/cpu.stat": "usage_usec 10\nthrottled_usec 250000",
    "/sys/fs/cgroup/user.slice/bench.scope/memory.max": "max",
    "/sys/fs/cgroup/user.slice/cpu.max": "150000 100000",
    "/sys/fs/cgroup/user.slice/memory.max": "2147483648",
    "/sys/fs/cgroup/user.slice/memory.current": "1073741824",
    "/sys/fs/cgroup/user.slice/memory.stat": "anon 5\ninactive_file 536870912",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    **cpu_tree(
        cores=4,
        threads_per_core=2,
        sockets=2,
        nodes=2,
        caches=(
            (1, "Data", "48K", 2),
            (1, "Instruction", "32K", 2),
            (2, "Unified", "2048K", 2),
            (3, "Unified", "107520K", 4),
        ),
    ),
    **{
        f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}": value
        for cpu in range(8)
        for name, value in {
            "scaling_governor": "powersave",
            "scaling_driver": "intel_pstate",
            "scaling_min_freq": "800000",
            "scaling_max_freq": "3800000",
            "scaling_cur_freq": "2000000",
        }.items()
    },
}

#: A Docker container on a host with version 1: the paths are the host's, a part is mounted.
DOCKER_V1 = {
    "/proc/self/cgroup": """
5:memory:/docker/4f2a
4:cpu,cpuacct:/docker/4f2a
0::/system.slice/containerd.service
""",
    "/proc/self/mountinfo": """
40 30 0:33 /docker/4f2a /sys/fs/cgroup/memory ro,nosuid master:17 - cgroup cgroup rw,memory
41 30 0:34 /docker/4f2a /sys/fs/cgroup/cpu,cpuacct ro master:18 - cgroup cgroup rw,cpu,cpuacct
42 30 0:35 / /proc rw - proc proc rw
""",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes": "3000000000",
    "/sys/fs/cgroup/memory/memory.stat": (
        "hierarchical_memory_limit 4294967296\ninactive_file 7\ntotal_inactive_file 1000000000"
    ),
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 3\nthrottled_time 7000000",
}

#: An ARM server: no model name and no caches' owner, but implementer and part.
GRACE = {
    "/proc/cpuinfo": """
processor	: 0
BogoMIPS	: 2000.00
Features	: fp asimd evtstrm aes sha1 crc32 atomics fphp asimdhp asimddp sve i8mm bf16 sve2
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x0
CPU part	: 0xd4f
CPU revision	: 0
""",
    "/proc/meminfo": "MemTotal: 502000000 kB\nMemAvailable: 490000000 kB\nSwapTotal: 0 kB",
    **cpu_tree(cores=72, caches=((1, "Data", "64K", 1), (3, "Unified", "116736K", 72))),
}

#: A guest of KVM on an AMD host: no cpufreq, hybrid groups without limits.
AMD_GUEST = {
    "/proc/cpuinfo": """
processor	: 0
vendor_id	: AuthenticAMD
model name	: AMD EPYC
flags		: fpu hypervisor sse4_2 avx2 fma f16c avx512f avx_vnni avx512_bf16 avx512_vnni
""",
    "/proc/meminfo": "MemTotal: 24684092 kB\nMemAvailable: 24252808 kB\nSwapTotal: 0 kB",
    "/proc/self/cgroup": "4:memory:/process_api/7b\n1:cpu:/\n0::/",
    "/proc/self/mountinfo": """
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
""",
    "/sys/fs/cgroup/memory/process_api/7b/memory.limit_in_bytes": "9223372036854771712",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    "/sys/class/dmi/id/product_name": "Standard PC (Q35)",
    "/sys/class/dmi/id/sys_vendor": "QEMU",
    **cpu_tree(cores=2, caches=((1, "Data", "48K", 1), (3, "Unified", "32768K", 2))),
}
