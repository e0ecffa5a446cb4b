"""Processor time of a process's threads: running, and waiting for a CPU.

    before = read_thread_times() ── the measured work ── after = read_thread_times()
                  └── compare(before, after) → ThreadUse

The kernel counts both in /proc/<pid>/task/<tid>/schedstat. Two readings take 0.3 ms for ten
threads.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accelbench.hardware.common import Files, NotAvailable, SystemFiles

#: Least share of the busiest thread's time of an active thread: others wake rarely, and their
#: waiting does not delay a step.
_ACTIVE_SHARE = 0.05
_NO_COUNTERS = "the kernel does not count how long threads wait for a CPU"


@dataclass(frozen=True)
class ThreadTimes:
    """Counters at one time, in nanoseconds."""

    taken_ns: int
    process_ns: int  # of this process, including ended threads
    ran_ns: Mapping[int, int]  # by thread
    waited_ns: Mapping[int, int]  # by thread
    machine_ran_ns: int | None  # by all processes, on the CPUs that this process may use
    cpus: int  # that this process may use


@dataclass(frozen=True)
class ThreadUse:
    """Time of a process's threads between two readings."""

    wall_ns: int
    ran_ns: int
    waited_ns: int  # for a CPU that another process used

    @property
    def busy_threads(self) -> float:
        """Threads that ran at once: fewer than were ready, if other processes had the CPUs.

        Waiting does not count: JAX passes work from thread to thread, and on two CPUs with a load
        of 18 the threads that waited to take over looked like 2.0 busy ones.
        """
        return self.ran_ns / self.wall_ns

    @property
    def wait_share(self) -> float:
        """Share of the time with work to do in which other processes had the CPU."""
        wanted = self.ran_ns + self.waited_ns
        return self.waited_ns / wanted if wanted else 0.0


def read_thread_times(
    others: Iterable[int] = (), files: Files | None = None, system: str = sys.platform
) -> ThreadTimes | NotAvailable:
    """Read the counters of this process and of `others`, processes that work for it."""
    if system != "linux":
        return NotAvailable("only Linux counts how long threads wait for a CPU")
    files = files or SystemFiles()
    # The kernel updates the counters of running threads at its next tick, 1 to 10 ms later, or when
    # a process reads its own processor time.
    process = time.process_time_ns()
    ran: dict[int, int] = {}
    waited: dict[int, int] = {}
    for pid in ("self", *others):
        for thread in files.names(f"/proc/{pid}/task"):
            counted = (files.text(f"/proc/{pid}/task/{thread}/schedstat") or "").split()
            if len(counted) < 2:
                continue  # it has ended
            ran[int(thread)], waited[int(thread)] = int(counted[0]), int(counted[1])
            process += 0 if pid == "self" else int(counted[0])
    if not any(ran.values()):  # gVisor has the files, with zeros
        return NotAvailable(_NO_COUNTERS)
    cpus = os.sched_getaffinity(0)
    machine = _machine_ran_ns(files.text("/proc/stat") or "", cpus)
    return ThreadTimes(time.monotonic_ns(), process, ran, waited, machine, len(cpus))


def compare(before: ThreadTimes, after: ThreadTimes) -> ThreadUse:
    """Return the time of threads between two readings.

    Waiting for a thread of the same process is not waiting for others. It happens only if more
    threads are active than there are CPUs; then waiting is divided by the users of the CPUs.
    """
    ran = _increases(before.ran_ns, after.ran_ns)
    waited = _increases(before.waited_ns, after.waited_ns)
    total = max(after.process_ns - before.process_ns, sum(ran.values()))
    most = max(ran.values(), default=0)
    active = [thread for thread, ns in ran.items() if ns and ns >= _ACTIVE_SHARE * most]
    queued = sum(waited.get(thread, 0) for thread in active)
    others = _used_by_others(before, after, total)
    if len(active) > after.cpus:
        queued = 0 if others is None else round(queued * others / max(1.0, others + total))
    if others is not None:
        # Each thread waits for others at most as long as they ran. /proc/stat counts in ticks.
        queued = min(queued, round(len(active) * (others + after.cpus * 1e9 / _ticks_a_second())))
    return ThreadUse(max(1, after.taken_ns - before.taken_ns), total, queued)


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _increases(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    return {thread: max(0, now - before.get(thread, 0)) for thread, now in after.items()}


def _used_by_others(before: ThreadTimes, after: ThreadTimes, own_ns: int) -> float | None:
    if before.machine_ran_ns is None or after.machine_ran_ns is None:
        return None
    return max(0.0, after.machine_ran_ns - before.machine_ran_ns - own_ns)


def _machine_ran_ns(stat: str, cpus: Iterable[int]) -> int | None:
    lines = {name: rest for name, _, rest in (line.partition(" ") for line in stat.splitlines())}
    rows = [lines[f"cpu{cpu}"].split() for cpu in cpus if f"cpu{cpu}" in lines]
    if not rows or any(len(row) < 7 for row in rows):
        return None
    # user, nice, system, irq and softirq; not idle (3), iowait (4).
    ticks = sum(int(row[at]) for row in rows for at in (0, 1, 2, 5, 6))
    return ticks * 1_000_000_000 // _ticks_a_second()


def _ticks_a_second() -> int:
    return os.sysconf("SC_CLK_TCK")
