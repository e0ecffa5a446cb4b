"""Checks of the doctor, declared once and run in parallel.

The check of whether a process can be forked, found and killed runs in a disposable process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from accelbench.core import processes
from accelbench.core.errors import setup_command
from accelbench.core.plugins import PluginError
from accelbench.core.protocols import Absent, Device, SetUp
from accelbench.core.vocabulary import Provenance
from accelbench.hardware.browsers import NAME_ANOTHER
from accelbench.hardware.common import HardwareError, NotAvailable, ProbeTimeoutError, log
from accelbench.hardware.cpufacts import boost
from accelbench.hardware.detect import is_broken
from accelbench.hardware.doctor import packages
from accelbench.hardware.doctor.world import ILL, DoctorCheck, Finding, Health, World
from accelbench.hardware.machine import STEADY_GOVERNORS, busy_warning
from accelbench.hardware.telemetry.energy import describe_meters

_OLDEST = (3, 11)
_FORKING = "import json; from accelbench.hardware.doctor.checks import main; "
_FORKING += "print(json.dumps(main()))"
_FORKING_SECONDS = 20.0

#: Steps below a thousand ticks are timed in blocks: with 1 µs those below a millisecond.
_COARSE_NS = 1000
_READINGS = 2000

#: Offset of the mark in a DuckDB file.
_DUCK = b"DUCK"
_DUCK_AT = 8


def python(world: World) -> list[Finding]:
    """Check the interpreter."""
    text = f"Python {'.'.join(map(str, world.python))} at {sys.executable}"
    if world.python[:2] < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        remedy = f"Make an environment with Python {wanted} or newer: python{wanted} -m venv .venv"
        return [Finding("Python", Health.BROKEN, f"{text} is too old", remedy)]
    return [Finding("Python", Health.OK, text)]


def isolation(world: World) -> list[Finding]:
    """Check whether workers are forked from a warm template or started separately."""
    try:
        text = world.command([sys.executable, "-P", "-c", _FORKING], _FORKING_SECONDS)
        answer = json.loads(text.strip().splitlines()[-1])
    except (HardwareError, IndexError, ValueError) as error:
        note = f"a throw-away process could not fork and kill a child: {error}"
        remedy = "Look at the limits of this container: ulimit -u, and its seccomp profile."
        return [Finding("workers", Health.BROKEN, note, remedy)]
    if not answer["fork"]:
        note = "this system does not fork: each worker is started anew, which takes seconds more"
        return [Finding("workers", Health.HINT, note, "Nothing to mend.", answer)]
    how = "killed through a pidfd" if answer["pidfd"] else "killed by number: no pidfd here"
    return [Finding("workers", Health.OK, f"forked from a warm template, {how}", details=answer)]


def clock(world: World) -> list[Finding]:
    """Check the smallest step of the clock."""
    times = [world.clock_ns() for _ in range(_READINGS)]
    steps = [after - before for before, after in pairwise(times)]
    tick = min((step for step in steps if step > 0), default=0)
    source = world.files.text(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    ) or ("not told")
    text = f"{tick} ns between readings; clock source {source}"
    details = {"tick_ns": tick, "source": source}
    if tick > _COARSE_NS or tick == 0:
        text = f"{text}: steps below {tick / 1e3:.0f} ms can only be timed in blocks"
        remedy = "Boot with a steady TSC (clocksource=tsc), or measure larger batches."
        return [Finding("clock", Health.HINT, text, remedy, details)]
    return [Finding("clock", Health.OK, text, details=details)]


def limits(world: World) -> list[Finding]:
    """Check the limits of a container or the scheduler."""
    now = world.look()
    cpus = now.limits.effective_cpus(now.cpus)
    memory = now.limits.memory_limit_bytes
    parts = [f"{cpus:g} of {now.cpus} CPUs"]
    parts.append("all memory" if memory is None else f"{memory / 2**30:.1f} GiB of memory")
    text = f"{', '.join(parts)} may be used"
    if now.limits.cpu_quota is not None and now.limits.cpu_quota != int(now.limits.cpu_quota):
        remedy = f"Give whole CPUs (docker run --cpus {int(now.limits.cpu_quota) or 1})."
        text += "; a quota of part of a CPU stops the process within steps"
        return [Finding("limits", Health.HINT, text, remedy)]
    return [Finding("limits", Health.OK, text)]


def noise(world: World) -> list[Finding]:
    """Check for causes of scattered results."""
    now = world.look()
    findings = []
    if (busy := busy_warning(now)) is not None:
        findings.append(Finding("load", Health.HINT, busy, "Wait, or close what is at work."))
    governor = now.governor
    if isinstance(governor, str) and set(governor.split(", ")) - STEADY_GOVERNORS:
        text = f"the frequency governor is {governor}: clocks follow the load"
        remedy = "sudo cpupower frequency-set -g performance"
        findings.append(Finding("governor", Health.HINT, text, remedy))
    if boost(world.files) is True:
        text = "turbo is on: clocks depend on how many cores work and how warm they are"
        remedy = "For comparisons switch it off, or use --launches; for absolute figures leave it."
        findings.append(Finding("turbo", Health.HINT, text, remedy))
    if findings:
        return findings
    load = "load not told" if now.load is None else f"load {now.load[0]:.1f} on {now.cpus} CPUs"
    clocks = "governor not told" if isinstance(governor, NotAvailable) else f"governor {governor}"
    return [Finding("noise", Health.OK, f"quiet: {load}, {clocks}")]


def cache(world: World) -> list[Finding]:
    """Check the folder of exported models."""
    place = world.cache
    trouble = unwritable(place.path)
    if trouble:
        remedy = place.remedy or f"Name another folder, or: mkdir -p {place.path}"
        return [Finding(place.name, Health.BROKEN, trouble, remedy)]
    size, free = _size(place.path), world.free_bytes(_existing(place.path))
    text = f"{place.path}: {size / 2**30:.2f} GiB"
    if place.cap_bytes is not None:
        text += f" of at most {place.cap_bytes / 2**30:.0f}"
    text += f", {free / 2**30:.1f} GiB free on its disk"
    details = {"bytes": size, "cap_bytes": place.cap_bytes, "free_bytes": free}
    if place.cap_bytes is not None and free < place.cap_bytes - size:
        text += ": the disk is full before the cap is reached"
        return [Finding(place.name, Health.HINT, text, place.remedy, details)]
    return [Finding(place.name, Health.OK, text, details=details)]


def store(world: World) -> list[Finding]:
    """Check the database of results."""
    path = world.store
    if path.is_dir():
        fault = f"{path} is a folder, not a database"
        return [Finding("store", Health.BROKEN, fault, "Name a file: export ACCELBENCH_DB=FILE")]
    if (trouble := unwritable(path.parent)) is not None:
        remedy = "Name a place that can be written: export ACCELBENCH_DB=FILE"
        return [Finding("store", Health.BROKEN, trouble, remedy)]
    if not path.exists():
        return [Finding("store", Health.OK, f"{path} will be made by the first run")]
    fault = ""
    try:
        with path.open("rb") as file:
            head = file.read(_DUCK_AT + len(_DUCK))
        if not head.endswith(_DUCK):
            fault = f"{path} is not a DuckDB file"
        elif not os.access(path, os.W_OK):
            fault = f"{path} cannot be written"
    except OSError as error:
        fault = f"{path} cannot be read: {error.strerror}"
    if fault:
        remedy = "Name another one: export ACCELBENCH_DB=FILE, or `accelbench db init --db FILE`"
        return [Finding("store", Health.BROKEN, fault, remedy)]
    return [Finding("store", Health.OK, f"{path}, {path.stat().st_size / 2**20:.1f} MB")]


def unwritable(folder: Path) -> str | None:
    """Return why a folder cannot be written, or None."""
    place = _existing(folder)
    if not place.is_dir():
        return f"{place} is in the way: it is no folder"
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".accelbench-doctor-"):
            return None
    except OSError as error:
        return f"{place} cannot be written: {error.strerror}"


def _existing(folder: Path) -> Path:
    return next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # another process is removing it
            total += path.stat().st_size if path.is_file() else 0
    return total


_MODULE = "accelbench.hardware.doctor.engine"
_PATIENCE = (
    "accelbench doctor --timeout 300, on a quiet machine; an engine that hangs still has a driver"
    " that does: see the system log."
)


def engine_checks(world: World) -> list[DoctorCheck]:
    """Return one check per engine, so that they are imported in parallel."""
    return [
        DoctorCheck("runtimes", name, lambda w, n=name, r=runtime: [engine(w, n, r)])  # type: ignore[misc]
        for name, runtime in world.runtimes()
        if isinstance(runtime, PluginError) or runtime.info.provenance is not Provenance.SIMULATED
    ]


def engine(world: World, name: str, runtime: Any) -> Finding:
    """Return the state of one runtime, or of the plugin that could not be loaded as one."""
    if isinstance(runtime, PluginError):
        return Finding(name, Health.BROKEN, runtime.message.rstrip("."), runtime.advice)
    info = runtime.info
    install = setup_command(info.extra) if info.extra else _package_command(info.package)
    if info.package and not world.importable(info.package):
        return Finding(name, Health.MISSING, f"{info.package} is not installed", install)
    if isinstance(runtime, SetUp) and not (state := runtime.ready()).ok:
        return Finding(name, Health.MISSING, state.message, state.advice)
    try:
        text = world.command([sys.executable, "-P", "-m", _MODULE, name], world.engine_seconds)
        answer = json.loads(text.strip().splitlines()[-1])
    except ProbeTimeoutError:
        note = f"{info.package or name} did not answer within {world.engine_seconds:g} s"
        return Finding(name, Health.BROKEN, note, _PATIENCE)
    except HardwareError as error:
        note = f"{info.package or name} is installed and does not work: {error.message}"
        return Finding(name, Health.BROKEN, note, _repair_command(install))
    except (IndexError, ValueError):
        note = f"{info.package or name} was imported and gave no answer"
        return Finding(name, Health.BROKEN, note, _repair_command(install))
    where = ", ".join(answer["devices"]) or "no device"
    note = f"{info.package} {answer['version']}".strip()
    note += f", imported in {answer['import_seconds']:.1f} s; sees {where}"
    if not answer["devices"]:
        return Finding(name, Health.HINT, note, "accelbench hardware says why.", answer)
    return Finding(name, Health.OK, note, details=answer)


def _package_command(package: str) -> str:
    return f"pip install {package.replace('_', '-')}" if package else ""


def _repair_command(install: str) -> str:
    if not install:
        return "Reinstall the package it comes from."
    if install.startswith("pip"):
        return install.replace("pip install", "pip install --force-reinstall")
    return f"{install} --reinstall"


_CHROMIUM = "chromium"

#: Engines take a core each while they are imported, and 0.3 GB.
_MOST_AT_ONCE = 4


def platforms(world: World) -> list[Finding]:
    """Check each platform's detector."""
    every = world.detect()
    devices = [one for ones in every.values() for one in ones if isinstance(one, Device)]
    findings = [_platform_finding(name, ones[0], len(ones)) for name, ones in every.items() if ones]
    return [*findings, *_check_energy(describe_meters(devices, world.files))]


def _check_energy(meters: Mapping[str, str]) -> list[Finding]:
    return [_meter_finding(name, text) for name, text in meters.items()]


def _meter_finding(device: str, text: str) -> Finding:
    if text.startswith("not available"):
        remedy = "--energy gives no figure there: docs/energy.md."
        return Finding(f"energy of {device}", Health.MISSING, text, remedy)
    return Finding(f"energy of {device}", Health.OK, text)


def _platform_finding(name: str, first: Device | Absent, count: int) -> Finding:
    if isinstance(first, Absent):
        health = Health.BROKEN if is_broken(first) else Health.MISSING
        return Finding(name, health, first.reason, first.remedy)
    text = str(getattr(first, "name", first)) + (f" and {count - 1} more" if count > 1 else "")
    if getattr(first, "emulated", False):
        text += " (emulated: right, its times mean nothing)"
    return Finding(name, Health.OK, text)


def browser(world: World) -> list[Finding]:
    """Check for a browser, and for what fetches the files of its pages."""
    npm = world.which("npm")
    return [
        _pages_run_in(world),
        Finding("npm", Health.OK, npm)
        if npm
        else Finding(
            "npm",
            Health.MISSING,
            "not found in PATH; accelbench setup browser fetches with it",
            "Install Node.js with npm: https://nodejs.org, or: sudo apt install npm",
        ),
    ]


def _pages_run_in(world: World) -> Finding:
    if vain := world.programs.explain_missing():
        return Finding("browser", Health.BROKEN, vain, NAME_ANOTHER)
    programs = world.programs.find()
    fit = [program for program in programs if program.engine == _CHROMIUM]
    if fit:
        return Finding("browser", Health.OK, f"{fit[0].name} at {fit[0].path}")
    others = ", ".join(program.name for program in programs)
    text = "no browser of Chromium's kind found" + (f", only {others}" if others else "")
    remedy = world.browser_remedy or "Install Chrome, Edge or Chromium."
    return Finding("browser", Health.MISSING, text, remedy)


#: In the order of the page. Each engine has its own check after these two groups.
CHECKS: tuple[DoctorCheck, ...] = (
    DoctorCheck("machine", "Python", python),
    DoctorCheck("machine", "workers", isolation),
    DoctorCheck("machine", "clock", clock),
    DoctorCheck("machine", "limits", limits),
    DoctorCheck("machine", "noise", noise),
    DoctorCheck("places", "store", store),
    DoctorCheck("places", "artefact cache", cache),
    DoctorCheck("packages", "extras", packages.extras),
    DoctorCheck("packages", "packages among themselves", packages.metadata),
    DoctorCheck("packages", "known clashes", packages.clashes),
    DoctorCheck("packages", "torch build", packages.torch_build),
    DoctorCheck("platforms", "detectors", platforms),
    DoctorCheck("browser", "browser", browser),
)

GROUPS = ("machine", "places", "packages", "runtimes", "platforms", "browser")

Examined = list[tuple[str, Finding]]  # group, finding


def examine(world: World, checks: Sequence[DoctorCheck] = CHECKS) -> Examined:
    """Run all checks in parallel; return their findings in the order of the page."""
    # The clock and the load are checked before imports disturb them.
    quiet = [check for check in checks if check.group == "machine"]
    rest = [*(c for c in checks if c.group != "machine"), *engine_checks(world)]
    pairs = [(check.group, entry) for check in quiet for entry in _run_check(check, world)]
    most = max(2, min(_MOST_AT_ONCE, os.cpu_count() or 1))
    with ThreadPoolExecutor(most) as pool:
        # Engines first: they take longest.
        order = sorted(rest, key=lambda check: check.group != "runtimes")
        answers = list(pool.map(lambda check: _run_check(check, world), order))
    pairs += [(c.group, entry) for c, ones in zip(order, answers, strict=True) for entry in ones]
    return sorted(pairs, key=lambda pair: GROUPS.index(pair[0]))


def _run_check(check: DoctorCheck, world: World) -> list[Finding]:
    try:
        return check.ask(world)
    except Exception as error:
        log.debug("check of %s failed", check.name, exc_info=error)
        text = f"looking at it failed: {type(error).__name__}: {error}"
        remedy = "Run again with --debug and report what it shows."
        return [Finding(check.name, Health.BROKEN, text, remedy)]


def is_healthy(pairs: Examined) -> bool:
    """Return whether no installed part is broken or clashes."""
    return not any(finding.health in ILL for _, finding in pairs)


def main() -> dict[str, bool]:
    """Fork a child and kill it; return what worked."""
    if not hasattr(os, "fork"):
        return {"fork": False, "pidfd": False}
    child = processes.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    handle = None
    try:
        handle = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        if handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        handle = None
    if handle is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return {"fork": os.WIFSIGNALED(status), "pidfd": handle is not None}
