"""Machine state around a measurement: a cheap snapshot before and after, and their comparison.

    before = snapshot() ── the measured work ── after = snapshot()
                  └── compare(before, after, …) → Disturbance → noise_warnings(…)

A snapshot reads a dozen small files of /proc and /sys: 0.4 ms on a 2-CPU Linux machine.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field

from accelbench.core.unusable_reasons import NOT_USED
from accelbench.hardware.common import Files, NotAvailable, SystemFiles, number
from accelbench.hardware.cpufacts import frequencies_mhz, governor, meminfo, online, pick_spaced
from accelbench.hardware.limits import ResourceLimits, read_limits

#: CPUs whose throttle counters are read; all cores of a package get hot together.
_THROTTLE_CPUS = 16

#: Ticks of /proc/stat are 10 ms; over less than this a share would be rounding error.
_SHORTEST_SECONDS = 0.5

# -- when a reader must be warned -------------------------------------------------------

#: A guest that waits for a CPU shows it in every latency. Verdicts must show 3 %, so a cause of 2 %
#: needs a warning.
STEAL_SHARE = 0.02

#: A foreign process that is always busy takes 1/cores. Up to a tenth, schedulers run it on other
#: CPUs than the measured threads; beyond, it takes turns with them. One busy process on two CPUs
#: made two spinning threads four times slower.
FOREIGN_SHARE = 0.10

#: Load average of the last minute, as a share of the CPUs. It includes work that has just ended, so
#: this limit is higher than the share afterwards.
BUSY_LOAD = 0.5

#: 1 MiB of swap traffic: a page here and there is housekeeping, this is working memory.
SWAPPED_BYTES = 2**20

#: A quota that stops a group for 1 % of the time interrupts whole steps.
QUOTA_SHARE = 0.01

#: Governors that keep the clock high; with others a short step runs at a low clock.
STEADY_GOVERNORS = frozenset({"performance"})


@dataclass(frozen=True)
class CpuSeconds:
    """Seconds that all CPUs together have spent since boot."""

    total: float
    busy: float  # for all processes, including this one; without steal
    steal: float | None  # given to other guests by a hypervisor; None if unknown


@dataclass(frozen=True)
class MachineSnapshot:
    """State of the machine at one time. Counters count from boot."""

    taken_ns: int
    cpus: int  # logical
    cpu: CpuSeconds
    load: tuple[float, float, float] | None
    memory_available: int | None
    swapped_bytes: int | None  # in and out together
    governor: str | NotAvailable
    frequencies_mhz: dict[int, float] = field(default_factory=dict)
    throttle_events: int | None = None  # thermal, of the examined cores
    limits: ResourceLimits = field(default_factory=ResourceLimits)


@dataclass(frozen=True)
class Disturbance:
    """Differences between two snapshots; None is unknown."""

    seconds: float
    steal: float | None  # share of all CPU time, 0 to 1
    foreign: float | None  # share of all CPU time that other processes used
    swapped_bytes: int | None
    throttle_events: int | None
    quota_stopped: float | None  # share of the time that the CPU quota stopped this group
    frequency_change: float | None  # mean of after ÷ before, less 1


def take_snapshot(files: Files | None = None, system: str = sys.platform) -> MachineSnapshot:
    """Return the current state of the machine, only from files if there is /proc."""
    if system != "linux":
        return _psutil_snapshot()
    files = files or SystemFiles()
    cpu, cpus = _cpu_seconds(files.text("/proc/stat") or "")
    limits = read_limits(files)
    available = meminfo(files.text("/proc/meminfo")).get("MemAvailable")
    return MachineSnapshot(
        taken_ns=time.monotonic_ns(),
        cpus=cpus,
        cpu=cpu,
        load=_load(files.text("/proc/loadavg")),
        memory_available=None if available is None else limits.available_memory(available),
        swapped_bytes=_swapped_bytes(files.text("/proc/vmstat")),
        governor=governor(files),
        frequencies_mhz=frequencies_mhz(files),
        throttle_events=throttle_events(files),
        limits=limits,
    )


def boot_id(files: Files | None = None) -> str | None:
    """Return an id that all containers and processes of one kernel share, or None."""
    text = (files or SystemFiles()).text("/proc/sys/kernel/random/boot_id")
    return text.strip() if text else None


def compare(
    before: MachineSnapshot,
    after: MachineSnapshot,
    own_cpu_seconds: float,
    cpus: float | None = None,
) -> Disturbance:
    """Return the differences between two snapshots around work; shares relate to `cpus` CPUs."""
    seconds = (after.taken_ns - before.taken_ns) / 1e9
    frequency = _frequency_change(before.frequencies_mhz, after.frequencies_mhz)
    swapped = _difference(before.swapped_bytes, after.swapped_bytes)
    events = _difference(before.throttle_events, after.throttle_events)
    stopped = _difference(before.limits.throttled_us, after.limits.throttled_us)
    known = seconds >= _SHORTEST_SECONDS
    capacity = seconds * (cpus or before.cpus)
    stolen = _difference(before.cpu.steal, after.cpu.steal)
    others = after.cpu.busy - before.cpu.busy - own_cpu_seconds
    return Disturbance(
        seconds=seconds,
        steal=min(1.0, max(0.0, stolen / capacity)) if known and stolen is not None else None,
        # Ticks are rounded and the work's own time is not, so the difference can be just below 0.
        foreign=min(1.0, max(0.0, others / capacity)) if known else None,
        swapped_bytes=None if swapped is None else int(swapped),
        throttle_events=None if events is None else int(events),
        quota_stopped=stopped / 1e6 / seconds if known and stopped is not None else None,
        frequency_change=frequency,
    )


def usable_cpus() -> int:
    """Return the threads that this process can keep busy."""
    now = take_snapshot()
    return max(1, int(now.limits.effective_cpus(now.cpus)))


def threads_of_each(total: int | None, processes: int) -> int:
    """Return the threads per process, of a total or of all usable CPUs."""
    return max(1, (total or usable_cpus()) // processes)


def busy_warning(now: MachineSnapshot) -> str | None:
    """Return a warning if the machine is busy before anything is measured."""
    if now.load is None or now.load[0] <= BUSY_LOAD * now.cpus:
        return None
    return (
        f"The machine is busy before anything is measured (load {now.load[0]:.1f} on"
        f" {now.cpus} CPUs): expect noisy figures and longer runs than estimated, or wait."
    )


def noise_warnings(
    disturbance: Disturbance,
    before: MachineSnapshot,
    slowed: float | None = None,
    threads: int | None = None,
    waited: bool = False,
    other_run: str = "",
) -> list[str]:
    """Return the warnings about disturbances of a measurement, one per cause.

    `slowed` is the median step divided by the fastest, `waited` whether the engine's threads waited
    for other processes longer than they ran, `other_run` the run that measured at the same time.
    """
    warnings = []
    foreign = disturbance.foreign or 0.0
    if foreign > FOREIGN_SHARE or waited or other_run:
        warnings.append(_busy_text(foreign, before, slowed, threads, waited, other_run))
    if (disturbance.steal or 0) > STEAL_SHARE:
        warnings.append(
            f"The hypervisor gave {_percent(disturbance.steal)} of this machine's CPU time to"
            " others (steal); latencies are too long by at least that. Measure again on a quieter"
            " host or use --launches."
        )
    if (disturbance.quota_stopped or 0) > QUOTA_SHARE:
        cpus = max(1, int(before.limits.effective_cpus(before.cpus)))
        fewer = "" if threads is not None and threads <= cpus else f"use --threads {cpus}, or "
        warnings.append(
            f"The container's CPU quota stopped it for {_percent(disturbance.quota_stopped)} of the"
            f" time; {fewer}raise the quota."
        )
    if (disturbance.swapped_bytes or 0) > SWAPPED_BYTES:
        warnings.append(
            f"The machine swapped {(disturbance.swapped_bytes or 0) / 2**20:.0f} MB while this was"
            " measured; use a smaller batch or free memory."
        )
    if disturbance.throttle_events:
        warnings.append(
            f"The CPU slowed itself down for heat {disturbance.throttle_events} times while this"
            " was measured; let it cool, or measure for longer to see the steady clock."
        )
    set_to = before.governor
    if isinstance(set_to, str) and set(set_to.split(", ")) - STEADY_GOVERNORS:
        warnings.append(
            f"The CPU frequency governor is {set_to}: clocks follow the load, so short steps look"
            " slower than long ones. Set it with: sudo cpupower frequency-set -g performance"
        )
    return warnings


#: Ratio of the median step to the fastest from which a warning has it.
_NOTABLE_RATIO = 1.05


def _busy_text(
    foreign: float,
    before: MachineSnapshot,
    slowed: float | None,
    threads: int | None,
    waited: bool,
    other_run: str,
) -> str:
    """Return the warning about busy CPUs: their users, the effect, and the remedy.

    Threads of one step wait for each other, so it is as slow as the thread without a CPU.
    """
    sentences = []
    if other_run:
        sentences.append(f"{other_run} measured on this machine at the same time.")
    if foreign > FOREIGN_SHARE:
        used = f"used {_percent(foreign)} of the CPUs while this was measured."
        sentences.append(f"Other processes {used}")
    if waited:
        sentences.append(f"Its threads waited for other processes longer than they ran. {NOT_USED}")
    if slowed is not None and slowed >= _NOTABLE_RATIO:  # of a single sample it is 1
        sentences.append(f"The median step took {slowed:.3g} times as long as the fastest.")
    what = "Let that run end" if other_run else "Close other programs"
    sentences.append(f"{what} or use --launches.")
    free = max(1, int(before.limits.effective_cpus(before.cpus) * (1 - foreign)))
    if (threads is None or threads > free) and foreign > FOREIGN_SHARE:
        sentences.append(f"With --threads {free} each thread has a CPU of its own.")
    return " ".join(sentences)


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0):.0f} %"


def _difference(before: float | None, after: float | None) -> float | None:
    if before is None or after is None or after < before:
        return None
    return after - before


def _frequency_change(before: dict[int, float], after: dict[int, float]) -> float | None:
    ratios = [after[cpu] / before[cpu] for cpu in before if cpu in after and before[cpu]]
    return sum(ratios) / len(ratios) - 1 if ratios else None


def _cpu_seconds(stat: str) -> tuple[CpuSeconds, int]:
    lines = stat.splitlines()
    ticks = [int(n) for n in lines[0].split()[1:]] if lines else []
    ticks += [0] * (8 - len(ticks))
    user, nice, kernel, idle, wait, irq, soft, steal = ticks[:8]
    # user and nice already include guest and guest_nice.
    busy = user + nice + kernel + irq + soft
    cpus = sum(line.startswith("cpu") for line in lines) - 1
    a_second = os.sysconf("SC_CLK_TCK")
    total = busy + idle + wait + steal
    return CpuSeconds(total / a_second, busy / a_second, steal / a_second), max(1, cpus)


def _load(text: str | None) -> tuple[float, float, float] | None:
    words = (text or "").split()
    return (float(words[0]), float(words[1]), float(words[2])) if len(words) >= 3 else None


def _swapped_bytes(vmstat: str | None) -> int | None:
    rows = dict(line.split(maxsplit=1) for line in (vmstat or "").splitlines() if " " in line)
    if "pswpin" not in rows or "pswpout" not in rows:
        return None
    return (int(rows["pswpin"]) + int(rows["pswpout"])) * os.sysconf("SC_PAGE_SIZE")


def throttle_events(files: Files) -> int | None:
    """Return how often the CPU slowed down for heat since boot, or None if not counted."""
    counts = [
        number(files.text(f"/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count"))
        for cpu in pick_spaced(online(files), _THROTTLE_CPUS)
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _psutil_snapshot() -> MachineSnapshot:
    import psutil

    times, swap = psutil.cpu_times(), psutil.swap_memory()
    total = sum(times)
    idle = times.idle + getattr(times, "iowait", 0.0)
    return MachineSnapshot(
        taken_ns=time.monotonic_ns(),
        cpus=psutil.cpu_count() or 1,
        cpu=CpuSeconds(total, total - idle, None),
        load=psutil.getloadavg(),
        memory_available=psutil.virtual_memory().available,
        swapped_bytes=swap.sin + swap.sout,
        governor=NotAvailable("this system does not tell how it sets the clocks"),
    )
