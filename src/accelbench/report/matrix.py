"""The compatibility matrix as JSON, as one HTML file and as Markdown. Pure.

Each cell of the page opens to its reason (`<details>`), so that it can be read without a mouse and
attached to a mail. The marks are plain signs: without an emoji font emoji are empty boxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accelbench.analysis.machines import Machine
from accelbench.analysis.matrix import (
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
from accelbench.core.nouns import digits
from accelbench.core.visible import markdown as text_of
from accelbench.report.pages.rendering import rendered

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

#: An option's dashes are no place to break a line.
_OPTION = re.compile(r"(--[a-z][a-z-]*)")


def html(matrix: Matrix, about: MatrixHeader) -> str:
    """The whole page."""
    return rendered(
        "matrix_page.html",
        matrix=matrix,
        about=about,
        newest=moment(matrix.newest or "none"),
        rule=RULE,
        sign=plain_mark,
        kind=_kind,
        pieces=_OPTION.split,
        precisions=precisions,
        tells=tells,
        digits=digits,
    )


def plain_mark(cell: MatrixCell) -> str:
    """The level with the documents' mark as a plain sign."""
    marked = mark(cell)
    for emoji, sign in _SIGNS.items():
        marked = marked.replace(emoji, sign)
    return marked


def _kind(cell: MatrixCell) -> str:
    if cell.rating is not Rating.NONE:
        return cell.rating.value
    if cell.token in UNRATED:
        return "unproven"
    return "incompatible" if cell.availability is Availability.INCOMPATIBLE else "none"


def markdown(matrix: Matrix, about: MatrixHeader) -> str:
    """A page that any Markdown reader shows."""
    return "\n".join(_page(matrix, about)) + "\n"


def _page(matrix: Matrix, about: MatrixHeader) -> Iterator[str]:
    yield "# Compatibility matrix"
    yield ""
    newest = moment(matrix.newest or "none")
    yield text_of(f"{about}. Newest result: {newest}.", begins=True)
    for title, lines in (("Model families", matrix.families), ("Models", matrix.models)):
        yield from ("", f"## {title}", "")
        yield from _table(title, lines, matrix.hardware)
    yield from (
        "",
        "❌ N/A: incompatible. N/A: not available. Untried: not measured. The reasons follow.",
        "",
    )
    yield "## Why"
    for line in matrix.models:
        yield from ("", f"### {text_of(line.name)}", "")
        yield from _reasons(line)
    yield from ("", "## The rule", "")
    yield from (f"- {text_of(sentence, begins=True)}" for sentence in RULE)


def _table(title: str, lines: Sequence[MatrixLine], hardware: Sequence[str]) -> Iterator[str]:
    heading = "family" if title.endswith("families") else "model"
    yield _row([heading, *map(text_of, hardware)])
    yield _row(["---"] * (len(hardware) + 1))
    for line in lines:
        cells = [line.cells[name] for name in hardware]
        texts = [
            "<br>".join([mark(c), *map(text_of, _ways(name, c))])
            for name, c in zip(hardware, cells, strict=True)
        ]
        yield _row([text_of(line.name), *texts])


def _ways(hardware: str, cell: MatrixCell) -> Iterator[str]:
    """By what: of the CPU the engines; and the precisions, where each has its best."""
    if hardware == "cpu" and cell.runtimes:
        yield " and ".join(cell.runtimes)
    if precisions(cell):
        yield " and ".join(precisions(cell))


def _reasons(line: MatrixLine) -> Iterator[str]:
    for hardware, cell in line.cells.items():
        known = "" if cell.compatible else f"{cell.availability}: "
        rest = "; ".join(f"{name} {text_of(text)}" for name, text in tells(cell)[1:])
        more = f" ({rest})" if rest and cell.has_result else ""
        yield f"- **{text_of(hardware)}** {mark(cell)}: {known}{text_of(cell.reason)}{more}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
