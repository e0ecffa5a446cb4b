"""What `accelbench hardware --calibrate` does, and what is known of earlier calibrations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import AccelbenchError, MissingExtraError, SurroundingsError, UsageError
from accelbench.core.protocols import Absent, Device
from accelbench.core.visible import in_quotes
from accelbench.engines.pytorch.runtime import PytorchRuntime
from accelbench.present.terminal.terminal import complain

if TYPE_CHECKING:
    from accelbench.core.calibration import DeviceCalibration
    from accelbench.judge.calibrations import StoredCalibrations

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

    Args:
        processes: among so many collectives are timed, where they are several.
    """
    from accelbench.hardware.environment import environment
    from accelbench.present.terminal.hardware import ProbeProgress
    from accelbench.run.calibrate.calibrating import calibrate, record
    from accelbench.store.database import store_at

    database = store_at(path)
    database.ensure()
    surroundings = environment()
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
