"""The compatibility matrix as one HTML file: no network, no script, light and dark. Pure.

Each cell opens to the reason behind it (`<details>`), so that the page can be printed,
read without a mouse, and attached to a mail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from accelbench.analysis.cells import Availability, Cell, Line, Matrix, Rating
from accelbench.analysis.matrix import RULE
from accelbench.report.matrix import About, mark, tells

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --dim: #57606a;
  --high: #cdeed6; --medium: #e4f3d4; --low: #fdf0c4; --bad: #fbd9d6; --none: #f0f2f5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0f1419; --line: #3a424c;
  --dim: #9aa5b1; --high: #14532d; --medium: #37501b; --low: #594409; --bad: #6b2421;
  --none: #1d242c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; max-width: 84rem; padding: 0 1rem; }
p.about, small { color: var(--dim); }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: .4rem .6rem; text-align: left;
  vertical-align: top; }
th[scope=row] { white-space: nowrap; }
td.high { background: var(--high); } td.medium { background: var(--medium); }
td.low { background: var(--low); } td.incompatible { background: var(--bad); }
td.none { background: var(--none); }
summary { cursor: pointer; white-space: nowrap; }
dl { margin: .4rem 0 0; max-width: 22rem; overflow-wrap: anywhere; font-size: .9rem; }
dt { color: var(--dim); } dd { margin: 0 0 .3rem; }
"""


def html(matrix: Matrix, about: About) -> str:
    """The whole page."""
    return "\n".join(_page(matrix, about)) + "\n"


def _page(matrix: Matrix, about: About) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield "<title>Compatibility matrix</title>"
    yield f"<style>{_STYLE}</style></head><body>"
    yield "<h1>Compatibility matrix</h1>"
    newest = matrix.newest or "none"
    yield f'<p class="about">{escape(str(about))}. Newest result: {escape(newest)}.</p>'
    yield "<p>Open a cell for the reason behind it.</p>"
    for title, lines in (("Model families", matrix.families), ("Models", matrix.models)):
        yield f"<h2>{title}</h2>"
        yield from _table(title, lines, matrix.hardware)
    yield "<h2>The rule</h2><ul>"
    yield from (f"<li>{escape(sentence)}</li>" for sentence in RULE)
    yield "</ul></body></html>"


def _table(title: str, lines: Sequence[Line], hardware: Sequence[str]) -> Iterator[str]:
    heading = "family" if title.endswith("families") else "model"
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in hardware)
    yield f'<div class="wide"><table><thead><tr><th scope="col">{heading}</th>{heads}</tr></thead>'
    yield "<tbody>"
    for line in lines:
        cells = "".join(_cell(name, line.cells[name]) for name in hardware)
        yield f'<tr><th scope="row">{escape(line.name)}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def _cell(hardware: str, cell: Cell) -> str:
    short = escape(mark(cell))
    if hardware == "cpu" and cell.runtimes:
        short += f"<br><small>{escape(' and '.join(cell.runtimes))}</small>"
    elif cell.speed is not None:
        short += f"<br><small>{cell.speed:.2f}× the CPU</small>"
    known = [] if cell.compatible else [("N/A", cell.availability.value)]
    pairs = [*known, *tells(cell)]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs)
    return (
        f'<td class="{_kind(cell)}"><details><summary>{short}</summary>'
        f"<dl>{listed}</dl></details></td>"
    )


def _kind(cell: Cell) -> str:
    if cell.rating is not Rating.NONE:
        return cell.rating.value
    return "incompatible" if cell.availability is Availability.INCOMPATIBLE else "none"
