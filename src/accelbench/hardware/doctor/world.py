"""Machine as the checks see it, which tests replace, and the findings."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from accelbench.core.plugins import ENGINES, load_all, version_of
from accelbench.core.protocols import Absent, Device
from accelbench.hardware.browsers import InstalledPrograms, Programs
from accelbench.hardware.common import Command, Files, SystemFiles, run_command
from accelbench.hardware.detect import detect_all
from accelbench.hardware.machine import MachineSnapshot, take_snapshot

#: Limit for the import of an engine; a slower one would delay every run.
ENGINE_SECONDS = 60.0


@dataclass(frozen=True)
class Folder:
    """Folder of stored data."""

    name: str
    path: Path
    cap_bytes: int | None = None  # limit of its size
    remedy: str = ""


def _requires_of(package: str) -> list[str]:
    try:
        return requires(package) or []
    except PackageNotFoundError:
        return []


def _importable(module: str) -> bool:
    return find_spec(module) is not None


@dataclass(frozen=True)
class World:
    """Access to the machine and its installation."""

    store: Path
    cache: Folder
    version_of: Callable[[str], str | None] = version_of
    requires_of: Callable[[str], list[str]] = _requires_of
    importable: Callable[[str], bool] = _importable
    runtimes: Callable[[], Iterable[tuple[str, Any]]] = lambda: load_all(ENGINES)
    detect: Callable[[], Mapping[str, list[Device | Absent]]] = detect_all
    files: Files = field(default_factory=SystemFiles)
    command: Command = run_command
    programs: Programs = field(default_factory=InstalledPrograms)
    browser_remedy: str = ""  # command that downloads a browser, if there is one for this machine
    which: Callable[[str], str | None] = shutil.which
    look: Callable[[], MachineSnapshot] = take_snapshot
    clock_ns: Callable[[], int] = time.perf_counter_ns
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    python: tuple[int, int, int] = sys.version_info[:3]
    system: str = sys.platform
    engine_seconds: float = ENGINE_SECONDS


class Health(StrEnum):
    """State of a checked part."""

    OK = "ok"
    HINT = "hint"  # works, with a note about measurements
    MISSING = "missing"  # optional, and not installed
    BROKEN = "broken"  # installed, and does not work
    CLASH = "clash"  # conflicts with another installed part


#: States that fail the doctor.
ILL = frozenset({Health.BROKEN, Health.CLASH})


@dataclass(frozen=True)
class Finding:
    """Result of a check."""

    name: str
    health: Health
    said: str
    remedy: str = ""  # how to repair it, or how to install a missing part
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DoctorCheck:
    """Check of the machine. It may take seconds: checks run in parallel."""

    group: str
    name: str  # of the checked part, in case the check itself fails
    ask: Callable[[World], list[Finding]]
