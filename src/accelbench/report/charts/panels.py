"""Panels: one view alone, or several beside each other under one legend. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accelbench.core.rows import Row
from accelbench.report.charts.axes import Spec
from accelbench.report.charts.theme import HIGH, PANEL_HIGH, PANEL_TITLE, PANEL_WIDE, WIDE

#: More panels than this are no picture.
MOST_PANELS = 8
_COLUMNS = 2
#: Letters of a line below a panel's title: more would run into the panel beside it.
_LONGEST_LINE = 60
_BETWEEN = " · "


@dataclass(frozen=True)
class Panel:
    """One view.

    Attributes:
        title: above it; none where the picture's own says all.
        about: lines below the title: what all that is in it have in common.
        records: its data.
        layers: what is drawn of them.
        height: where it is not the usual one.
    """

    title: str
    about: Sequence[str]
    records: Sequence[Row]
    layers: Sequence[Spec]
    height: int | Spec | None = None


def arranged(
    panels: Sequence[Panel], legends: Sequence[Spec] = (), columns: int = _COLUMNS
) -> Spec:
    """All of them, two side by side; one alone is wider.

    Args:
        panels: at least one.
        legends: layers that bring what is said of all panels; the first view has them.
        columns: how many stand side by side; of 1, each is as wide as a picture.
    """
    first = replace(panels[0], layers=[*legends, *panels[0].layers])
    if len(panels) == 1 and not first.title:
        return _view(first, WIDE, HIGH)
    alone = min(len(panels), columns) == 1
    wide, high = (WIDE, HIGH) if alone else (PANEL_WIDE, PANEL_HIGH)
    views = [{"title": _title(panel), **_view(panel, wide, high)} for panel in (first, *panels[1:])]
    return {"concat": views, "columns": min(len(panels), columns), "spacing": 26}


def _title(panel: Panel) -> Spec:
    lines = [line for about in panel.about for line in _lines(about)]
    return {**PANEL_TITLE, "text": panel.title, **({"subtitle": lines} if any(lines) else {})}


def _lines(about: str) -> list[str]:
    """What is said of a panel, broken between its words and never within what one of them says."""
    lines: list[str] = []
    for part in about.split(_BETWEEN):
        longer = f"{lines[-1]}{_BETWEEN}{part}" if lines else part
        if lines and len(longer) <= _LONGEST_LINE:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _view(panel: Panel, width: int, height: int) -> Spec:
    return {
        "data": {"values": list(panel.records)},
        "width": width,
        "height": panel.height or height,
        "layer": list(panel.layers),
    }
