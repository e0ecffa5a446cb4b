"""Shared parts of all detectors: readers of the machine, and their errors.

Facts come from files, commands and disposable processes. Each has a small reader that is passed as
an argument, so that tests answer from records and need no device.
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
    """A query of a platform failed: `message` is the reason, `advice` the remedy."""


class PackageMissingError(HardwareError):
    """The Python package that reads this platform is not installed."""


class DriverMissingError(HardwareError):
    """The operating system has no driver for the platform, or none that answers."""


class NoDeviceError(HardwareError):
    """All software is there, but no device."""


class ToolMissingError(HardwareError):
    """A required command does not exist here."""


class ProbeFailedError(HardwareError):
    """A command or a disposable process failed."""


class ProbeTimeoutError(ProbeFailedError):
    """A command or a disposable process did not answer in time and was killed."""


@dataclass(frozen=True)
class NotAvailable:
    """Unknown value, never 0, with the reason."""

    reason: str

    def __str__(self) -> str:
        return f"not available ({self.reason})"


class Files(Protocol):
    """Reader of the operating system's files."""

    def text(self, path: str) -> str | None:
        """Return a file's text without surrounding white space, or None."""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; none if it does not exist."""


class SystemFiles:
    """Reader of this machine's files."""

    def text(self, path: str) -> str | None:
        try:
            # One unbuffered read per file takes half the time of open(), which matters for
            # snapshots.
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
    """Return the numbers of lines with a name and a number; other lines are left out."""
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


#: Runs `main()` of a module in a disposable process and returns its JSON answer.
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
    # -P: a user's file in the current directory must not replace a module.
    text = run_command([sys.executable, "-P", "-c", _PROBE, module], timeout)
    try:
        # Libraries print banners, so the answer is the last line.
        return json.loads(text.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise ProbeFailedError(f"{module} gave no readable answer") from error


def filter_visible(cards: list[dict[str, Any]], listed: str | None) -> list[dict[str, Any]]:
    """Return the devices in a vendor's list of visible ones: numbers, or the start of a UUID.

    Like the vendors' drivers, it ignores entries after the first invalid one.
    """
    if listed is None:
        return cards
    chosen: list[dict[str, Any]] = []
    for entry in (part.strip() for part in listed.split(",")):
        if entry.isdigit():
            named = cards[int(entry) : int(entry) + 1]
        else:
            named = [p for p in cards if entry and str(p.get("uuid")).startswith(entry)]
        if len(named) != 1 or named[0] in chosen:
            break
        chosen += named
    return chosen


def to_absent(hardware: str, error: HardwareError, remedy: str) -> Absent:
    """Return an error as the reason why a platform is absent."""
    log.debug("%s absent: %s", hardware, error)
    return Absent(hardware, error.message, error.advice or remedy)


class DeviceSearch:
    """Detector that raises HardwareError while it searches for devices."""

    hardware: str
    remedy: str

    def detect(self) -> list[Device | Absent]:
        try:
            return list(self._devices())
        except HardwareError as error:
            return [to_absent(self.hardware, error, self.remedy)]

    def _devices(self) -> Sequence[Device | Absent]:
        """Return the devices that were found, at least one."""
        return [self._only_device()]

    def _only_device(self) -> Device:
        """Return the device of a platform that has only one."""
        raise NotImplementedError


#: Colours of platforms that declare none or are not registered, such as those of imported results.
SPARE_COLOURS = ("#5c5c5c", "#847800", "#6c84a0", "#b45430", "#846c9c", "#3c6c3c")
_FORM = re.compile(r"#[0-9a-fA-F]{6}")


@cache
def colour_of(hardware: str) -> str:
    """Return a platform's colour in every chart, as "#rrggbb"; its detector declares it.

    The eleven built-in colours were optimised together: any two are at least 0.10 apart in OKLab,
    five times the smallest visible difference, also for protanopes and deuteranopes. Their
    luminance is between 0.03 and 0.30, so each has a contrast of at least 3 with white paper.
    """
    point = find_entry_points(HARDWARE).get(hardware)
    if point is not None:
        try:
            declared = getattr(load(point), "colour", None)
        except PluginError:
            declared = None
        if isinstance(declared, str) and _FORM.fullmatch(declared):
            return declared.lower()
    return SPARE_COLOURS[crc32(hardware.encode()) % len(SPARE_COLOURS)]
