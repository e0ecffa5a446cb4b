"""A question's figures over time, with the points at which they changed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median

from accelbench.core.formatting import format_count
from accelbench.hardware.common import colour_of
from accelbench.judge.history import FEWEST_POINTS, NOT_JUDGED, Series
from accelbench.judge.points import Point
from accelbench.judge.verdicts import Judgement
from accelbench.judge.versions import in_short
from accelbench.present.charts import axes
from accelbench.present.charts.chart import ChartBody, Subject
from accelbench.present.charts.font_metrics import width
from accelbench.present.charts.marks import (
    COLOUR,
    MOST_PANELS,
    PAINT,
    Panel,
    arranged,
    legends,
)
from accelbench.present.charts.words import COMMON, EVERYTHING, emulated, left_out, safe, told
from accelbench.present.texts import phrase

#: Distances of lines: seconds, then months.
_SECONDS = (
    *(1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(86_400, 2 * 86_400, 7 * 86_400),
)
_MONTHS = (1, 3, 6, 12, 24, 60, 120, 1200)
_DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Of the whole axis, what a line's words need.
_ROOM = 0.12
#: A Monday, from which weeks are counted.
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)


def utc(moment: str) -> datetime | None:
    """A moment as it was written; what says no zone is in UTC. None of what is no moment."""
    try:
        known = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (known if known.tzinfo else known.replace(tzinfo=UTC)).astimezone(UTC)


def said(moment: str) -> str:
    """As a page and a picture made elsewhere read it alike."""
    known = utc(moment)
    return known.isoformat(timespec="seconds").replace("+00:00", "Z") if known else moment


def lines(first: datetime, last: datetime, most: int) -> list[tuple[datetime, list[str]]]:
    """Where an axis has its lines, at most so many, and what they say in one row or two.

    Below the first one, and wherever it is another, stands what the upper row leaves out: the day
    below hours, the year below days and months.
    """
    ticks, upper, lower = _placed(first, last, most)
    labels = []
    before = ""
    for tick in ticks:
        below = f"{tick:{lower}}" if lower else ""
        labels.append((tick, [f"{tick:{upper}}", *([below] if below != before else [])]))
        before = below
    return labels


def time_axis(moments: Sequence[str], most: int) -> axes.Spec:
    """What an axis of these moments says; left to the program that draws where one is none."""
    known = [instant for moment in moments if (instant := utc(moment)) is not None]
    if not known or len(known) < len(moments):
        return {"tickCount": most}
    ticks = lines(min(known), max(known), most)
    # Plain numbers would be turned into dates by a function that a page's interpreter has wrong.
    places = {"expr": f"[{', '.join(str(_thousandths(tick)) for tick, _ in ticks)}]"}
    return {"values": places, "labelExpr": _words(ticks)}


def _words(ticks: Sequence[tuple[datetime, list[str]]]) -> str:
    chosen = (
        f"toNumber(datum.value) === {_thousandths(tick)} ? [{', '.join(map(repr, rows))}] : "
        for tick, rows in ticks
    )
    return f"{''.join(chosen)}''"


def _placed(first: datetime, last: datetime, most: int) -> tuple[list[datetime], str, str]:
    for step in _SECONDS:
        if (last - first).total_seconds() / step < most + 1:
            ticks = _every(step, first, last)
            if len(ticks) <= most:
                clock = "%H:%M:%S" if step < 60 else "%H:%M"
                upper, lower = (clock, "%Y-%m-%d") if step < _DAY else ("%d %b", "%Y")
                return ticks or [first], upper if ticks else "%Y-%m-%d", lower if ticks else ""
    for months in _MONTHS:
        ticks = list(_monthly(months, first, last))
        # What comes before the first January is of a year too.
        if not ticks or ticks[0] - first > _ROOM * (last - first):
            ticks = [first, *ticks]
        if len(ticks) <= most:
            break
    return (ticks, "%b", "%Y") if months < 12 else (ticks, "%Y", "")


def _every(step: int, first: datetime, last: datetime) -> list[datetime]:
    begin = _MONDAY if step > _DAY else _EPOCH
    number = -(-int((first - begin).total_seconds()) // step)
    ticks = []
    while (tick := begin + timedelta(seconds=number * step)) <= last:
        if tick >= first:
            ticks.append(tick)
        number += 1
    return ticks


def _monthly(months: int, first: datetime, last: datetime) -> Iterator[datetime]:
    number = (first.year * 12 + first.month - 1) // months * months
    while (tick := datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)) <= last:
        if tick >= first:
            yield tick
        number += months


def _thousandths(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


#: Sizes of steps are written above the points, in so many rows at most; of more some have none.
_MOST_ROWS, _ROW, _SIZE, _GAP = 4, 14, 11.5, 4
#: Beside the first and the last moment.
_PADDING = 8
#: Changes of software that are marked, the newest, and letters of each.
_MOST_MARKS, _LONGEST = 6, 40
_SOFTWARE = "software"
_TOLD = tuple(name for name in EVERYTHING if name != "model")


def draw_trend(subject: Subject) -> ChartBody | None:
    """A panel for each series, with its levels and steps."""
    # Where nothing is apart in time, there is no axis of it.
    several = [series_ for series_ in subject.series if _is_apart_in_time(series_)]
    known = [series_ for series_ in several if not series_.row.get("emulated")]
    if not known:
        return None
    shown = known[:MOST_PANELS]
    names = [safe(series_.row.get("model"), 36) for series_ in shown]
    rows = [Point([series_.row], "") for series_ in shown]
    abouts = told(rows, _TOLD, COMMON, 64, devices=subject.devices).apart
    moments = sorted(said(point.moment) for series_ in shown for point in series_.points)
    wide = axes.WIDE if len(shown) == 1 else axes.PANEL_WIDE
    panels = [_panel(*triple, moments, wide) for triple in zip(shown, names, abouts, strict=True)]
    records = [record for panel in panels for record in panel.records]
    notes = _about(shown)
    if any(series_.course and series_.course.steps for series_ in shown):
        notes.append(phrase("charts.steps-legend"))
    if any(one.course and any(one.doubt_of(s.at) for s in one.course.steps) for one in shown):
        notes.append(phrase("charts.outputs-doubted"))
    notes += _of_software(shown)
    if any(series_.partings for series_ in shown):
        notes.append(phrase("charts.not-alike-legend"))
    if again := sum(series_.carried_forward for series_ in shown):
        notes.append(phrase("charts.carried-forward", again=format_count(again, "later result")))
    notes += _answers(shown)
    if bare := sum(
        not step["said"] and step["verdict"] != _SOFTWARE
        for series_ in shown
        for step in _steps(series_, moments, wide)
    ):
        notes.append(phrase("charts.steps-without-size", bare=format_count(bare, "step")))
    if any(record["alone"] for record in records):
        notes.append(phrase("charts.spikes-legend"))
    notes += left_out(len(known) - len(shown), "panel", advice=phrase("charts.name-models"))
    notes += emulated(len(several) - len(known))
    return ChartBody(arranged(panels, legends(records, bars=True)), (), notes, records)


def _is_apart_in_time(series: Series) -> bool:
    # Most series tell by their second point. Writing down every moment of 48 lines of 2,000 runs
    # took a second.
    moments = (said(point.moment) for point in series.points)
    first = next(moments, None)
    return any(moment != first for moment in moments)


def _about(shown: Sequence[Series]) -> list[str]:
    launches = sum(point.launches for series_ in shown for point in series_.points)
    runs = {point.run_id for series_ in shown for point in series_.points}
    moments = sorted(point.moment[:10] for series_ in shown for point in series_.points)
    made = f"{format_count(len(runs), 'run')}, {format_count(launches, 'launch', 'launches')}"
    first, last = moments[0], moments[-1]
    return [f"{made} · {first if first == last else f'{first} to {last}'}"]


def _of_software(shown: Sequence[Series]) -> list[str]:
    marks = [len(series_.software_changes) for series_ in shown]
    left = sum(max(count - _MOST_MARKS, 0) for count in marks)
    more = f"; {format_count(left, 'earlier change')} not marked" if left else ""
    return [phrase("charts.software-changed", more=more)] if any(marks) else []


def _answers(shown: Sequence[Series]) -> list[str]:
    if len(shown) == 1:
        (series,) = shown
        seen = series.said in (Judgement.WORSE, Judgement.BETTER)
        return [] if seen else [f"{series.said[:1].upper()}{series.said[1:]}."]
    answers = Counter(
        NOT_JUDGED if series_.answer is None else series_.answer.value for series_ in shown
    )
    few = f" (fewer than {FEWEST_POINTS} runs)" if answers[NOT_JUDGED] else ""
    return [
        ", ".join(f"{count} {answer}" for answer, count in answers.items()).capitalize() + few + "."
    ]


def _panel(series: Series, name: str, about: str, moments: Sequence[str], wide: int) -> Panel:
    records = _points(series)
    metric = series.metric
    values = [point.value for point in series.points]
    unit = metric.header.removeprefix(metric.name).strip() or metric.header
    steps = _steps(series, moments, wide)
    high = axes.HIGH if wide == axes.WIDE else axes.PANEL_HIGH
    rows = max((step["row"] for step in steps), default=-1) + 1
    scale = axes.axis(f"{metric.title}, {unit}", values, zero=False).with_room(rows * _ROW / high)
    x = _x(moments, wide)
    return Panel(name, [about], records, [*_drawn_steps(steps, x), *_layers(series, scale, x)])


def _points(series: Series) -> list[axes.Record]:
    spikes = {spike.at for spike in series.came_back}
    kind = str(series.row.get("provenance") or "measured")
    colour = colour_of(str(series.row.get("hardware")))
    software = {at: safe(in_short(what), _LONGEST) for at, what in series.software_changes}
    return [
        {
            "model": safe(series.row.get("model")),
            "hardware": safe(series.row.get("hardware")),
            "device": safe(series.row.get("device_name") or ""),
            "moment": said(point.moment),
            "value": point.value,
            "run": safe(point.run_id),
            "commit": safe(point.commit[:10]),
            "launches": point.launches,
            "alone": place in spikes,
            "software": software.get(place, ""),
            "kind": kind,
            "colour": colour,
            "paint": axes.filled(colour, kind),
        }
        for place, point in enumerate(series.points)
    ]


def _levels(series: Series) -> list[axes.Record]:
    steps = series.course.steps if series.course else ()
    levels: list[axes.Record] = []
    edges = sorted({0, *(step.at for step in steps), *(part.at for part in series.partings)})
    for begin, end in pairwise([*edges, len(series.points)]):
        part = series.points[begin:end]
        middle = median(point.value for point in part)
        levels += (
            {"moment": said(point.moment), "level": middle, "piece": begin} for point in part
        )
    return levels


def _x(moments: Sequence[str], wide: int) -> axes.Spec:
    return {
        "field": "moment",
        "type": "temporal",
        "title": phrase("charts.axis-time"),
        # A run has one moment, however long it took; runs are as far apart as they were in time.
        "scale": {"type": "utc", "domain": [moments[0], moments[-1]], "padding": _PADDING},
        "axis": {"labelOverlap": "greedy", "grid": False, **time_axis(moments, wide // 60)},
    }


def _layers(series: Series, scale: axes.ChartAxis, x: axes.Spec) -> list[axes.Spec]:
    y = scale.of("value")
    pieces = {"x": x, "y": {**y, "field": "level"}, "detail": axes.words("piece")[0]}
    moment = {"field": "moment", "type": "temporal", "format": "%Y-%m-%d %H:%M"}
    figure = {"field": "value", "title": scale.title, "format": axes.NUMBER}
    names = ("run", "commit", "launches", "software", "kind")
    points = {
        "x": x,
        "y": y,
        "shape": {"condition": {"test": "datum.alone", "value": "cross"}, "value": "circle"},
        "size": {"condition": {"test": "datum.alone", "value": 110}, "value": 42},
        "stroke": COLOUR,
        "fill": PAINT,
        "tooltip": [moment, figure, *({"field": name} for name in names)],
    }
    form: axes.Spec = {"strokeWidth": 1.6, "color": axes.INK, "opacity": 0.75}
    return [
        axes.layer("line", pieces, of=_levels(series), **form),
        axes.layer("point", points, strokeWidth=1.6, opacity=0.9),
    ]


def _steps(series: Series, moments: Sequence[str], wide: int) -> list[axes.Record]:
    records: list[axes.Record] = []
    rows: list[float] = []
    for at, mark in sorted([*_changes(series), *_of_versions(series)], key=lambda pair: pair[0]):
        point = series.points[at]
        text = mark["step"]
        long = (width(text, _SIZE) or 0.0) + 2 * _GAP
        place = _PADDING + _share(point.moment, moments) * (wide - 2 * _PADDING)
        left = place + long > wide
        begin = place - long if left else place
        row = next((i for i, end in enumerate(rows) if end <= begin), len(rows))
        if row < _MOST_ROWS:
            rows[row : row + 1] = [begin + long]
        records.append(
            {
                "moment": said(point.moment),
                "said": text if row < _MOST_ROWS else "",
                "commit": safe(point.commit[:10]),
                **mark,
                "row": min(row, _MOST_ROWS - 1),
                "left": left,
            }
        )
    return records


def _changes(series: Series) -> Iterable[tuple[int, axes.Record]]:
    for step in series.course.steps if series.course else ():
        worse = (step.share > 0) == series.metric.lower_is_better
        verdict, colour = ("worse", axes.ALERT) if worse else ("better", axes.BETTER)
        if not worse and series.doubt_of(step.at):
            verdict, colour = str(Judgement.CANNOT_TELL), axes.INK
        yield step.at, {"verdict": verdict, "colour": colour, "step": f"{step.share:+.0%}"}


def _of_versions(series: Series) -> Iterable[tuple[int, axes.Record]]:
    for parting in series.partings[-_MOST_MARKS:]:
        text = safe(parting.said, _LONGEST)
        yield parting.at, {"verdict": _SOFTWARE, "colour": axes.INK, "step": text}
    for at, what in series.software_changes[-_MOST_MARKS:]:
        text = safe(in_short(what), _LONGEST)
        yield at, {"verdict": _SOFTWARE, "colour": axes.INK, "step": text}


def _share(moment: str, moments: Sequence[str]) -> float:
    ends = [utc(stamp) for stamp in (moments[0], moment, moments[-1])]
    known = [end.timestamp() for end in ends if end is not None]
    if len(known) < len(ends) or known[0] == known[-1]:
        return 0.5
    return (known[1] - known[0]) / (known[-1] - known[0])


def _drawn_steps(steps: Sequence[axes.Record], x: axes.Spec) -> list[axes.Spec]:
    if not steps:
        return []
    sized: axes.Spec = {"strokeDash": [4, 3], "strokeWidth": 1.3}
    dotted: axes.Spec = {"strokeDash": [1, 3], "strokeWidth": 1.1, "opacity": 0.8}
    told = {"step": "changed by", "verdict": "that is", "commit": "since"}
    kinds = [(sized, False, told), (dotted, True, {"step": "software"})]
    layers = []
    for form, software, titles in kinds:
        if several := [one for one in steps if (one["verdict"] == _SOFTWARE) is software]:
            tips = [{"field": name, "title": title} for name, title in titles.items()]
            channels = {"x": x, "color": COLOUR, "tooltip": tips}
            layers.append(axes.layer("rule", channels, of=several, **form))
    for row, left in sorted({(step["row"], step["left"]) for step in steps}):
        layers += _sizes([s for s in steps if (s["row"], s["left"]) == (row, left)], x)
    return layers


def _sizes(steps: Sequence[axes.Record], x: axes.Spec) -> list[axes.Spec]:
    row, left = steps[0]["row"], steps[0]["left"]
    side: axes.Spec = {"dx": -_GAP, "align": "right"} if left else {"dx": _GAP, "align": "left"}
    place = {"x": x, "y": {"value": 8 + row * _ROW}, "text": {"field": "said"}}
    form = {"fontSize": _SIZE, **side}
    return [
        axes.layer(
            "text", place, of=steps, stroke=axes.PAPER, strokeWidth=4, color=axes.PAPER, **form
        ),
        axes.layer("text", {**place, "color": COLOUR}, of=steps, **form),
    ]
