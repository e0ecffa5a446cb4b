"""Every registered runtime: its engine installed, imported in a throw-away process, asked."""

from __future__ import annotations

import json
import sys
from typing import Any

from accelbench.core.errors import setting_up
from accelbench.core.plugins import PluginError
from accelbench.core.protocols import SetUp
from accelbench.core.vocabulary import Provenance
from accelbench.hardware.common import HardwareError, ProbeTimeoutError
from accelbench.hardware.doctor.finding import DoctorCheck, Finding, Health
from accelbench.hardware.doctor.world import World

_MODULE = "accelbench.hardware.doctor.engine"
_PATIENCE = (
    "accelbench doctor --timeout 300, on a quiet machine; an engine that hangs still has a driver"
    " that does: see the system log."
)


def engine_checks(world: World) -> list[DoctorCheck]:
    """One check a runtime, so that engines are imported side by side."""
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
    install = setting_up(info.extra) if info.extra else _alone(info.package)
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
        return Finding(name, Health.BROKEN, note, _mend(install))
    except (IndexError, ValueError):
        note = f"{info.package or name} was imported and gave no answer"
        return Finding(name, Health.BROKEN, note, _mend(install))
    where = ", ".join(answer["devices"]) or "no device"
    note = f"{info.package} {answer['version']}".strip()
    note += f", imported in {answer['import_seconds']:.1f} s; sees {where}"
    if not answer["devices"]:
        return Finding(name, Health.HINT, note, "accelbench hardware says why.", answer)
    return Finding(name, Health.OK, note, details=answer)


def _alone(package: str) -> str:
    """What installs the engine of a runtime that names no extra of ours."""
    return f"pip install {package.replace('_', '-')}" if package else ""


def _mend(install: str) -> str:
    if not install:
        return "Reinstall the package it comes from."
    if install.startswith("pip"):
        return install.replace("pip install", "pip install --force-reinstall")
    return f"{install} --reinstall"
