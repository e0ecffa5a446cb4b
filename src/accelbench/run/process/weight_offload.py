"""Weights that the memory does not hold, kept on the disk: where nothing is timed, and only there.

A reference, an export and a cell that is only verified have to be right, not fast. So a model
whose weights alone are too much is mapped to a file; what it computes with must still fit.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from accelbench.core.case import Case
from accelbench.core.vocabulary import Mode
from accelbench.store.folders import default_folder

#: Drawn from a seed tensor by tensor; files of weights are read whole.
_DRAWN = "random"

#: Of the disk that is free, how much may be taken: others write to it too.
_SHARE = 0.9


def weights_bytes(case: Case) -> int:
    """What a model's weights take in fp32."""
    return 4 * case.model.parameters


def spill_to(case: Case, weights: str, need: int, room: int | None, files: int = 1) -> Path | None:
    """A folder for the weights of a case that needs more memory than there is; None if none helps.

    Args:
        case: the case.
        weights: where they come from; only random ones can be spilled.
        need: bytes that it takes with its weights in memory.
        room: bytes of memory that are free.
        files: how many times the weights will be on the disk at once.
    """
    if not _helps(case, weights, need, room):
        return None
    folder = default_folder()
    return folder if files * weights_bytes(case) <= _SHARE * _disk_free(folder) else None


def advice(case: Case, weights: str, need: int, room: int | None, files: int = 1) -> str:
    """What to do where only the disk was too full; arguments as `spill_to`."""
    if not _helps(case, weights, need, room) or spill_to(case, weights, need, room, files):
        return ""
    wanted = files * weights_bytes(case) / _SHARE / 2**30
    return (
        f"With {wanted:.0f} GiB free on the disk of {default_folder()} its weights would be kept"
        " there; ACCELBENCH_CACHE names another."
    )


def _helps(case: Case, weights: str, need: int, room: int | None) -> bool:
    """Whether a disk with room would do."""
    if room is None or weights != _DRAWN or case.mode is not Mode.INFERENCE:
        return False
    return need - weights_bytes(case) <= room


def _disk_free(folder: Path) -> int:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
