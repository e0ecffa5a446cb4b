"""A document as one HTML file without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from accelbench.present.document import Chart, Document
from accelbench.report.charts.draw import still
from accelbench.report.pages.rendering import Drawn, rendered

#: The names within an SVG, which must be unique in a page.
_OWN_NAME = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')
_ARIA = re.compile(r' (?:aria-[a-z]+|role|aria-roledescription)="[^"]*"')

Draw = Callable[[Mapping[str, Any]], str]


def as_html(document: Document, svg: Draw) -> str:
    """Return the whole file."""

    def drawn(chart: Chart, name: str) -> Drawn:
        named = _OWN_NAME.sub(rf"\g<1>{name}-\g<2>", svg(still(dict(chart.spec))))
        # Without its element's name, which the template writes with a label, and without the words
        # of thousands of marks, which the table below the picture has.
        element, opened, rest = named.partition(">")
        return Drawn(f"{element}{opened}{_ARIA.sub('', rest)}".partition(" ")[2])

    return rendered("document_page.html", document=document, drawn=drawn)
