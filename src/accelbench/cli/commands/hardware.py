"""`accelbench hardware`: list platforms, or calibrate a device.

What `accelbench hardware --calibrate` does, and what is known of earlier calibrations.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.shared_options import SpacedLists, parameters_of
from accelbench.core.errors import (
    AccelbenchError,
    MissingExtraError,
    SurroundingsError,
    UsageError,
    setup_command,
)
from accelbench.core.formatting import split_words
from accelbench.core.plugins import ENGINES, PluginError, load_all
from accelbench.core.protocols import Absent, Device, Inventory
from accelbench.core.safe_text import in_quotes
from accelbench.core.serial import device_to_json
from accelbench.core.vocabulary import Provenance
from accelbench.engines.pytorch.runtime import PytorchRuntime
from accelbench.present.terminal.terminal import complain

if TYPE_CHECKING:
    from accelbench.core.calibration import DeviceCalibration
    from accelbench.judge.calibrations import StoredCalibrations


argument, option = parameters_of("hardware")
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
            f"{self.name}"
            f" ({f'needs {setup_command(self.extra)}' if self.extra else 'not installed'})"
        )


@app.command(cls=SpacedLists)
def hardware(
    names: list[str] | None = argument(None, metavar="[NAME]"),
    as_json: bool = typer.Option(False, "--json", help="One JSON document, for machines."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Every detail of each device."),
    browser: Path | None = option(None, "--browser"),
    calibrate: bool = option(False, "--calibrate"),
    processes: int = option(1, "--processes", min=1),
    hardware_option: list[str] = option([], "--hardware"),
    db: Path | None = option(None, "--db"),
) -> None:
    """Show every platform, present or absent, and why.

    A device can be present while no runtime serves it yet: the last column tells.

    --calibrate times matrix products in each precision, copies from memory and caches, launches
    and attention, and stores them: the roofline chart and predictions then have the device's
    own peaks in place of its vendor's.
    """
    from accelbench.cli.arguments.resolved_values import use_browser
    from accelbench.hardware.detect import detect, detect_all
    from accelbench.hardware.telemetry.energy import describe_meters

    use_browser(browser)

    wanted = split_words([*(names or ()), *hardware_option])
    if calibrate:
        _calibrate(wanted, db, processes, as_json=as_json)
        return
    if processes > 1:
        raise UsageError("--processes is of --calibrate.", "Add --calibrate, or leave it out.")
    platforms = {name: detect(name) for name in _platforms(wanted)} if wanted else detect_all()
    served, broken = runtimes()
    known = known_calibrations(db)
    found = [one for ones in platforms.values() for one in ones if isinstance(one, Device)]
    meters = describe_meters(found)
    if as_json:
        whole = {**document(platforms, served, broken, known), "energy_meters": meters}
        sys.stdout.write(json.dumps(whole, indent=2) + "\n")
        return
    from accelbench.present.terminal.documents import show
    from accelbench.present.terminal.hardware import hardware_document

    show(hardware_document(platforms, served, broken, verbose=verbose, known=known, meters=meters))


def _calibrate(wanted: Sequence[str], db: Path | None, processes: int, *, as_json: bool) -> None:
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
    from accelbench.hardware.detect import GPU, GPU_PLATFORMS, find_gpu

    names: dict[str, None] = {}
    for word in typed:
        if word.lower() != GPU:
            names[word.lower()] = None
            continue
        try:
            names[find_gpu().partition(":")[0]] = None
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
    ones: Sequence[Device | Absent], served: list[Serving], known: StoredCalibrations | None
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


_SERVED = PytorchRuntime.info.hardware


def devices_to_calibrate(words: Sequence[str]) -> list[Device]:
    """The devices that words name, `cuda:1` being one of several; else all that PyTorch serves."""
    from accelbench.hardware.detect import detect

    if find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", "Calibrating a device")
    devices: dict[str, Device] = {}
    for word in words or _SERVED:
        platform, _, ordinal = word.lower().partition(":")
        if platform not in _SERVED:
            raise UsageError(
                f"There are no probes for {in_quotes(word)}.",
                f"Probes run in PyTorch, on {', '.join(_SERVED)}.",
            )
        answers = detect(platform)
        chosen = [
            entry for entry in answers
            if isinstance(entry, Device) and ordinal in ("", str(entry.ordinal))
        ]  # fmt: skip
        if words and not chosen:
            raise _absent(word, answers)
        devices |= {str(device): device for device in chosen}
    return list(devices.values())


def _absent(word: str, answers: Iterable[Device | Absent]) -> SurroundingsError:
    gone = next((entry for entry in answers if isinstance(entry, Absent)), None)
    if gone is None:
        return SurroundingsError(f"There is no device {in_quotes(word)} here.")
    return SurroundingsError(f"{word} is not here: {gone.reason}.", gone.remedy)


def calibrated(
    devices: Sequence[Device],
    path: Path | None,
    show: Callable[[DeviceCalibration], None],
    processes: int = 1,
) -> None:
    """Calibrate devices one after the other, and store and show each as it ends.

    A device that fails is no reason to leave out the next one; its error ends the command.
    """
    from accelbench.hardware.environment import describe_environment
    from accelbench.present.terminal.hardware import ProbeProgress
    from accelbench.run.calibrating import calibrate, record
    from accelbench.store.opening import open_store

    database = open_store(path)
    database.ensure()
    surroundings = describe_environment()
    errors: list[SurroundingsError] = []
    for device in devices:
        try:
            with ProbeProgress(f"{device} — {device.name}", processes) as progress:
                calibration = calibrate(device, hear=progress.hear, processes=processes)
        except SurroundingsError as error:
            errors.append(error)
            continue
        record(calibration, device, database.journals, surroundings)
        for problem in database.fill().problems:
            complain(problem)
        show(calibration)
    for further in errors[1:]:
        complain(str(further))
    if errors:
        raise errors[0]


def known_calibrations(path: Path | None) -> StoredCalibrations:
    """What was calibrated of each device; a database that cannot be read is said."""
    from accelbench.judge.calibrations import StoredCalibrations, calibrations_at

    try:
        return calibrations_at(path, complain)
    except AccelbenchError as error:
        if path is not None:
            raise
        complain(str(error))
        return StoredCalibrations()
