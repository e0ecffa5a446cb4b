"""The compatibility matrix as a document for machines, in the shape of the selection guide.

    {"timestamp", "hardware_types",
     "model_families": {family: {"hardware_compatibility":
         {hardware: {"compatible", "performance_rating", …}}}}}

with the same below "models", and more keys in each cell. docs/matrix-schema.json describes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from accelbench.analysis.cells import Availability, Matrix, MatrixCell, MatrixLine, Rating
from accelbench.analysis.machines import Machine
from accelbench.analysis.matrix import HIGH, MEDIUM, NEAR_BEST, RULE, UNRATED

FORMAT_VERSION = 1
#: What a matrix without a named precision is of.
BEST_PRECISION = "each in the best precision that ran"

#: The documents' marks; what is not available is told from what is not compatible.
_MARKS = {Rating.HIGH: "✅ High", Rating.MEDIUM: "✅ Medium", Rating.LOW: "⚠️ Low"}


@dataclass(frozen=True)
class MatrixHeader:
    """What a matrix is of."""

    made_at: str
    machine: Machine
    precision: str | None  # the one that all are in; None is the best that ran, each its own
    mode: str
    others: tuple[Machine, ...] = ()  # machines of the same store that are not in it

    def __str__(self) -> str:
        if self.precision is None:
            return f"{self.mode} on {self.machine}, {BEST_PRECISION}"
        return f"{self.precision} {self.mode} on {self.machine}"


def document(matrix: Matrix, about: MatrixHeader) -> dict[str, object]:
    """Plain JSON values."""
    return {
        "timestamp": about.made_at,
        "hardware_types": list(matrix.hardware),
        "model_families": {
            line.name: {
                "hardware_compatibility": _cells(line),
                "models": [model.name for model in matrix.models if model.family == line.name],
            }
            for line in matrix.families
        },
        "models": {
            line.name: {"family": line.family, "hardware_compatibility": _cells(line)}
            for line in matrix.models
        },
        "machine": _machine(about.machine),
        "other_machines": [_machine(other) for other in about.others],
        "precision": about.precision,
        "mode": about.mode,
        "newest_result": matrix.newest or None,
        "rule": {
            "high": HIGH,
            "near_best": NEAR_BEST,
            "medium": MEDIUM,
            "text": list(RULE),
        },
        "format_version": FORMAT_VERSION,
    }


def _cells(line: MatrixLine) -> dict[str, object]:
    return {hardware: _cell(cell) for hardware, cell in line.cells.items()}


def _cell(cell: MatrixCell) -> dict[str, object]:
    return {
        "compatible": cell.compatible,
        "performance_rating": cell.rating.value,
        "availability": cell.availability.value,
        "reason": cell.reason,
        "reason_token": cell.token or None,
        "advice": cell.advice or None,
        "speed_vs_cpu": cell.speed,
        "batch_sizes": list(cell.batches),
        "runtime": cell.runtime or None,
        "runtimes": list(cell.runtimes),
        "precisions": list(cell.precisions),
        "verification": cell.verification or None,
        "verification_error": cell.error,
        "workarounds": list(cell.workarounds),
        "emulated": cell.emulated,
        "run_id": cell.run_id or None,
        "notes": list(cell.notes),
    }


def _machine(machine: Machine) -> dict[str, object]:
    return {
        "id": machine.id,
        "name": machine.name,
        "cpu": machine.cpu or None,
        "cpus": machine.cpus or None,
        "memory_gib": machine.memory_gib or None,
    }


def moment(text: str) -> str:
    """A stored moment as pages say it: to the minute; what is none stays as it is."""
    match = re.match(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)", text)
    return f"{match[1]} {match[2]} UTC" if match else text


def mark(cell: MatrixCell) -> str:
    """The level with the documents' mark, for pages."""
    if cell.rating is not Rating.NONE:
        return _MARKS[cell.rating]
    if cell.compatible:
        if cell.emulated:
            return "compatible (emulated)"
        return UNRATED.get(cell.token, "compatible, not rated")
    return "❌ N/A" if cell.availability is Availability.INCOMPATIBLE else cell.level_without_rating


def precisions(cell: MatrixCell) -> tuple[str, ...]:
    """What it is in, where that is not what people expect."""
    return () if cell.precisions == ("fp32",) else cell.precisions


def tells(cell: MatrixCell) -> list[tuple[str, str]]:
    """Everything a cell says beside its level, as pairs for pages; what it does not know is out."""
    pairs = (
        ("reason", cell.reason),
        ("runtime", " and ".join(cell.runtimes)),
        ("precision", " and ".join(cell.precisions)),
        ("verification", cell.verification if cell.verification != "not_done" else ""),
        ("worst error", "" if cell.error is None else f"{cell.error:.2g}"),
        ("workarounds", ", ".join(cell.workarounds)),
        ("also", "; ".join(cell.notes)),
        ("advice", cell.advice),
        ("run", cell.run_id),
    )
    return [(name, text) for name, text in pairs if text]
