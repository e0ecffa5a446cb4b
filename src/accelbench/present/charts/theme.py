"""How all charts look: paper, type, marks, and the colours of platforms. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from zlib import crc32

from accelbench.core.devices import card_of
from accelbench.core.rows import Json
from accelbench.core.vocabulary import HARDWARE
from accelbench.hardware.common import colour_of
from accelbench.judge.points import KINDS
from accelbench.present.charts.axes import Spec
from accelbench.present.charts.font_metrics import FONT

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

INK, DIM, LINE, PAPER = "#1b1f24", "#57606a", "#d8dee4", "#ffffff"
#: Bad news and good, where a mark is of no platform; told apart without red and green too.
ALERT, BETTER = "#b3261e", "#00708c"

#: A median among marks.
MIDDLE_TICK: Spec = {"thickness": 2.5, "size": 20, "color": INK}
#: Of one picture alone, and of each of several panels: readable at half a page.
WIDE, HIGH = 520, 300
PANEL_WIDE, PANEL_HIGH = 250, 170
_LONGEST_LINE = 96

CONFIG: Json = {
    "background": PAPER,
    "font": FONT,
    "padding": 14,
    "view": {"stroke": LINE},
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 17,
        "fontWeight": 600,
        "subtitleColor": DIM,
        "subtitleFontSize": 12,
        "subtitlePadding": 4,
        "offset": 10,
    },
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12.5,
        "titleFontWeight": 500,
        "gridColor": LINE,
        "domainColor": DIM,
        "tickColor": DIM,
        "labelLimit": 260,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 420,
        "symbolSize": 90,
        # Below, where half a page has room: beside, it would make the panels smaller.
        "orient": "bottom",
        "direction": "vertical",
        "columns": 2,
    },
}

#: Of panels; the picture's own is larger.
PANEL_TITLE: Json = {
    "anchor": "start",
    "frame": "group",
    "fontSize": 13.5,
    "subtitleFontSize": 11.5,
    "offset": 6,
}

#: A mark tells by its form too what a figure is, and by its dashes how it ran.
SHAPES = dict(zip(KINDS, ("circle", "diamond", "square", "triangle-up", "cross"), strict=True))
_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [4, 4], [12, 4], [1, 5], [6, 2, 1, 2, 1, 2])

#: Groups that are no platforms, told apart without red and green too (Okabe
#: and Ito, its pale ones darker: a mark has a contrast of 3 with its paper); and the rest.
GROUP_COLOURS = ("#0072b2", "#d55e00", "#009068", "#c2659a", "#a87400", "#2f8fc6", "#3d3d3d")
GROUP_SHAPES = (
    *("circle", "triangle-up", "square", "diamond"),
    *("triangle-down", "cross", "triangle-right"),
)
REST_COLOUR = "#7f8790"

#: Engines of which there are imported figures alone: they have no card that could say it.
_IMPORTED = {"tensorflow": (1, 5), "ncnn": (6, 2, 1, 2, 1, 2)}
#: Lines of one engine on one platform, in another precision say, differ in this.
LINE_WIDTHS = (1.8, 4.0, 0.8, 2.8, 5.6, 1.3, 3.4, 4.8)


def wrapped(text: str) -> list[str]:
    """In lines as long as a picture is wide."""
    return wrap(text, _LONGEST_LINE) or [""]


def hardware_scale(names: Iterable[str]) -> Spec:
    """Each platform in its own colour, in the design's order."""
    order = {name: place for place, name in enumerate(HARDWARE)}
    domain = sorted(set(names), key=lambda name: (order.get(name, len(order)), name))
    return {"domain": domain, "range": [colour_of(name) for name in domain]}


def dash_scale(names: Sequence[str]) -> Spec:
    """Lines told apart without colour."""
    return {"domain": list(names), "range": [_DASHES[i % len(_DASHES)] for i in range(len(names))]}


def engine_dashes(engine: str) -> list[int]:
    """An engine's own, by its card, the same in every chart; drawn by lot where none says any."""
    card = card_of(engine)
    own = card.dashes if card else _IMPORTED.get(engine, ())
    return [*own] or _DASHES[crc32(engine.encode()) % len(_DASHES)]


def kind_scale(kinds: Iterable[str]) -> Spec:
    """The forms of those kinds that are there."""
    domain = [kind for kind in KINDS if kind in set(kinds)]
    return {"domain": domain, "range": [SHAPES[kind] for kind in domain]}


def kind_paint(kinds: Iterable[str]) -> Spec:
    """The fillings of those kinds, for a legend."""
    domain = [kind for kind in KINDS if kind in set(kinds)]
    return {"domain": domain, "range": [_filled(INK, kind) for kind in domain]}


def paint(hardware: str, kind: str) -> str:
    """What a mark is filled with: imported is hollow, simulated hatched, predicted pale."""
    return _filled(colour_of(hardware), kind)


def _filled(colour: str, kind: str) -> str:
    return {"imported": PAPER, "simulated": hatch(colour), "predicted": f"{colour}44"}.get(
        kind, colour
    )


def hatch(colour: str) -> str:
    """A pattern of that colour, which `draw` puts into the file."""
    return f"url(#hatch-{colour[1:]})"
