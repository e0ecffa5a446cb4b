"""Limits of this process: cgroups (v1, v2, both) and CPU affinity.

A container sees the host's CPUs and memory in /proc; its limits are in the control groups, and the
tightest one between its own group and the root counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from posixpath import join, normpath

from accelbench.hardware.common import Files, named_numbers, number

#: cgroup v1 writes "no limit" as the largest page-aligned 63-bit number. Half of it is the
#: threshold, because the page size removes a few bits.
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class ResourceLimits:
    """Limits of the container and the scheduler. None means no limit."""

    cpu_quota: float | None = None  # CPUs' worth of time, 1.5 for 150 ms in 100 ms
    affinity: int | None = None  # CPUs the scheduler may put this process on
    memory_limit_bytes: int | None = None
    memory_used_bytes: int | None = None  # by the limited group, without reclaimable cache
    cgroup: str = ""  # "v1", "v2" or "" without any
    throttled_us: int | None = None  # time that the quota has stopped this group so far

    def effective_cpus(self, logical: int) -> float:
        return min(float(logical), float(self.affinity or logical), self.cpu_quota or logical)

    def effective_memory(self, total: int) -> int:
        return min(total, self.memory_limit_bytes or total)

    def available_memory(self, available: int) -> int:
        if self.memory_limit_bytes is None or self.memory_used_bytes is None:
            return available
        return max(0, min(available, self.memory_limit_bytes - self.memory_used_bytes))


@dataclass(frozen=True)
class Group:
    """Control group: its folder, and the visible folders above it."""

    version: int
    folders: tuple[str, ...]


def affinity() -> int | None:
    """Return the number of CPUs this process may run on, or None if unknown."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def read_limits(files: Files, cpus: Callable[[], int | None] = affinity) -> ResourceLimits:
    """Return the limits of this process."""
    groups = find_groups(
        files.text("/proc/self/cgroup") or "", files.text("/proc/self/mountinfo") or ""
    )
    quotas = [_quota(files, folder) for folder in _folders(groups, "cpu")]
    limit, used = _memory(files, groups)
    return ResourceLimits(
        cpu_quota=min((q for q in quotas if q is not None), default=None),
        affinity=cpus(),
        memory_limit_bytes=limit,
        memory_used_bytes=used,
        cgroup=_version(groups),
        throttled_us=_throttled_us(files, groups),
    )


def find_groups(cgroup: str, mountinfo: str) -> dict[str, list[Group]]:
    """Return this process's groups by controller, from the texts of the two /proc files."""
    own = {}
    for line in cgroup.splitlines():
        hierarchy, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        for name in names.split(",") if hierarchy != "0" else ["unified"]:
            own[name] = path
    by_controller: dict[str, list[Group]] = {"cpu": [], "memory": []}
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        if not separator or not right.startswith("cgroup"):
            continue
        kind, _, options = right.split(maxsplit=2)
        root, mount = left.split()[3:5]
        for controller, groups in by_controller.items():
            if kind == "cgroup2" and "unified" in own:
                groups.append(Group(2, _chain(mount, root, own["unified"])))
            elif kind == "cgroup" and controller in options.split(",") and controller in own:
                groups.append(Group(1, _chain(mount, root, own[controller])))
    return by_controller


def _chain(mount: str, root: str, path: str) -> tuple[str, ...]:
    """Return the folders from a group's own up to the mount point.

    Inside a container the path may be the host's while only a part is mounted: the mounted root is
    removed, and a path elsewhere means that the mount point itself is our group.
    """
    if root == "/":
        inside = path
    elif path == root or path.startswith(root + "/"):
        inside = path[len(root) :]
    else:
        inside = "/"
    parts = [p for p in normpath("/" + inside.lstrip("/")).split("/") if p and p != ".."]
    return tuple(join(mount, *parts[:depth]) for depth in range(len(parts), -1, -1))


def _folders(groups: dict[str, list[Group]], controller: str) -> list[str]:
    return [folder for group in groups[controller] for folder in group.folders]


def _quota(files: Files, folder: str) -> float | None:
    if (both := files.text(join(folder, "cpu.max"))) is not None:
        quota_text, _, period_text = both.partition(" ")
    else:
        quota_text = files.text(join(folder, "cpu.cfs_quota_us")) or ""
        period_text = files.text(join(folder, "cpu.cfs_period_us")) or ""
    quota, period = number(quota_text), number(period_text)
    return quota / period if quota and period and quota > 0 else None


def _memory(files: Files, groups: dict[str, list[Group]]) -> tuple[int | None, int | None]:
    tightest, holder = None, None
    for folder in _folders(groups, "memory"):
        for limit in _memory_limits(files, folder):
            if tightest is None or limit < tightest:
                tightest, holder = limit, folder
    if holder is None:
        return None, None
    used = number(
        files.text(join(holder, "memory.current"))
        or files.text(join(holder, "memory.usage_in_bytes"))
    )
    if used is None:
        return tightest, None
    # Inactive page cache is released under pressure; the kubelet's working set excludes it too.
    stat = named_numbers(files.text(join(holder, "memory.stat")))
    cache = stat.get("total_inactive_file", stat.get("inactive_file", 0))
    return tightest, max(0, used - cache)


def _memory_limits(files: Files, folder: str) -> list[int]:
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [number(files.text(join(folder, name))) for name in names]
    # Groups above the mount point are not visible, but version 1 shows the memory that they leave.
    limits.append(
        named_numbers(files.text(join(folder, "memory.stat"))).get("hierarchical_memory_limit")
    )
    return [limit for limit in limits if limit is not None and limit < _NO_LIMIT]


def _version(groups: dict[str, list[Group]]) -> str:
    versions = {group.version for group in groups["memory"]}
    if 1 in versions:
        return "v1"
    return "v2" if versions else ""


def _throttled_us(files: Files, groups: dict[str, list[Group]]) -> int | None:
    total = None
    for folder in _folders(groups, "cpu"):
        stat = named_numbers(files.text(join(folder, "cpu.stat")))
        if "throttled_usec" in stat:
            total = max(total or 0, stat["throttled_usec"])
        elif "throttled_time" in stat:  # version 1, in nanoseconds
            total = max(total or 0, stat["throttled_time"] // 1000)
    return total
