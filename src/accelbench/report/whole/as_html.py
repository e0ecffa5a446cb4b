"""A report as one HTML file: no network, no script, light and dark, for screen and paper. Pure.

Pictures stand in it as SVG, each with its figures below it for whoever cannot see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from accelbench.core.visible import html as text_of
from accelbench.report.charts.chart import Spec
from accelbench.report.whole.contents import Block, Figure, Report, Section, Table, Text

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --dim: #57606a;
  --stripe: #f6f8fa; --link: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0f1419; --line: #3a424c;
  --dim: #a9b4c0; --stripe: #171d24; --link: #8ab4f8; } }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.6rem; border-bottom: 1px solid var(--line); }
p.about, figcaption, caption { color: var(--dim); } a { color: var(--link); }
nav ul { columns: 2; max-width: 40rem; } li { margin: .15rem 0; }
div.wide { overflow-x: auto; max-height: 42rem; overflow-y: auto; }
table { border-collapse: collapse; font-size: .92em; }
caption { text-align: left; padding: .3rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: left;
  vertical-align: top; overflow-wrap: break-word; max-width: 28rem; }
tbody th { min-width: 13rem; font-weight: 500; }
thead th { position: sticky; top: 0; background: var(--paper); white-space: nowrap; }
tbody tr:nth-child(even) { background: var(--stripe); }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.6rem 0; } figure svg { max-width: 100%; height: auto; border-radius: 6px;
  border: 1px solid var(--line); background: #fff; }
summary { cursor: pointer; color: var(--dim); margin: .3rem 0; }
@media print { body { margin: 0; max-width: none; font-size: 10px; }
  div.wide { max-height: none; overflow: visible; } table { font-size: .8em; }
  th, td, thead th, td.figure, th.figure { white-space: normal; overflow-wrap: anywhere;
    padding: .15rem .3rem; } tbody th { min-width: 6rem; }
  figure { break-inside: avoid; } details::details-content { content-visibility: visible; }
  thead th { position: static; } }
"""
#: What an SVG names within itself, which must not be named twice in a page.
_OWN_NAME = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')

Draw = Callable[[Spec], str]


def html(report: Report, svg: Draw) -> str:
    """The whole file.

    Args:
        report: what it says.
        svg: draws a picture.
    """
    return "\n".join(_page(report, svg)) + "\n"


def _page(report: Report, svg: Draw) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield (
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
    )
    yield f"<title>{text_of(report.title)}</title><style>{_STYLE}</style></head><body>"
    yield f"<header><h1><bdi>{text_of(report.title)}</bdi></h1>"
    yield from (f'<p class="about"><bdi>{text_of(line)}</bdi></p>' for line in report.about)
    yield "</header><nav aria-label='Contents'><ul>"
    for number, one in enumerate(report.sections):
        yield f'<li><a href="#s{number}">{text_of(one.title)}</a></li>'
    yield "</ul></nav><main>"
    for number, one in enumerate(report.sections):
        yield from _section(one, number, svg)
    yield "</main></body></html>"


def _section(section: Section, number: int, svg: Draw) -> Iterator[str]:
    yield f'<section aria-labelledby="s{number}"><h2 id="s{number}">{text_of(section.title)}</h2>'
    for place, block in enumerate(section.blocks):
        yield from _block(block, f"s{number}-{place}", svg)
    yield "</section>"


def _block(block: Block, name: str, svg: Draw) -> Iterator[str]:
    if isinstance(block, Text):
        yield from _paragraphs(block)
    elif isinstance(block, Table):
        yield from _table(block)
    else:
        yield from _figure(block, name, svg)


def _paragraphs(block: Text) -> Iterator[str]:
    if not block.listed:
        yield from (f"<p><bdi>{text_of(line)}</bdi></p>" for line in block.lines)
        return
    yield "<ul>"
    yield from (f"<li><bdi>{text_of(line)}</bdi></li>" for line in block.lines)
    yield "</ul>"


def _table(table: Table) -> Iterator[str]:
    if table.folded:
        yield f"<details><summary>{text_of(table.caption or 'Table')}</summary>"
    label = text_of(table.caption or "Table")
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table>'
    if table.caption and not table.folded:
        yield f"<caption>{text_of(table.caption)}</caption>"
    marks = [' class="figure"' if i in table.figures else "" for i in range(len(table.headers))]
    heads = "".join(
        f'<th scope="col"{mark}>{text_of(text)}</th>'
        for text, mark in zip(table.headers, marks, strict=True)
    )
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    for row in table.rows:
        first, *rest = row
        cells = "".join(
            f"<td{mark}><bdi>{text_of(text)}</bdi></td>"
            for text, mark in zip(rest, marks[1:], strict=True)
        )
        yield f'<tr><th scope="row"{marks[0]}><bdi>{text_of(first)}</bdi></th>{cells}</tr>'
    yield "</tbody></table></div>"
    if table.folded:
        yield "</details>"


def _figure(block: Figure, name: str, svg: Draw) -> Iterator[str]:
    chart, about = block.picture.chart, " ".join(block.picture.about)
    label = text_of(f"{chart.title}: {chart.answers}. {about}")
    drawn = _OWN_NAME.sub(rf"\g<1>{name}-\g<2>", svg(block.picture.spec))
    # Marks have words of their own, thousands of them; the figures below say the same.
    drawn = drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    yield f"<figure>{_silent(drawn)}<figcaption>{text_of(chart.answers)}</figcaption></figure>"
    yield from _table(block.table)


_ARIA = re.compile(r' (?:aria-[a-z]+|role|aria-roledescription)="[^"]*"')


def _silent(svg: str) -> str:
    """Without the words of single marks."""
    head, opened, rest = svg.partition(">")
    return head + opened + _ARIA.sub("", rest)
