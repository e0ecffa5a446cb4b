"""A report as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelbench.report.full_report.contents import Report


def write(path: Path, report: Report, form: str) -> list[Path]:
    """Write it, and what belongs to it: Markdown has its pictures in a folder beside it."""
    from accelbench.exchange.writing import write_exactly, write_over
    from accelbench.report.charts import draw
    from accelbench.report.full_report.contents import Figure

    if form == "html":
        from accelbench.report.full_report.as_html import html

        text = html(report, draw.svg)
        write_exactly(path, lambda place: _put(place, text))
        return [path]
    from accelbench.report.full_report.as_markdown import markdown

    beside = path.with_name(f"{path.stem}-charts")
    figures = [b.picture for s in report.sections for b in s.blocks if isinstance(b, Figure)]
    names = {figure.chart.name: f"{beside.name}/{figure.chart.name}.png" for figure in figures}
    text = markdown(report, names)
    write_exactly(path, lambda place: _put(place, text))
    for figure in figures:
        write_over(beside / f"{figure.chart.name}.png", draw.png(figure.spec))
    return [path, *(beside / f"{figure.chart.name}.png" for figure in figures)]


def _put(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")
