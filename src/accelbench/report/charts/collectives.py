"""Collectives over the size of their buffer, and the communication of a step. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from accelbench.analysis.points import FigureInterval, Point
from accelbench.analysis.ranks import StepParts, step_parts
from accelbench.core.calibration import ProbeFigure, TimedCollectives
from accelbench.core.nouns import counted, listed
from accelbench.core.rows import number
from accelbench.report.charts.axes import (
    ChartAxis,
    Spec,
    axis,
    grouped,
    layer,
    legend,
    named,
    numbers,
    view,
    words,
)
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.marks import (
    MOST_PANELS,
    Panel,
    Record,
    arranged,
    labels,
    record,
    whiskers,
)
from accelbench.report.charts.theme import GROUP_COLOURS, GROUP_SHAPES, PAPER, REST_COLOUR, WIDE
from accelbench.report.charts.words import (
    DEVICES,
    EVERYTHING,
    emulated,
    figure,
    in_common,
    left_out,
    safe,
    short_device,
    told,
    unique,
)

_MEANT = (
    "Bus bandwidth as nccl-tests defines it: bytes ÷ time, × 2 (n − 1) ÷ n for all_reduce,"
    " × (n − 1) ÷ n for all_gather and reduce_scatter, × 1 for broadcast, of n ranks. Bytes are of"
    " the whole buffer; rules are 95 % intervals of the median."
)
_RATE, _TIME = "bus bandwidth, GB/s", "time, µs"
_BYTES = "buffer, bytes"
#: Lines across: 1 KiB, 16 KiB, 256 KiB and on.
_SIZES = [2**exponent for exponent in range(10, 51, 4)]
_NAMED = (
    "datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB'"
    " : datum.value >= 1048576 ? datum.value / 1048576 + ' MiB'"
    " : datum.value / 1024 + ' KiB'"
)


def _drawn(subject: Subject) -> ChartBody | None:
    every = list(subject.collectives)
    if not every:
        return None
    shown = every[: MOST_PANELS // 2]
    rates, times = (
        [[{**_about(timed, entry), **made(entry)} for entry in timed.figures] for timed in shown]
        for made in (_rate, _time)
    )
    # On a logarithmic axis devices that are far apart are seen beside each other.
    rate_axis = axis(_RATE, [end for panel in rates for end in _ends(panel)], log=True)
    time_axis = axis(_TIME, [end for panel in times for end in _ends(panel)], log=True)
    sizes: list[float | None] = [datum["bytes"] for panel in rates for datum in panel]
    x = _across(axis(_BYTES, sizes, log=True))
    lines = _lines([datum["collective"] for panel in rates for datum in panel])
    panels = []
    for index, timed in enumerate(shown):
        title = f"{_device(timed)} · {timed.ranks} ranks"
        for records, scale in ((rates[index], rate_axis), (times[index], time_axis)):
            panels.append(Panel(title, (), records, _layers(records, x, scale, lines)))
    notes = [
        _MEANT,
        _rests_on(shown),
        *(f"{_device(timed)}, {timed.ranks} ranks: {safe(warning, 160)}"
          for timed in shown for warning in timed.warnings),
        *left_out(len(every) - len(shown), "pair of panels", "pairs of panels",
                  "accelbench hardware lists all"),
    ]  # fmt: skip
    table = [
        _row(rate, time)
        for of_rates, of_times in zip(rates, times, strict=True)
        for rate, time in zip(of_rates, of_times, strict=True)
    ]
    return ChartBody(arranged(panels), (), notes, table)


def _device(timed: TimedCollectives) -> str:
    return f"{safe(timed.hardware)} {safe(short_device(timed.device_name), 28)}"


def _rests_on(shown: Sequence[TimedCollectives]) -> str:
    figures = [entry for timed in shown for entry in timed.figures]
    samples = sum(len(entry.samples_ns) for entry in figures)
    runs = sorted({f"{timed.day} with {safe(timed.engine)}" for timed in shown})
    return f"{counted(len(figures), 'probe')}, {samples:,} samples; {listed(runs, 3)}."


def _about(timed: TimedCollectives, entry: ProbeFigure) -> Record:
    return {
        "device": _device(timed),
        "ranks": timed.ranks,
        "collective": safe(entry.spec.collective),
        "bytes": entry.spec.size,
        "kind": "measured",
    }


def _rate(entry: ProbeFigure) -> Record:
    low, high = (end and end / 1e9 for end in (entry.low, entry.high))
    return {"value": entry.value / 1e9, "low": low, "high": high}


def _time(entry: ProbeFigure) -> Record:
    low, high = (end and entry.spec.work / end * 1e6 for end in (entry.high, entry.low))
    return {"value": entry.step_seconds * 1e6, "low": low, "high": high}


def _row(rate: Record, time: Record) -> Record:
    plain = {name: rate[name] for name in ("device", "ranks", "collective", "bytes")}
    ends = {"GB/s": rate, "µs": time}
    return plain | {
        f"{name}{unit}": datum[field]
        for unit, datum in ends.items()
        for name, field in (("", "value"), ("from ", "low"), ("to ", "high"))
    }


def _ends(records: Sequence[Record]) -> list[float | None]:
    return [datum[name] for datum in records for name in ("value", "low", "high")]


def _across(scale: ChartAxis) -> Spec:
    values = [size for size in _SIZES if scale.low <= size <= scale.high]
    known: Spec = {"values": values, "labelExpr": _NAMED} if values else {}
    return scale.of("bytes", **known)


def _lines(names: Sequence[str]) -> dict[str, Spec]:
    several = dict.fromkeys(names)
    shown = legend(columns=4, symbolSize=90)
    ranges = {"color": GROUP_COLOURS, "shape": GROUP_SHAPES}
    return {
        channel: grouped("collective", dict(zip(several, cycle(values), strict=False)), shown)
        for channel, values in ranges.items()
    }


def _layers(
    records: Sequence[Record], x: Spec, scale: ChartAxis, lines: dict[str, Spec]
) -> list[Spec]:
    place = {"x": x, "y": scale.of("value")}
    coloured = {**place, "color": lines["color"]}
    figures = numbers("ranks", "bytes", value=scale.title, low="95 % from", high="95 % to")
    tips = [*words("collective", "device"), *figures]
    line = layer("line", coloured, strokeWidth=1.8)
    channels = {**coloured, "shape": lines["shape"], "tooltip": tips}
    marks = layer("point", channels, filled=True, size=46, opacity=1)
    return [line, *whiskers(records, "y", coloured, scale, strokeWidth=2.4), marks]


COLLECTIVES = Chart(
    "collectives",
    "Collectives over message size",
    "what collectives among ranks bring and take, by the size of their buffer",
    "a calibration by hardware --calibrate --processes",
    _drawn,
)


#: Parts in the order in which they are drawn, each with its colour: they are no platforms.
_PARTS = {
    "computation": REST_COLOUR,
    "overlapped communication": GROUP_COLOURS[5],
    "exposed communication": GROUP_COLOURS[1],
}
_COMMUNICATION_MEANT = (
    "The mean of the ranks over steps under a profiler, which makes steps longer. A collective"
    " lasts from its call to its result, waiting for other ranks included; computation is the rest."
)
_MOST_BARS = 16
_LONGEST_NAME = 72
#: Beside the longest bar there has to be room for its words.
_ROOM = 0.2
_BAR = 24


def _communication_drawn(subject: Subject) -> ChartBody | None:
    split = [(point, parts) for point in subject.points if (parts := step_parts(point.rows))]
    known = [(point, parts) for point, parts in split if point.timed]
    if not known:
        return None
    shown = sorted(known, key=lambda entry: _place(entry[0]))[:_MOST_BARS]
    points = [point for point, _ in shown]
    always = ("model", DEVICES, "options")
    names = told(points, EVERYTHING, always, _LONGEST_NAME, devices=subject.devices)
    records = [
        datum
        for (point, parts), name in zip(shown, unique(names.apart), strict=True)
        for datum in _records(point, parts, name)
    ]
    scale = axis("profiled step, ms", [parts.step for _, parts in shown], log=False)
    notes = [
        _COMMUNICATION_MEANT,
        *in_common(names.together),
        *left_out(len(known) - len(shown), "configuration"),
        *emulated(len(split) - len(known)),
    ]
    return ChartBody(_body(records, scale.with_room(_ROOM)), points, notes, records)


def _place(point: Point) -> tuple[object, ...]:
    row = point.row
    sizes = [number(row, name) or 0 for name in ("batch_size", "world_size")]
    what = [str(row.get(name)) for name in ("model", "hardware", "mode")]
    return (*what, *sizes, str(row.get("options")))


def _records(point: Point, parts: StepParts, name: str) -> list[Record]:
    figures = (parts.computation, parts.overlapped, parts.exposed)
    shares = f"{figure(parts.exposed)} ms exposed, {100 * parts.exposed / parts.step:.0f} %"
    begin, records = 0.0, []
    for place, (part, value) in enumerate(zip(_PARTS, figures, strict=True)):
        last = place == len(_PARTS) - 1
        more: Record = {"bar": name, "part": part, "place": begin, "end": begin + value}
        # The times are a profiler's own, and as steady as any: their interval is not the step's.
        datum = record(point, FigureInterval(value), timed=False, **more)
        records.append({**datum, "said": shares if last else ""})
        begin += value
    return records


def _body(records: Sequence[Record], scale: ChartAxis) -> Spec:
    y = named("bar", (datum["bar"] for datum in records), labelLimit=480)
    parts = grouped("part", _PARTS, {"title": None, "symbolType": "square", "columns": 3})
    tips = [{**words("bar")[0], "title": "configuration"}, *words("part"), *numbers(value="ms")]
    ends = {"x": scale.of("place"), "x2": {"field": "end"}, "y": y}
    bars = {**ends, "fill": parts, "tooltip": tips}
    segments = layer("bar", bars, stroke=PAPER, strokeWidth=1, height={"band": 0.7})
    place = {"x": scale.of("end"), "y": y, "text": {"field": "said"}}
    return view(records, WIDE, {"step": _BAR}, segments, labels(place, align="left", dx=5))


COMMUNICATION = Chart(
    "communication",
    "Communication of a step",
    "what of a step of several processes is communication",
    "steps of several processes",
    _communication_drawn,
)
