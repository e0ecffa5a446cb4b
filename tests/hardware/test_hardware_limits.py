"""Container limits: both versions, all the way up, and paths that lie outside what is mounted."""

from hardware_records import AMD_GUEST, DOCKER_V1, XEON_V2, RecordedFiles

from accelbench.hardware.limits import ResourceLimits, find_groups, read_limits


def limits(record, affinity=8):
    return read_limits(RecordedFiles(record), lambda: affinity)


def test_the_tightest_limit_counts():
    found = limits(XEON_V2)
    assert found.cgroup == "v2"
    assert found.cpu_quota == 1.5
    assert found.memory_limit_bytes == 2 * 2**30
    assert found.memory_used_bytes == 2**29
    assert found.throttled_us == 250_000

    own = "/sys/fs/cgroup/user.slice/bench.scope"
    found = limits({**XEON_V2, f"{own}/cpu.max": "25000 100000", f"{own}/memory.max": "1000"})
    assert (found.cpu_quota, found.memory_limit_bytes) == (0.25, 1000)
    assert found.memory_used_bytes is None  # this group has no memory.current in the record

    found = limits(DOCKER_V1)
    assert found.cgroup == "v1"
    assert found.cpu_quota == 0.5
    assert found.memory_limit_bytes == 4 * 2**30  # only the hierarchical limit shows it
    assert found.memory_used_bytes == 2_000_000_000
    assert found.throttled_us == 7000

    assert limits(AMD_GUEST, affinity=2) == ResourceLimits(affinity=2, cgroup="v1")
    assert limits({}, affinity=None) == ResourceLimits()
    groups = find_groups(
        "0::/../elsewhere", "30 23 0:28 /kubepods/pod1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw"
    )
    assert groups["cpu"][0].folders == ("/sys/fs/cgroup",)
    record = {**XEON_V2, "/sys/fs/cgroup/user.slice/cpu.max": "many", "/proc/self/mountinfo": "x"}
    assert limits(record).cpu_quota is None


def test_effective_figures():
    some = ResourceLimits(cpu_quota=1.5, affinity=4, memory_limit_bytes=100, memory_used_bytes=30)
    assert some.effective_cpus(8) == 1.5
    assert ResourceLimits(affinity=4).effective_cpus(8) == 4.0
    assert ResourceLimits().effective_cpus(8) == 8.0
    assert some.effective_memory(1000) == 100
    assert some.available_memory(1000) == 70
    assert some.available_memory(50) == 50
    assert ResourceLimits(memory_limit_bytes=100, memory_used_bytes=130).available_memory(50) == 0
