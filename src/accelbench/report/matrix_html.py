"""The compatibility matrix as one HTML file: no network, no script, light and dark. Pure.

Each cell opens to the reason behind it (`<details>`), so that the page can be read without
a mouse and attached to a mail; printed, all are open. The marks are plain signs, not emoji:
where no emoji font is installed those are empty boxes.
"""

from __future__ import annotations

import re

from accelbench.analysis.cells import Availability, Matrix, MatrixCell, Rating
from accelbench.analysis.matrix import RULE, UNRATED
from accelbench.core.nouns import digits
from accelbench.report.matrix import MatrixHeader, mark, moment, precisions, tells
from accelbench.report.pages.rendering import rendered

#: The documents' marks as signs of ordinary fonts; U+FE0E asks for the plain form.
_SIGNS = {"✅": "✓", "⚠️": "⚠\ufe0e", "❌": "✗"}

#: An option's dashes are no place to break a line.
_OPTION = re.compile(r"(--[a-z][a-z-]*)")


def html(matrix: Matrix, about: MatrixHeader) -> str:
    """The whole page."""
    return rendered(
        "matrix_page.html",
        matrix=matrix,
        about=about,
        newest=moment(matrix.newest or "none"),
        rule=RULE,
        sign=lambda cell: _plain(mark(cell)),
        kind=_kind,
        pieces=_OPTION.split,
        precisions=precisions,
        tells=tells,
        digits=digits,
    )


def _plain(marked: str) -> str:
    for emoji, sign in _SIGNS.items():
        marked = marked.replace(emoji, sign)
    return marked


def _kind(cell: MatrixCell) -> str:
    if cell.rating is not Rating.NONE:
        return cell.rating.value
    if cell.token in UNRATED:
        return "unproven"
    return "incompatible" if cell.availability is Availability.INCOMPATIBLE else "none"
