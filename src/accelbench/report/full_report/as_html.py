"""A report as one HTML file: no network, no script, light and dark, for screen and paper. Pure.

Pictures stand in it as SVG, each with its figures below it for whoever cannot see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from accelbench.report.charts.chart import Picture, Spec
from accelbench.report.charts.still import still
from accelbench.report.full_report.contents import Report
from accelbench.report.pages.rendering import Drawn, rendered

#: What an SVG names within itself, which must not be named twice in a page.
_OWN_NAME = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')
_ARIA = re.compile(r' (?:aria-[a-z]+|role|aria-roledescription)="[^"]*"')

Draw = Callable[[Spec], str]


def html(report: Report, svg: Draw) -> str:
    """The whole file.

    Args:
        report: what it says.
        svg: draws a picture.
    """

    def drawn(picture: Picture, name: str) -> Drawn:
        named = _OWN_NAME.sub(rf"\g<1>{name}-\g<2>", svg(still(picture.spec)))
        # Without the name of its element: the page says with it what the picture is of.
        return Drawn(_silent(named).partition(" ")[2])

    return rendered("report.html", report=report, said=_said, drawn=drawn)


def _said(picture: Picture) -> str:
    """A picture in words."""
    return f"{picture.chart.title}: {picture.chart.answers}. {' '.join(picture.about)}"


def _silent(svg: str) -> str:
    """Without the words of single marks.

    There are thousands of them; the figures below the picture say the same.
    """
    head, opened, rest = svg.partition(">")
    return head + opened + _ARIA.sub("", rest)
