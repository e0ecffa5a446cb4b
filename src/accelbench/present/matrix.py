"""The compatibility matrix as JSON and as a document. Pure.

The JSON has the shape of the selection guide: "model_families" and "models", each with a
"hardware_compatibility" by platform. docs/matrix-schema.json describes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from accelbench.core.formatting import format_digits, join_first
from accelbench.judge.machines import Machine
from accelbench.judge.matrix import (
    HIGH,
    MEDIUM,
    NEAR_BEST,
    RULE,
    UNRATED,
    Availability,
    Matrix,
    MatrixCell,
    MatrixLine,
    Rating,
)
from accelbench.present.document import (
    Document,
    DocumentSection,
    Notes,
    Table,
    TableColumn,
    Tone,
    TonedText,
)
from accelbench.present.texts import phrase

FORMAT_VERSION = 1
#: What a matrix without a named precision is of.
BEST_PRECISION = phrase("matrix.best-precision")

#: The documents' marks; what is not available is told from what is not compatible.
_MARKS = {Rating.HIGH: "✅ High", Rating.MEDIUM: "✅ Medium", Rating.LOW: "⚠️ Low"}
_TONES = {Rating.HIGH: Tone.GOOD, Rating.MEDIUM: Tone.FAIR, Rating.LOW: Tone.WARNING}


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
        "rule": {"high": HIGH, "near_best": NEAR_BEST, "medium": MEDIUM, "text": list(RULE)},
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


#: The documents' marks as signs of ordinary fonts; U+FE0E asks for the plain form.
_SIGNS = {"✅": "✓", "⚠️": "⚠\ufe0e", "❌": "✗"}


def plain_mark(cell: MatrixCell) -> str:
    """Return the level with the documents' mark as a plain sign."""
    marked = mark(cell)
    for emoji, sign in _SIGNS.items():
        marked = marked.replace(emoji, sign)
    return marked


#: Models of a page in a terminal, and names of models that share a reason.
PAGE = 40
_NAMED = 6


def presented(
    matrix: Matrix,
    about: MatrixHeader,
    *,
    explain: bool = False,
    page: int | None = None,
    opens: bool = False,
) -> Document:
    """Return the matrix as a document: two tables, and the reasons.

    Args:
        matrix: all of it.
        about: its header.
        explain: with the rule and the reason of every cell, else those of low ratings, each once.
        page: the only models that are shown; all by default.
        opens: whether its cells open to their reasons, which are then nowhere else.
    """
    models = matrix.models if page is None else matrix.models[(page - 1) * PAGE : page * PAGE]
    opening = [f"{about}. Newest result: {moment(matrix.newest or 'none')}."]
    if page is not None and len(models) < len(matrix.models):
        opening.append(_page(page, len(matrix.models)))
    tables = [
        DocumentSection(title, [_table(kind, lines, matrix.hardware)])
        for title, kind, lines in (
            ("Model families", "family", matrix.families),
            ("Models", "model", models),
        )
    ]
    others = [
        phrase("matrix.other-machine", machine=machine, id=machine.id) for machine in about.others
    ]
    rule = DocumentSection("The rule", [Notes(RULE, is_list=True)])
    reasons: list[Notes | DocumentSection] = [rule]
    if not opens:
        families = matrix.families
        reasons = [*_reasons(families, models), rule] if explain else list(_briefly(models))
    return Document(
        "Compatibility matrix",
        [
            Notes(opening),
            *tables,
            Notes([phrase("matrix.legend")], tone=Tone.FAINT),
            *reasons,
            Notes(others, tone=Tone.FAINT),
        ],
        data=lambda: document(matrix, about),
    )


def _page(page: int, total: int) -> str:
    first, last, pages = (page - 1) * PAGE + 1, min(page * PAGE, total), -(-total // PAGE)
    more = phrase("matrix.next-page", page=page + 1) if page < pages else phrase("matrix.last-page")
    return phrase(
        "matrix.page",
        first=first,
        last=last,
        total=total,
        page=page,
        pages=pages,
        more=more,
    )


def _table(kind: str, lines: Sequence[MatrixLine], hardware: Sequence[str]) -> Table:
    columns = [TableColumn(kind), *(TableColumn(name, is_whole=True) for name in hardware)]
    rows = [[line.name, *(_shown(name, line) for name in hardware)] for line in lines]
    return Table(columns, rows, repeated=1, is_compact=True)


def _shown(hardware: str, line: MatrixLine) -> TonedText:
    cell = line.cells[hardware]
    text, tone = _level(cell)
    if hardware == "cpu" and cell.runtimes and line.family:
        ways = [*cell.runtimes]
    else:
        ways = [] if cell.speed is None else [f"{format_digits(cell.speed)}×"]
    state = [] if cell.compatible else [(cell.level_without_rating, cell.availability.value)]
    return TonedText(text, tone, (*ways, *precisions(cell)), details=[*state, *tells(cell)])


def _level(cell: MatrixCell) -> tuple[str, Tone]:
    if cell.rating is not Rating.NONE:
        return cell.rating.value.capitalize(), _TONES[cell.rating]
    if cell.compatible and cell.emulated:
        return "emulated", Tone.FAINT
    if cell.compatible:
        return UNRATED.get(cell.token, "runs"), Tone.OPEN if cell.token in UNRATED else Tone.FAINT
    if cell.availability is Availability.INCOMPATIBLE:
        return "N/A", Tone.BAD
    return cell.level_without_rating, Tone.FAINT


def _briefly(models: Sequence[MatrixLine]) -> Iterator[Notes]:
    pairs = [
        (f"{hardware}: {cell.reason}", line.name)
        for line in models
        for hardware, cell in line.cells.items()
        if cell.rating in (Rating.NONE, Rating.LOW)
    ]
    reasons = []
    for reason, group in groupby(sorted(pairs), key=lambda pair: pair[0]):
        names = [name for _, name in group]
        where = "every model" if len(names) == len(models) else join_first(names, _NAMED)
        reasons.append(f"{reason} ({where})")
    yield Notes(reasons, is_list=True)
    yield Notes([phrase("matrix.see-explain")])


def _reasons(
    families: Sequence[MatrixLine], models: Sequence[MatrixLine]
) -> Iterator[DocumentSection]:
    for line in (*families, *models):
        lines = [
            f"{hardware}: {_level(cell)[0]}{'' if cell.compatible else f' ({cell.availability})'}:"
            f" {cell.reason}{''.join(f'; {name}: {text}' for name, text in tells(cell)[1:])}"
            for hardware, cell in line.cells.items()
        ]
        title = line.name if line.family else f"family {line.name}"
        yield DocumentSection(title, [Notes(lines, is_list=True)])
