"""Every check of the doctor, declared once, and how they are asked side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from accelbench.core.protocols import Absent, Device
from accelbench.hardware.browsers import NAME_ANOTHER
from accelbench.hardware.common import log
from accelbench.hardware.detect import is_broken
from accelbench.hardware.doctor import machine, packages
from accelbench.hardware.doctor.engines import engine_checks
from accelbench.hardware.doctor.finding import ILL, DoctorCheck, Finding, Health
from accelbench.hardware.doctor.world import World
from accelbench.hardware.telemetry.energy import meters_of

_CHROMIUM = "chromium"

#: Engines take a core each while they are imported, and 0.3 GB.
_MOST_AT_ONCE = 4


def platforms(world: World) -> list[Finding]:
    """Each platform's detector."""
    every = world.detect()
    devices = [one for ones in every.values() for one in ones if isinstance(one, Device)]
    findings = [_platform(name, ones[0], len(ones)) for name, ones in every.items() if ones]
    return [*findings, *_energy(meters_of(devices, world.files))]


def _energy(meters: Mapping[str, str]) -> list[Finding]:
    """What counts energy, for `accelbench run --energy`."""
    return [_meter(name, text) for name, text in meters.items()]


def _meter(device: str, text: str) -> Finding:
    if text.startswith("not available"):
        remedy = "--energy gives no figure there: docs/energy.md."
        return Finding(f"energy of {device}", Health.MISSING, text, remedy)
    return Finding(f"energy of {device}", Health.OK, text)


def _platform(name: str, first: Device | Absent, count: int) -> Finding:
    if isinstance(first, Absent):
        health = Health.BROKEN if is_broken(first) else Health.MISSING
        return Finding(name, health, first.reason, first.remedy)
    text = str(getattr(first, "name", first)) + (f" and {count - 1} more" if count > 1 else "")
    if getattr(first, "emulated", False):
        text += " (emulated: right, its times mean nothing)"
    return Finding(name, Health.OK, text)


def browser(world: World) -> list[Finding]:
    """What pages are run with, and what fetches the files they need."""
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
    if vain := world.programs.named_in_vain():
        return Finding("browser", Health.BROKEN, vain, NAME_ANOTHER)
    programs = world.programs.find()
    fit = [program for program in programs if program.engine == _CHROMIUM]
    if fit:
        return Finding("browser", Health.OK, f"{fit[0].name} at {fit[0].path}")
    others = ", ".join(program.name for program in programs)
    text = "no browser of Chromium's kind found" + (f", only {others}" if others else "")
    remedy = world.browser_remedy or "Install Chrome, Edge or Chromium."
    return Finding("browser", Health.MISSING, text, remedy)


#: The order is that of the page. Runtimes have a check each and come after these two groups.
CHECKS: tuple[DoctorCheck, ...] = (
    DoctorCheck("machine", "Python", machine.python),
    DoctorCheck("machine", "workers", machine.isolation),
    DoctorCheck("machine", "clock", machine.clock),
    DoctorCheck("machine", "limits", machine.limits),
    DoctorCheck("machine", "noise", machine.noise),
    DoctorCheck("places", "store", machine.store),
    DoctorCheck("places", "artefact cache", machine.cache),
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
    """Ask everything, side by side; in the order of the page, whatever answers first."""
    # The clock and the load are looked at before imports disturb them.
    quiet = [check for check in checks if check.group == "machine"]
    rest = [*(c for c in checks if c.group != "machine"), *engine_checks(world)]
    pairs = [(check.group, entry) for check in quiet for entry in _asked(check, world)]
    most = max(2, min(_MOST_AT_ONCE, os.cpu_count() or 1))
    with ThreadPoolExecutor(most) as pool:
        # Engines first: they take longest.
        order = sorted(rest, key=lambda check: check.group != "runtimes")
        answers = list(pool.map(lambda check: _asked(check, world), order))
    pairs += [(c.group, entry) for c, ones in zip(order, answers, strict=True) for entry in ones]
    return sorted(pairs, key=lambda pair: GROUPS.index(pair[0]))


def _asked(check: DoctorCheck, world: World) -> list[Finding]:
    """A check that fails itself is something broken, not the end of the examination."""
    try:
        return check.ask(world)
    except Exception as error:
        log.debug("check of %s failed", check.name, exc_info=error)
        text = f"looking at it failed: {type(error).__name__}: {error}"
        remedy = "Run again with --debug and report what it shows."
        return [Finding(check.name, Health.BROKEN, text, remedy)]


def well(pairs: Examined) -> bool:
    """Nothing that is installed is broken or clashes."""
    return not any(finding.health in ILL for _, finding in pairs)
