"""Parts that charts share: axes, channels, layers, tooltips, and their look. Pure.

Ends and lines of axes are in the specification: panels can share them, and a logarithmic axis has a
line at 1, 2, 5 or at each decade instead of at every digit.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from pathlib import Path
from textwrap import wrap
from typing import Any
from zlib import crc32

from accelbench.core.devices import card_of
from accelbench.core.result_statistics import ITEMS, common_unit
from accelbench.core.rows import Json, Row
from accelbench.hardware.common import colour_of
from accelbench.judge.points import KINDS, Point
from accelbench.present.charts.font_metrics import FONT
from accelbench.present.texts import phrase

#: A specification of Vega-Lite, or a part of one: a tree of plain values that charts write down as
#: literals and put together by their names; its form is Vega-Lite's, and no type of ours.
Spec = dict[str, Any]
#: What a mark shows, as plain values: figures, names, flags. Each chart adds what it alone draws,
#: by names of its own, so no type knows them all.
Record = dict[str, Any]

#: 0.01, 100, 1,500: neither exponents nor thousandths called "m".
NUMBER = ",.4~r"
#: Values further apart than this are told apart on a logarithmic axis alone.
_FAR = 12.0
#: Panels share an axis unless they are further apart than this: lines would be flat.
_SHARED = 300.0
#: Lines at 1, 2, 5 over so many decades; at decades beyond; at every second one further on.
_FINE, _COARSE = 2.2, 6.0
#: What lines of a logarithmic axis begin with; finer where these would leave it without two.
_DIGITS: Sequence[Sequence[float]] = (
    (1,),
    (1, 2, 5),
    range(1, 10),
    [tenths / 10 for tenths in range(10, 100, 2)],
    [hundredths / 100 for hundredths in range(100, 1000)],
)


@dataclass(frozen=True)
class ChartAxis:
    """What a figure is, and from where to where it goes."""

    title: str  # with its unit
    low: float  # where it begins
    high: float  # where it ends
    log: bool = False  # whether each step multiplies

    def of(self, field: str, **more: object) -> Spec:
        """The channel that shows a field on it."""
        scale: Spec = {"domain": [self.low, self.high], "nice": False}
        # Milliseconds are milliseconds: 2,000,000, and no 2M of them.
        large = self.high >= 1e6 and not self.title.endswith("ms")
        axis: Spec = {"format": "~s" if large else NUMBER, "labelOverlap": True}
        axis |= {"values": decades(self.low, self.high)} if self.log else {"tickCount": 5}
        return {
            "field": field,
            "type": "quantitative",
            "title": f"{self.title} (log)" if self.log else self.title,
            "scale": scale | ({"type": "log"} if self.log else {"zero": False}),
            "axis": axis | more,
        }

    def with_room(self, share: float) -> ChartAxis:
        """The same, with so much of it empty at its upper end."""
        if self.log:
            return replace(
                self, high=_round(self.low * (self.high / self.low) ** (1 / (1 - share)))
            )
        return replace(self, high=_round(self.low + (self.high - self.low) / (1 - share)))


def in_their_units(
    scales: Sequence[ChartAxis], groups: Sequence[Sequence[Point]]
) -> list[ChartAxis]:
    """Axes of rates, each with the unit that its points have: tokens/s, images/s."""
    units = (common_unit(point.row for point in points) for points in groups)
    return [
        replace(scale, title=scale.title.replace(ITEMS, unit))
        for scale, unit in zip(scales, units, strict=True)
    ]


def far(values: Iterable[float | None]) -> bool:
    """Whether they are so far apart that a logarithmic axis alone shows all."""
    known = _known(values)
    return bool(known) and max(known) > _FAR * min(known)


def axis(
    title: str, values: Iterable[float | None], *, log: bool | None = None, zero: bool = True
) -> ChartAxis:
    """An axis for these values, by default from zero, or logarithmic if they are far apart."""
    known = _known(values) or [1.0]
    low, high = min(known), max(known)
    if far(known) if log is None else log:
        room = max((high / low) ** 0.07, 1.12)
        return ChartAxis(title, _round(low / room), _round(high * room), log=True)
    room = 0.07 * (high if zero else (high - low) or high)
    return ChartAxis(title, 0.0 if zero else _round(low - room), _round(high + room))


def shared(title: str, groups: Sequence[Sequence[float | None]], **more: bool) -> list[ChartAxis]:
    """One axis for each panel: the same one, unless they are too far apart for that."""
    everything = [value for group in groups for value in group]
    known = _known(everything)
    log = far(everything)
    if not known or max(known) <= _SHARED * min(known):
        return [axis(title, everything, log=log, **more)] * len(groups)
    return [axis(title, group, log=log, **more) for group in groups]


def own_axes(axes: Sequence[ChartAxis]) -> list[str]:
    """What has to be said where panels do not share theirs."""
    return [phrase("charts.own-axes")] if len(set(axes)) > 1 else []


def decades(low: float, high: float) -> list[float]:
    """Where a logarithmic axis has its lines: on round numbers, two of them or more."""
    wide = log10(high / low)
    step = 2 if wide > _COARSE else 1
    first = floor(log10(low))
    powers = range(first - first % step, ceil(log10(high)) + 1, step)
    ticks: list[float] = []
    for digits in _DIGITS[0 if wide > _FINE else 1 :]:
        ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) > 1:
            return ticks
    return ticks or [_round(low), _round(high)]


def grid(
    across: str, heads: Sequence[str], down: str, lines: Iterable[Any], **head: Any
) -> dict[str, Spec]:
    """Both axes of a heat map: columns under their heads, lines in their order."""
    top = named(across, heads, orient="top", labelAngle=0, **head)
    return {"x": top, "y": named(down, lines)}


def named(field: str, order: Iterable[Any], **axis: object) -> Spec:
    """An axis of names in their order, each as often as it has marks."""
    form = {"ticks": False, "domain": False, **axis}
    names = list(dict.fromkeys(order))
    return {"field": field, "type": "nominal", "title": None, "sort": names, "axis": form}


def as_stored(field: str) -> Spec:
    """The channel of a field that has a colour, a form or the like itself."""
    return {"field": field, "type": "nominal", "scale": None}


def grouped(field: str, values: Mapping[str, object], legend: Spec | None) -> Spec:
    """The channel that tells groups apart: of each its colour, form or the like."""
    scale = {"domain": list(values), "range": list(values.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def legend(**more: object) -> Spec:
    """A legend without a title, whose symbols are seen even if its marks are not."""
    return {"title": None, "symbolOpacity": 1, **more}


def layer(
    kind: str, encoding: Spec, *, of: Sequence[Row] | None = None, where: str = "", **mark: object
) -> Spec:
    """Marks of one kind, of data of their own or of the records that fulfil an expression."""
    data = {} if of is None else {"data": {"values": list(of)}}
    filtered = {"transform": [{"filter": where}]} if where else {}
    return {**data, **filtered, "mark": {"type": kind, **mark}, "encoding": encoding}


def words(*fields: str) -> list[Spec]:
    """Names in a tooltip."""
    return [{"field": name, "type": "nominal"} for name in fields]


def numbers(*fields: str, **titles: str) -> list[Spec]:
    """Numbers in a tooltip: whole ones, and those that have a title and four digits."""
    form: Spec = {"type": "quantitative", "format": NUMBER}
    return [
        *({"field": name, "type": "quantitative"} for name in fields),
        *({"field": name, "title": title, **form} for name, title in titles.items()),
    ]


def view(records: Sequence[Row], width: int | Spec, height: int | Spec, *layers: Spec) -> Spec:
    """Layers over the same records, in one frame."""
    size = {"width": width, "height": height}
    return {"data": {"values": list(records)}, **size, "layer": list(layers)}


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and value > 0]


def _round(value: float) -> float:
    return float(f"{value:.4g}")


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

LOOK = tomllib.loads(Path(__file__).with_name("look.toml").read_text(encoding="utf-8"))
_COLOURS: Mapping[str, str] = LOOK["colours"]
INK, DIM, PAPER = (_COLOURS[name] for name in ("ink", "dim", "paper"))
#: Bad news and good, where a mark is of no platform; told apart without red and green too.
ALERT, BETTER = "#b3261e", "#00708c"

#: A median among marks.
MIDDLE_TICK: Spec = {"thickness": 2.5, "size": 20, "color": INK}
#: Of one picture alone, and of each of several panels: readable at half a page.
WIDE, HIGH = 520, 300
PANEL_WIDE, PANEL_HIGH = 250, 170
_LONGEST_LINE = 96


def _in_colours(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_colours(member) for name, member in value.items()}
    return _COLOURS.get(value, value)


CONFIG: Json = {"font": FONT, **_in_colours(LOOK["config"])}
#: Of panels; the picture's own is larger.
PANEL_TITLE: Json = _in_colours(LOOK["panel_title"])

#: A mark tells by its form too what a figure is, and by its dashes how it ran.
SHAPES = dict(zip(KINDS, ("circle", "diamond", "square", "triangle-up", "cross"), strict=True))
DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [4, 4], [12, 4], [1, 5], [6, 2, 1, 2, 1, 2])

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


def engine_dashes(engine: str) -> list[int]:
    """An engine's own, by its card, the same in every chart; drawn by lot where none says any."""
    card = card_of(engine)
    own = card.dashes if card else _IMPORTED.get(engine, ())
    return [*own] or DASHES[crc32(engine.encode()) % len(DASHES)]


def filled(colour: str, kind: str) -> str:
    """What a mark is filled with: imported is hollow, simulated hatched, predicted pale.

    `draw` puts the pattern of a hatching into the file.
    """
    hatch = f"url(#hatch-{colour[1:]})"
    return {"imported": PAPER, "simulated": hatch, "predicted": f"{colour}44"}.get(kind, colour)


def look_of(hardware: str, kind: str) -> Record:
    """The colour of a platform, and the filling and form of a kind of figure."""
    colour = colour_of(hardware)
    return {"colour": colour, "paint": filled(colour, kind), "form": SHAPES[kind]}
