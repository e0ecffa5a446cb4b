"""A report as Markdown, for a wiki or a pull request; its pictures are files beside it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from accelbench.report.whole.contents import Block, Figure, Report, Table, Text, plain

#: What Markdown, or HTML within it, would take for something else than text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~&$@])")


def markdown(report: Report, pictures: Mapping[str, str]) -> str:
    """The whole text.

    Args:
        report: what it says.
        pictures: where each chart's file is, by the chart's name.
    """
    return "\n".join(_lines(report, pictures)).rstrip() + "\n"


def _lines(report: Report, pictures: Mapping[str, str]) -> Iterator[str]:
    yield f"# {_plain(report.title)}"
    yield ""
    for line in report.about:
        yield from (_plain(line), "")
    for section in report.sections:
        yield from (f"## {_plain(section.title)}", "")
        for block in section.blocks:
            yield from _block(block, pictures)


def _block(block: Block, pictures: Mapping[str, str]) -> Iterator[str]:
    if isinstance(block, Text):
        before = "- " if block.listed else ""
        for line in block.lines:
            yield f"{before}{_plain(line)}"
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
        yield from (f"![{_plain(chart.title)}: {_plain(chart.answers)}]({where})", "")
    yield from _table(block.table)


def _table(table: Table) -> Iterator[str]:
    if table.folded:
        yield from (f"<details><summary>{_plain(table.caption or 'Table')}</summary>", "")
    elif table.caption:
        yield from (f"**{_plain(table.caption)}**", "")
    yield f"| {' | '.join(_plain(one) for one in table.headers)} |"
    kinds = ("---:" if i in table.figures else "---" for i in range(len(table.headers)))
    yield f"| {' | '.join(kinds)} |"
    yield from (f"| {' | '.join(_plain(one) for one in row)} |" for row in table.rows)
    yield ""
    if table.folded:
        yield from ("</details>", "")


def _plain(text: str) -> str:
    """Text as text: on one line, and nothing in it that means anything."""
    escaped = _SPECIAL.sub(r"\\\1", plain(text))
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;")
