"""How far predictions from counts are off, by what is new: the model, the hardware or both.

Errors come from rows held out as the predicted ones are: whole families, whole devices, or devices
of which training has seen neither the device nor the family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.device_limits import LEVEL
from accelbench.predict.signatures import Floats, Ints
from prediction.intervals import half_width, weighted_quantile
from prediction.measurements import TableMeasurement
from prediction.transfer import BOTH_NEW, NEW_HARDWARE, NEW_MODEL, SAME_HARDWARE

#: Fits on some rows of training and gives the errors of others.
Errors = Callable[[Ints, Ints], Floats]

_FOLDS = 3
_UNKNOWN = 0.5  # half an interval where nothing could be held out, and what new hardware adds


def bases_of(
    train: Sequence[TableMeasurement], rows: Sequence[TableMeasurement]
) -> tuple[str, ...]:
    """What is new of each row."""
    models = {m.model for m in train}
    devices = {m.configuration.hardware for m in train}
    names = {
        (True, True): SAME_HARDWARE,
        (False, True): NEW_MODEL,
        (True, False): NEW_HARDWARE,
        (False, False): BOTH_NEW,
    }
    return tuple(names[m.model in models, m.configuration.hardware in devices] for m in rows)


@dataclass(frozen=True)
class HeldOutRows:
    """Errors of held-out rows, with their families and hardware."""

    errors: Floats
    family: tuple[str, ...]
    hardware: tuple[str, ...]

    def half_width(self) -> float:
        """Nine in ten of the errors."""
        return half_width(self.errors, self.family)

    def anchored(self, anchors: int) -> float:
        """The same where as many anchors have said each device's shift."""
        rest = self.errors.copy()
        names = np.array(self.hardware)
        weights = np.ones(len(rest))
        for name in set(self.hardware):
            mine = names == name
            rest[mine] -= np.median(rest[mine])
            weights[mine] = 1 / mine.sum()
        wide = weighted_quantile(np.abs(rest), weights, LEVEL)
        return float(wide * np.sqrt(1 + 1 / anchors))


def held_out(
    train: Sequence[TableMeasurement], errors_of: Errors, basis: str
) -> HeldOutRows | None:
    """Errors of rows of which as much is new; None where training cannot tell."""
    family = _folds([m.family for m in train])
    hardware = _folds([m.configuration.hardware for m in train])
    wanted = {
        NEW_HARDWARE: (hardware,), BOTH_NEW: (family, hardware)
    }.get(basis, (family,))  # fmt: skip
    if any(fold.max(initial=0) < 1 for fold in wanted):
        return None
    errors: list[Floats] = []
    rows: list[Ints] = []
    for number in range(min(int(fold.max()) + 1 for fold in wanted)):
        out = np.logical_and.reduce([fold == number for fold in wanted])
        kept = np.logical_and.reduce([fold != number for fold in wanted])
        if out.any() and kept.any():
            rows.append(np.flatnonzero(out))
            errors.append(errors_of(np.flatnonzero(kept), rows[-1]))
    if not rows:
        return None
    chosen = [train[int(n)] for n in np.concatenate(rows)]
    return HeldOutRows(
        np.concatenate(errors),
        tuple(m.family for m in chosen),
        tuple(m.configuration.hardware for m in chosen),
    )


def unknown_width(basis: str, known: float | None) -> float:
    """Half an interval where no row could be held out, from the one of new models."""
    if known is None:
        return _UNKNOWN
    return float(np.hypot(known, _UNKNOWN)) if basis in {NEW_HARDWARE, BOTH_NEW} else known


def _folds(names: Sequence[str]) -> Ints:
    """The fold of each name: names in turn."""
    numbers = {name: n % _FOLDS for n, name in enumerate(sorted(set(names)))}
    return np.array([numbers[name] for name in names], dtype=np.int64)
