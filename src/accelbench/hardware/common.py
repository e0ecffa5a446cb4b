"""Shared parts of all detectors: ways to ask the machine, and errors while asking.

Facts come from files, commands and throw-away processes. Each is reached through a small reader
that is handed in, so that tests answer from records and need no device.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from accelbench.core import processes
from accelbench.core.errors import SurroundingsError
from accelbench.core.plugins import HARDWARE, PluginError, find_entry_points, load
from accelbench.core.protocols import Absent, Device

log = logging.getLogger(__name__)


class HardwareError(SurroundingsError):
    """Asking a platform did not work: `message` is the reason, `advice` what would help."""


class PackageMissingError(HardwareError):
    """The Python package that reads this platform is not installed."""


class DriverMissingError(HardwareError):
    """The operating system has no driver for the platform, or none that answers."""


class NoDeviceError(HardwareError):
    """All parts are there, but no device."""


class ToolMissingError(HardwareError):
    """A command that should be asked does not exist here."""


class ProbeFailedError(HardwareError):
    """A command or a throw-away process ended badly."""


class ProbeTimeoutError(ProbeFailedError):
    """A command or a throw-away process did not answer in time and was killed."""


@dataclass(frozen=True)
class NotAvailable:
    """Stands for a value that cannot be known here: never 0, always with the reason."""

    reason: str

    def __str__(self) -> str:
        return f"not available ({self.reason})"


class Files(Protocol):
    """Reads the operating system's files."""

    def text(self, path: str) -> str | None:
        """Return a file's text without surrounding white space, or None."""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; none if it does not exist."""


class SystemFiles:
    """The files of the machine this runs on."""

    def text(self, path: str) -> str | None:
        try:
            # One unbuffered read a file: half the time of open() for what snapshots read.
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            parts = []
            while part := os.read(handle, 1 << 16):
                parts.append(part)
        except OSError:
            return None
        finally:
            os.close(handle)
        return b"".join(parts).decode(errors="replace").strip()

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))  # noqa: PTH208 - names are wanted, not paths
        except OSError:
            return []


def named_numbers(text: str | None) -> dict[str, int]:
    """Return the numbers of lines that hold a name and a number; other lines are left out."""
    rows = (line.split() for line in (text or "").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def is_processor(device: Device) -> bool:
    """Return whether a device is the host's own processor, which works in the host's memory."""
    return device.hardware in ("cpu", "wasm") or device.unit == "cpu"


def number(text: str | None) -> int | None:
    """Return a whole number as the kernel writes it, or None."""
    try:
        return int(text, 0) if text is not None else None
    except ValueError:
        return None


#: Runs a command and gives its standard output; raises HardwareError.
Command = Callable[[Sequence[str], float], str]


def run_command(args: Sequence[str], timeout: float) -> str:
    """Return the standard output of a command that may be missing, fail or hang."""
    name = Path(args[0]).name
    try:
        ended = processes.run(args, timeout)
    except OSError as error:
        raise ToolMissingError(f"{name} cannot be started: {error}") from error
    except processes.TimeoutExpired as error:
        raise ProbeTimeoutError(
            f"{name} did not answer within {timeout:g} s",
            "Its driver may hang: look into the system log, or restart the machine.",
        ) from error
    log.debug("%s: exit %s", " ".join(args), ended.returncode)
    if ended.returncode:
        message = ended.last_line or "no message"
        raise ProbeFailedError(f"{name} ended with {ended.returncode}: {message}")
    return ended.stdout


#: Runs `main()` of a module in a throw-away process and gives what it returned, as JSON.
Probe = Callable[[str, float], Any]

_PROBE = (
    "import importlib, json, sys\n"
    "answer = importlib.import_module(sys.argv[1]).main()\n"
    "sys.stdout.flush()\n"
    "print('\\n' + json.dumps(answer), flush=True)\n"
)


def probe_in_process(module: str, timeout: float) -> Any:
    """Return the answer of `module.main()`, from a process that may crash or hang.

    A driver's library can end or block the process that loads it, and workers would inherit what
    the conductor loads.
    """
    # -P: a file of the user's in the current directory must not stand in for a module.
    text = run_command([sys.executable, "-P", "-c", _PROBE, module], timeout)
    try:
        # Libraries print banners of their own: the answer is the last line.
        return json.loads(text.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise ProbeFailedError(f"{module} gave no readable answer") from error


def visible(places: list[dict[str, Any]], wanted: str | None) -> list[dict[str, Any]]:
    """Apply a vendor's list of visible devices: numbers or the beginning of a UUID.

    Like the vendors' drivers, it ignores what follows the first bad entry.
    """
    if wanted is None:
        return places
    chosen: list[dict[str, Any]] = []
    for entry in (part.strip() for part in wanted.split(",")):
        if entry.isdigit():
            named = places[int(entry) : int(entry) + 1]
        else:
            named = [p for p in places if entry and str(p.get("uuid")).startswith(entry)]
        if len(named) != 1 or named[0] in chosen:
            break
        chosen += named
    return chosen


def absent(hardware: str, error: HardwareError, remedy: str) -> Absent:
    """Return an error as the reason why a platform is absent."""
    log.debug("%s absent: %s", hardware, error)
    return Absent(hardware, error.message, error.advice or remedy)


class DeviceSearch:
    """A detector that raises HardwareError while it looks for devices."""

    hardware: str
    remedy: str

    def detect(self) -> list[Device | Absent]:
        try:
            return list(self._devices())
        except HardwareError as error:
            return [absent(self.hardware, error, self.remedy)]

    def _devices(self) -> Sequence[Device | Absent]:
        """Return the devices that are here, at least one."""
        return [self._only_device()]

    def _only_device(self) -> Device:
        """Return the device of a platform that has only one."""
        raise NotImplementedError


#: For a platform that declares none, or one that nobody has registered: imported figures have such.
SPARE = ("#5c5c5c", "#847800", "#6c84a0", "#b45430", "#846c9c", "#3c6c3c")
_FORM = re.compile(r"#[0-9a-fA-F]{6}")


@cache
def colour_of(hardware: str) -> str:
    """Return a platform's colour in every chart, as "#rrggbb"; its detector declares it.

    The eleven of our own were searched together: any two are at least 0.10 apart in OKLab, five
    times what an eye just distinguishes, also for protanopes and deuteranopes. Their luminance is
    between 0.03 and 0.30, so each has a contrast of at least 3 with white paper.
    """
    point = find_entry_points(HARDWARE).get(hardware)
    if point is not None:
        try:
            declared = getattr(load(point), "colour", None)
        except PluginError:
            declared = None
        if isinstance(declared, str) and _FORM.fullmatch(declared):
            return declared.lower()
    return SPARE[crc32(hardware.encode()) % len(SPARE)]
