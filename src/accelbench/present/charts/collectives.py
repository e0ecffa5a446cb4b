"""Collectives over the size of their buffer, communication, and each rank of a step. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import median

from accelbench.core.calibration import ProbeResult, TimedCollectives
from accelbench.core.formatting import format_count, format_value, join_first
from accelbench.core.rows import number
from accelbench.judge.points import FigureInterval, Point
from accelbench.judge.process_spread import RankFigures, StepParts, ranks_of, step_parts
from accelbench.measure.launch_verdicts import geometric_mean
from accelbench.present.charts import axes, words
from accelbench.present.charts.chart import ChartBody, Subject
from accelbench.present.charts.marks import (
    MOST_PANELS,
    Panel,
    arranged,
    labels,
    record,
    whiskers,
)
from accelbench.present.texts import phrase

_RATE, _TIME = "bus bandwidth, GB/s", "time, µs"
_BYTES = "buffer, bytes"
#: Lines across: 1 KiB, 16 KiB, 256 KiB and on.
_SIZES = [2**exponent for exponent in range(10, 51, 4)]
_NAMED = (
    "datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB'"
    " : datum.value >= 1048576 ? datum.value / 1048576 + ' MiB'"
    " : datum.value / 1024 + ' KiB'"
)


def draw_collectives(subject: Subject) -> ChartBody | None:
    """Bandwidth and time over the size of the buffer."""
    every = list(subject.collectives)
    if not every:
        return None
    shown = every[: MOST_PANELS // 2]
    rates, times = (
        [[{**_about(timed, entry), **made(entry)} for entry in timed.figures] for timed in shown]
        for made in (_rate, _time)
    )
    # On a logarithmic axis devices that are far apart are seen beside each other.
    rate_axis = axes.axis(_RATE, [end for panel in rates for end in _ends(panel)], log=True)
    time_axis = axes.axis(_TIME, [end for panel in times for end in _ends(panel)], log=True)
    sizes: list[float | None] = [datum["bytes"] for panel in rates for datum in panel]
    x = _across(axes.axis(_BYTES, sizes, log=True))
    lines = _lines([datum["collective"] for panel in rates for datum in panel])
    panels = []
    for index, timed in enumerate(shown):
        title = f"{_device(timed)} · {timed.ranks} ranks"
        for records, scale in ((rates[index], rate_axis), (times[index], time_axis)):
            panels.append(Panel(title, (), records, _layers(records, x, scale, lines)))
    notes = [
        phrase("charts.collectives-legend"),
        _rests_on(shown),
        *(f"{_device(timed)}, {timed.ranks} ranks: {words.safe(warning, 160)}"
          for timed in shown for warning in timed.warnings),
        *words.left_out(len(every) - len(shown), "pair of panels", "pairs of panels",
                  phrase("charts.see-hardware")),
    ]  # fmt: skip
    table = [
        _row(rate, time)
        for of_rates, of_times in zip(rates, times, strict=True)
        for rate, time in zip(of_rates, of_times, strict=True)
    ]
    return ChartBody(arranged(panels), (), notes, table)


def _device(timed: TimedCollectives) -> str:
    return f"{words.safe(timed.hardware)} {words.safe(words.short_device(timed.device_name), 28)}"


def _rests_on(shown: Sequence[TimedCollectives]) -> str:
    figures = [entry for timed in shown for entry in timed.figures]
    samples = sum(len(entry.samples_ns) for entry in figures)
    runs = sorted({f"{timed.day} with {words.safe(timed.engine)}" for timed in shown})
    return phrase(
        "charts.probes-and-samples",
        figures=format_count(len(figures), "probe"),
        samples=samples,
        runs=join_first(runs, 3),
    )


def _about(timed: TimedCollectives, entry: ProbeResult) -> axes.Record:
    return {
        "device": _device(timed),
        "ranks": timed.ranks,
        "collective": words.safe(entry.spec.collective),
        "bytes": entry.spec.size,
        "kind": "measured",
    }


def _rate(entry: ProbeResult) -> axes.Record:
    low, high = (end and end / 1e9 for end in (entry.low, entry.high))
    return {"value": entry.value / 1e9, "low": low, "high": high}


def _time(entry: ProbeResult) -> axes.Record:
    low, high = (end and entry.spec.work / end * 1e6 for end in (entry.high, entry.low))
    return {"value": entry.step_seconds * 1e6, "low": low, "high": high}


def _row(rate: axes.Record, time: axes.Record) -> axes.Record:
    plain = {name: rate[name] for name in ("device", "ranks", "collective", "bytes")}
    ends = {"GB/s": rate, "µs": time}
    return plain | {
        f"{name}{unit}": datum[field]
        for unit, datum in ends.items()
        for name, field in (("", "value"), ("from ", "low"), ("to ", "high"))
    }


def _ends(records: Sequence[axes.Record]) -> list[float | None]:
    return [datum[name] for datum in records for name in ("value", "low", "high")]


def _across(scale: axes.ChartAxis) -> axes.Spec:
    values = [size for size in _SIZES if scale.low <= size <= scale.high]
    known: axes.Spec = {"values": values, "labelExpr": _NAMED} if values else {}
    return scale.of("bytes", **known)


def _lines(names: Sequence[str]) -> dict[str, axes.Spec]:
    several = dict.fromkeys(names)
    shown = axes.legend(columns=4, symbolSize=90)
    ranges = {"color": axes.GROUP_COLOURS, "shape": axes.GROUP_SHAPES}
    return {
        channel: axes.grouped("collective", dict(zip(several, cycle(values), strict=False)), shown)
        for channel, values in ranges.items()
    }


def _layers(
    records: Sequence[axes.Record], x: axes.Spec, scale: axes.ChartAxis, lines: dict[str, axes.Spec]
) -> list[axes.Spec]:
    place = {"x": x, "y": scale.of("value")}
    coloured = {**place, "color": lines["color"]}
    figures = axes.numbers("ranks", "bytes", value=scale.title, low="95 % from", high="95 % to")
    tips = [*axes.words("collective", "device"), *figures]
    line = axes.layer("line", coloured, strokeWidth=1.8)
    channels = {**coloured, "shape": lines["shape"], "tooltip": tips}
    marks = axes.layer("point", channels, filled=True, size=46, opacity=1)
    return [line, *whiskers(records, "y", coloured, scale, strokeWidth=2.4), marks]


#: Parts in the order in which they are drawn, each with its colour: they are no platforms.
_PARTS = {
    "computation": axes.REST_COLOUR,
    "overlapped communication": axes.GROUP_COLOURS[5],
    "exposed communication": axes.GROUP_COLOURS[1],
}
_MOST_BARS = 16
_LONGEST_NAME = 72
#: Beside the longest bar there has to be room for its words.
_ROOM = 0.2
_BAR = 24


def draw_communication(subject: Subject) -> ChartBody | None:
    """Computation and communication of a profiled step."""
    split = [(point, parts) for point in subject.points if (parts := step_parts(point.rows))]
    known = [(point, parts) for point, parts in split if point.timed]
    if not known:
        return None
    shown = sorted(known, key=lambda entry: _place(entry[0]))[:_MOST_BARS]
    points = [point for point, _ in shown]
    always = ("model", words.DEVICES, "options")
    names = words.told(points, words.EVERYTHING, always, _LONGEST_NAME, devices=subject.devices)
    records = [
        datum
        for (point, parts), name in zip(shown, words.unique(names.apart), strict=True)
        for datum in _records(point, parts, name)
    ]
    scale = axes.axis("profiled step, ms", [parts.step for _, parts in shown], log=False)
    notes = [
        phrase("charts.communication-legend"),
        *words.in_common(names.together),
        *words.left_out(len(known) - len(shown), "configuration"),
        *words.emulated(len(split) - len(known)),
    ]
    return ChartBody(_body(records, scale.with_room(_ROOM)), points, notes, records)


def _place(point: Point) -> tuple[object, ...]:
    row = point.row
    sizes = [number(row, name) or 0 for name in ("batch_size", "world_size")]
    what = [str(row.get(name)) for name in ("model", "hardware", "mode")]
    return (*what, *sizes, str(row.get("options")))


def _records(point: Point, parts: StepParts, name: str) -> list[axes.Record]:
    figures = (parts.computation, parts.overlapped, parts.exposed)
    shares = f"{format_value(parts.exposed)} ms exposed, {100 * parts.exposed / parts.step:.0f} %"
    begin, records = 0.0, []
    for place, (part, value) in enumerate(zip(_PARTS, figures, strict=True)):
        last = place == len(_PARTS) - 1
        more: axes.Record = {"bar": name, "part": part, "place": begin, "end": begin + value}
        # The times are a profiler's own, and as steady as any: their interval is not the step's.
        datum = record(point, FigureInterval(value), timed=False, **more)
        records.append({**datum, "said": shares if last else ""})
        begin += value
    return records


def _body(records: Sequence[axes.Record], scale: axes.ChartAxis) -> axes.Spec:
    y = axes.named("bar", (datum["bar"] for datum in records), labelLimit=480)
    parts = axes.grouped("part", _PARTS, {"title": None, "symbolType": "square", "columns": 3})
    tips = [
        {**axes.words("bar")[0], "title": "configuration"},
        *axes.words("part"),
        *axes.numbers(value="ms"),
    ]
    ends = {"x": scale.of("place"), "x2": {"field": "end"}, "y": y}
    bars = {**ends, "fill": parts, "tooltip": tips}
    segments = axes.layer("bar", bars, stroke=axes.PAPER, strokeWidth=1, height={"band": 0.7})
    place = {"x": scale.of("end"), "y": y, "text": {"field": "said"}}
    return axes.view(
        records, axes.WIDE, {"step": _BAR}, segments, labels(place, align="left", dx=5)
    )


#: Figure → the head of its column; work first, as it is what tells a straggler.
_FIGURES: Mapping[str, str] = {
    "work_ms": "own work, ms",
    "exposed_ms": "exposed, ms",
    "communication_ms": "communication, ms",
    "step_ms": "median step, ms",
    "memory_mb": "peak memory, MB",
}
#: A rank whose own work is this many times the median rank's is marked.
_SLOW = 1.05
_RANKS_MEANING = phrase("charts.ranks-legend", slow=_SLOW)
#: Where colours end: a rank that takes half as much again, or a third less.
_FURTHEST = 1.5
_COLOURS = ("#5aa5d6", "#f7f7f7", "#f08a3c")
_MOST_RANKS = 32
_LINE = 21


@dataclass(frozen=True)
class RankLine:
    """A rank of a configuration: the middle of its launches."""

    rank: int
    place: str
    figures: Mapping[str, float]


def rank_lines(point: Point) -> list[RankLine]:
    """The ranks of a point, each by the middle of its launches."""
    launches: dict[int, list[RankFigures]] = {}
    for row in point.rows:
        for rank in ranks_of(row):
            launches.setdefault(rank.rank, []).append(rank)
    several = len({rank.host for ranks in launches.values() for rank in ranks}) > 1
    return [
        RankLine(number_, _rank_place(ranks[0], several), _figures(ranks))
        for number_, ranks in sorted(launches.items())
    ]


def _rank_place(rank: RankFigures, several_hosts: bool) -> str:
    parts = (rank.host if several_hosts else "", rank.device if rank.device != "cpu" else "")
    return " ".join(words.safe(part, 24) for part in parts if part)


def _figures(launches: Sequence[RankFigures]) -> dict[str, float]:
    figures = {}
    for name in _FIGURES:
        known = [value for rank in launches if (value := getattr(rank, name)) is not None]
        if known:
            figures[name] = geometric_mean(known) if min(known) > 0 else sum(known) / len(known)
    return figures


def draw_ranks(subject: Subject) -> ChartBody | None:
    """Every rank of a step beside the others, so that a slow one is seen."""
    of_all = [(point, rank_lines(point)) for point in subject.points]
    every = [entry for entry in of_all if sum(bool(line.figures) for line in entry[1]) > 1]
    known = [(point, lines) for point, lines in every if point.timed]
    if not known:
        return None
    known.sort(key=lambda entry: (-len(entry[1]), str(entry[0].row.get("model"))))
    shown = known[:MOST_PANELS]
    points = [point for point, _ in shown]
    always = ("model", words.DEVICES, "options")
    abouts = words.told(points, words.EVERYTHING, always, 96, devices=subject.devices)
    panels, everything = [], []
    for (point, lines), name in zip(shown, abouts.apart, strict=True):
        records = _rank_records(lines, name)
        everything += records
        panels.append(
            Panel(name, [_straggler(point, lines)], records, _rank_layers(records), {"step": _LINE})
        )
    more = sum(max(0, len(lines) - _MOST_RANKS) for _, lines in shown)
    notes = [
        _RANKS_MEANING,
        *words.in_common(abouts.together),
        *words.left_out(len(known) - len(shown), "configuration"),
        *words.left_out(more, "rank", advice=phrase("charts.ranks-left-out")),
        *words.emulated(len(every) - len(known)),
    ]
    return ChartBody(arranged(panels, columns=1), points, notes, everything)


def _straggler(point: Point, lines: Sequence[RankLine]) -> str:
    work = {line.rank: line.figures["work_ms"] for line in lines if "work_ms" in line.figures}
    ratio = point.metric("straggler_ratio")
    if not work or ratio is None:
        return phrase("charts.no-step-profiled")
    slowest = max(work, key=lambda rank: work[rank])
    return f"slowest: rank {slowest} · straggler ratio {ratio.value:.2f}"


def _rank_records(lines: Sequence[RankLine], name: str) -> list[axes.Record]:
    middles = {
        figure_name: median(known)
        for figure_name in _FIGURES
        if (known := [n.figures[figure_name] for n in lines if figure_name in n.figures])
    }
    kept = sorted(lines, key=lambda line: -line.figures.get("work_ms", 0.0))[:_MOST_RANKS]
    records: list[axes.Record] = []
    for line in sorted(kept, key=lambda line: line.rank):
        # To the median rank; 1 if that has nothing of it.
        ratios = {n: value / (middles[n] or value or 1.0) for n, value in line.figures.items()}
        slow = ratios.get("work_ms", 1.0) >= _SLOW
        label = " ".join(filter(None, ("►" if slow else "", f"rank {line.rank}", line.place)))
        records += [
            {
                "configuration": name,
                "line": label,
                "rank": line.rank,
                "where": line.place,
                "figure": _FIGURES[figure_name],
                "value": value,
                "ratio": ratios[figure_name],
                "said": format_value(value),
            }
            for figure_name, value in line.figures.items()
        ]
    return records


def _rank_layers(records: Sequence[axes.Record]) -> list[axes.Spec]:
    heads = [head for head in _FIGURES.values() if any(r["figure"] == head for r in records)]
    place = axes.grid(
        "figure", heads, "line", (r["line"] for r in records), labelFontSize=11.5, labelLimit=130
    )
    domain = [1 / _FURTHEST, 1, _FURTHEST]
    gradient: axes.Spec = {
        "direction": "horizontal",
        "gradientLength": 160,
        "values": [0.67, 1, 1.5],
    }
    colour: axes.Spec = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "range": list(_COLOURS), "clamp": True},
        "legend": {"title": phrase("charts.axis-rank-ratio"), "format": ".2f", **gradient},
    }
    figures: axes.Spec = {"type": "quantitative"}
    tips = [
        *axes.words("configuration", "line", "figure"),
        {"field": "value", **figures, "format": axes.NUMBER},
        {"field": "ratio", **figures, "format": ".2f"},
    ]
    fill = {**place, "fill": colour, "tooltip": tips}
    text = labels({**place, "text": {"field": "said"}})
    return [axes.layer("rect", fill, stroke=axes.PAPER, strokeWidth=2), text]
