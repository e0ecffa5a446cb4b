"""Machine facts that a run records: system, versions, limits, version of the code."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from accelbench.core.devices import recorded_packages
from accelbench.hardware.common import (
    Command,
    Files,
    HardwareError,
    NotAvailable,
    SystemFiles,
    run_command,
)
from accelbench.hardware.cpu import CpuDetector

#: Distributions whose version can change a result of any engine; those of an engine are on its
#: card.
PACKAGES = (
    *("accelbench", "numpy", "scipy", "duckdb", "pyarrow"),
    *("nvidia-ml-py", "amdsmi", "psutil"),
)

#: Variables that change an engine's threads, devices or calculations.
VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_PROC_BIND", "KMP_AFFINITY",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "PYTORCH_CUDA_ALLOC_CONF", "NVIDIA_TF32_OVERRIDE", "XLA_FLAGS", "LD_PRELOAD",
    "MALLOC_ARENA_MAX", "MALLOC_CONF", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
    "GLIBC_TUNABLES", "ONEDNN_MAX_CPU_ISA",
)  # fmt: skip

#: Allocators that are preloaded instead of the C library's.
_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")

_GIT_SECONDS = 5.0


def describe_environment(
    folder: Path | None = None,
    files: Files | None = None,
    command: Command = run_command,
    version_of: Callable[[str], str] = version,
) -> dict[str, Any]:
    """Return everything about this machine and installation that a result may depend on.

    None of the packages is imported. The git commit of `folder` is recorded, by default that of the
    current folder.
    """
    files = files or SystemFiles()
    facts = CpuDetector(files, command).facts()
    scaling = facts.scaling
    return {
        "machine": socket.gethostname(),
        "os": platform.system(),
        "os_release": _release(files),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "python": platform.python_version(),
        "python_implementation": platform.python_implementation(),
        "python_executable": sys.executable,
        "cpu": facts.model,
        "cpus_logical": facts.topology.threads,
        "effective_cpus": facts.effective_cpus,
        "memory_total": facts.memory_total,
        "effective_memory": facts.effective_memory,
        "limits": {
            "cpus": facts.limits.cpu_quota,
            "affinity": facts.limits.affinity,
            "memory_bytes": facts.limits.memory_limit_bytes,
            "cgroup": facts.limits.cgroup or None,
        },
        "governor": str(scaling) if isinstance(scaling, NotAvailable) else scaling.governor,
        "virtualisation": facts.virtualisation,
        "packages": package_versions(version_of, (*PACKAGES, *recorded_packages())),
        "allocator": find_allocator(files),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "git": read_git_state(folder or Path.cwd(), command),
    }


def find_allocator(files: Files) -> str | None:
    """Return the name of the memory allocator in this process; None if the system does not list it.

    Workers inherit a preloaded allocator, which changes an engine's time and memory.
    """
    maps = files.text("/proc/self/maps")
    if maps is None:
        return None
    return next((name for name in _ALLOCATORS if f"lib{name}" in maps), "libc")


def package_versions(version_of: Callable[[str], str], names: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages."""
    versions = {}
    for name in names:
        try:
            versions[name] = version_of(name)
        except PackageNotFoundError:
            continue
    return versions


def read_git_state(folder: Path, command: Command = run_command) -> dict[str, Any] | None:
    """Return commit, branch and whether files differ from it; None outside a git work tree."""

    def ask(*words: str) -> str:
        # No optional locks: a benchmark must not disturb other work in the tree.
        return command(["git", "--no-optional-locks", "-C", str(folder), *words], _GIT_SECONDS)

    try:
        commit = ask("rev-parse", "HEAD").strip()
        branch = ask("rev-parse", "--abbrev-ref", "HEAD").strip()
        changed = ask("status", "--porcelain", "--untracked-files=no")
    except HardwareError:
        return None
    return {
        "commit": commit,
        "branch": None if branch == "HEAD" else branch,
        "dirty": bool(changed.strip()),
    }


def _release(files: Files) -> str | None:
    for line in (files.text("/etc/os-release") or "").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip('"')
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return platform.version() if sys.platform == "win32" else None
