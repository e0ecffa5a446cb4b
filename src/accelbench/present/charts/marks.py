"""Marks, intervals, legends and panels that several charts share. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from accelbench.core.devices import device_count, device_count_text
from accelbench.core.result_statistics import ITEMS, throughput_unit
from accelbench.core.rows import Row, number
from accelbench.core.vocabulary import HARDWARE, Quality
from accelbench.hardware.common import colour_of
from accelbench.judge.points import FigureInterval, Point
from accelbench.present.charts import axes, words
from accelbench.present.charts.axes import Record, Spec
from accelbench.present.charts.chart import ChartBody
from accelbench.present.charts.palette import device_colours
from accelbench.present.texts import phrase

#: A mark of an unusable figure is hollow, and its outline is dashed.
UNUSABLE = f"datum.quality === '{Quality.UNUSABLE.value}'"
DASHED: Spec = {"condition": {"test": UNUSABLE, "value": [2, 2]}, "value": [1, 0]}


def record(
    point: Point, figure: FigureInterval, *, timed: bool = True, rate: bool = False, **more: object
) -> Record:
    """What a mark shows, as plain values.

    Only a figure that is `timed`, a time or made of one, can be unusable. Of a `rate` the unit is
    told: of one panel tokens, of the next images.
    """
    row = point.row
    bad = timed and not point.usable
    quality = {"quality": Quality.UNUSABLE.value, "paint": axes.PAPER} if bad else {}
    device = str(row.get("device_name") or "")
    devices = {"devices": device_count(row)} if device_count_text(row, device) else {}
    return {
        "model": words.safe(row.get("model")),
        "hardware": words.safe(row.get("hardware")),
        "device": words.safe(device),
        **devices,
        "runtime": words.safe(row.get("runtime")),
        "precision": words.safe(row.get("precision")),
        "mode": words.safe(row.get("mode")),
        "batch": row.get("batch_size"),
        "value": figure.value,
        **({"unit": words.safe(throughput_unit(row))} if rate else {}),
        "low": figure.low,
        "high": figure.high,
        "interval_of": figure.interval_of,
        "launches": len(point.rows),
        "samples": point.samples,
        "date": str(row.get("started_at") or "")[:10],
        "statistic": point.latency_by.value if point.latency_by else "",
        "kind": point.kind,
        **axes.look_of(str(row.get("hardware")), point.kind),
        **quality,
        **more,
    }


@dataclass(frozen=True)
class Quantity:
    """A figure that charts draw."""

    title: str  # of its axis, with its unit
    figure: Callable[[Point], FigureInterval | None]
    timed: bool = True  # only a time, or what is made of one, can be unusable
    rate: bool = False  # it counts items: more is better, and its axis tells their unit

    def of(self, point: Point) -> FigureInterval:
        """The figure of a point that has it."""
        known = self.figure(point)
        assert known is not None
        return known

    def record(self, point: Point, **more: object) -> Record:
        """What its mark shows."""
        return record(point, self.of(point), timed=self.timed, rate=self.rate, **more)

    def stand_ins(self, count: int) -> list[str]:
        """That so many emulated configurations are not drawn, and why."""
        return words.emulated(count, *([] if self.timed else [words.OF_A_STAND_IN]))


LATENCY = Quantity(phrase("charts.axis-latency"), lambda point: point.latency)
THROUGHPUT = Quantity(f"throughput, {ITEMS}", lambda point: point.throughput, rate=True)
MEMORY = Quantity("peak memory, MB (2^20)", lambda point: point.memory, timed=False)


def ends(records: Sequence[Row]) -> list[float | None]:
    """All that an axis has to hold: figures, and the ends of their intervals."""
    return [number(datum, name) for datum in records for name in ("value", "low", "high")]


#: Each platform in its colour, whatever else is drawn: the record has it. Panels would share a
#: scale, and with it the colours of whichever panel comes first.
COLOUR = axes.as_stored("colour")
#: What says the kind of a figure: a filling, and a form.
PAINT, FORM = axes.as_stored("paint"), axes.as_stored("form")
PAINTED: Spec = {"stroke": COLOUR, "strokeDash": DASHED, "fill": PAINT}


def kind_legend(records: Sequence[Row], *, bars: bool = False) -> list[Spec]:
    """What filled, hollow, banded and hatched marks are, unless all was measured here."""
    known = {str(datum["kind"]) for datum in records}
    if known <= {"measured"}:
        return []
    kinds = [kind for kind in axes.SHAPES if kind in known]
    looks = {
        "fill": {kind: axes.filled(axes.INK, kind) for kind in kinds},
        "stroke": dict.fromkeys(kinds, axes.INK),
        "shape": {kind: axes.SHAPES[kind] for kind in kinds},
    }
    shape: Spec = {"shape": "square"} if bars and looks.pop("shape") else {}
    shown = axes.legend(symbolStrokeWidth=1.5, symbolSize=110)
    channels = {channel: axes.grouped("kind", look, shown) for channel, look in looks.items()}
    return [axes.layer("point", channels, opacity=0, **shape)]


def hardware_legend(records: Sequence[Row]) -> list[Spec]:
    """Which colour is which platform's, and which shade which device's, if there are several."""
    shades = device_colours(records)
    order = [*HARDWARE, *sorted({str(datum["hardware"]) for datum in records} - {*HARDWARE})]
    names = [name for name in order if any(datum["hardware"] == name for datum in records)]
    places: dict[str, str] = {}
    for name in names:
        before = f"{name} " if len(names) > 1 else ""
        places |= {
            f"{before}{words.short_device(device)}": shade
            for (platform, device), shade in shades.items()
            if platform == name
        } or {name: colour_of(name)}
    if len(places) < 2:
        return []
    form = {"color": axes.grouped("place", places, axes.legend(symbolSize=110))}
    data = [{"place": name} for name in places]
    return [axes.layer("point", form, of=data, filled=True, opacity=0)]


def legends(records: Sequence[Row], *, bars: bool = False) -> list[Spec]:
    """What kinds, platforms and devices look like."""
    return [*kind_legend(records, bars=bars), *hardware_legend(records)]


_TOLD = (
    *("model", "device", "devices", "hardware", "runtime", "precision", "mode", "batch", "kind"),
    *("quality", "basis"),
)


def tooltip(title: str, records: Sequence[Row], level: str = "95 %") -> list[Spec]:
    """What is told of a mark that somebody points at, in a page that can."""
    fields = {name for datum in records for name, value in datum.items() if value not in (None, "")}
    ends = {"low": f"{level} from", "high": f"{level} to"}
    if any(datum.get("interval_of") for datum in records):
        ends = {"low": "from", "high": "to"}
    every = [
        *axes.words(*_TOLD),
        *axes.numbers(value=title, **ends),
        *axes.numbers("launches", "samples"),
        *axes.words("interval_of", "statistic", "date"),
    ]
    return [channel for channel in every if channel["field"] in fields]


def dots(encoding: Spec, size: int = 70) -> Spec:
    """A mark for each figure: its outline has the platform's colour, its filling says the kind."""
    channels = {**encoding, **PAINTED, "shape": FORM}
    return axes.layer("point", channels, size=size, strokeWidth=1.8, opacity=1)


def labels(encoding: Spec, **more: object) -> Spec:
    """Figures or names beside their marks."""
    form: Spec = {"fontSize": 11.5, "color": axes.INK, **more}
    return axes.layer("text", encoding, **form)


def haloed(encoding: Spec, **more: object) -> list[Spec]:
    """Labels right of their marks, on paper, so that no line crosses them out."""
    text = labels(encoding, align="left", **more)
    return [{**text, "mark": {**text["mark"], "stroke": axes.PAPER, "strokeWidth": 3}}, text]


def whiskers(
    records: Sequence[Row], along: str, encoding: Spec, scale: axes.ChartAxis, **more: object
) -> list[Spec]:
    """The interval of each figure that has one; of a prediction it is a broad band.

    One that goes beyond its axis ends there in a triangle. `along` is the channel of the figure,
    `more` how lines and triangles look.
    """
    layers = []
    line: Spec = {"strokeWidth": 1.4, "opacity": 0.7, **more}
    band: Spec = {"strokeWidth": 9, "opacity": 0.28}
    for other, mark in ((False, line), (True, band)):
        if not any(datum["low"] and (datum["kind"] == "predicted") is other for datum in records):
            continue
        test = f"isValid(datum.low) && (datum.kind === 'predicted') === {str(other).lower()}"
        reach: Spec = {
            along: {**encoding[along], "field": "low"},
            f"{along}2": {"field": "high"},
        }
        form = {"color": axes.INK, "clip": True, **mark}
        layers.append(axes.layer("rule", encoding | reach, where=test, **form))
    return [*layers, *_arrows(records, along, encoding, scale, more)]


def beyond(records: Sequence[Row], scale: axes.ChartAxis) -> bool:
    """Whether an interval goes further than its axis."""
    return any(_leaves(datum, scale, high) for datum in records for high in (True, False))


def cut_off(flags: Iterable[bool]) -> list[str]:
    """What a triangle at the edge is, where there is one."""
    return [phrase("charts.interval-cut-off")] if any(flags) else []


def _leaves(datum: Row, scale: axes.ChartAxis, high: bool) -> bool:
    least, most = number(datum, "low"), number(datum, "high")
    if not least or most is None:
        return False
    return most > scale.high if high else least < scale.low


def _arrows(
    records: Sequence[Row], along: str, encoding: Spec, scale: axes.ChartAxis, more: Spec
) -> Iterable[Spec]:
    edges = {"x": ("width", "triangle-right", 0), "y": (0, "triangle-up", "height")}
    end, form, begin = edges[along]
    forms = {True: (end, form), False: (begin, form.replace("right", "left").replace("up", "down"))}
    for high, (place, shape) in forms.items():
        gone = [datum for datum in records if _leaves(datum, scale, high)]
        if gone:
            usual = {"shape": shape, "size": 32, "strokeWidth": 0, "filled": True, "opacity": 0.9}
            mark: Spec = {"color": axes.INK, **more, **usual}
            yield axes.layer("point", {**encoding, along: {"value": place}}, of=gone, **mark)


#: More panels than this are no picture.
MOST_PANELS = 8
_COLUMNS = 2
#: Letters of a line below a panel's title: more would run into the panel beside it.
_LONGEST_LINE = 60
_BETWEEN = " · "


@dataclass(frozen=True)
class Panel:
    """One view."""

    title: str  # above it; none where the picture's own says all
    about: Sequence[str]  # lines below the title: what all that is in it have in common
    records: Sequence[Row]  # its data
    layers: Sequence[Spec]  # what is drawn of them
    height: int | Spec | None = None  # where it is not the usual one


def arranged(
    panels: Sequence[Panel], legends: Sequence[Spec] = (), columns: int = _COLUMNS
) -> Spec:
    """All panels, side by side in columns; the first view has the legends of all."""
    first = replace(panels[0], layers=[*legends, *panels[0].layers])
    if len(panels) == 1 and not first.title:
        return _view(first, axes.WIDE, axes.HIGH)
    alone = min(len(panels), columns) == 1
    wide, high = (axes.WIDE, axes.HIGH) if alone else (axes.PANEL_WIDE, axes.PANEL_HIGH)
    views = [{"title": _title(panel), **_view(panel, wide, high)} for panel in (first, *panels[1:])]
    return {"concat": views, "columns": min(len(panels), columns), "spacing": 26}


def draw_panels(
    groups: Sequence[Sequence[Point]],
    records: Sequence[Sequence[Record]],
    views: Iterable[tuple[Sequence[str], Sequence[Spec]]],
    notes: Sequence[str],
    legend_of: Callable[[Sequence[Record]], list[Spec]] = kind_legend,
    height: Spec | None = None,
) -> ChartBody:
    """A panel for each group of points, with its model as title, and its own lines and layers."""
    panels = [
        Panel(words.safe(points[0].row.get("model"), 36), about, several, layers, height)
        for points, several, (about, layers) in zip(groups, records, views, strict=True)
    ]
    everything = [datum for several in records for datum in several]
    drawn = {id(point): point for points in groups for point in points}
    body = arranged(panels, legend_of(everything))
    return ChartBody(body, list(drawn.values()), notes, everything)


def panel_notes(
    scales: Sequence[axes.ChartAxis], records: Sequence[Sequence[Row]], left: int
) -> list[str]:
    """What has to be said of the axes of panels, and that so many panels are left out."""
    return [
        *axes.own_axes(scales),
        *cut_off(beyond(*pair) for pair in zip(records, scales, strict=True)),
        *words.left_out(left, "panel", advice=phrase("charts.name-models")),
    ]


def _title(panel: Panel) -> Spec:
    lines = [line for about in panel.about for line in _lines(about)]
    return {**axes.PANEL_TITLE, "text": panel.title, **({"subtitle": lines} if any(lines) else {})}


def _lines(about: str) -> list[str]:
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
