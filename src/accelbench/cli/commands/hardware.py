"""`accelbench hardware`: list platforms, or calibrate a device."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.lists import SpacedLists
from accelbench.core.errors import UsageError, setting_up
from accelbench.core.nouns import words
from accelbench.core.plugins import ENGINES, PluginError, load_all
from accelbench.core.protocols import Absent, Device, Inventory
from accelbench.core.serial import device_to_json
from accelbench.core.vocabulary import Provenance

if TYPE_CHECKING:
    from accelbench.core.calibration import DeviceCalibration
    from accelbench.judge.calibrations import StoredCalibrations

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Serving:
    """A runtime that serves a platform, whether or not its engine is installed."""

    name: str
    extra: str
    installed: bool

    def __str__(self) -> str:
        if self.installed:
            return self.name
        return (
            f"{self.name} ({f'needs {setting_up(self.extra)}' if self.extra else 'not installed'})"
        )


@app.command(cls=SpacedLists)
def hardware(
    names: list[str] | None = typer.Argument(
        None, metavar="[NAME]", help="Only these platforms, e.g. cpu cuda."
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON document, for machines."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Every detail of each device."),
    browser: Path | None = typer.Option(
        None, "--browser", help="Of browsers, only the one that this program is."
    ),
    calibrate: bool = typer.Option(
        False,
        "--calibrate",
        help="Instead: measure peaks and bandwidth of devices that PyTorch serves, 30 s each.",
    ),
    processes: int = typer.Option(
        1,
        "--processes",
        min=1,
        help="With --calibrate: time collectives among so many processes as well.",
    ),
    hardware_option: list[str] = typer.Option(
        [], "--hardware", help="As NAME; with --calibrate also one of several, e.g. cuda:1."
    ),
    db: Path | None = typer.Option(
        None,
        "--db",
        help="Database of calibrations; else $ACCELBENCH_DB, else accelbench.duckdb.",
    ),
) -> None:
    """Show every platform, present or absent, and why.

    A device can be present while no runtime serves it yet: the last column tells.

    --calibrate times matrix products in each precision, copies from memory and caches, launches
    and attention, and stores them: the roofline chart and predictions then have the device's
    own peaks in place of its vendor's.
    """
    from accelbench.cli.arguments.resolved_values import use_browser
    from accelbench.cli.services.calibrating import known_calibrations
    from accelbench.hardware.detect import detect, detect_all
    from accelbench.hardware.telemetry.energy import meters_of

    use_browser(browser)

    wanted = words([*(names or ()), *hardware_option])
    if calibrate:
        _calibrate(wanted, db, processes, as_json=as_json)
        return
    if processes > 1:
        raise UsageError("--processes is of --calibrate.", "Add --calibrate, or leave it out.")
    platforms = {name: detect(name) for name in _platforms(wanted)} if wanted else detect_all()
    served, broken = runtimes()
    known = known_calibrations(db)
    found = [one for ones in platforms.values() for one in ones if isinstance(one, Device)]
    meters = meters_of(found)
    if as_json:
        whole = {**document(platforms, served, broken, known), "energy_meters": meters}
        sys.stdout.write(json.dumps(whole, indent=2) + "\n")
        return
    from accelbench.present.terminal.documents import show
    from accelbench.present.terminal.hardware import hardware_document

    show(hardware_document(platforms, served, broken, verbose=verbose, known=known, meters=meters))


def _calibrate(wanted: Sequence[str], db: Path | None, processes: int, *, as_json: bool) -> None:
    from accelbench.cli.services.calibrating import calibrated, devices_to_calibrate
    from accelbench.present.terminal.hardware import show_calibration
    from accelbench.present.terminal.terminal import print_json

    devices = devices_to_calibrate(wanted)
    if not as_json:
        calibrated(devices, db, show_calibration, processes)
        return
    calibrations: list[DeviceCalibration] = []
    try:
        calibrated(devices, db, calibrations.append, processes)
    finally:
        print_json({"calibrations": [calibration.to_body() for calibration in calibrations]})


def _platforms(typed: Iterable[str]) -> dict[str, None]:
    """The platforms that are asked about; of gpu the one that is here, else why none is."""
    from accelbench.core.errors import SurroundingsError
    from accelbench.hardware.detect import GPU, GPU_PLATFORMS, gpu_here

    names: dict[str, None] = {}
    for word in typed:
        if word.lower() != GPU:
            names[word.lower()] = None
            continue
        try:
            names[gpu_here().partition(":")[0]] = None
        except SurroundingsError:
            names |= dict.fromkeys(GPU_PLATFORMS)
    return names


def runtimes() -> tuple[dict[str, list[Serving]], dict[str, str]]:
    """Return the runtimes that serve each platform, and why others cannot be used.

    Runtimes that only simulate serve nothing.
    """
    served: dict[str, list[Serving]] = {}
    broken: dict[str, str] = {}
    for name, runtime in load_all(ENGINES):
        if isinstance(runtime, PluginError):
            broken[name] = str(runtime)
            continue
        info = runtime.info
        if info.provenance is Provenance.SIMULATED:
            continue
        installed = not info.package or find_spec(info.package) is not None
        for platform in info.hardware:
            served.setdefault(platform, []).append(Serving(name, info.extra, installed))
    return served, broken


def document(
    inventory: Inventory,
    served: Mapping[str, list[Serving]],
    broken: Mapping[str, str],
    known: StoredCalibrations | None = None,
) -> dict[str, Any]:
    """Everything as plain JSON values."""
    return {
        "hardware": {
            name: _platform(ones, served.get(name, []), known) for name, ones in inventory.items()
        },
        "broken_runtimes": dict(broken),
    }


def _platform(
    ones: Sequence[Device | Absent],
    served: list[Serving],
    known: StoredCalibrations | None,
) -> dict[str, Any]:
    from accelbench.present.terminal.hardware import collectives_document, limits_document

    devices = []
    for device in (entry for entry in ones if isinstance(entry, Device)):
        limits = known.of(device.fingerprint) if known else None
        timed = known.collectives_of(device.fingerprint) if known else []
        devices.append(
            {
                **device_to_json(device),
                "calibration": None if limits is None else limits_document(limits),
                "collectives": [collectives_document(entry) for entry in timed],
            }
        )
    gone = next((entry for entry in ones if isinstance(entry, Absent)), None)
    return {
        "present": bool(devices),
        "devices": devices,
        "reason": gone.reason if gone else None,
        "remedy": gone.remedy if gone else None,
        "runtimes": [asdict(serving) for serving in served],
    }
