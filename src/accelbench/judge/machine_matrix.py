"""The matrix of a machine's results, with why platforms are not here where this is that machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from accelbench.core.protocols import Absent
from accelbench.core.rows import Row
from accelbench.hardware.detect import LazyInventory
from accelbench.hardware.environment import describe_environment
from accelbench.judge.machines import Machine, machine_of
from accelbench.judge.matrix import Matrix, matrix, platforms


class LocalPlatforms:
    """The platforms of the machine that asks, each looked at once.

    OpenVINO's devices take half a second, and a dashboard asks for every page.
    """

    def __init__(self) -> None:
        self._detected = LazyInventory()

    def absences(self, machine: Machine | None, missing: Iterable[str]) -> Mapping[str, str]:
        """Platform → why it is not here; of another machine nothing is known."""
        # What a source measured elsewhere was not measured here, whatever is here.
        if machine is None or machine.elsewhere:
            return {}
        names = list(missing)
        if not names or machine != self._machine:
            return {}
        return {
            name: entry.reason
            for name in names
            if name in self._detected
            for entry in self._detected[name]
            if isinstance(entry, Absent)
        }

    @cached_property
    def _machine(self) -> Machine:
        return machine_of("", describe_environment())


def matrix_on(
    rows: Sequence[Row],
    machine: Machine | None,
    local: LocalPlatforms,
    only: Sequence[str] = (),
    *,
    best_precision: bool,
) -> Matrix:
    """The matrix of the results of one machine.

    Args:
        machine: which one; None where they are of several, or nobody knows.
        best_precision: each platform in the best precision that ran, as in `matrix`.
    """
    # A platform where nothing went through may be absent: models never tried there say so too.
    ok_platforms = {row.get("hardware") for row in rows if row.get("status") == "ok"}
    wanted = only or platforms(str(row.get("hardware")) for row in rows)
    absences = local.absences(machine, [name for name in wanted if name not in ok_platforms])
    return matrix(rows, absences, only, best_precision=best_precision)
