"""What `--simulate` puts in the place of a device that was named and is not here."""

from __future__ import annotations

from accelbench.core.errors import UsageError
from accelbench.core.protocols import Device, Inventory
from accelbench.hardware.rooflines import Roofline, is_called, roofline, rooflines_of

#: What runs in a browser pays for it, and by how much no maker of a device documents.
_IN_A_BROWSER = ("webgpu", "webnn", "wasm")


def stand_in(hardware: str, named: str, inventory: Inventory) -> Device | Roofline | None:
    """The documented device for one that is not here; the device itself where it is, after all.

    Called only where nothing found answers to the name. An ordinal asks for something in this
    machine, not for a device that people know; and a card that another platform sees is here,
    so it is measured, by a name that the platform knows, or not at all.

    Raises:
        UsageError: no document of such a device is known.
    """
    known = rooflines_of(hardware)
    if named.isdecimal() or not known:
        return None
    meant = roofline(hardware, named)
    if meant is None:
        raise UsageError(
            f"--simulate knows no document of {hardware}:{named}, which is not here.",
            f"Documented for {hardware}: {', '.join(document.name for document in known)}.",
        )
    here = [candidate for candidate in inventory.get(hardware, ()) if isinstance(candidate, Device)]
    for device in here:
        if is_called(meant, device.name):
            return device
    everywhere = (
        entry for entries in inventory.values() for entry in entries if isinstance(entry, Device)
    )
    if here and any(is_called(meant, neighbour.name) for neighbour in everywhere):
        return None
    return meant


def remark(hardware: str, named: str, meant: Roofline) -> str:
    """What a reader has to know of a place whose figures are simulated."""
    text = (
        f"{hardware}:{meant.name} is not here: its figures are simulated from the documented"
        f" roofline of {meant.device}, a limit, not a measurement."
    )
    if named != meant.name:
        text += f" It is what {hardware}{f':{named}' if named else ''} alone stands for."
    if hardware in _IN_A_BROWSER:
        text += " What a browser adds is not in them."
    return text
