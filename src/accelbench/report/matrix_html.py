"""The compatibility matrix as one HTML file: no network, no script, light and dark. Pure.

Each cell opens to the reason behind it (`<details>`), so that the page can be read without
a mouse and attached to a mail; printed, all are open. The marks are plain signs, not emoji:
where no emoji font is installed those are empty boxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accelbench.analysis.cells import Availability, Matrix, MatrixCell, MatrixLine, Rating
from accelbench.analysis.matrix import RULE, UNRATED
from accelbench.core.visible import html as text_of
from accelbench.report.matrix import MatrixHeader, mark, moment, precisions, tells

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --dim: #57606a;
  --high: #cdeed6; --medium: #e4f3d4; --low: #fdf0c4; --bad: #fbd9d6; --none: #f0f2f5;
  --unproven: #e9e2f7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0f1419; --line: #3a424c;
  --dim: #a9b4c0; --high: #14532d; --medium: #37501b; --low: #594409; --bad: #6b2421;
  --none: #1d242c; --unproven: #352a52; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; max-width: 84rem; padding: 0 1rem; }
p.about, small { color: var(--dim); }
div.wide { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 0; border: solid var(--line);
  border-width: 1px 0 0 1px; }
th, td { border: solid var(--line); border-width: 0 1px 1px 0; padding: .4rem .6rem;
  text-align: left; vertical-align: top; }
th[scope=row], th:first-child { position: sticky; left: 0; background: var(--paper); }
th[scope=row] { white-space: nowrap; }
td.high { background: var(--high); } td.medium { background: var(--medium); }
td.low { background: var(--low); } td.incompatible { background: var(--bad); }
td.none { background: var(--none); }
td.unproven { background: var(--unproven); font-style: italic; }
summary { cursor: pointer; white-space: nowrap; margin-left: 1rem; list-style-position: outside; }
dl { margin: .4rem 0 0; width: 15rem; overflow-wrap: anywhere; font-size: .9em; }
dt { color: var(--dim); } dd { margin: 0 0 .3rem; }
code { font: inherit; white-space: nowrap; }
@media print { details::details-content { content-visibility: visible; }
  @page { size: landscape; margin: 1cm; } body { font-size: 9px; margin: 0; padding: 0; }
  td { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  dl { width: auto; min-width: 5rem; } }
"""

#: The documents' marks as signs of ordinary fonts; U+FE0E asks for the plain form.
_SIGNS = {"✅": "✓", "⚠️": "⚠\ufe0e", "❌": "✗"}

#: An option's dashes are no place to break a line.
_OPTION = re.compile(r"--[a-z][a-z-]*")

_LEGEND = (
    "✗ N/A: incompatible. N/A: not available, or not measured. Emulated: its outputs are right,"
    " its times mean nothing. Open a cell for the reason behind it."
)


def html(matrix: Matrix, about: MatrixHeader) -> str:
    """The whole page."""
    return "\n".join(_page(matrix, about)) + "\n"


def _page(matrix: Matrix, about: MatrixHeader) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield "<title>Compatibility matrix</title>"
    yield f"<style>{_STYLE}</style></head><body>"
    yield "<h1>Compatibility matrix</h1>"
    newest = matrix.newest or "none"
    yield f'<p class="about">{text_of(str(about))}. Newest result: {text_of(moment(newest))}.</p>'
    yield f"<p>{_LEGEND}</p>"
    for title, lines in (("Model families", matrix.families), ("Models", matrix.models)):
        yield f"<h2>{title}</h2>"
        yield from _table(title, lines, matrix.hardware)
    yield "<h2>The rule</h2><ul>"
    yield from (f"<li>{text_of(sentence)}</li>" for sentence in RULE)
    yield "</ul></body></html>"


def _table(title: str, lines: Sequence[MatrixLine], hardware: Sequence[str]) -> Iterator[str]:
    heading = "family" if title.endswith("families") else "model"
    heads = "".join(f'<th scope="col">{text_of(name)}</th>' for name in hardware)
    yield f'<div class="wide"><table><thead><tr><th scope="col">{heading}</th>{heads}</tr></thead>'
    yield "<tbody>"
    for line in lines:
        cells = "".join(_cell(name, line.cells[name]) for name in hardware)
        yield f'<tr><th scope="row">{text_of(line.name)}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def _cell(hardware: str, cell: MatrixCell) -> str:
    short = text_of(_plain(mark(cell)))
    if hardware == "cpu" and cell.runtimes:
        short += f"<br><small>{text_of(' and '.join(cell.runtimes))}</small>"
    elif cell.speed is not None:
        short += f"<br><small>{cell.speed:.2f}× the CPU</small>"
    if precisions(cell):
        short += f"<br><small>{text_of(' and '.join(precisions(cell)))}</small>"
    known = [] if cell.compatible else [("N/A", cell.availability.value)]
    pairs = [*known, *tells(cell)]
    listed = "".join(f"<dt>{text_of(name)}</dt><dd>{_told(text)}</dd>" for name, text in pairs)
    return (
        f'<td class="{_kind(cell)}"><details><summary>{short}</summary>'
        f"<dl>{listed}</dl></details></td>"
    )


def _plain(marked: str) -> str:
    for emoji, sign in _SIGNS.items():
        marked = marked.replace(emoji, sign)
    return marked


def _told(text: str) -> str:
    """Text with its options kept in one piece."""
    return _OPTION.sub(r"<code>\g<0></code>", text_of(text))


def _kind(cell: MatrixCell) -> str:
    if cell.rating is not Rating.NONE:
        return cell.rating.value
    if cell.token in UNRATED:
        return "unproven"
    return "incompatible" if cell.availability is Availability.INCOMPATIBLE else "none"
