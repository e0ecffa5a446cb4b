"""The compatibility matrix as Markdown: two tables, and the reason behind each cell. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accelbench.analysis.cells import Availability, Line, Matrix
from accelbench.analysis.matrix import RULE
from accelbench.report.matrix import About, mark, moment, tells

#: No text begins a line here, so that lists and headings cannot begin within one; an underscore
#: between letters is none of Markdown's.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>#|~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")


def markdown(matrix: Matrix, about: About) -> str:
    """A page that any Markdown reader shows."""
    return "\n".join(_page(matrix, about)) + "\n"


def _page(matrix: Matrix, about: About) -> Iterator[str]:
    yield "# Compatibility matrix"
    yield ""
    yield f"{_plain(str(about))}. Newest result: {_plain(moment(matrix.newest or 'none'))}."
    for title, lines in (("Model families", matrix.families), ("Models", matrix.models)):
        yield from ("", f"## {title}", "")
        yield from _table(title, lines, matrix.hardware)
    yield from ("", "❌ N/A: incompatible. N/A: not available. The reasons follow.", "")
    yield "## Why"
    for line in matrix.models:
        yield from ("", f"### {_plain(line.name)}", "")
        yield from _reasons(line)
    yield from ("", "## The rule", "")
    yield from (f"- {_plain(sentence)}" for sentence in RULE)


def _table(title: str, lines: Sequence[Line], hardware: Sequence[str]) -> Iterator[str]:
    heading = "family" if title.endswith("families") else "model"
    yield _row([heading, *map(_plain, hardware)])
    yield _row(["---"] * (len(hardware) + 1))
    for line in lines:
        cells = [line.cells[name] for name in hardware]
        texts = [
            f"{mark(c)}<br>{_plain(' and '.join(c.runtimes))}"
            if name == "cpu" and c.runtimes
            else mark(c)
            for name, c in zip(hardware, cells, strict=True)
        ]
        yield _row([_plain(line.name), *texts])


def _reasons(line: Line) -> Iterator[str]:
    for hardware, cell in line.cells.items():
        known = "" if cell.compatible else f"{cell.availability}: "
        rest = "; ".join(f"{name} {_plain(text)}" for name, text in tells(cell)[1:])
        more = f" ({rest})" if rest and cell.availability is not Availability.NOT_AVAILABLE else ""
        yield f"- **{_plain(hardware)}** {mark(cell)}: {known}{_plain(cell.reason)}{more}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Text that no Markdown reader takes for markup, on one line."""
    one_line = "".join(c if c.isprintable() else " " for c in text)
    return _SPECIAL.sub(r"\\\1", " ".join(one_line.split()))
