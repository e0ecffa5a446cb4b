"""A report as Markdown with pictures beside it, or as one HTML file without scripts. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from accelbench.core.visible import markdown as text_of
from accelbench.core.visible import visible
from accelbench.present.document import columns
from accelbench.present.markdown import table_lines
from accelbench.report.charts.chart import Picture, Spec
from accelbench.report.charts.draw import still
from accelbench.report.full_report.contents import RESULTS, Block, Figure, Report, Table, Text
from accelbench.report.pages.rendering import Drawn, rendered


def markdown(report: Report, pictures: Mapping[str, str]) -> str:
    """The whole text."""
    return "\n".join(_lines(report, pictures)).rstrip() + "\n"


def _lines(report: Report, pictures: Mapping[str, str]) -> Iterator[str]:
    yield f"# {text_of(report.title)}"
    yield ""
    for line in report.about:
        yield from (text_of(line, begins=True), "")
    if report.findings:
        yield from ("## Findings", "", *_findings(report), "")
    for section in report.sections:
        yield from (f"## {text_of(section.title)}", "")
        for block in section.blocks:
            yield from _block(block, pictures)


def _findings(report: Report) -> Iterator[str]:
    """A line each: a pull request shows them, whatever it folds of the rest."""
    known = {section.anchor for section in report.sections}
    for finding in report.findings:
        # Lines of tables have no name in Markdown: it is their table that is led to.
        links = dict.fromkeys(
            f"[{text_of(link.text)}](#{link.anchor if link.anchor in known else RESULTS})"
            for link in finding.evidence
        )
        evidence = f" Evidence: {', '.join(links)}." if links else ""
        command = f" Next: {_code(finding.command)}" if finding.command else ""
        yield f"- {text_of(finding.text, begins=True)}{evidence}{command}"


def _code(command: str) -> str:
    """A command between more backticks than it has itself: a model's name may have some."""
    shown = visible(command)
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    room = " " if "`" in (shown[:1], shown[-1:]) else ""
    return f"{fence}{room}{shown}{room}{fence}"


def _block(block: Block, pictures: Mapping[str, str]) -> Iterator[str]:
    if isinstance(block, Text):
        before = "- " if block.listed else ""
        for line in block.lines:
            yield f"{before}{text_of(line, begins=True)}"
            if not block.listed:
                yield ""
        if block.listed:
            yield ""
    elif isinstance(block, Table):
        yield from _table(block)
    else:
        yield from _figure(block, pictures)


def _figure(block: Figure, pictures: Mapping[str, str]) -> Iterator[str]:
    chart = block.picture.chart
    where = pictures.get(chart.name)
    if where is not None:
        yield from (f"![{text_of(chart.title)}: {text_of(chart.answers)}]({where})", "")
    yield from _table(block.table)


def _table(table: Table) -> Iterator[str]:
    if table.folded:
        # Within an element of HTML there is no Markdown.
        command = f" <code>{text_of(table.command)}</code>" if table.command else ""
        caption = text_of(table.caption or "Table")
        yield from (f"<details><summary>{caption}{command}</summary>", "")
    elif table.caption:
        command = f" {_code(table.command)}" if table.command else ""
        yield from (f"**{text_of(table.caption)}**{command}", "")
    yield from (*table_lines(columns(table.headers, table.figures), table.rows), "")
    if table.folded:
        yield from ("</details>", "")


#: What an SVG names within itself, which must not be named twice in a page.
_OWN_NAME = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')
_ARIA = re.compile(r' (?:aria-[a-z]+|role|aria-roledescription)="[^"]*"')

Draw = Callable[[Spec], str]


def html(report: Report, svg: Draw) -> str:
    """The whole file."""

    def drawn(picture: Picture, name: str) -> Drawn:
        named = _OWN_NAME.sub(rf"\g<1>{name}-\g<2>", svg(still(picture.spec)))
        # Without the name of its element: the page says with it what the picture is of; and without
        # the words of thousands of marks, which the figures below the picture say.
        element, opened, rest = named.partition(">")
        return Drawn(f"{element}{opened}{_ARIA.sub('', rest)}".partition(" ")[2])

    def said(picture: Picture) -> str:
        return f"{picture.chart.title}: {picture.chart.answers}. {' '.join(picture.about)}"

    return rendered("report.html", report=report, said=said, drawn=drawn)
