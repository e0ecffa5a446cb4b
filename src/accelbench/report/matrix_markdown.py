"""The compatibility matrix as Markdown: two tables, and the reason behind each cell. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accelbench.analysis.cells import Matrix, MatrixCell, MatrixLine
from accelbench.analysis.matrix import RULE
from accelbench.core.visible import markdown as text_of
from accelbench.report.matrix import MatrixHeader, mark, moment, precisions, tells


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
