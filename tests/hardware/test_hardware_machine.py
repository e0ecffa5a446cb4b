"""Snapshots from records, what two of them tell, and when a reader is warned."""

import os
from dataclasses import replace

import pytest
from hardware_records import AMD_GUEST, XEON_V2, RecordedFiles

from accelbench.core.unusable_reasons import NOT_USED
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.limits import ResourceLimits
from accelbench.hardware.machine import (
    CpuSeconds,
    Disturbance,
    MachineSnapshot,
    busy_warning,
    compare,
    noise_warnings,
    take_snapshot,
)

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

RUNNING = {
    "/proc/stat": (
        f"cpu  {10 * TICKS} 0 {2 * TICKS} {80 * TICKS} {5 * TICKS} 0 {TICKS} {2 * TICKS} 9 9\n"
        "cpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\nintr 5\nctxt 6"
    ),
    "/proc/loadavg": "0.68 0.41 0.19 3/90 6781",
    "/proc/vmstat": "nr_free_pages 5\npswpin 3\npswpout 4\n",
}


def test_snapshots_of_machines():
    seen = take_snapshot(RecordedFiles({**AMD_GUEST, **RUNNING}), "linux")
    assert seen.cpus == 2
    # 10 user + 2 system + 1 softirq; guests' time is in user's already.
    assert seen.cpu == CpuSeconds(total=100, busy=13, steal=2)
    assert seen.load == (0.68, 0.41, 0.19)
    assert seen.swapped_bytes == 7 * PAGE
    assert seen.memory_available == 24252808 * 1024
    assert isinstance(seen.governor, NotAvailable)
    assert seen.throttle_events is None
    assert seen.frequencies_mhz == {}

    throttled = {
        f"/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count": "2"
        for cpu in range(8)
    }
    seen = take_snapshot(RecordedFiles({**XEON_V2, **RUNNING, **throttled}), "linux")
    assert seen.governor == "powersave"
    assert seen.frequencies_mhz[0] == 2000
    assert seen.throttle_events == 16
    assert seen.limits.cpu_quota == 1.5

    seen = take_snapshot(RecordedFiles({}), "linux")
    assert seen.load is None
    assert seen.memory_available is None
    assert seen.swapped_bytes is None
    assert seen.throttle_events is None

    seen = take_snapshot(system="darwin")
    assert seen.cpu.total > 0
    assert seen.memory_available > 0
    assert take_snapshot(RecordedFiles(XEON_V2), "linux").memory_available == 2**30 + 2**29
    seen = take_snapshot()
    assert seen.cpus >= 1
    assert seen.cpu.total >= seen.cpu.busy >= 0
    assert seen.memory_available > 0


def moment(seconds, **changes):
    at = MachineSnapshot(
        taken_ns=int(seconds * 1e9), cpus=4, cpu=CpuSeconds(0, 0, 0), load=None,
        memory_available=None, swapped_bytes=0, governor="performance", throttle_events=0,
    )  # fmt: skip
    return replace(at, **changes)


def test_shares_of_two_readings():
    after = moment(10, cpu=CpuSeconds(40, 24, 2))
    seen = compare(moment(0), after, own_cpu_seconds=10)
    assert seen.foreign == pytest.approx(14 / 40)
    assert seen.steal == pytest.approx(2 / 40)
    assert compare(moment(0), after, 10, cpus=8).foreign == pytest.approx(14 / 80)

    after = moment(10, cpu=CpuSeconds(40, 9.99, 0))
    assert compare(moment(0), after, own_cpu_seconds=10).foreign == 0
    seen = compare(moment(0), moment(0.4, cpu=CpuSeconds(1.6, 1, 1)), 0)
    assert seen.foreign is None
    assert seen.steal is None
    assert noise_warnings(seen, moment(0)) == []

    before = moment(0, swapped_bytes=None, throttle_events=None, cpu=CpuSeconds(0, 0, None))
    seen = compare(before, moment(1), 0)
    assert (seen.swapped_bytes, seen.throttle_events, seen.steal) == (None, None, None)
    assert seen.quota_stopped is None
    assert seen.frequency_change is None

    assert compare(moment(0, swapped_bytes=10), moment(1), 0).swapped_bytes is None

    before = moment(
        0, limits=ResourceLimits(throttled_us=100), frequencies_mhz={0: 3000.0, 1: 2000.0}
    )
    after = moment(2, limits=ResourceLimits(throttled_us=1_000_100), frequencies_mhz={0: 1500.0})
    seen = compare(before, after, 0)
    assert seen.quota_stopped == pytest.approx(0.5)
    assert seen.frequency_change == pytest.approx(-0.5)


QUIET = Disturbance(10, 0.0, 0.0, 0, 0, 0.0, None)


def test_a_quiet_machine_has_no_warning():
    assert noise_warnings(QUIET, moment(0)) == []
    assert noise_warnings(QUIET, moment(0, governor=NotAvailable("a guest"))) == []
    assert noise_warnings(Disturbance(1, None, None, None, None, None, None), moment(0)) == []
    stopped = replace(QUIET, quota_stopped=0.2)
    assert "--threads" in noise_warnings(stopped, moment(0))[0]
    assert "--threads" not in noise_warnings(stopped, moment(0), threads=1)[0]
    (warning,) = noise_warnings(QUIET, moment(0, governor="performance, schedutil"))
    assert "governor is performance, schedutil" in warning
    assert "cpupower" in warning


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"foreign": 0.38}, "Other processes used 38 % of the CPUs"),
        ({"steal": 0.05}, "gave 5 % of this machine's CPU time to others"),
        ({"swapped_bytes": 5 * 2**20}, "swapped 5 MB"),
        ({"throttle_events": 3}, "for heat 3 times"),
        ({"quota_stopped": 0.2}, "CPU quota stopped it for 20 %"),
    ],
)
def test_each_disturbance_has_its_sentence(changes, said):
    (warning,) = noise_warnings(replace(QUIET, **changes), moment(0))
    assert said in warning


def test_busy_cores_name_the_factor_that_is_seen_and_the_threads_that_would_help():
    busy = replace(QUIET, foreign=0.48)
    (warning,) = noise_warnings(busy, moment(0), slowed=161.8, threads=4)
    assert warning == (
        "Other processes used 48 % of the CPUs while this was measured. The median step took 162"
        " times as long as the fastest. Close other programs or use --launches. With --threads 2"
        " each thread has a CPU of its own."
    )
    (warning,) = noise_warnings(busy, moment(0), slowed=1.25, threads=2)
    assert "1.25 times" in warning
    assert "--threads" not in warning  # as many CPUs are free
    (warning,) = noise_warnings(busy, moment(0))
    assert "times as long" not in warning  # steps were not timed singly
    (warning,) = noise_warnings(busy, moment(0), slowed=1.0)
    assert "times as long" not in warning  # there was one
    assert "--threads 2" in warning
    (warning,) = noise_warnings(replace(busy, foreign=0.99), moment(0), threads=2)
    assert "--threads 1" in warning  # one at least
    (warning,) = noise_warnings(replace(busy, foreign=0.99), moment(0), threads=1)
    assert "threads 1" not in warning  # it has one already


@pytest.mark.parametrize("foreign", [0.0, 0.9])
@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("other_run", ["", "Run r (process 7, measuring since then)"])
def test_whoever_used_the_cpus_there_is_one_warning(foreign, waited, other_run):
    found = noise_warnings(
        replace(QUIET, foreign=foreign), moment(0), None, 1, waited=waited, other_run=other_run
    )
    assert len(found) == bool(foreign or waited or other_run)
    said = "".join(found)
    assert (other_run in said, NOT_USED in said) == (True, waited)
    assert ("90 %" in said) == bool(foreign)


@pytest.mark.parametrize(
    "changes",
    [{"foreign": 0.10}, {"steal": 0.02}, {"swapped_bytes": 2**20}, {"quota_stopped": 0.01}],
)
def test_thresholds_themselves_are_still_quiet(changes):
    assert noise_warnings(replace(QUIET, **changes), moment(0)) == []


@pytest.mark.parametrize(
    ("load", "busy"),
    [(None, False), ((1.0, 0.0, 0.0), False), ((1.1, 0.0, 0.0), True), ((0.2, 9.0, 9.0), False)],
)
def test_a_busy_machine_is_told_before_anything_is_measured(load, busy):
    now = replace(moment(0), cpus=2, load=load)
    said = busy_warning(now)
    assert (said is not None) == busy
    assert not busy or "load 1.1 on 2 CPUs" in said
